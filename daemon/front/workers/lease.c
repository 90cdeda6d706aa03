#include "daemon/front/workers/lease.h"

#include <string.h>

#include "common/saturate.h"

#define LEAST_PART 64u /* of a device, for a worker without a guarantee */
#define SLACK_PART 16u /* of what is wanted, on top: pieces do not fit without gaps */

static uint64_t up(uint64_t bytes)
{
    return sat_add(bytes, LEASE_UNIT - 1) / LEASE_UNIT * LEASE_UNIT;
}

static uint64_t down(uint64_t bytes)
{
    return bytes / LEASE_UNIT * LEASE_UNIT;
}

uint64_t lease_floor(uint64_t whole, uint64_t guaranteed)
{
    uint64_t least = up(whole / LEAST_PART);
    return guaranteed > least ? guaranteed : least;
}

unsigned lease_next(const struct lease_holder *h, unsigned count)
{
    unsigned next = count;
    for (unsigned i = 0; i < count; i++) {
        if (h[i].wanted > 0 && (next == count || h[i].since_ns < h[next].since_ns)) {
            next = i;
        }
    }
    return next;
}

enum giving { GIVE_UNUSED, GIVE_IDLE, GIVE_SHARE };

/* What it can give in this way beyond `taken`. share: an equal part of the device. */
static uint64_t gives(const struct lease_holder *h, enum giving how, uint64_t taken, uint64_t share)
{
    uint64_t has = sat_sub(h->lease, taken);
    uint64_t keeps = h->floor;
    bool may = h->gives;
    switch (how) {
    case GIVE_UNUSED:
        keeps = h->used > keeps ? h->used : keeps;
        break;
    case GIVE_IDLE:
        may = may && !h->busy;
        break;
    case GIVE_SHARE:
        keeps = share > keeps ? share : keeps;
        break;
    }
    return may ? down(sat_sub(has, keeps)) : 0;
}

/* Does `a` give before `b`? */
static bool before(const struct lease_holder *a, uint64_t has, const struct lease_holder *b,
                   uint64_t best, enum giving how)
{
    return how == GIVE_IDLE ? a->used_ns < b->used_ns : has > best;
}

static uint64_t collect(const struct lease_holder *h, unsigned count, unsigned wanter,
                        enum giving how, uint64_t lacks, uint64_t share, uint64_t *take)
{
    uint64_t sum = 0;
    while (sum < lacks) {
        unsigned from = count;
        uint64_t best = 0;
        for (unsigned i = 0; i < count; i++) {
            uint64_t has = i != wanter ? gives(&h[i], how, take[i], share) : 0;
            if (has > 0 && (from == count || before(&h[i], has, &h[from], best, how))) {
                from = i;
                best = has;
            }
        }
        if (from == count) {
            return sum;
        }
        best = best < lacks - sum ? best : lacks - sum;
        take[from] += best;
        sum += best;
    }
    return sum;
}

uint64_t lease_plan(const struct lease_holder *h, unsigned count, unsigned wanter,
                    uint64_t *ret_take)
{
    const struct lease_holder *w = &h[wanter];
    uint64_t least = up(w->wanted);
    uint64_t room = down(sat_sub(w->most, w->lease));
    uint64_t goal = up(sat_add(w->wanted, w->wanted / SLACK_PART));
    uint64_t share = 0;
    goal = goal < room ? goal : room;
    memset(ret_take, 0, count * sizeof *ret_take);
    if (least == 0 || least > room) {
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        share = sat_add(share, h[i].lease);
    }
    share /= count;
    uint64_t sum = collect(h, count, wanter, GIVE_UNUSED, goal, share, ret_take);
    if (sum < least) {
        sum += collect(h, count, wanter, GIVE_IDLE, least - sum, share, ret_take);
    }
    uint64_t below = sat_sub(share, sat_add(w->lease, sum));
    if (sum < least && below >= least - sum) {
        sum += collect(h, count, wanter, GIVE_SHARE, least - sum, share, ret_take);
    }
    return sum >= least ? sum : 0;
}
