/*
 * The request to gpud-compile and its response. Each is in a memfd: 8 bytes with the message's
 * length (little endian), then the message (C_REQUEST, C_RESPONSE of frames.h). Both are read as
 * untrusted input: the length is checked against the memfd, then the whole message is checked.
 * Thread: any. Nothing here blocks.
 */
#ifndef PROTO_COMPILE_H
#define PROTO_COMPILE_H

#include <stdbool.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/memfd.h"
#include "proto/codec.h"

/* Room for the largest response; pages are allocated when written. */
#define COMPILE_RESPONSE_BYTES (76u * 1024u * 1024u)

/* Exit codes of a gpud-compile that ends without a response because its memory or its stack ran
 * out. */
#define COMPILE_EXIT_MEMORY 71
#define COMPILE_EXIT_STACK  72

struct compile_request {
    int lang; /* enum proto_lang */
    bool f64; /* the device supports f64 */
    struct bytes source;
    struct bytes file;         /* the user's file name, may be empty */
    struct bytes options;      /* for the compiler */
    struct bytes arch;         /* of the device */
    struct bytes signature;    /* signature lines for code without them */
    struct proto_list headers; /* HEADER records: texts that the source may include */
};

/* Texts, bytes and lists of a response that was read point into its memfd. */
struct compile_response {
    int code; /* 0 or ERR_* */
    int vendor;
    struct bytes text;         /* the error's chain */
    struct bytes log;          /* the compiler's messages */
    struct bytes compiler;     /* the stamp of the compiler's file, may be empty */
    struct bytes binary;       /* code 0 only */
    struct proto_list kernels; /* CKERNEL records: proto_list_next(&it, &schema_ckernel, …) */
    struct proto_list entries; /* WKERNEL records: the properties of each entry */
};

/* Makes the request's memfd. The caller finishes ret_m. */
int compile_request_write(const struct compile_request *request, struct memfd *ret_m,
                          struct err *e);
/* *ret_request points into *m. */
int compile_request_read(const struct memfd *m, struct compile_request *ret_request, struct err *e);

/* Makes the memfd of an empty response, of COMPILE_RESPONSE_BYTES. */
int compile_response_create(struct memfd *ret_m, struct err *e);
int compile_response_write(const struct compile_response *response, struct memfd *m, struct err *e);
/* *ret_response points into *m. ERR_COMPILE_LIMIT if nothing was written: the compiler was ended
 * first. The writing process must have ended; otherwise it could change bytes after their check. */
int compile_response_read(const struct memfd *m, struct compile_response *ret_response,
                          struct err *e);

#endif
