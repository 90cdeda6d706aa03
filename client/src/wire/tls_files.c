#ifdef GPUD_TLS

#include "client/src/wire/tls_files.h"

#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/version.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* code: mbedtls's, or the number of certificates that it could not read. */
static int bad(const char *what, const char *file, int code, struct err *e)
{
    char text[128];
    if (access(file, R_OK) != 0) {
        return err_errno(e, errno == EACCES ? ERR_PERMISSION : ERR_INVALID, "%s %s", what, file);
    }
    if (code > 0) {
        return err_set(e, ERR_INVALID, "%s %s: %d certificates cannot be read", what, file, code);
    }
    mbedtls_strerror(code, text, sizeof text);
    return err_set(e, ERR_INVALID, "%s %s: %s", what, file, text);
}

static int load_ca(const char *file, mbedtls_x509_crt *ca, struct err *e)
{
    bool system = file[0] == '\0';
    const char *path = system ? TLS_SYSTEM_CA : file;
    int rc = mbedtls_x509_crt_parse_file(ca, path);
    /* the system's file may have certificates of kinds that mbedtls does not know */
    return rc == 0 || (system && rc > 0) ? 0 : bad("CA", path, rc, e);
}

static int load_key(const char *file, mbedtls_pk_context *key, struct err *e)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    int rc = mbedtls_pk_parse_keyfile(key, file, NULL, NULL, NULL);
#else
    int rc = mbedtls_pk_parse_keyfile(key, file, NULL);
#endif
    return rc == 0 ? 0 : bad("key", file, rc, e);
}

static int load_all(const struct tls_names *names, struct tls_files *f, struct err *e)
{
    if ((names->cert[0] == '\0') != (names->key[0] == '\0')) {
        return err_set(e, ERR_INVALID,
                       "a certificate of the client needs its key, and a key its "
                       "certificate (GPUD_CERT_FILE, GPUD_KEY_FILE)");
    }
    int rc = load_ca(names->ca, &f->ca, e);
    if (rc == 0 && names->cert[0] != '\0') {
        int code = mbedtls_x509_crt_parse_file(&f->cert, names->cert);
        rc =
            code == 0 ? load_key(names->key, &f->key, e) : bad("certificate", names->cert, code, e);
    }
    return rc;
}

int tls_files_load(const struct tls_names *names, struct tls_files **ret_files, struct err *e)
{
    struct tls_files *f = malloc(sizeof *f);
    if (f == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for TLS");
    }
    mbedtls_x509_crt_init(&f->ca);
    mbedtls_x509_crt_init(&f->cert);
    mbedtls_pk_init(&f->key);
    int rc = load_all(names, f, e);
    if (rc != 0) {
        tls_files_free(f);
        return rc;
    }
    *ret_files = f;
    return 0;
}

void tls_files_free(struct tls_files *files)
{
    mbedtls_x509_crt_free(&files->ca);
    mbedtls_x509_crt_free(&files->cert);
    mbedtls_pk_free(&files->key);
    free(files);
}

#else
typedef int tls_files_is_empty; /* ISO C wants a declaration */
#endif
