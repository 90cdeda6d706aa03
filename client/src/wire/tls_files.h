/* Loads the files of a client's TLS into mbedtls. Blocks on files. Thread: any. */
#ifndef CLIENT_WIRE_TLS_FILES_H
#define CLIENT_WIRE_TLS_FILES_H

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "client/src/wire/tls_names.h"
#include "common/err.h"

struct tls_files {
    mbedtls_x509_crt ca;
    mbedtls_x509_crt cert; /* the client's own; empty: it has none */
    mbedtls_pk_context key;
};

/* ERR_INVALID, ERR_PERMISSION: the file that the error names. ERR_NOMEM. */
int tls_files_load(const struct tls_names *names, struct tls_files **ret_files, struct err *e);
void tls_files_free(struct tls_files *files); /* overwrites the key */

#endif
