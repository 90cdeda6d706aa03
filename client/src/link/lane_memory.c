#include "client/src/link/lane_memory.h"

#include "client/src/base/state.h"
#include "common/clock.h"
#include "common/descriptors.h"

#define MISSES_MAX 10u /* after so many misses, one wait in 1024 spins */
#define SPINS      32u /* between two readings of the clock */

void lane_fd_close(struct gpud_client *c, int *fd)
{
    if (*fd >= 0 && origin_here(&c->origin)) { /* a child of fork shares the parent's epoll set */
        conn_unwatch(&c->conn, *fd);
    }
    descriptor_close(fd);
}

void lane_release(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    lane_fd_close(c, &l->claim_fd);
    lane_fd_close(c, &l->daemon_bell);
    lane_fd_close(c, &l->bell);
    if (l->spinning && l->retired.data == NULL) {
        l->retired = l->memory; /* a thread spins on it */
        l->memory = MEMFD_NONE;
    }
    memfd_finish(&l->memory);
}

void lane_drop(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    lane_release(c);
    lane_step(l, LANE_OFF);
    l->pause = LANE_FIRST_AFTER;
    for (struct request *r = c->requests.sequenced.first; r != NULL; r = r->next) {
        r->by_ring = false;
    }
}

/* ---- spinning before sleeping --------------------------------------------------------------- */

bool lane_spin_begin(struct gpud_client *c, uint64_t deadline_ns, struct lane_spin *ret_spin)
{
    struct lane *l = &c->lane;
    if (l->state != LANE_UP || l->spin_ns == 0 || c->requests.sequenced.first == NULL) {
        return false;
    }
    if (l->skip > 0) {
        l->skip--;
        return false;
    }
    uint64_t until = ns_add(clock_now_ns(), l->spin_ns);
    *ret_spin = (struct lane_spin){.control = l->in.shared,
                                   .tail = l->in.tail,
                                   .until_ns = until < deadline_ns ? until : deadline_ns};
    l->spinning = true;
    ring_wake(&l->in); /* the daemon need not ring */
    return true;
}

bool lane_spin(const struct lane_spin *spin)
{
    do {
        for (unsigned i = 0; i < SPINS; i++) {
            if (atomic_load_explicit(&spin->control->head, memory_order_relaxed) != spin->tail) {
                return true;
            }
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
    } while (clock_now_ns() < spin->until_ns);
    return false;
}

bool lane_spin_end(struct gpud_client *c, bool found)
{
    struct lane *l = &c->lane;
    l->spinning = false;
    memfd_finish(&l->retired);
    if (l->state == LANE_UP && !found) {
        found = !ring_sleep(&l->in);
    }
    if (found) {
        l->misses = 0;
    } else {
        l->misses += l->misses < MISSES_MAX;
        l->skip = 1u << l->misses;
    }
    return found;
}
