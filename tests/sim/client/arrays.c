/*
 * Memory of gpud_host_alloc. Steps of jobs take their arrays from there, so the daemon's workers
 * read and write them in place. A piece is used again when the job that had it has ended, unless
 * the daemon may still run that job: such a piece can only be freed.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/client/libsim.h"

#define NO_JOB 0xa5a5a500u

static struct chance luck(const struct user *u, uint64_t salt)
{
    return chance_of(u->s->course->seed ^ chance_mix(u->s->jobs), salt + u->index);
}

/* What a piece holds while no job has it. */
static void clear(uint32_t *memory)
{
    for (unsigned i = 0; i < SIM_CONTENT / sizeof *memory; i++) {
        memory[i] = NO_JOB + i;
    }
}

static void check_clear(const struct user *u, const struct array *a)
{
    for (unsigned i = 0; i < SIM_CONTENT / sizeof *a->memory; i++) {
        if (a->job == NULL && !a->doubtful && a->memory[i] != NO_JOB + i) {
            sim_fail(u->s,
                     "array: no job of user %u has a piece of memory, and %#x is written there",
                     u->index, a->memory[i]);
        }
    }
}

static void allocate(struct user *u)
{
    void *memory = NULL;
    unsigned i = 0;
    while (i < ARRAYS_MAX && u->array[i].memory != NULL) {
        i++;
    }
    if (i < ARRAYS_MAX && CALL(u, gpud_host_alloc, u->lib, SIM_CONTENT, &memory) == 0) {
        u->array[i] = (struct array){.memory = memory};
        clear(memory);
    }
}

/* What jobs wrote there cannot be read any more. */
static void lose_all(struct user *u, const uint32_t *memory)
{
    for (struct lib_job *x = u->jobs; x != NULL; x = x->next) {
        for (unsigned i = 0; i < SIM_STEPS; i++) {
            x->at[i] = x->at[i] == memory ? NULL : x->at[i];
        }
    }
}

static bool uses(const struct lib_job *x, const uint32_t *memory)
{
    for (unsigned i = 0; i < SIM_STEPS; i++) {
        if (x->at[i] == memory) {
            return true;
        }
    }
    return false;
}

static bool has_ended(struct user *u, const struct lib_job *x)
{
    call_begin(u, "gpud_job_done");
    bool done = x->over || gpud_job_done(x->job);
    (void)call_end(u, 0);
    return done;
}

/* gpud_host_free waits for the jobs that use the memory. */
static void release(struct user *u, struct array *a)
{
    uint32_t *memory = a->memory;
    check_clear(u, a);
    if (CALL(u, gpud_host_free, u->lib, memory) != 0) {
        return;
    }
    *a = (struct array){.memory = NULL};
    for (const struct lib_job *x = u->jobs; x != NULL; x = x->next) {
        if (uses(x, memory) && !has_ended(u, x)) {
            sim_fail(u->s, "array: user %u has freed memory, and its job %" PRIu64 " uses it",
                     u->index, x->j->id);
        }
    }
    lose_all(u, memory);
    if (CALL(u, gpud_host_free, u->lib, memory) != GPUD_ERR_INVALID) {
        sim_fail(u->s, "array: user %u frees memory twice", u->index);
    }
}

void arrays_some(struct user *u)
{
    struct chance r = luck(u, 70);
    unsigned i = (unsigned)chance_below(&r, ARRAYS_MAX);
    if (!chance_percent(&r, (unsigned)u->s->p.arrays)) {
        return;
    }
    if (u->array[i].memory == NULL) {
        allocate(u);
    } else if (chance_percent(&r, 30)) {
        release(u, &u->array[i]);
    }
}

void arrays_replace(struct user *u)
{
    struct chance r = luck(u, 72 + 2 * USERS_MAX);
    for (unsigned i = 0; i < ARRAYS_MAX; i++) {
        struct array *a = &u->array[i];
        if (a->doubtful && a->job == NULL && u->lib != NULL && chance_percent(&r, 60)) {
            release(u, a);
            allocate(u);
        }
    }
}

uint32_t *array_take(struct lib_job *x)
{
    struct user *u = x->user;
    struct chance r = luck(u, 71 + USERS_MAX);
    unsigned first = (unsigned)chance_below(&r, ARRAYS_MAX);
    bool wanted = chance_percent(&r, (unsigned)u->s->p.arrays);
    for (unsigned i = 0; wanted && i < ARRAYS_MAX; i++) {
        struct array *a = &u->array[(first + i) % ARRAYS_MAX];
        if (a->memory != NULL && a->job == NULL && !a->doubtful) {
            check_clear(u, a);
            a->job = x;
            return a->memory;
        }
    }
    return NULL;
}

void arrays_leave(const struct lib_job *x, bool sure)
{
    for (unsigned i = 0; i < ARRAYS_MAX; i++) {
        struct array *a = &x->user->array[i];
        if (a->job == x) {
            a->job = NULL;
            a->doubtful = a->doubtful || !sure;
            if (!a->doubtful) {
                clear(a->memory);
            }
        }
    }
}

void arrays_forget(struct user *u)
{
    for (unsigned i = 0; i < ARRAYS_MAX; i++) {
        lose_all(u, u->array[i].memory);
    }
    memset(u->array, 0, sizeof u->array);
}
