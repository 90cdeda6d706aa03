#include "tests/system/harness/certs.h"

#include <mbedtls/ecp.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "tests/system/harness/harness.h"

struct cert_authority {
    mbedtls_pk_context key;
    char subject[128];
    int serial;
};

static int random_bytes(void *data, unsigned char *out, size_t size)
{
    (void)data;
    return getrandom(out, size, 0) == (ssize_t)size ? 0 : -1;
}

static void key_make(mbedtls_pk_context *key)
{
    mbedtls_pk_init(key);
    ck_assert_int_eq(mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)), 0);
    ck_assert_int_eq(
        mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), random_bytes, NULL), 0);
}

/* The names as DER: a sequence of a dNSName and an iPAddress. */
static size_t names_put(const char *name, uint8_t out[160])
{
    size_t n = strlen(name);
    const uint8_t address[] = {0x87, 4, 127, 0, 0, 1};
    ck_assert_uint_lt(n, 100);
    out[0] = 0x30;
    out[1] = (uint8_t)(2 + n + sizeof address);
    out[2] = 0x82;
    out[3] = (uint8_t)n;
    memcpy(out + 4, name, n);
    memcpy(out + 4 + n, address, sizeof address);
    return 4 + n + sizeof address;
}

static void issue(struct cert_authority *a, mbedtls_pk_context *subject_key, const char *subject,
                  const char *dns, const char *until, const char *path)
{
    mbedtls_x509write_cert w;
    mbedtls_mpi serial;
    uint8_t pem[4096];
    uint8_t names[160];
    mbedtls_x509write_crt_init(&w);
    mbedtls_mpi_init(&serial);
    ck_assert_int_eq(mbedtls_mpi_lset(&serial, ++a->serial), 0);
    mbedtls_x509write_crt_set_version(&w, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&w, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&w, subject_key);
    mbedtls_x509write_crt_set_issuer_key(&w, &a->key);
    int rc = mbedtls_x509write_crt_set_serial(&w, &serial);
    rc = rc == 0 ? mbedtls_x509write_crt_set_subject_name(&w, subject) : rc;
    rc = rc == 0 ? mbedtls_x509write_crt_set_issuer_name(&w, a->subject) : rc;
    rc = rc == 0 ? mbedtls_x509write_crt_set_validity(&w, "20200101000000", until) : rc;
    rc = rc == 0 ? mbedtls_x509write_crt_set_basic_constraints(&w, dns == NULL, -1) : rc;
    if (rc == 0 && dns != NULL) {
        size_t size = names_put(dns, names);
        rc = mbedtls_x509write_crt_set_extension(&w, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                                 MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0,
                                                 names, size);
    }
    rc = rc == 0 ? mbedtls_x509write_crt_pem(&w, pem, sizeof pem, random_bytes, NULL) : rc;
    ck_assert_msg(rc == 0, "mbedtls -0x%x", (unsigned)-rc);
    file_write(path, pem, strlen((const char *)pem));
    mbedtls_mpi_free(&serial);
    mbedtls_x509write_crt_free(&w);
}

struct cert_authority *certs_authority(const char *name, const char *ca_path)
{
    struct cert_authority *a = calloc(1, sizeof *a);
    ck_assert_ptr_nonnull(a);
    key_make(&a->key);
    (void)snprintf(a->subject, sizeof a->subject, "CN=%s", name);
    issue(a, &a->key, a->subject, NULL, CERT_GOOD, ca_path);
    return a;
}

void certs_authority_free(struct cert_authority *a)
{
    mbedtls_pk_free(&a->key);
    free(a);
}

void certs_issue(struct cert_authority *a, const char *name, const char *until,
                 const char *cert_path, const char *key_path)
{
    mbedtls_pk_context key;
    char subject[160];
    uint8_t pem[4096];
    key_make(&key);
    (void)snprintf(subject, sizeof subject, "CN=%s", name);
    issue(a, &key, subject, name, until, cert_path);
    ck_assert_int_eq(mbedtls_pk_write_key_pem(&key, pem, sizeof pem), 0);
    file_write(key_path, pem, strlen((const char *)pem));
    ck_assert_int_eq(chmod(key_path, 0600), 0);
    mbedtls_pk_free(&key);
}
