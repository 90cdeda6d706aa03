/* The end of a world: all is freed, and nothing may be left. */
#include <inttypes.h>
#include <utlist.h>

#include "daemon/worker/serve/serve.h"
#include "tests/sim/worker/ward_front.h"

#define LEAVE_JOBS_NS (300 * NS_PER_S)
#define LEAVE_REST_NS (400 * NS_PER_S)

static bool jobs_left(struct ward *w)
{
    const struct asked_job *j;
    bool left = false;
    DL_FOREACH(w->front->jobs, j)
    {
        left = true;
        if (!j->ended && w->now_ns > w->front->leaves_ns + LEAVE_JOBS_NS) {
            ward_broken(w, "progress", "job %" PRIu64 " has no end after %" PRIu64 " s%s%s", j->id,
                        (w->now_ns - j->sent_ns) / NS_PER_S,
                        j->waits ? ", it waits for memory" : "",
                        ward_device_idle(w->device) ? ", and the device is idle" : "");
        }
    }
    return left;
}

static bool things_left(struct ward *w)
{
    struct thing *t;
    struct thing *next;
    struct asked_module *x;
    struct asked_module *after;
    bool left = false;
    DL_FOREACH_SAFE(w->front->things, t, next)
    {
        if (t->state == THING_ASKED || t->state == THING_SEALING) {
            left = true;
            if (w->now_ns > w->front->leaves_ns + LEAVE_REST_NS) {
                ward_broken(w, "progress", "buffer %" PRIu64 " has no answer", t->id);
            }
        } else if (t->arena) {
            front_arena_drop(w, t);
        } else {
            front_free_buffer(w, t);
        }
    }
    DL_FOREACH_SAFE(w->front->modules, x, after)
    {
        if (x->state == THING_READY) {
            front_module_drop(w, x);
        } else {
            left = true;
        }
    }
    return left;
}

static void accounts_check(struct ward *w)
{
    const struct ward_front *f = w->front;
    const struct msg_w_pool *p = &f->pool_says;
    if (p->used != 0 || p->live != 0 || p->spilled != 0) {
        ward_broken(w, "left",
                    "all is freed, and the worker has %" PRIu64 " bytes in %" PRIu64
                    " pieces, %" PRIu64 " on the host",
                    p->used, p->live, p->spilled);
    }
    for (unsigned i = 1; i <= w->params.tenants; i++) {
        const struct msg_w_tenant *u = &f->tenant[i].use;
        if (u->asked != 0 || u->mapped != 0 || u->shared != 0 || u->spilled != 0) {
            ward_broken(w, "left",
                        "tenant %u has nothing, and is charged %" PRIu64 ", %" PRIu64 ", %" PRIu64
                        ", %" PRIu64,
                        i, u->asked, u->mapped, u->shared, u->spilled);
        }
    }
}

static void limits_end(struct ward *w)
{
    for (unsigned i = 1; i <= w->params.tenants; i++) {
        struct tenant *t = &w->front->tenant[i];
        t->limits = (struct memory_limits){.device = POOL_QUOTA_NONE, .spilled = UINT64_MAX};
        t->most = UINT64_MAX;
        front_limits(w, i);
    }
}

bool ward_front_leave(struct ward *w)
{
    struct ward_front *f = w->front;
    const struct msg_f_pool ask = {.trim = 1};
    const struct msg_f_quit quit = {0};
    switch (f->leaving) {
    case 0:
        f->leaves_ns = w->now_ns;
        w->device->foreign = 0;
        f->leaving++;
        return false;
    case 1:
        if (f->nonce == 0 && !jobs_left(w)) {
            limits_end(w);
            f->leaving++;
        }
        return false;
    case 2:
        f->leaving += !things_left(w);
        f->leaves_ns = w->now_ns;
        return false;
    case 3: /* what is queued for release goes */
        if (w->now_ns > f->leaves_ns + 100 * NS_PER_S && server_idle(w->server)) {
            f->pool = false;
            front_send(w, &schema_msg_f_pool, &ask, -1);
            f->leaving++;
        }
        return false;
    case 4:
        if (f->pool && server_idle(w->server)) {
            accounts_check(w);
            front_send(w, &schema_msg_f_quit, &quit, -1);
            f->leaving++;
            return true;
        }
        return false;
    default:
        return true;
    }
}
