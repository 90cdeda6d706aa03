/* Loads the files of a client's TLS into mbedtls. Blocks on files. Thread: any. */
#ifndef CLIENT_WIRE_TLS_FILES_H
#define CLIENT_WIRE_TLS_FILES_H

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "client/src/wire/tls_names.h"
#include "common/err.h"

/* The three are initialised, and the caller frees them, also after a failure. Errors name the
 * file. */
int tls_files_load(const struct tls_names *names, mbedtls_x509_crt *ca, mbedtls_x509_crt *cert,
                   mbedtls_pk_context *key, struct err *e);

#endif
