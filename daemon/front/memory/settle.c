#include "daemon/front/memory/settle.h"

#include "daemon/front/memory/arenas.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"

static void settle_buffers(struct front *f, struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        buffer_settle(f, j->work.uses[i].buffer);
    }
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        struct arena *a = j->work.arenas[i].arena;
        bool again = false; /* an arena is settled only once, because that may destroy it */
        for (unsigned k = i + 1; k < j->work.arena_count && !again; k++) {
            again = j->work.arenas[k].arena == a;
        }
        if (!again) {
            arena_settle(f, a);
        }
    }
}

/* The next job in the line of a buffer may run on another device, where the buffer then moves. */
static void offer_next(struct front *f, const struct job *j)
{
    bool moves = false;
    for (unsigned i = 0; i < j->work.use_count && !moves; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        const struct buffer_use *u = b->roams ? hazard_first(b) : NULL;
        moves = u != NULL && u->job->device != j->device;
    }
    if (moves) {
        (void)queue_offer_awaiting(f);
    }
}

void memory_job_left(struct front *f, struct job *j)
{
    offer_next(f, j);
    for (unsigned i = 0; i < j->work.use_count; i++) {
        buffer_seal_left(f, j->work.uses[i].buffer);
    }
    for (unsigned i = 0; i < j->work.module_count; i++) {
        building_settle(f, j->work.modules[i]);
    }
    settle_buffers(f, j);
}
