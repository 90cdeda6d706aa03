#include "client/src/wire/tls.h"

#ifdef GPUD_TLS

#include <arpa/inet.h>
#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "client/src/wire/tls_files.h"

#define RECORD_BYTES 16384u /* the most plain bytes of a record */
#define SAN_ADDRESS  7u     /* choice iPAddress of a subject alternative name */

struct tls {
    struct tls_names names;
    struct tls_files *files; /* owned; what the named files held last */
    mbedtls_ssl_config config;
    mbedtls_ssl_context ssl;
    bool used;           /* a connection began */
    uint8_t address[16]; /* names.server as a numeric address */
    size_t address_size; /* 0: it is none */
    int fd;              /* not owned */
    int error;           /* errno of the socket's last failure; 0: none */
    size_t out_size;     /* bytes of `out` that mbedtls has not taken; 0: none */
    uint8_t out[RECORD_BYTES];
};

/* ---- the socket and random bytes ------------------------------------------------------------- */

static int random_bytes(void *data, unsigned char *out, size_t size)
{
    (void)data;
    while (size > 0) {
        ssize_t n = getrandom(out, size, 0);
        if (n < 0 && errno != EINTR) {
            return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
        }
        out += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* What mbedtls gets for n, the socket's result. wait: its code for a socket that is not ready. */
static int result_of(struct tls *t, ssize_t n, int wait)
{
    if (n >= 0) {
        return (int)n;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return wait;
    }
    t->error = errno;
    return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

static int socket_send(void *data, const unsigned char *bytes, size_t size)
{
    struct tls *t = data;
    return result_of(t, send(t->fd, bytes, size, MSG_NOSIGNAL), MBEDTLS_ERR_SSL_WANT_WRITE);
}

static int socket_receive(void *data, unsigned char *bytes, size_t size)
{
    struct tls *t = data;
    return result_of(t, recv(t->fd, bytes, size, 0), MBEDTLS_ERR_SSL_WANT_READ);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int refuse_certificate(const struct tls *t, struct err *e)
{
    uint32_t flags = mbedtls_ssl_get_verify_result(&t->ssl);
    const char *why =
        (flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0   ? "it has expired"
        : (flags & MBEDTLS_X509_BADCERT_FUTURE) != 0  ? "it is not valid yet: compare the clocks"
        : (flags & MBEDTLS_X509_BADCERT_REVOKED) != 0 ? "it was revoked"
        : (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0
            ? "no CA that this client trusts has signed it (GPUD_CA_FILE)"
        : (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0 ? "it has another name (GPUD_SERVER_NAME)"
                                                          : "it does not meet the rules of mbedtls";
    return err_set(e, ERR_PERMISSION, "the certificate of the daemon, which should be for %s: %s",
                   t->names.server, why);
}

static int fail(const struct tls *t, int code, const char *doing, struct err *e)
{
    char text[128];
    if (t->error != 0) {
        errno = t->error;
        return err_errno(e, ERR_CONNECT, "%s", doing);
    }
    switch (code) {
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
        return refuse_certificate(t, e);
    case MBEDTLS_ERR_SSL_CONN_EOF:
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
        return err_set(e, ERR_CONNECT, "the daemon closed the connection");
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        return err_set(e, ERR_PERMISSION,
                       "the daemon ended TLS by an alert: it may want a certificate of the client, "
                       "or another one (GPUD_CERT_FILE, GPUD_KEY_FILE)");
    case MBEDTLS_ERR_SSL_INVALID_RECORD:
        return err_set(e, ERR_PROTOCOL,
                       "%s: the other side speaks no TLS: is this a port for tcp://?", doing);
    default:
        mbedtls_strerror(code, text, sizeof text);
        return err_set(e, ERR_PROTOCOL, "%s: TLS: %s", doing, text);
    }
}

/* ---- the daemon's certificate ---------------------------------------------------------------- */

/* mbedtls 2.28 compares names, and not the addresses of a certificate. */
static int verify(void *data, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
    const struct tls *t = data;
    if (depth != 0 || t->address_size == 0) {
        return 0;
    }
    for (const mbedtls_x509_sequence *s = &crt->subject_alt_names; s != NULL; s = s->next) {
        bool address = (s->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) == SAN_ADDRESS;
        if (address && s->buf.len == t->address_size &&
            memcmp(s->buf.p, t->address, t->address_size) == 0) {
            *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
        }
    }
    return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void session_free(struct tls *t)
{
    mbedtls_ssl_free(&t->ssl);
    mbedtls_ssl_config_free(&t->config);
}

/* Makes a session of `files`. session_free is due also after a failure. */
static int session_make(struct tls *t, struct err *e)
{
    bool own = t->names.cert[0] != '\0';
    mbedtls_ssl_config_init(&t->config);
    mbedtls_ssl_init(&t->ssl);
    int rc = mbedtls_ssl_config_defaults(&t->config, MBEDTLS_SSL_IS_CLIENT,
                                         MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    if (rc == 0) {
        mbedtls_ssl_conf_authmode(&t->config, MBEDTLS_SSL_VERIFY_REQUIRED);
        mbedtls_ssl_conf_min_version(&t->config, MBEDTLS_SSL_MAJOR_VERSION_3,
                                     MBEDTLS_SSL_MINOR_VERSION_3);
        /* mbedtls 3.6 would take 1.3, whose tickets are errors of reading */
        mbedtls_ssl_conf_max_version(&t->config, MBEDTLS_SSL_MAJOR_VERSION_3,
                                     MBEDTLS_SSL_MINOR_VERSION_3);
        mbedtls_ssl_conf_rng(&t->config, random_bytes, NULL);
        mbedtls_ssl_conf_ca_chain(&t->config, &t->files->ca, NULL);
        mbedtls_ssl_conf_verify(&t->config, verify, t);
        rc = own ? mbedtls_ssl_conf_own_cert(&t->config, &t->files->cert, &t->files->key) : 0;
    }
    rc = rc == 0 ? mbedtls_ssl_setup(&t->ssl, &t->config) : rc;
    rc = rc == 0 ? mbedtls_ssl_set_hostname(&t->ssl, t->names.server) : rc;
    return rc == 0 ? 0 : err_set(e, ERR_NOMEM, "no memory for TLS (mbedtls %d)", rc);
}

int tls_create(const struct tls_names *names, struct tls **ret_tls, struct err *e)
{
    struct tls *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for TLS");
    }
    t->fd = -1;
    t->names = *names;
    t->address_size = inet_pton(AF_INET, names->server, t->address) == 1    ? 4
                      : inet_pton(AF_INET6, names->server, t->address) == 1 ? 16
                                                                            : 0;
    int rc = tls_files_load(names, &t->files, e);
    if (rc != 0) {
        free(t);
        return rc;
    }
    rc = session_make(t, e);
    if (rc != 0) {
        tls_destroy(t);
        return rc;
    }
    *ret_tls = t;
    return 0;
}

void tls_destroy(struct tls *t)
{
    if (t == NULL) {
        return;
    }
    session_free(t);
    tls_files_free(t->files);
    explicit_bzero(t, sizeof *t);
    free(t);
}

/* ---- a connection ---------------------------------------------------------------------------- */

/* Certificates end, and new ones come into the same files. What cannot be read now stays as it
 * was. */
static int renew(struct tls *t, struct err *e)
{
    struct tls_files *fresh = NULL;
    session_free(t);
    if (tls_files_load(&t->names, &fresh, NULL) == 0) {
        tls_files_free(t->files);
        t->files = fresh;
    }
    return session_make(t, e);
}

int tls_begin(struct tls *t, int fd, struct err *e)
{
    t->error = 0;
    t->out_size = 0;
    t->fd = fd;
    int rc = t->used ? renew(t, e) : 0;
    if (rc != 0) {
        return rc;
    }
    t->used = true;
    mbedtls_ssl_set_bio(&t->ssl, t, socket_send, socket_receive, NULL);
    return 0;
}

/* Is it one of the codes that only say to wait? */
static bool waits(int code, enum tls_wait *ret_wait)
{
    *ret_wait = code == MBEDTLS_ERR_SSL_WANT_READ    ? TLS_WAITS_READ
                : code == MBEDTLS_ERR_SSL_WANT_WRITE ? TLS_WAITS_WRITE
                                                     : TLS_DONE;
    return *ret_wait != TLS_DONE;
}

/* Did the other side close the connection, without an alert? */
static bool closed(const struct tls *t, int code)
{
    return t->error != 0 ? t->error == EPIPE || t->error == ECONNRESET
                         : code == MBEDTLS_ERR_SSL_CONN_EOF;
}

int tls_handshake(struct tls *t, enum tls_wait *ret_wait, struct err *e)
{
    int rc = mbedtls_ssl_handshake(&t->ssl);
    if (waits(rc, ret_wait) || rc == 0) {
        return 0;
    }
    if (closed(t, rc)) { /* no alert comes from a daemon that misses the client's certificate */
        return err_set(e, ERR_CONNECT,
                       "the daemon closed the connection during the handshake: it may want another "
                       "certificate of the client (GPUD_CERT_FILE, GPUD_KEY_FILE)");
    }
    return fail(t, rc, "the handshake", e);
}

static void gather(struct tls *t, const struct iovec *iov, size_t count)
{
    for (size_t i = 0; i < count && t->out_size < sizeof t->out; i++) {
        size_t room = sizeof t->out - t->out_size;
        size_t part = iov[i].iov_len < room ? iov[i].iov_len : room;
        memcpy(t->out + t->out_size, iov[i].iov_base, part);
        t->out_size += part;
    }
}

int tls_write(struct tls *t, const struct iovec *iov, size_t count, size_t *ret_size,
              enum tls_wait *ret_wait, struct err *e)
{
    if (t->out_size == 0) {
        gather(t, iov, count);
    }
    /* a call that waited has to come again with the same bytes */
    int rc = mbedtls_ssl_write(&t->ssl, t->out, t->out_size);
    if (waits(rc, ret_wait)) {
        return 0;
    }
    if (rc < 0) {
        return fail(t, rc, "sending", e);
    }
    *ret_size = (size_t)rc;
    t->out_size = 0;
    return 0;
}

int tls_read(struct tls *t, void *data, size_t room, size_t *ret_size, enum tls_wait *ret_wait,
             struct err *e)
{
    int rc = mbedtls_ssl_read(&t->ssl, data, room);
    if (waits(rc, ret_wait)) {
        return 0;
    }
    if (rc < 0 && rc != MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY && rc != MBEDTLS_ERR_SSL_CONN_EOF) {
        return fail(t, rc, "receiving", e);
    }
    *ret_size = rc > 0 ? (size_t)rc : 0;
    return 0;
}

#else

struct tls {
    int unused;
};

int tls_create(const struct tls_names *names, struct tls **ret_tls, struct err *e)
{
    (void)names;
    (void)ret_tls;
    return err_set(e, ERR_UNSUPPORTED, "tls+tcp://: this libgpud was built without mbedtls");
}

void tls_destroy(struct tls *t)
{
    (void)t;
}

static int missing(struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "no TLS in this libgpud");
}

int tls_begin(struct tls *t, int fd, struct err *e)
{
    (void)t;
    (void)fd;
    return missing(e);
}

int tls_handshake(struct tls *t, enum tls_wait *ret_wait, struct err *e)
{
    (void)t;
    (void)ret_wait;
    return missing(e);
}

int tls_write(struct tls *t, const struct iovec *iov, size_t count, size_t *ret_size,
              enum tls_wait *ret_wait, struct err *e)
{
    (void)t;
    (void)iov;
    (void)count;
    (void)ret_size;
    (void)ret_wait;
    return missing(e);
}

int tls_read(struct tls *t, void *data, size_t room, size_t *ret_size, enum tls_wait *ret_wait,
             struct err *e)
{
    (void)t;
    (void)data;
    (void)room;
    (void)ret_size;
    (void)ret_wait;
    return missing(e);
}

#endif
