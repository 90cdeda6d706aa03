#ifdef GPUD_TLS

#include "client/src/wire/tls_files.h"

#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/version.h>
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

int tls_files_load(const struct tls_names *names, mbedtls_x509_crt *ca, mbedtls_x509_crt *cert,
                   mbedtls_pk_context *key, struct err *e)
{
    if ((names->cert[0] == '\0') != (names->key[0] == '\0')) {
        return err_set(e, ERR_INVALID,
                       "a certificate of the client needs its key, and a key its "
                       "certificate (GPUD_CERT_FILE, GPUD_KEY_FILE)");
    }
    int rc = load_ca(names->ca, ca, e);
    if (rc == 0 && names->cert[0] != '\0') {
        int code = mbedtls_x509_crt_parse_file(cert, names->cert);
        rc = code == 0 ? load_key(names->key, key, e) : bad("certificate", names->cert, code, e);
    }
    return rc;
}

#else
typedef int tls_files_is_empty; /* ISO C wants a declaration */
#endif
