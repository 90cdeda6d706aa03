/* Checks the addresses to listen on. Thread: any. */
#ifndef FRONT_SETTINGS_LISTENER_URL_H
#define FRONT_SETTINGS_LISTENER_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define LISTEN_URL_MAX 160

enum listen_kind {
    LISTEN_IPC,
    LISTEN_TCP, /* on a loopback address */
    LISTEN_TLS, /* tls+tcp, on any address */
};

/* Checks an address and writes the one for NNG. Pure. ERR_PERMISSION: tcp on an address that other
 * hosts can reach. */
int listen_url(const char *url, char ret_url[LISTEN_URL_MAX], enum listen_kind *ret_kind,
               struct err *e);
/* Removes a socket file without a server. ERR_EXISTS: a server answers at it. */
int listen_take_over(const char *path, struct err *e);
/* Sets permissions and group of a socket's file (gid UINT32_MAX: stays). Others may be able to
 * write its folder, so anything but a socket there, as a link, is ERR_EXISTS. ERR_PERMISSION: this
 * process is not in the group. */
int listen_permit(const char *path, uint32_t mode, uint32_t gid, struct err *e);

#endif
