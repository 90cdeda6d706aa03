/* What buffers contain: all jobs, in the order of their ids, applied to small memories. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "tests/sim/front/sim.h"

enum byte_state { BYTE_UNDEFINED, BYTE_DEFINED, BYTE_ANY };

/* Grown at powers of two. */
static void *grown(void *list, unsigned count)
{
    if ((count & (count - 1)) == 0) {
        list = realloc(list, (2 * (size_t)count + 1) * sizeof(void *));
    }
    return list;
}

struct sim_buffer *model_buffer(struct sim *s)
{
    struct sim_buffer *b = calloc(1, sizeof *b);
    s->buffer = grown(s->buffer, s->buffers);
    s->buffer[s->buffers++] = b;
    return b;
}

struct sim_job *model_job(struct sim *s)
{
    struct sim_job *j = calloc(1, sizeof *j);
    s->job = grown(s->job, s->jobs);
    s->job[s->jobs++] = j;
    return j;
}

struct sim_buffer *model_find(struct sim *s, uint64_t handle)
{
    struct sim_buffer *b = NULL;
    HASH_FIND(hh, s->by_handle, &handle, sizeof handle, b);
    return b;
}

void model_name(struct sim *s, struct sim_buffer *b, uint64_t handle)
{
    if (b->handle != 0) {
        HASH_DEL(s->by_handle, b);
    }
    b->handle = handle;
    if (handle != 0) {
        HASH_ADD(hh, s->by_handle, handle, sizeof b->handle, b);
    }
}

void model_free(struct sim *s)
{
    HASH_CLEAR(hh, s->by_handle);
    for (unsigned i = 0; i < s->buffers; i++) {
        free(s->buffer[i]);
    }
    for (unsigned i = 0; i < s->jobs; i++) {
        free(s->job[i]);
    }
    free(s->buffer);
    free(s->job);
}

bool step_writes(const struct sim_step *t)
{
    return t->op != OP_READ && !t->inlined;
}

void model_copied(struct sim *s, uint64_t handle, bool copied)
{
    struct sim_buffer *b = model_find(s, handle);
    if (b != NULL) {
        b->copied = copied;
    }
}

void model_doubt(const struct sim_job *j)
{
    for (unsigned i = 0; i < j->steps; i++) {
        if (step_writes(&j->step[i])) {
            j->step[i].to->vague = true;
        }
    }
}

void model_twist(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    static const uint8_t probe[] = {0, 0, 0x28, 0x42}; /* 42.0, which a device's first job writes */
    struct hash h = hash_of(in, in_size);
    for (size_t i = 0; i < out_size && in_size == 0; i++) {
        out[i] = probe[i % sizeof probe];
    }
    for (size_t i = 0; i < out_size && in_size > 0; i++) {
        out[i] = (uint8_t)(h.byte[i % HASH_BYTES] + i);
    }
}

/* ---- one job --------------------------------------------------------------------------------- */

struct part {
    struct sim_buffer *buffer;
    size_t at, size;
};

static struct part part_of(struct sim_buffer *b, uint64_t first, uint64_t count)
{
    size_t at = first * 4 < SIM_CONTENT ? first * 4 : SIM_CONTENT;
    size_t size = count * 4 < SIM_CONTENT - at ? count * 4 : SIM_CONTENT - at;
    return (struct part){.buffer = b->copy_of != NULL ? b->copy_of : b, .at = at, .size = size};
}

static void mark(const struct part *p, enum byte_state state)
{
    memset(p->buffer->state + p->at, (int)state, p->size);
    p->buffer->parts = p->buffer->parts || p->size < p->buffer->bytes;
}

/* The least certain of its bytes. */
static enum byte_state state_of(const struct part *p)
{
    enum byte_state worst = p->buffer->vague ? BYTE_ANY : BYTE_DEFINED;
    for (size_t i = 0; i < p->size; i++) {
        enum byte_state state = p->buffer->state[p->at + i];
        if (state == BYTE_UNDEFINED && !p->buffer->vague) {
            return BYTE_UNDEFINED;
        }
        worst = state == BYTE_ANY ? BYTE_ANY : worst;
    }
    return worst;
}

static enum byte_state must_be_defined(struct sim *s, const struct sim_job *j, const struct part *p)
{
    enum byte_state state = state_of(p);
    if (state == BYTE_UNDEFINED) {
        sim_fail(s,
                 "undefined: job %" PRIu64 " of client %u, request %" PRIu64
                 ", has read undefined bytes of buffer %#" PRIx64,
                 j->id, j->client->index, j->request->seq, p->buffer->handle);
    }
    return state;
}

static void play_read(struct sim *s, const struct sim_job *j, const struct sim_step *t,
                      const struct part *p)
{
    must_be_defined(s, j, p);
    for (size_t i = 0; t->answered && i < p->size; i++) {
        bool sure = p->buffer->state[p->at + i] == BYTE_DEFINED && !p->buffer->vague;
        if (sure && p->buffer->value[p->at + i] != t->got[i]) {
            sim_fail(s,
                     "content: job %" PRIu64 " of client %u, request %" PRIu64 ", read %#x at byte "
                     "%zu of buffer %#" PRIx64 ", which holds %#x",
                     j->id, j->client->index, j->request->seq, t->got[i], p->at + i,
                     p->buffer->handle, p->buffer->value[p->at + i]);
        }
    }
}

static void play_launch(struct sim *s, const struct sim_job *j, const struct sim_step *t,
                        const struct part *to)
{
    uint8_t in[2 * SIM_CONTENT];
    const struct part from = part_of(t->from, t->from_first, t->count);
    enum byte_state state = must_be_defined(s, j, &from);
    size_t size = from.size;
    memcpy(in, from.buffer->value + from.at, from.size);
    if (t->inout) {
        enum byte_state other = must_be_defined(s, j, to);
        state = other == BYTE_ANY ? BYTE_ANY : state;
        memcpy(in + size, to->buffer->value + to->at, to->size);
        size += to->size;
    }
    model_twist(in, size, to->buffer->value + to->at, to->size);
    mark(to, state);
}

/* The client gave what the kernel reads of its own array, and got the result. */
static void play_inline(struct sim *s, const struct sim_job *j, const struct sim_step *t)
{
    uint8_t in[2 * SIM_CONTENT];
    uint8_t out[SIM_CONTENT];
    const struct part from = part_of(t->from, t->from_first, t->count);
    enum byte_state state = must_be_defined(s, j, &from);
    size_t size = from.size;
    memcpy(in, from.buffer->value + from.at, from.size);
    for (uint32_t i = 0; i < t->count && t->inout; i++, size += sizeof i) {
        uint32_t value = t->value + i;
        memcpy(in + size, &value, sizeof value);
    }
    model_twist(in, size, out, t->count * 4);
    if (t->answered && state == BYTE_DEFINED && memcmp(out, t->got, t->count * 4) != 0) {
        sim_fail(s,
                 "content: job %" PRIu64 " of client %u, request %" PRIu64
                 ", step %u: its own array has wrong content",
                 j->id, j->client->index, j->request->seq, (unsigned)(t - j->step));
    }
}

static void play_copy(struct sim *s, const struct sim_job *j, const struct sim_step *t,
                      const struct part *to)
{
    const struct part from = part_of(t->from, t->from_first, t->count);
    enum byte_state state = must_be_defined(s, j, &from);
    size_t size = from.size < to->size ? from.size : to->size;
    memmove(to->buffer->value + to->at, from.buffer->value + from.at, size);
    mark(to, state);
}

static void play_step(struct sim *s, const struct sim_job *j, const struct sim_step *t)
{
    const struct part to = part_of(t->to, t->to_first, t->count);
    if (t->op == OP_READ) {
        play_read(s, j, t, &to);
    } else if (t->inlined) {
        play_inline(s, j, t);
    } else if (t->op == OP_COPY) {
        play_copy(s, j, t, &to);
    } else if (t->op == OP_LAUNCH) {
        play_launch(s, j, t, &to);
    } else {
        for (size_t i = 0; i < to.size; i++) {
            uint32_t value = t->value + (t->op == OP_WRITE ? (uint32_t)(i / 4) : 0);
            to.buffer->value[to.at + i] = (uint8_t)(value >> (i % 4 * 8));
        }
        mark(&to, t->unknown ? BYTE_ANY : BYTE_DEFINED);
    }
}

static void spoil(const struct sim_job *j, enum byte_state state)
{
    for (unsigned i = 0; i < j->steps; i++) {
        const struct sim_step *t = &j->step[i];
        if (step_writes(t)) {
            const struct part to = part_of(t->to, t->to_first, t->count);
            mark(&to, state);
        }
    }
}

/* Others have all places for workers, or its tenant is paused. */
static bool is_kept_out(const struct sim *s, const struct sim_job *j)
{
    return (j->code == ERR_LIMIT && s->p.special == WORLD_DOMAINS) ||
           (j->code == ERR_QUARANTINED && strikes_may_pause(s, j->client->tenant));
}

/* Its worker lied, or it was opened by its handle: then its maker may free it. The maker may itself
 * have opened it so, and keeps nothing of a buffer without a name that it freed. */
static bool is_vague(const struct sim_job *j)
{
    const struct sim_buffer *b = j->step[0].to;
    return b->lied || (!b->published && (b->maker != j->client || b->freed));
}

/* Jobs of a burst at the end (sim_told.c) are last ones, too, but not looks. */
static bool looks_in_vain(const struct sim_job *j)
{
    bool looks = j->last && j->run_ns == 0;
    return looks && j->code != 0 && j->outcome == OUTCOME_KNOWN;
}

/* The last look at a buffer, when all was quiet: nothing else can be the cause of an error. */
static void check_last(struct sim *s, const struct sim_job *j)
{
    const struct sim_step *t = &j->step[0];
    const struct part p = part_of(t->to, 0, t->count);
    bool excused = memory_failed() || s->gave_up || j->lied || s->broke_restore;
    excused = excused || is_vague(j);
    /* another front knows only whether a buffer was written as a whole */
    bool partly = s->era > 1 && (t->to->bytes > SIM_CONTENT || t->to->parts);
    if (j->code == ERR_UNDEFINED && (partly || state_of(&p) != BYTE_DEFINED)) {
        return;
    }
    if (j->code == ERR_BUFFER_LOST) {
        rules_lost(s, t->to);
        return;
    }
    if (j->code == ERR_TIME_LIMIT &&
        j->stalled) { /* its worker hangs, and runs out of time first */
        return;
    }
    if (!excused && !is_kept_out(s, j)) {
        sim_fail(s, "last: client %u cannot read buffer %#" PRIx64 " at the end: %s",
                 j->client->index, t->to->handle, err_name(j->code));
    }
}

static void play(struct sim *s, const struct sim_job *j)
{
    bool unsaid = j->code == ERR_NOMEM && j->effects != 0; /* its result found no memory */
    /* answered early: it may not have begun after all, and another front learns that it ended well
     */
    bool late = j->code == ERR_DEADLINE || (s->era > 1 && j->code == ERR_TIME_LIMIT);
    if (j->vague || unsaid || (late && j->effects != 0) || j->outcome != OUTCOME_KNOWN) {
        spoil(j, BYTE_ANY);
    } else if (j->code == 0) {
        for (unsigned i = 0; i < j->steps; i++) {
            play_step(s, j, &j->step[i]);
        }
    } else if (j->effects != 0) {
        spoil(j, BYTE_UNDEFINED);
    }
    if (looks_in_vain(j)) {
        check_last(s, j);
    }
}

/* ---- all jobs -------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct sim_job *j = *(struct sim_job *const *)a;
    const struct sim_job *k = *(struct sim_job *const *)b;
    if (j->last != k->last) {
        return j->last ? 1 : -1; /* a refused last look has no id */
    }
    return j->id < k->id ? -1 : j->id > k->id;
}

/* Jobs of a session are admitted in the order of their numbers. */
static void check_order(struct sim *s, const struct sim_job *j)
{
    uint64_t *last = &j->client->last_seq[0];
    if (j->client->last_seq[1] != j->life) {
        j->client->last_seq[1] = j->life;
        *last = 0;
    }
    if (s->era == 1 && j->id != 0 && j->outcome == OUTCOME_KNOWN) {
        if (j->request->seq < *last) {
            sim_fail(s, "order: client %u: request %" PRIu64 " became a job after request %" PRIu64,
                     j->client->index, j->request->seq, *last);
        }
        *last = j->request->seq;
    }
}

void model_check(struct sim *s)
{
    for (unsigned i = 0; i < s->buffers; i++) {
        struct sim_buffer *b = s->buffer[i];
        memset(b->state, b->zero ? BYTE_DEFINED : BYTE_UNDEFINED, sizeof b->state);
    }
    if (s->jobs > 0) {
        qsort(s->job, s->jobs, sizeof(struct sim_job *), by_id);
    }
    for (unsigned i = 0; i < s->jobs; i++) {
        check_order(s, s->job[i]);
        if (s->job[i]->id != 0 || s->job[i]->last) {
            play(s, s->job[i]);
        }
    }
}
