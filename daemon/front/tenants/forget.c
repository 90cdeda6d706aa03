#include "daemon/front/tenants/forget.h"

#include "common/saturate.h"
#include "daemon/front/model/due.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/tenants/quota_tell.h"

#define SPARE (TENANTS_MAX / 16) /* a look that finds fewer is not worth another one at once */

static void mark(struct tenant *t)
{
    if (t != NULL) {
        t->needed = true;
    }
}

/* Has it something in itself, or on a device? A kernel that is quarantined is not forgotten; one
 * that may come to be, is. */
static bool holds(const struct tenant *t)
{
    bool any = t->ruled || t->sessions > 0 || tenant_has_quarantined(t) || t->buffer_bytes > 0 ||
               t->arena_bytes > 0 || t->kept_count > 0 || t->pictures > 0;
    for (unsigned i = 0; !any && i < DEVICES_MAX; i++) {
        const struct tenant_use *u = &t->use[i];
        any = u->asked > 0 || u->mapped > 0 || u->shared > 0 || u->spilled > 0;
    }
    return any;
}

/* Modules and programs that have no handle any more are those of jobs; a buffer is in the table as
 * long as a job names it. */
static void mark_handles(struct front *f)
{
    const struct buffer *b;
    const struct arena *a;
    const struct program *p;
    const struct module *m;
    uint32_t cursor = 0;
    while ((b = idmap_next(&f->buffers, &cursor, NULL)) != NULL) {
        mark(b->tenant);
    }
    cursor = 0;
    while ((a = idmap_next(&f->arenas, &cursor, NULL)) != NULL) {
        mark(a->tenant);
    }
    cursor = 0;
    while ((p = idmap_next(&f->programs, &cursor, NULL)) != NULL) {
        mark(p->tenant);
    }
    cursor = 0;
    while ((m = idmap_next(&f->modules, &cursor, NULL)) != NULL) {
        mark(m->tenant);
    }
}

/* Whatever points at a tenant. */
static void mark_all(struct front *f)
{
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        t->needed = holds(t);
    }
    mark_handles(f);
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        mark(j->tenant);
        if (job_ended(j)) {
            continue; /* what it named may be gone */
        }
        mark(j->program != NULL ? j->program->tenant : NULL);
        for (unsigned i = 0; i < j->work.module_count; i++) {
            mark(j->work.modules[i]->tenant);
        }
    }
}

/* Those without a session since before `until`. */
static void sweep(struct front *f, uint64_t now, uint64_t until)
{
    struct tenant *t;
    struct tenant *next;
    bool later = false;
    mark_all(f);
    HASH_ITER(hh, f->tenants, t, next)
    {
        if (!t->needed && t->left_ns <= until) {
            f->hooks.gone(f, t, t->hh.next);
            quota_forget(f, t);
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
    due_at(f, f->forget_ns);
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
        due_at(f, f->forget_ns);
    }
}

/* Jobs of who has gone are not forgotten here: somebody may stand on one now. */
bool forget_room(struct front *f)
{
    uint64_t now = HASH_COUNT(f->tenants) >= TENANTS_MAX ? turn_now(f) : 0;
    if (now != 0 && now >= f->room_ns) {
        sweep(f, now, now);
        if (HASH_COUNT(f->tenants) + SPARE > TENANTS_MAX) {
            f->room_ns = ns_add(now, TENANT_ROOM_NS);
            f->crowded = true;
            f->forget_ns = now;
            due_at(f, now);
        }
    }
    return HASH_COUNT(f->tenants) < TENANTS_MAX;
}
