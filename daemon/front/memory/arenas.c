#include "daemon/front/memory/arenas.h"

#include <utlist.h>

#include "daemon/front/clients/shm.h"
#include "daemon/front/workers/command.h"

void arena_settle(struct front *f, struct arena *a)
{
    if (a->owner != NULL || a->users > 0) {
        return;
    }
    a->tenant->arena_bytes -= a->bytes;
    command_arena_free(f, a);
    arena_destroy(a);
}

void arena_drop(struct front *f, struct arena *a)
{
    if (f->shm != NULL) {
        shm_withdraw(f->shm, a);
    }
    idmap_disown(&f->arenas, a->handle, a->owner->id);
    (void)idmap_remove(&f->arenas, a->handle);
    DL_DELETE2(a->owner->own_arenas, a, owned_prev, owned_next);
    a->owner->arenas--;
    a->tenant->held[TENANT_ARENAS]--;
    a->owner->arena_bytes -= a->bytes;
    a->owner = NULL;
    arena_settle(f, a);
}

static void forget(struct arena *a, const struct device *d)
{
    device_set_drop(&a->known, d->index);
    device_set_drop(&a->mapped, d->index);
}

void arena_device_lost(struct front *f, const struct device *d)
{
    uint32_t cursor = 0;
    struct arena *a;
    while ((a = idmap_next(&f->arenas, &cursor, NULL)) != NULL) {
        forget(a, d);
    }
    for (struct job *j = f->jobs; j != NULL; j = j->hh.next) { /* jobs may name freed arenas */
        for (unsigned i = 0; i < j->work.arena_count; i++) {
            forget(j->work.arenas[i].arena, d);
        }
    }
}

void arena_mapped(struct front *f, const struct device *d, const struct msg_w_arena *m)
{
    struct arena *a = idmap_get(&f->arenas, m->arena);
    if (a == NULL || !device_set_has(&a->known, d->index)) {
        return;
    }
    /* the worker could not map the arena; the next job that names it sends it again */
    if (m->align == 0) {
        command_arena_drop(d, a);
        forget(a, d);
    } else {
        device_set_put(&a->mapped, d->index);
        a->align = m->align > a->align ? m->align : a->align;
    }
}
