#include "daemon/front/tenants/forget.h"

#include "common/saturate.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/tenants/quota_send.h"

/* A check that leaves fewer places free is not repeated at once. */
#define SPARE (TENANTS_MAX / 16)

static void mark(struct tenant *t)
{
    if (t != NULL) {
        t->needed = true;
    }
}

static bool uses(const struct tenant *t)
{
    bool any = t->domains > 0;
    for (unsigned i = 0; !any && i < PLACES_MAX; i++) {
        const struct tenant_use *u = &t->use[i];
        any = u->asked > 0 || u->mapped > 0 || u->shared > 0 || u->spilled > 0;
    }
    return any;
}

/* Does the tenant have anything but jobs, in the front or on a device? Buffers, arenas and programs
 * count while they have handles. Freed buffers and modules count while jobs use them; a module
 * counts by its request's bytes in message_bytes. A quarantined kernel keeps its tenant, and so
 * does a strike of the tenant itself until it is forgiven; strikes of kernels alone do not. */
static bool holds(const struct tenant *t, uint64_t now)
{
    bool struck = tenant_has_quarantined(t) || conduct_strikes(&t->conduct, now) > 0;
    bool any = t->ruled || t->sessions > 0 || struck || t->buffer_bytes > 0 || t->arena_bytes > 0 ||
               t->message_bytes > 0 || t->kept_count > 0 || t->snapshots > 0;
    for (unsigned i = 0; !any && i < TENANT_THINGS; i++) {
        any = t->held[i] > 0;
    }
    return any || uses(t);
}

/* Marks tenants that have something, tenants of jobs, and tenants whose programs and modules jobs
 * use. */
static void mark_all(struct front *f, uint64_t now)
{
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        t->needed = holds(t, now);
    }
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        mark(j->tenant);
        if (job_ended(j)) {
            continue; /* what it names may be freed */
        }
        mark(j->program != NULL ? j->program->tenant : NULL);
        for (unsigned i = 0; i < j->work.module_count; i++) {
            mark(j->work.modules[i]->tenant);
        }
    }
}

/* Removes unneeded tenants whose last session ended before `until`. */
static void sweep(struct front *f, uint64_t now, uint64_t until)
{
    struct tenant *t;
    struct tenant *next;
    bool later = false;
    mark_all(f, now);
    HASH_ITER(hh, f->tenants, t, next)
    {
        if (!t->needed && t->left_ns <= until) {
            f->hooks.entry_removed(f, t, t->hh.next);
            quota_forget(f, t);
            accounts_release(f->accounts, t, now);
            tenant_destroy(&f->tenants, t);
        } else {
            later = later || (!t->ruled && t->sessions == 0);
        }
    }
    f->forget_ns = later ? ns_add(now, TENANT_FORGET_NS) : 0;
}

void forget_later(struct front *f, struct tenant *t)
{
    t->left_ns = turn_now(f);
    if (f->forget_ns == 0) {
        f->forget_ns = ns_add(t->left_ns, TENANT_KEPT_NS);
    }
    wake_at(f, f->forget_ns);
}

void forget_tenants(struct front *f, uint64_t now)
{
    if (f->forget_ns == 0) {
        return;
    }
    if (now >= f->forget_ns) {
        bool crowded = f->crowded;
        f->crowded = false;
        if (crowded) {
            job_forget_absent(f);
        }
        sweep(f, now, crowded ? now : sat_sub(now, TENANT_KEPT_NS));
    }
    if (f->forget_ns != 0) {
        wake_at(f, f->forget_ns);
    }
}

/* Ended jobs are forgotten in the next turn only, because a caller of this function may use one. */
bool forget_room(struct front *f)
{
    uint64_t now = HASH_COUNT(f->tenants) >= TENANTS_MAX ? turn_now(f) : 0;
    if (now != 0 && now >= f->room_ns) {
        sweep(f, now, now);
        if (HASH_COUNT(f->tenants) + SPARE > TENANTS_MAX) {
            f->room_ns = ns_add(now, TENANT_ROOM_NS);
            f->crowded = true;
            f->forget_ns = now;
            wake_at(f, now);
        }
    }
    return HASH_COUNT(f->tenants) < TENANTS_MAX;
}
