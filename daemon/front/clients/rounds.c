/* The order in which the loop gets requests: users take turns, so the requests of one, over however
 * many connections, do not hold up those of another. */
#include "daemon/front/clients/listener_int.h"

#define ROUNDS 8u /* requests of a user in a batch */

void rounds_put(struct connection *c, struct request *r)
{
    struct listener *l = c->listener;
    struct user *u = c->user;
    r->next = NULL;
    if (u->first == NULL) {
        u->last = &u->first;
        DL_APPEND2(l->turns, u, turn_prev, turn_next);
    }
    *u->last = r;
    u->last = &r->next;
    (void)atomic_fetch_add(&c->undelivered, 1);
}

struct request *rounds_take(struct listener *l)
{
    struct request *batch = NULL;
    struct request **last = &batch;
    for (unsigned round = 0; round < ROUNDS && l->turns != NULL; round++) {
        struct user *u;
        struct user *next;
        DL_FOREACH_SAFE2(l->turns, u, next, turn_next)
        {
            struct request *r = u->first;
            u->first = r->next;
            r->next = NULL;
            *last = r;
            last = &r->next;
            if (u->first == NULL) {
                DL_DELETE2(l->turns, u, turn_prev, turn_next);
            }
        }
    }
    return batch;
}

struct connection *rounds_ended(struct listener *l)
{
    struct connection *ended = NULL;
    struct connection *c;
    struct connection *next;
    DL_FOREACH_SAFE(l->ended_list, c, next)
    {
        if (atomic_load(&c->undelivered) == 0) {
            DL_DELETE(l->ended_list, c);
            DL_APPEND(ended, c);
        }
    }
    return ended;
}
