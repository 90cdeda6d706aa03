/* TLS of the listener: NNG makes the handshakes, and gets its certificates here. */
#include "daemon/front/clients/listener_int.h"
#include "daemon/front/settings/tls_files.h"

static int make(const struct tls_files *files, nng_tls_config **ret_config)
{
    nng_tls_config *config = NULL;
    int rc = nng_tls_config_alloc(&config, NNG_TLS_MODE_SERVER);
    if (rc != 0) {
        return rc;
    }
    rc = nng_tls_config_own_cert(config, files->cert, files->key, NULL);
    if (rc == 0 && files->client_ca != NULL) {
        rc = nng_tls_config_ca_chain(config, files->client_ca, NULL);
        rc = rc == 0 ? nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED) : rc;
    }
    if (rc != 0) {
        nng_tls_config_free(config);
        return rc;
    }
    *ret_config = config;
    return 0;
}

int listener_set_tls(struct listener *l, const struct tls_files *files, struct err *e)
{
    nng_tls_config *fresh = NULL;
    int rc = make(files, &fresh);
    if (rc != 0) {
        int code = rc == NNG_ENOTSUP ? ERR_UNSUPPORTED : rc == NNG_ENOMEM ? ERR_NOMEM : ERR_INVALID;
        return err_set(e, code, "TLS: NNG: %s", nng_strerror(rc));
    }
    listener_lock(l);
    nng_tls_config *old = l->tls_before;
    l->tls_before = l->tls;
    l->tls = fresh;
    listener_unlock(l);
    if (old != NULL) {
        nng_tls_config_free(old);
    }
    doors_renew_tls(l);
    return 0;
}

void tls_free(struct listener *l)
{
    if (l->tls != NULL) {
        nng_tls_config_free(l->tls);
    }
    if (l->tls_before != NULL) {
        nng_tls_config_free(l->tls_before);
    }
}
