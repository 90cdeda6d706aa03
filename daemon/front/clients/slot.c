/* Slots of unanswered requests: a reader takes a slot, and its answer frees it. */
#include <stdlib.h>

#include "common/log.h"
#include "daemon/front/clients/listener_int.h"

static bool add_block(struct listener *l)
{
    struct slot_block *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return false;
    }
    b->next = l->blocks;
    l->blocks = b;
    for (unsigned i = 0; i < SLOT_BLOCK; i++) {
        b->slot[i].next = l->free_slots;
        l->free_slots = &b->slot[i];
    }
    return true;
}

static bool is_allowed(struct listener *l, const struct connection *c)
{
    bool user = c->user->outstanding >= l->options.user_requests_max;
    if (!user && c->outstanding < l->options.pipe_requests_max) {
        return true;
    }
    l->stats.crowded++;
    log_say(LOG_CLIENT_ENDED,
            "a connection of user %u is closed: %u requests of %s are unanswered, at most %u",
            c->user->uid, user ? c->user->outstanding : c->outstanding, user ? "the user" : "it",
            user ? l->options.user_requests_max : l->options.pipe_requests_max);
    return false;
}

struct listener_slot *slot_take(struct connection *c, uint32_t id, bool wait)
{
    struct listener *l = c->listener;
    if (!is_allowed(l, c) || (l->free_slots == NULL && !add_block(l))) {
        return NULL;
    }
    struct listener_slot *slot = l->free_slots;
    l->free_slots = slot->next;
    *slot = (struct listener_slot){.connection = c, .id = id, .wait = wait};
    c->outstanding++;
    c->waits += wait;
    c->user->outstanding++;
    l->busy++;
    return slot;
}

void slot_free(struct listener *l, struct listener_slot *slot)
{
    struct connection *c = slot->connection;
    c->outstanding--;
    c->waits -= slot->wait;
    c->user->outstanding--;
    user_release(l, c->user);
    l->busy--;
    l->wake_pending = l->wake_pending || l->parked != NULL;
    slot->connection = NULL;
    slot->next = l->free_slots;
    l->free_slots = slot;
    if (c->state == CONNECTION_REPORTED && c->outstanding == 0) {
        connection_free(c);
    }
}

void slots_destroy(struct listener *l)
{
    while (l->blocks != NULL) {
        struct slot_block *b = l->blocks;
        l->blocks = b->next;
        for (unsigned i = 0; i < SLOT_BLOCK; i++) {
            if (b->slot[i].connection != NULL) {
                slot_free(l, &b->slot[i]); /* the last slot frees its connection */
            }
        }
        free(b);
    }
    l->free_slots = NULL;
}
