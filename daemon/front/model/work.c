#include "daemon/front/model/work.h"

#include <stdlib.h>
#include <string.h>

#include "common/saturate.h"
#include "common/shape.h"
#include "daemon/front/model/buffer.h"
#include "daemon/front/model/device.h"

const char *work_op_name(uint64_t op)
{
    static const char *const names[] = {[OP_WRITE] = "write",
                                        [OP_FILL] = "fill",
                                        [OP_COPY] = "copy",
                                        [OP_LAUNCH] = "launch",
                                        [OP_READ] = "read"};
    return op >= OP_WRITE && op <= OP_READ ? names[op] : NULL;
}

const char *work_arg_name(uint64_t tag)
{
    static const char *const names[] = {
        [ARG_BUFFER] = "buffer", [ARG_SCALAR] = "scalar", [ARG_INLINE] = "array",
        [ARG_TEMP] = "temp",     [ARG_PARAM] = "param",   [ARG_STRUCT] = "struct",
        [ARG_LOCAL] = "local",   [ARG_ARENA] = "shared"};
    return tag < sizeof names / sizeof names[0] && names[tag] != NULL ? names[tag] : "";
}

const char *work_param_name(uint64_t kind)
{
    static const char *const names[] = {
        [PARAM_BUFFER] = "buffer", [PARAM_SCALAR] = "scalar", [PARAM_DATA] = "data"};
    return kind < sizeof names / sizeof names[0] && names[kind] != NULL ? names[kind] : "";
}

void work_init(struct work *w)
{
    *w = (struct work){.device = -1};
}

void work_finish(struct work *w)
{
    for (unsigned i = 0; i < w->ref_count; i++) {
        free(w->refs[i].large);
    }
    free(w->steps);
    free(w->refs);
    free(w->temps);
    free(w->inputs);
    free(w->outputs);
    free(w->uses);
    free(w->arenas);
    free(w->modules);
    work_init(w);
}

/* Room for one more of `size` bytes; grows by doubling. */
static bool reserve(struct work *w, void **array, unsigned count, unsigned *room, unsigned limit,
                    size_t size)
{
    if (count >= limit) {
        return false;
    }
    if (count < *room) {
        return true;
    }
    unsigned wanted = *room > 0 ? *room * 2 : 8;
    void *grown = realloc(*array, wanted * size);
    if (grown == NULL) {
        w->no_memory = true;
        return false;
    }
    *array = grown;
    *room = wanted;
    return true;
}

#define RESERVE(w, field, room, limit)                                                             \
    reserve((w), (void **)&(w)->field##s, (w)->field##_count, &(w)->room, (limit),                 \
            sizeof *(w)->field##s)

struct work_step *work_add_step(struct work *w, unsigned op, unsigned step, struct err *e)
{
    if (w->step_count >= WORK_STEPS_MAX) {
        (void)err_set(e, ERR_LIMIT,
                      "the job has more than %u steps; an operation counts as the launches that it "
                      "becomes",
                      WORK_STEPS_MAX);
        return NULL;
    }
    if (!RESERVE(w, step, step_room, WORK_STEPS_MAX)) {
        (void)err_set(e, ERR_NOMEM, "no memory for %u steps of a job", w->step_count + 1);
        return NULL;
    }
    struct work_step *s = &w->steps[w->step_count++];
    *s = (struct work_step){.op = op, .step = step, .first_ref = w->ref_count};
    return s;
}

struct work_ref *work_add_ref(struct work *w)
{
    if (w->step_count == 0 || !RESERVE(w, ref, ref_room, WORK_REFS_MAX)) {
        return NULL;
    }
    struct work_ref *r = &w->refs[w->ref_count++];
    *r = (struct work_ref){0};
    w->steps[w->step_count - 1].ref_count++;
    return r;
}

/* Most buffers are named repeatedly: the buffer has the index where it was found last. */
struct work_use *work_use_of(struct work *w, struct buffer *b)
{
    if (b->use_hint < w->use_count && w->uses[b->use_hint].buffer == b) {
        return &w->uses[b->use_hint];
    }
    for (unsigned i = 0; i < w->use_count; i++) {
        if (w->uses[i].buffer == b) {
            b->use_hint = i;
            return &w->uses[i];
        }
    }
    if (!RESERVE(w, use, use_room, WORK_USES_MAX)) {
        return NULL;
    }
    b->use_hint = w->use_count;
    struct work_use *u = &w->uses[w->use_count++];
    *u = (struct work_use){.buffer = b};
    return u;
}

struct work_arena *work_add_arena(struct work *w, struct arena *a)
{
    if (!RESERVE(w, arena, arena_room, WORK_USES_MAX)) {
        return NULL;
    }
    struct work_arena *u = &w->arenas[w->arena_count++];
    *u = (struct work_arena){.arena = a};
    return u;
}

unsigned work_units(const struct work *w)
{
    return 1 + w->step_count + w->ref_count + w->use_count + w->arena_count;
}

void work_moves(const struct work *w, uint64_t *ret_to, uint64_t *ret_from)
{
    uint64_t to = 0;
    uint64_t from = 0;
    for (unsigned i = 0; i < w->step_count; i++) {
        const struct work_step *s = &w->steps[i];
        uint64_t size = s->op == OP_WRITE || s->op == OP_READ ? w->refs[s->first_ref].size : 0;
        to += s->op == OP_WRITE ? size : 0;
        from += s->op == OP_READ ? size : 0;
    }
    *ret_to = to;
    *ret_from = from;
}

uint64_t work_transfers(const struct work *w)
{
    uint64_t bytes = sat_add(w->input_bytes, w->output_bytes);
    for (unsigned i = 0; i < w->arena_count; i++) {
        bytes = sat_add(bytes, w->arenas[i].end - w->arenas[i].begin);
    }
    return bytes;
}

bool work_changes_arena(const struct work *w)
{
    for (unsigned i = 0; i < w->arena_count; i++) {
        const struct work_arena *a = &w->arenas[i];
        for (unsigned k = 0; k < w->arena_count; k++) {
            const struct work_arena *b = &w->arenas[k];
            bool both = (a->access & ACCESS_IN) != 0 && (b->access & ACCESS_OUT) != 0;
            if (both && a->arena == b->arena && a->begin < b->end && b->begin < a->end) {
                return true;
            }
        }
    }
    return false;
}

int work_add_temp(struct work *w, uint64_t size, unsigned *ret_index, struct err *e)
{
    if (!RESERVE(w, temp, temp_room, 1024)) {
        return err_set(e, ERR_LIMIT, "more than 1024 temporaries");
    }
    *ret_index = w->temp_count;
    w->temps[w->temp_count++] = size;
    return 0;
}

static uint64_t aligned(uint64_t n)
{
    return (n + STAGING_ALIGN - 1) & ~(uint64_t)(STAGING_ALIGN - 1);
}

int work_add_input(struct work *w, struct bytes data, uint64_t *ret_offset, struct err *e)
{
    if (!RESERVE(w, input, input_room, WORK_STEPS_MAX)) {
        return err_set(e, ERR_LIMIT, "more than %u inline inputs", WORK_STEPS_MAX);
    }
    *ret_offset = w->input_bytes;
    w->inputs[w->input_count++] = (struct work_input){.data = data, .offset = w->input_bytes};
    w->input_bytes += aligned(data.size);
    return 0;
}

int work_add_output(struct work *w, unsigned step, unsigned arg, uint64_t size,
                    uint64_t *ret_offset, struct err *e)
{
    if (size > PROTO_INLINE_MAX - w->output_bytes) {
        return err_set(e, ERR_LIMIT,
                       "outputs of more than %u bytes: read resident buffers in pieces",
                       PROTO_INLINE_MAX);
    }
    if (!RESERVE(w, output, output_room, PROTO_OUTPUTS_MAX)) {
        return err_set(e, ERR_LIMIT, "more than %u outputs", PROTO_OUTPUTS_MAX);
    }
    *ret_offset = w->output_bytes;
    w->outputs[w->output_count++] =
        (struct work_output){.step = step, .arg = arg, .offset = w->output_bytes, .size = size};
    w->output_bytes += aligned(size);
    return 0;
}

int work_add_module(struct work *w, struct module *m, struct err *e)
{
    for (unsigned i = 0; i < w->module_count; i++) {
        if (w->modules[i] == m) {
            return 0;
        }
    }
    if (!RESERVE(w, module, module_room, PROTO_STEPS_MAX)) {
        return err_set(e, ERR_LIMIT, "more than %u modules", PROTO_STEPS_MAX);
    }
    w->modules[w->module_count++] = m;
    return 0;
}
