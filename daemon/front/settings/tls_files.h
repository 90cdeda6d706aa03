/*
 * The files for TLS: the daemon's certificate with its chain, its key, and the CA of clients. They
 * are checked when they are read, because NNG tells little about a bad one, and an expired
 * certificate only its clients would notice. Blocks on files. Thread: any.
 */
#ifndef FRONT_SETTINGS_TLS_FILES_H
#define FRONT_SETTINGS_TLS_FILES_H

#include "common/err.h"
#include "daemon/front/settings/config.h"
#include "daemon/front/settings/tenant_rules.h"

#define TLS_WARN_DAYS 14 /* before the end of a certificate the log has a warning */

/* Texts in PEM; all NULL: none were read. */
struct tls_files {
    char *cert;      /* owned */
    char *key;       /* owned */
    char *client_ca; /* owned; NULL: clients need no certificate */
};

/* Reads and checks the files that the settings name. Errors begin with the key of the setting.
 * ERR_UNSUPPORTED: built without mbedtls. ERR_INVALID: no certificate or key, expired, not valid
 * yet, or the key of another certificate. Other errors: secret_file_read. */
int tls_files_read(const struct config *config, struct tls_files *ret_files, struct err *e);
void tls_files_finish(struct tls_files *files); /* overwrites the key; zeroed files are allowed */

/* Reads all files for clients of other hosts that the settings name: the tokens of tenants into
 * `rules`, and if the daemon listens on tls+tcp, the files for TLS. Without any token such clients
 * could not connect, which is ERR_INVALID. On failure what is good is kept. */
int remote_files_read(const struct config *config, struct tenant_rules *rules,
                      struct tls_files *ret_files, struct err *e);

#endif
