/* The sockets that metrics are served at. Thread: any, one at a time. */
#ifndef FRONT_METRICS_SOCKETS_H
#define FRONT_METRICS_SOCKETS_H

#include <stdint.h>

#include "daemon/front/settings/metrics_address.h"

struct metrics_sockets {
    struct metrics_addresses addresses;
    int fd[METRICS_LISTEN_MAX]; /* owned; -1: closed, or given away */
    unsigned count;             /* that were opened */
};

/* Binds all addresses and listens there. A unix socket is for the user of the process and for the
 * group. gid UINT32_MAX: for no group. A stale socket file is replaced; ERR_EXISTS: the address is
 * in use. On failure *ret_sockets is to be closed as well. */
int metrics_sockets_open(struct metrics_sockets *ret_sockets,
                         const struct metrics_addresses *addresses, uint32_t gid, struct err *e);
/* Closes descriptors that were not given away, and removes unix sockets. */
void metrics_sockets_close(struct metrics_sockets *s);

#endif
