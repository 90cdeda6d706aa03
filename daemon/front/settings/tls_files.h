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

#define DAY_S         UINT64_C(86400)
#define TLS_WARN_DAYS 14 /* before the end of a certificate there are warnings */
#define TLS_END_TEXT  384u

/* Which certificate ends first. Afterwards clients of other hosts refuse the daemon, or it refuses
 * them. */
struct tls_end {
    uint64_t at_s;   /* Unix time; 0: there is no certificate */
    const char *key; /* static: the setting that names its file */
    char file[256];
};

/* Texts in PEM; all NULL: none were read. */
struct tls_files {
    char *cert;      /* owned */
    char *key;       /* owned */
    char *client_ca; /* owned; NULL: clients need no certificate */
    struct tls_end end;
};

/* Reads and checks the files that the settings name. Errors begin with the key of the setting.
 * ERR_UNSUPPORTED: built without mbedtls. ERR_INVALID: no certificate or key, expired, not valid
 * yet, or the key of another certificate. Other errors: secret_file_read. */
int tls_files_read(const struct config *config, struct tls_files *ret_files, struct err *e);
/* Seconds until then; 0: it has expired. */
static inline uint64_t tls_end_left_s(const struct tls_end *end, uint64_t now_s)
{
    return end->at_s > now_s ? end->at_s - now_s : 0;
}

/* Is there a certificate that ends within TLS_WARN_DAYS, or has expired? */
static inline bool tls_end_near(const struct tls_end *end, uint64_t now_s)
{
    return end->at_s != 0 && tls_end_left_s(end, now_s) <= TLS_WARN_DAYS * DAY_S;
}

/* "tls_cert = FILE: the certificate expires at DATE"; how: "expires", "expired". */
void tls_end_text(const struct tls_end *end, const char *how, char out[TLS_END_TEXT]);
void tls_files_finish(struct tls_files *files); /* overwrites the key; zeroed files are allowed */

/* Reads all files for clients of other hosts that the settings name: the tokens of tenants into
 * `rules`, and if the daemon listens on tls+tcp, the files for TLS. Without any token such clients
 * could not connect, which is ERR_INVALID. On failure what is good is kept. */
int remote_files_read(const struct config *config, struct tenant_rules *rules,
                      struct tls_files *ret_files, struct err *e);

#endif
