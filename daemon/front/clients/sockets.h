/*
 * The sockets of tenants that have one of their own (settings/tenant_socket.h): for each the
 * listener's and the one for descriptors beside it. They are as the rules say, from one call of
 * sockets_apply to the next. Thread: the loop's.
 */
#ifndef FRONT_CLIENTS_SOCKETS_H
#define FRONT_CLIENTS_SOCKETS_H

#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/settings/tenant_rules.h"

struct sockets; /* NULL: none */

/* Opens, changes and removes sockets, so that they are those of the rules. Each that fails is left
 * out, and the next call tries it again; the first failure is returned and names its tenant. Blocks
 * on the file system. */
int sockets_apply(struct sockets **all, struct listener *l, struct shm *shm,
                  const struct tenant_rules *rules, struct err *e);
unsigned sockets_count(const struct sockets *all);
/* Forgets them; listener_close and shm_destroy remove the sockets. NULL is accepted. */
void sockets_destroy(struct sockets *all);

#endif
