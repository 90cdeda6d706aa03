/* Certificates for tests of TLS, made with mbedtls: a CA, and what it signs. Everything fails the
 * running test instead of returning an error. */
#ifndef SYSTEM_CERTS_H
#define SYSTEM_CERTS_H

#include <stdbool.h>

#define CERT_GOOD    "20990101000000" /* valid until then */
#define CERT_EXPIRED "20210101000000"

struct cert_authority;

/* Writes the CA's certificate into a file in PEM. */
struct cert_authority *certs_authority(const char *name, const char *ca_path);
void certs_authority_free(struct cert_authority *a);
/* Writes a certificate for the DNS name and for 127.0.0.1, valid from 2020 `until` then, and its
 * key. */
void certs_issue(struct cert_authority *a, const char *name, const char *until,
                 const char *cert_path, const char *key_path);

#endif
