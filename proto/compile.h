/*
 * The request to gpud-compile and its response. Each is in a memfd: 8 bytes with the
 * message's length (little endian), then the message (C_REQUEST, C_RESPONSE of frames.h).
 * Both are read as untrusted input: the length is checked against the memfd, then the message
 * whole. Thread: any. Nothing here blocks.
 */
#ifndef PROTO_COMPILE_H
#define PROTO_COMPILE_H

#include <stdbool.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/memfd.h"
#include "proto/codec.h"

/* Room for the largest response; pages are taken when written. */
#define COMPILE_RESPONSE_BYTES (76u * 1024u * 1024u)

/* Exit codes of a gpud-compile that had to end without an answer: its memory or its stack ran out.
 */
#define COMPILE_EXIT_MEMORY 71
#define COMPILE_EXIT_STACK  72

struct compile_request {
    int lang; /* enum proto_lang */
    bool f64; /* the device has it */
    struct bytes source;
    struct bytes file;         /* the user's name for it, may be empty */
    struct bytes options;      /* for the compiler */
    struct bytes arch;         /* of the device it is for */
    struct bytes signature;    /* lines, for code that carries none */
    struct proto_list headers; /* HEADER records: texts that the source may include */
};

/* Texts, bytes and lists point into the memfd that it was read from. */
struct compile_response {
    int code; /* 0 or ERR_* */
    int vendor;
    struct bytes text;         /* the error's chain */
    struct bytes log;          /* the compiler's messages */
    struct bytes compiler;     /* the stamp of its file, may be empty */
    struct bytes binary;       /* code 0 only */
    struct proto_list kernels; /* CKERNEL records: proto_list_next(&it, &schema_ckernel, …) */
    struct proto_list entries; /* WKERNEL records: the properties of each entry */
};

/* Makes the request's memfd. The caller finishes ret_m. */
int compile_request_write(const struct compile_request *request, struct memfd *ret_m,
                          struct err *e);
/* ret_request lies in *m. */
int compile_request_read(const struct memfd *m, struct compile_request *ret_request, struct err *e);

/* An empty response's memfd, of COMPILE_RESPONSE_BYTES. */
int compile_response_create(struct memfd *ret_m, struct err *e);
int compile_response_write(const struct compile_response *response, struct memfd *m, struct err *e);
/* ERR_COMPILE_LIMIT if nothing was written: the compiler was ended first. The writing
 * process must have ended, else it could change the checked bytes. */
int compile_response_read(const struct memfd *m, struct compile_response *ret_response,
                          struct err *e);

#endif
