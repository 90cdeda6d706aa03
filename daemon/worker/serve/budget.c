#include "daemon/worker/serve/budget.h"

#include <inttypes.h>

#include "common/clock.h"
#include "common/saturate.h"
#include "daemon/pool/move.h"

#define SOON_MS  1u  /* the next turn after one that gave memory back */
#define LATER_MS 10u /* after one that did not: copies and jobs have to end */

/* Bytes on their way to the host at which a recall waits for them. */
#define AHEAD (4 * BUDGET_SLICE)

static struct memory *memory_of(const struct budget *b)
{
    return &b->spill->device->memory;
}

/* Blocks that the pool gave back are the driver's when nothing runs any more. */
static uint64_t missing_of(const struct budget *b, const struct pool_lease *l)
{
    struct pool_stats s;
    const struct memory *m = memory_of(b);
    pool_stats(m->pool, &s);
    uint64_t queued = sat_sub(m->in_use, s.size); /* 0 where the device has pages */
    return sat_sub(sat_add(l->missing, queued), l->room);
}

/* The one place where the state changes. begins: a recall does, if only to report that nothing is
 * missing. */
static void step(struct budget *b, bool begins, uint64_t missing, uint64_t now_ns)
{
    bool over = b->state == BUDGET_OVERDUE || now_ns >= b->until_ns;
    b->state = begins         ? BUDGET_RECALLED
               : missing == 0 ? BUDGET_HELD
               : over         ? BUDGET_OVERDUE
                              : BUDGET_RECALLED;
}

/* A slice of moving pieces together: to the end once until something else is freed. */
static bool pack(struct budget *b)
{
    struct pool_stats s;
    uint64_t moved = 0;
    pool_stats(memory_of(b)->pool, &s);
    if (b->packed == s.frees) {
        return false;
    }
    bool more = pool_defragment(memory_of(b)->pool, BUDGET_SLICE, &moved);
    b->packed = more ? UINT64_MAX : s.frees;
    return more || moved > 0;
}

/* Nothing more is free in whole handles. Returns bytes that are on their way now. */
static uint64_t make_room(struct budget *b, const struct pool_lease *l, struct err *e)
{
    uint64_t slice = l->missing < BUDGET_SLICE ? l->missing : BUDGET_SLICE;
    if (b->spill->leaving >= AHEAD) {
        return 0;
    }
    if (l->excess > 0) {
        return spill_give(b->spill, l->excess < slice ? l->excess : slice, e);
    }
    /* enough is free, but it is in use until streams have advanced, or in parts of pages */
    if (memory_service_busy(memory_of(b))) {
        return 0;
    }
    return pack(b) ? slice : spill_give(b->spill, slice, e);
}

static void on_timer(uv_timer_t *timer);

/* A recall that is not over goes on by its timer. */
static void plan(struct budget *b, const struct pool_lease *l, bool done)
{
    if (b->state == BUDGET_RECALLED || (b->state == BUDGET_OVERDUE && l->idle > 0)) {
        (void)uv_timer_start(&b->timer, on_timer, done ? SOON_MS : LATER_MS, 0);
    } else {
        (void)uv_timer_stop(&b->timer);
    }
}

int budget_turn(struct budget *b, uint64_t now_ns, struct err *e)
{
    struct pool_lease l;
    struct err why = ERR_INIT;
    if (b->state == BUDGET_HELD) {
        return 0;
    }
    enum budget_state was = b->state;
    bool due = !uv_is_active((uv_handle_t *)&b->timer); /* other turns make no room */
    uint64_t done = pool_lease_tick(memory_of(b)->pool, BUDGET_SLICE, now_ns);
    pool_lease(memory_of(b)->pool, &l);
    uint64_t missing = missing_of(b, &l);
    if (missing > 0 || !memory_mapping(memory_of(b)) || now_ns >= b->until_ns) {
        step(b, false, missing, now_ns); /* met once the driver has the memory, too */
    }
    if (due && b->state == BUDGET_RECALLED && l.missing > 0 && l.idle == 0) {
        done += make_room(b, &l, &why);
    }
    if (why.code == ERR_DEVICE_LOST) {
        *e = why;
        return why.code;
    }
    if (due) {
        plan(b, &l, done > 0);
    }
    if (was == BUDGET_RECALLED && b->state != BUDGET_RECALLED) {
        struct budget_report report;
        budget_report(b, &report);
        b->ended(b->data, &report);
    }
    return 0;
}

/* The device is lost only if a copy could not be marked: the next poll finds that, too. */
static void on_timer(uv_timer_t *timer)
{
    struct budget *b = timer->data;
    struct err e = ERR_INIT;
    if (budget_turn(b, clock_now_ns(), &e) != 0) {
        memory_of(b)->hung = true;
    }
}

void budget_init(struct budget *b, struct spill *spill, uv_loop_t *loop, budget_ended_fn ended,
                 void *data)
{
    *b = (struct budget){.spill = spill, .ended = ended, .data = data, .packed = UINT64_MAX};
    (void)uv_timer_init(loop, &b->timer); /* cannot fail */
    b->timer.data = b;
}

void budget_finish(struct budget *b)
{
    (void)uv_timer_stop(&b->timer);
    uv_close((uv_handle_t *)&b->timer, NULL);
}

int budget_set(struct budget *b, const struct budget_ask *ask, struct err *e)
{
    struct memory *m = memory_of(b);
    uint64_t has = b->spill->device->info.memory;
    if (ask->limit > has) {
        return err_set(e, ERR_LIMIT,
                       "a budget of %" PRIu64 " bytes: the device has %" PRIu64
                       ", set at most that",
                       ask->limit, has);
    }
    int rc = pool_lease_set(m->pool, ask->limit, ask->until_ns, e);
    if (rc != 0) {
        return rc;
    }
    pool_stay_most(m->pool, ask->stay);
    m->stay = ask->stay;
    m->limit = ask->limit;
    m->most = ask->most < ask->limit ? ask->limit : ask->most < has ? ask->most : has;
    m->changes++; /* jobs that wait may find room, or fail */
    spill_budget(b->spill);
    b->packed = UINT64_MAX;
    b->until_ns = ask->until_ns;
    step(b, true, 0, 0);
    (void)uv_timer_start(&b->timer, on_timer, 0, 0);
    return 0;
}

void budget_report(const struct budget *b, struct budget_report *ret_report)
{
    struct pool_lease l;
    struct pool_stats s;
    pool_stats(memory_of(b)->pool, &s);
    pool_lease(memory_of(b)->pool, &l);
    *ret_report = (struct budget_report){.state = b->state,
                                         .asked = l.budget,
                                         .limit = l.budget,
                                         .size = s.size,
                                         .missing = missing_of(b, &l)};
}
