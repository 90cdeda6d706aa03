#include "daemon/front/sched/cap.h"

#include "daemon/front/model/wake.h"

/* What the bucket lacks after the time that has passed, in hundredths of ns; negative: it has some.
 * percent: above 0. */
static int64_t lack_at(const struct stake *k, uint64_t now_ns, unsigned percent)
{
    uint64_t passed = now_ns > k->lack_at_ns ? now_ns - k->lack_at_ns : 0;
    int64_t filled = (int64_t)(passed * percent);
    int64_t most = (int64_t)(CAP_BURST_NS * percent);
    return k->lack - filled < -most ? -most : k->lack - filled;
}

uint64_t cap_wait_ns(const struct stake *k, uint64_t now_ns)
{
    unsigned percent = k != NULL ? k->tenant->limits.device_share : 0;
    int64_t lack = percent > 0 ? lack_at(k, now_ns, percent) : 0;
    return lack > 0 ? ((uint64_t)lack + percent - 1) / percent : 0;
}

/* The tenant is looked at again when it may go. */
static void look(struct front *f, struct stake *k, uint64_t now_ns)
{
    uint64_t at_ns = ns_add(now_ns, cap_wait_ns(k, now_ns));
    agenda_set(&k->line->capped, &k->due, at_ns, k);
    wake_at(f, at_ns);
}

void cap_charge(struct front *f, struct stake *k, int64_t ns)
{
    uint64_t now_ns = turn_now(f);
    unsigned percent = k->tenant->limits.device_share;
    k->lack = percent > 0 ? lack_at(k, now_ns, percent) + ns * 100 : 0;
    k->lack_at_ns = now_ns;
    if (k->due.in) { /* it may go earlier than it seemed */
        look(f, k, now_ns);
    }
}

bool cap_holds(struct front *f, struct stake *k)
{
    if (k->tenant->limits.device_share == 0) {
        return false;
    }
    uint64_t now_ns = turn_now(f);
    bool holds = cap_wait_ns(k, now_ns) > 0;
    if (holds) {
        look(f, k, now_ns);
    }
    return holds;
}

void caps_watch(struct front *f, uint64_t now_ns)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        uint64_t next = agenda_next_ns(&f->device[i]->line.capped);
        if (next <= now_ns) {
            f->hooks.kick(f);
        } else {
            wake_at(f, next);
        }
    }
}
