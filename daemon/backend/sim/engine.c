#include "daemon/backend/sim/engine.h"

#include <stddef.h>
#include <utlist.h>

/* The slot that has been free for longest; -1: none is free. */
static int slot_of(const struct sim_engine *e)
{
    int best = -1;
    for (unsigned i = 0; i < e->slots; i++) {
        if (!e->busy[i] && (best < 0 || e->free_ns[i] < e->free_ns[best])) {
            best = (int)i;
        }
    }
    return best;
}

static void queue_up(struct sim_engine *e, struct sim_turn *me)
{
    struct sim_turn *behind = e->waiting;
    while (behind != NULL && behind->priority >= me->priority) {
        behind = behind->next;
    }
    if (behind == NULL) {
        DL_APPEND(e->waiting, me);
    } else {
        DL_PREPEND_ELEM(e->waiting, behind, me);
    }
}

int sim_engine_take(struct sim_engine *e, int priority, const bool *stop, pthread_cond_t *changed,
                    pthread_mutex_t *lock, uint64_t ready_ns, uint64_t *ret_begin_ns)
{
    struct sim_turn me = {.priority = priority};
    queue_up(e, &me);
    int slot = slot_of(e);
    while (!*stop && (slot < 0 || e->waiting != &me)) {
        pthread_cond_wait(changed, lock);
        slot = slot_of(e);
    }
    DL_DELETE(e->waiting, &me);
    if (*stop) {
        pthread_cond_broadcast(changed);
        return -1;
    }
    e->busy[slot] = true;
    if (e->waiting != NULL) {
        pthread_cond_broadcast(changed); /* there may be a slot for the next command, too */
    }
    *ret_begin_ns = e->free_ns[slot] > ready_ns ? e->free_ns[slot] : ready_ns;
    return slot;
}

void sim_engine_give(struct sim_engine *e, int slot, uint64_t end_ns, pthread_cond_t *changed)
{
    e->busy[slot] = false;
    e->free_ns[slot] = end_ns;
    pthread_cond_broadcast(changed);
}
