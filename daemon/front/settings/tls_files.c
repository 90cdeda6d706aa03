#include "daemon/front/settings/tls_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef GPUD_TLS
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <sys/random.h>
#endif

#include "daemon/front/settings/secret_file.h"
#include "daemon/front/settings/tenant_tokens.h"

#define DATE_TEXT 32

void tls_files_finish(struct tls_files *files)
{
    free(files->cert);
    free(files->client_ca);
    secret_file_free(files->key);
    *files = (struct tls_files){.cert = NULL};
}

static void date_of(uint64_t at_s, char out[DATE_TEXT])
{
    time_t at = (time_t)at_s;
    struct tm tm = {0};
    (void)gmtime_r(&at, &tm);
    (void)strftime(out, DATE_TEXT, "%Y-%m-%d %H:%M UTC", &tm);
}

void tls_end_text(const struct tls_end *end, const char *how, char out[TLS_END_TEXT])
{
    char date[DATE_TEXT];
    date_of(end->at_s, date);
    (void)snprintf(out, TLS_END_TEXT, "%s = %s: the certificate %s at %s", end->key, end->file, how,
                   date);
}

#ifdef GPUD_TLS

static int bad(int code, const char *key, const char *file, struct err *e)
{
    char text[128];
    mbedtls_strerror(code, text, sizeof text);
    return err_set(e, ERR_INVALID, "%s = %s: %s", key, file, text);
}

static int parse(const char *key, const char *file, const char *pem, mbedtls_x509_crt *crt,
                 struct err *e)
{
    int rc = mbedtls_x509_crt_parse(crt, (const unsigned char *)pem, strlen(pem) + 1);
    if (rc > 0) {
        return err_set(e, ERR_INVALID, "%s = %s: %d of its certificates cannot be read", key, file,
                       rc);
    }
    return rc == 0 ? 0 : bad(rc, key, file, e);
}

static uint64_t seconds_of(const mbedtls_x509_time *t)
{
    struct tm tm = {.tm_year = t->year - 1900,
                    .tm_mon = t->mon - 1,
                    .tm_mday = t->day,
                    .tm_hour = t->hour,
                    .tm_min = t->min,
                    .tm_sec = t->sec};
    time_t at = timegm(&tm);
    return at > 0 ? (uint64_t)at : 1; /* 0 has another meaning */
}

/* Checks the certificates of a file, and keeps the end of the first one that ends in *end. */
static int check_times(const char *key, const char *file, const mbedtls_x509_crt *crt,
                       struct tls_end *end, struct err *e)
{
    for (; crt != NULL; crt = crt->next) {
        char text[TLS_END_TEXT];
        struct tls_end own = {.at_s = seconds_of(&crt->valid_to), .key = key};
        (void)snprintf(own.file, sizeof own.file, "%s", file);
        if (mbedtls_x509_time_is_past(&crt->valid_to)) {
            tls_end_text(&own, "expired", text);
            return err_set(e, ERR_INVALID, "%s", text);
        }
        if (mbedtls_x509_time_is_future(&crt->valid_from)) {
            char date[DATE_TEXT];
            date_of(seconds_of(&crt->valid_from), date);
            return err_set(e, ERR_INVALID, "%s = %s: the certificate is not valid before %s", key,
                           file, date);
        }
        if (end->at_s == 0 || own.at_s < end->at_s) {
            *end = own;
        }
    }
    return 0;
}

#if MBEDTLS_VERSION_MAJOR >= 3
static int random_bytes(void *data, unsigned char *out, size_t size)
{
    (void)data;
    return getrandom(out, size, 0) == (ssize_t)size ? 0 : -1;
}
#endif

static int parse_key(const char *pem, mbedtls_pk_context *pk)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_parse_key(pk, (const unsigned char *)pem, strlen(pem) + 1, NULL, 0,
                                random_bytes, NULL);
#else
    return mbedtls_pk_parse_key(pk, (const unsigned char *)pem, strlen(pem) + 1, NULL, 0);
#endif
}

static int check_pair(const mbedtls_pk_context *public, const mbedtls_pk_context *private)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_check_pair(public, private, random_bytes, NULL);
#else
    return mbedtls_pk_check_pair(public, private);
#endif
}

static int check_key(const struct config *config, const char *pem, const mbedtls_x509_crt *crt,
                     struct err *e)
{
    mbedtls_pk_context pk;
    mbedtls_pk_init(&pk);
    int code = parse_key(pem, &pk);
    int rc = code == 0 ? 0 : bad(code, "tls_key", config->tls_key, e);
    if (rc == 0 && check_pair(&crt->pk, &pk) != 0) {
        rc = err_set(e, ERR_INVALID, "tls_key = %s: it is not the key of tls_cert = %s",
                     config->tls_key, config->tls_cert);
    }
    mbedtls_pk_free(&pk);
    return rc;
}

static int check(const struct config *config, struct tls_files *files, struct err *e)
{
    mbedtls_x509_crt own;
    mbedtls_x509_crt ca;
    mbedtls_x509_crt_init(&own);
    mbedtls_x509_crt_init(&ca);
    int rc = parse("tls_cert", config->tls_cert, files->cert, &own, e);
    rc = rc == 0 ? check_times("tls_cert", config->tls_cert, &own, &files->end, e) : rc;
    rc = rc == 0 ? check_key(config, files->key, &own, e) : rc;
    if (rc == 0 && files->client_ca != NULL) {
        rc = parse("tls_client_ca", config->tls_client_ca, files->client_ca, &ca, e);
        rc =
            rc == 0 ? check_times("tls_client_ca", config->tls_client_ca, &ca, &files->end, e) : rc;
    }
    mbedtls_x509_crt_free(&own);
    mbedtls_x509_crt_free(&ca);
    return rc;
}

#else

static int check(const struct config *config, struct tls_files *files, struct err *e)
{
    (void)config;
    (void)files;
    return err_set(e, ERR_UNSUPPORTED, "listen = tls+tcp://…: gpud was built without mbedtls");
}

#endif

int tls_files_read(const struct config *config, struct tls_files *ret_files, struct err *e)
{
    struct tls_files files = {.cert = NULL};
    int rc = secret_file_read("tls_cert", config->tls_cert, false, &files.cert, e);
    rc = rc == 0 ? secret_file_read("tls_key", config->tls_key, true, &files.key, e) : rc;
    if (rc == 0 && config->tls_client_ca[0] != '\0') {
        rc = secret_file_read("tls_client_ca", config->tls_client_ca, false, &files.client_ca, e);
    }
    rc = rc == 0 ? check(config, &files, e) : rc;
    if (rc != 0) {
        tls_files_finish(&files);
        return rc;
    }
    *ret_files = files;
    return 0;
}

int remote_files_read(const struct config *config, struct tenant_rules *rules,
                      struct tls_files *ret_files, struct err *e)
{
    struct err of_tls = ERR_INIT;
    int rc = tenant_tokens_read(rules, e);
    if (rc == 0 && config->listen_tls && rules->token_count == 0) {
        rc = err_set(e, ERR_INVALID,
                     "listen = tls+tcp://…: no client can connect, because no tenant has `tokens`");
    }
    int tls = config->listen_tls ? tls_files_read(config, ret_files, &of_tls) : 0;
    if (rc == 0 && tls != 0 && e != NULL) {
        *e = of_tls;
    }
    return rc != 0 ? rc : tls;
}
