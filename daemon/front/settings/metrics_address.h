/* The addresses at which metrics are served: `listen` of [metrics]. Thread: any. */
#ifndef FRONT_SETTINGS_METRICS_ADDRESS_H
#define FRONT_SETTINGS_METRICS_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/err.h"

#define METRICS_LISTEN_MAX  4u
#define METRICS_LISTEN_TEXT 512 /* bytes of the setting, with the NUL */

struct metrics_address {
    char text[128]; /* as the setting has it */
    union {
        struct sockaddr any;
        struct sockaddr_storage storage; /* loopback, of IPv4 or IPv6 */
        struct sockaddr_un local;
    } at;
    socklen_t size;
};

struct metrics_addresses {
    struct metrics_address address[METRICS_LISTEN_MAX];
    unsigned count; /* 0: metrics are not served */
};

/* Reads a list with commas or spaces between addresses, as "127.0.0.1:9464, unix:/run/gpud/m.sock".
 * Each is unix:PATH, or a loopback address with a port. Pure. ERR_PERMISSION: other hosts could
 * reach it. */
int metrics_addresses_parse(const char *text, struct metrics_addresses *ret_addresses,
                            struct err *e);
/* The path of a unix socket; NULL: it is no unix socket. */
const char *metrics_address_path(const struct metrics_address *a);

#endif
