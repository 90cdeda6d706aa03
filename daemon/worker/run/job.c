#include "daemon/worker/run/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/worker/run/library_call.h"

/* ---- references ----------------------------------------------------------------------------- */

static int range_check(const char *what, uint64_t id, const struct proto_ref *ref, uint64_t size,
                       struct err *e)
{
    if (ref->offset > size || ref->size > size - ref->offset) {
        return err_set(e, ERR_RANGE,
                       "%" PRIu64 " bytes at %" PRIu64 " of %s %" PRIu64 " of %" PRIu64 " bytes",
                       ref->size, ref->offset, what, id, size);
    }
    return 0;
}

static int buffer_check(const struct job_scope *scope, struct job *j, const struct proto_ref *ref,
                        struct err *e)
{
    struct buffer *b = buffer_find(scope->buffers, ref->id, e);
    if (b == NULL) { /* it got no memory, and the front will have heard of it by now */
        return err_set(e, ERR_BUFFER_LOST, "the worker no longer has buffer %" PRIu64, ref->id);
    }
    int rc = range_check("buffer", ref->id, ref, b->size, e);
    if (rc == 0) {
        buffer_use(b);
        j->buffers[j->buffer_count++] = b;
    }
    return rc;
}

static int arena_check(const struct job_scope *scope, struct job *j, const struct proto_ref *ref,
                       struct err *e)
{
    int rc = arena_range_use(scope->arenas, ref->id, ref->offset, ref->size,
                             &j->arenas[j->arena_count].arena, e);
    j->arena_count += rc == 0;
    return rc;
}

/* Checks a range of an arena that kernels work on. The front knows from W_ARENA whether they can,
 * perhaps from the worker before this one, where the arena is still being registered: then the job
 * waits (job_arenas_late). */
static int block_check(const struct job_scope *scope, struct job *j, const struct proto_ref *ref,
                       struct err *e)
{
    int rc = arena_check(scope, j, ref, e);
    if (rc != 0) {
        return rc;
    }
    struct job_arena *use = &j->arenas[j->arena_count - 1];
    const struct arena *a = use->arena;
    use->works = true;
    bool fits = a->block != NULL ? ref->offset % a->align == 0 : a->queued;
    return fits ? 0
                : err_set(e, ERR_UNSUPPORTED,
                          "kernels cannot reach byte %" PRIu64 " of arena %" PRIu64, ref->offset,
                          ref->id);
}

enum pool_late job_arenas_late(const struct job *j, struct err *e)
{
    enum pool_late all = POOL_READY;
    for (unsigned i = 0; i < j->arena_count; i++) {
        const struct arena *a = j->arenas[i].arena;
        if (!j->arenas[i].works || a->block != NULL) {
            continue;
        }
        if (!a->queued) {
            (void)err_set(e, ERR_UNSUPPORTED,
                          "kernels cannot reach arena %" PRIu64
                          ": this worker could not register it; submit the job again, and it "
                          "works on a copy",
                          a->id);
            return POOL_FAILED;
        }
        all = POOL_WAITS;
    }
    return all;
}

static int memory_check(const struct job_scope *scope, struct job *j, const struct proto_ref *ref,
                        struct err *e)
{
    if (ref->tag == REF_BUFFER) {
        return buffer_check(scope, j, ref, e);
    }
    if (ref->tag == REF_ARENA) {
        return block_check(scope, j, ref, e);
    }
    if (ref->tag != REF_TEMP) {
        return err_set(e, ERR_ARG_TYPE, "the argument is not device memory");
    }
    if (ref->id >= j->temp_count) {
        return err_set(e, ERR_BAD_HANDLE, "temporary %" PRIu64 " of %u", ref->id, j->temp_count);
    }
    lifetime_mention(&j->temps[ref->id], j->checked);
    return range_check("temporary", ref->id, ref, j->temps[ref->id].size, e);
}

static int launch_arg_check(const struct job_scope *scope, struct job *j,
                            const struct proto_ref *ref, struct err *e)
{
    switch (ref->tag) {
    case REF_VALUE:
        return ref->value.size > 0 ? 0 : err_set(e, ERR_ARG_TYPE, "value of 0 bytes");
    case REF_LOCAL:
        return ref->size > 0 ? 0 : err_set(e, ERR_RANGE, "0 bytes of local memory");
    default:
        return memory_check(scope, j, ref, e);
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

struct refs {
    struct proto_ref ref[2];
    unsigned count;
};

static int memory_args(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                       unsigned want, struct refs *ret_refs, struct err *e)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct refs refs = {0};
    if (s->args.count != want) {
        return err_set(e, ERR_ARG_COUNT, "%" PRIu64 " arguments instead of %u", s->args.count,
                       want);
    }
    while (refs.count < want && proto_list_next(&it, &schema_ref, &refs.ref[refs.count])) {
        int rc = refs.ref[refs.count].tag == REF_ARENA
                     ? err_set(e, ERR_ARG_TYPE, "an arena is neither filled nor copied to")
                     : memory_check(scope, j, &refs.ref[refs.count], e);
        if (rc != 0) {
            e->arg = (int)refs.count;
            return rc;
        }
        refs.count++;
    }
    if (refs.count != want) {
        return err_set(e, ERR_PROTOCOL, "the arguments cannot be decoded");
    }
    *ret_refs = refs;
    return 0;
}

static bool overlap(const struct proto_ref *a, const struct proto_ref *b)
{
    return a->tag == b->tag && a->id == b->id && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

#define COPY_BYTES_NS 8u /* bytes copied in a nanosecond, a rough estimate */

static void expect_more(uint64_t *sum, uint64_t ns)
{
    if (__builtin_add_overflow(*sum, ns, sum)) {
        *sum = PACE_UNKNOWN;
    }
}

static void expect(struct job *j, uint64_t ns)
{
    expect_more(&j->expected_ns, ns);
}

/* Checks a write or a read: its device memory, and its staging memory or as many bytes of an
 * arena. */
static int transfer_check(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                          struct err *e)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref = {0};
    struct proto_ref arena = {0};
    if (s->args.count < 1 || s->args.count > 2 || !proto_list_next(&it, &schema_ref, &ref)) {
        return err_set(e, ERR_ARG_COUNT, "%" PRIu64 " arguments of a transfer, 1 or 2 are needed",
                       s->args.count);
    }
    int rc = ref.tag == REF_ARENA ? err_set(e, ERR_ARG_TYPE, "the argument is not device memory")
                                  : memory_check(scope, j, &ref, e);
    if (rc != 0) {
        e->arg = 0;
        return rc;
    }
    expect(j, ref.size / COPY_BYTES_NS);
    if (!proto_list_next(&it, &schema_ref, &arena)) {
        return s->op == OP_WRITE
                   ? staging_check(&scope->staging->input, "input", s->stage, ref.size, e)
                   : staging_check(&scope->staging->output, "output", s->stage, ref.size, e);
    }
    if (arena.tag != REF_ARENA || arena.size != ref.size) {
        return err_set(e, ERR_ARG_SHAPE, "%" PRIu64 " bytes for %" PRIu64, arena.size, ref.size);
    }
    return arena_check(scope, j, &arena, e);
}

static int copy_check(const struct refs *refs, struct err *e)
{
    const struct proto_ref *dst = &refs->ref[0];
    const struct proto_ref *src = &refs->ref[1];
    if (dst->size != src->size) {
        return err_set(e, ERR_ARG_SHAPE, "copy of %" PRIu64 " bytes into %" PRIu64, src->size,
                       dst->size);
    }
    return overlap(dst, src) ? err_set(e, ERR_RANGE, "source and destination overlap") : 0;
}

static int fill_check(const struct refs *refs, struct bytes pattern, struct err *e)
{
    size_t n = pattern.size;
    const struct proto_ref *dst = &refs->ref[0];
    bool sized = n != 0 && n <= FRAME_PATTERN_MAX && (n & (n - 1)) == 0;
    if (!sized || dst->size % n != 0 || dst->offset % n != 0) {
        return err_set(e, ERR_ARG_SHAPE,
                       "a pattern of %zu bytes does not fit %" PRIu64 " bytes at %" PRIu64, n,
                       dst->size, dst->offset);
    }
    return 0;
}

void job_sizes(const struct proto_wstep *s, uint64_t ret_global[3], uint64_t ret_local[3])
{
    const uint64_t global[3] = {s->gx, s->gy, s->gz};
    const uint64_t local[3] = {s->lx, s->ly, s->lz};
    bool given = s->lx != 0 || s->ly != 0 || s->lz != 0;
    for (int d = 0; d < 3; d++) {
        ret_global[d] = global[d] == 0 && d > 0 ? 1 : global[d];
        ret_local[d] = given && local[d] == 0 ? 1 : local[d];
    }
}

/* local 0: the back end chooses the size of a group. */
static int dimension_check(const struct backend_info *info, int d, uint64_t global, uint64_t local,
                           struct err *e)
{
    if (local == 0) {
        return 0;
    }
    if (info->max_local[d] > 0 && local > info->max_local[d]) {
        return err_set(e, ERR_LAUNCH,
                       "local size %" PRIu64 " in dimension %d, the device takes %" PRIu64
                       " at most",
                       local, d, info->max_local[d]);
    }
    return global % local == 0 ? 0
                               : err_set(e, ERR_LAUNCH,
                                         "global size %" PRIu64 " is no multiple of local size "
                                         "%" PRIu64 " in dimension %d",
                                         global, local, d);
}

/* Some sources require one size of group (reqd_work_group_size). */
static int required_check(const struct backend_kernel *k, const uint64_t global[3],
                          const uint64_t local[3], struct err *e)
{
    const uint64_t *want = k->required_local;
    for (int d = 0; d < 3 && want[0] > 0; d++) {
        if (local[d] > 0 && local[d] != want[d]) {
            return err_set(e, ERR_LAUNCH,
                           "local size %" PRIu64 ",%" PRIu64 ",%" PRIu64
                           ", the kernel requires %" PRIu64 ",%" PRIu64 ",%" PRIu64,
                           local[0], local[1], local[2], want[0], want[1], want[2]);
        }
        if (want[d] > 0 && global[d] % want[d] != 0) {
            return err_set(e, ERR_LAUNCH,
                           "global size %" PRIu64 " in dimension %d, the kernel requires a "
                           "multiple of its local size %" PRIu64,
                           global[d], d, want[d]);
        }
    }
    return 0;
}

/* Checks a kernel's own limits here, because a driver refuses a launch only when it is enqueued:
 * by then earlier steps may have changed something. */
static int sizes_check(const struct backend_info *info, const struct backend_kernel *k,
                       const struct proto_wstep *s, uint64_t *ret_items, struct err *e)
{
    uint64_t global[3];
    uint64_t local[3];
    uint64_t items = 1;
    uint64_t group = 1;
    job_sizes(s, global, local);
    for (int d = 0; d < 3; d++) {
        if (global[d] == 0 || __builtin_mul_overflow(items, global[d], &items)) {
            return err_set(e, ERR_RANGE, "global size of %" PRIu64 "x%" PRIu64 "x%" PRIu64,
                           global[0], global[1], global[2]);
        }
        int rc = dimension_check(info, d, global[d], local[d], e);
        if (rc != 0) {
            return rc;
        }
        if (local[d] > 0 && __builtin_mul_overflow(group, local[d], &group)) {
            group = UINT64_MAX;
        }
    }
    if (info->max_group > 0 && group > info->max_group) {
        return err_set(e, ERR_LAUNCH, "group of %" PRIu64 " work items, device has %" PRIu64, group,
                       info->max_group);
    }
    if (k->max_group > 0 && group > k->max_group) {
        return err_set(e, ERR_LAUNCH, "group of %" PRIu64 " work items, the kernel has %" PRIu64,
                       group, k->max_group);
    }
    *ret_items = items;
    return required_check(k, global, local, e);
}

/* Checks all local memory of a group: the kernel's own, dynamic shared memory, and arguments.
 * Some drivers accept any size, others fail when the kernel runs. */
static int local_check(const struct backend_info *info, const struct backend_kernel *k,
                       const struct proto_wstep *s, struct err *e)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    uint64_t asked = s->shared;
    uint64_t all;
    bool fits = true;
    while (proto_list_next(&it, &schema_ref, &ref)) {
        fits = fits && !(ref.tag == REF_LOCAL && __builtin_add_overflow(asked, ref.size, &asked));
    }
    fits = fits && !__builtin_add_overflow(asked, k->shared_bytes, &all);
    if (info->local_bytes == 0 || (fits && all <= info->local_bytes)) {
        return 0;
    }
    return err_set(e, ERR_RANGE,
                   "%s%" PRIu64 " bytes of local memory are asked for and %" PRIu64
                   " are the kernel's own, a group has %" PRIu64,
                   fits ? "" : "over ", asked, k->shared_bytes, info->local_bytes);
}

const struct module *job_module(const struct job *j, uint64_t id)
{
    for (unsigned i = 0; i < j->launch_count; i++) {
        if (j->launches[i].module->id == id) {
            return j->launches[i].module;
        }
    }
    return NULL;
}

/* Whether a library runs in place of a kernel is known only later, so this expects the longer
 * time. */
static uint64_t launch_expect(const struct job *j, const struct job_launch *l)
{
    uint64_t own = pace_expect(l->pace, l->items);
    uint64_t served = j->covered > 0 ? pace_expect(l->served, l->items) : PACE_UNKNOWN;
    if (own == PACE_UNKNOWN || served == PACE_UNKNOWN) {
        return own < served ? own : served;
    }
    return own > served ? own : served;
}

static int launch_check(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                        struct err *e)
{
    char entry[PROTO_NAME_MAX * 2 + 1];
    struct module *m = module_find(scope->modules, s->module, e);
    if (m == NULL) {
        return ERR_BAD_HANDLE;
    }
    if (!bytes_to_str(s->entry, entry, sizeof entry)) {
        return err_set(e, ERR_NOT_FOUND, "name of a kernel is too long");
    }
    const struct backend_kernel *k = module_kernel(m, entry, e);
    if (k == NULL) {
        return ERR_NOT_FOUND;
    }
    module_use(m);
    struct job_launch *l = &j->launches[j->launch_count++];
    struct pace *pace = &m->paces[k - m->kernels];
    *l = (struct job_launch){
        .module = m, .pace = pace, .served = pace + m->kernel_count, .items = 1};
    if (k->arg_count != 0 && k->arg_count != s->args.count) {
        return err_set(e, ERR_ARG_COUNT, "%s takes %u arguments, not %" PRIu64, entry, k->arg_count,
                       s->args.count);
    }
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    for (int i = 0; proto_list_next(&it, &schema_ref, &ref); i++) {
        int rc = launch_arg_check(scope, j, &ref, e);
        if (rc != 0) {
            e->arg = i;
            return err_wrap(e, "argument %d of %s", i, entry);
        }
    }
    int rc = sizes_check(&scope->device->info, k, s, &l->items, e);
    uint64_t ns = launch_expect(j, l);
    expect(j, ns);
    expect_more(&j->launches_ns, ns);
    rc = rc == 0 ? local_check(&scope->device->info, k, s, e) : rc;
    return rc == 0 ? 0 : err_wrap(e, "launch of %s", entry);
}

/* The steps that the library would replace are checked as well, because whether it serves them
 * is known only later. */
static int library_check(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                         struct err *e)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    for (int i = 0; proto_list_next(&it, &schema_ref, &ref); i++) {
        int rc = launch_arg_check(scope, j, &ref, e);
        if (rc != 0) {
            e->arg = i;
            return err_wrap(e, "argument %d", i);
        }
    }
    uint64_t size = library_workspace(scope->device, j->stream, s);
    j->expected_ns = PACE_UNKNOWN;
    j->covered = s->after + s->covers;
    j->workspace_size = size > j->workspace_size ? size : j->workspace_size;
    return 0;
}

static int step_check(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                      struct err *e)
{
    struct refs refs = {0};
    int rc;
    switch (s->op) {
    case OP_WRITE:
    case OP_READ:
        return transfer_check(scope, j, s, e);
    case OP_FILL:
        rc = memory_args(scope, j, s, 1, &refs, e);
        expect(j, refs.ref[0].size / COPY_BYTES_NS);
        return rc != 0 ? rc : fill_check(&refs, s->pattern, e);
    case OP_COPY:
        rc = memory_args(scope, j, s, 2, &refs, e);
        expect(j, refs.ref[0].size / COPY_BYTES_NS);
        return rc != 0 ? rc : copy_check(&refs, e);
    case OP_LAUNCH:
        return launch_check(scope, j, s, e);
    case FRAME_OP_LIBRARY:
        return library_check(scope, j, s, e);
    default:
        return err_set(e, ERR_PROTOCOL, "operation %" PRIu64, s->op);
    }
}

static int steps_check(const struct job_scope *scope, struct job *j, const struct msg_f_job *msg,
                       struct err *e)
{
    struct proto_iter it = proto_iter_of(msg->steps);
    struct proto_wstep s;
    j->step_count = (unsigned)msg->steps.count;
    while (proto_list_next(&it, &schema_wstep, &s)) {
        int rc = step_check(scope, j, &s, e);
        j->checked++;
        j->covered -= s.op != FRAME_OP_LIBRARY && j->covered > 0;
        if (rc != 0) {
            e->step = (int)s.step;
            return err_wrap(e, "step %" PRIu64, s.step);
        }
        if (j->size != JOB_LARGE && job_step_large(scope, j, &s)) {
            j->size = JOB_LARGE;
        }
    }
    return 0;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static int temps_read(struct job *j, const struct msg_f_job *msg, struct err *e)
{
    struct proto_iter it = proto_iter_of(msg->temps);
    struct proto_wtemp temp;
    while (proto_list_next(&it, &schema_wtemp, &temp)) {
        if (temp.size > INT64_MAX) {
            return err_set(e, ERR_DEVICE_MEMORY, "temporary of %" PRIu64 " bytes", temp.size);
        }
        lifetime_init(&j->temps[j->temp_count++], temp.size);
    }
    return 0;
}

static int after_read(struct job *j, const struct msg_f_job *msg, struct err *e)
{
    struct proto_iter it = proto_iter_of(msg->after);
    struct proto_jobref ref;
    while (proto_list_next(&it, &schema_jobref, &ref)) {
        if (ref.job == j->id) {
            return err_set(e, ERR_PROTOCOL, "job %" PRIu64 " is to run after itself", j->id);
        }
        j->after[j->after_count++] = ref.job;
    }
    return 0;
}

uint64_t job_mentions(const struct msg_f_job *msg)
{
    struct proto_iter it = proto_iter_of(msg->steps);
    struct proto_wstep s;
    uint64_t count = 0;
    while (proto_list_next(&it, &schema_wstep, &s)) {
        count += s.args.count;
    }
    return count;
}

static void *carve(uint8_t **at, size_t count, size_t size)
{
    void *array = *at;
    *at += count * size;
    return array;
}

/* All arrays lie in one allocation: most jobs are small, and the time of allocations would show. */
static bool room_make(struct job *j, const struct msg_f_job *msg)
{
    size_t mentions = (size_t)job_mentions(msg);
    size_t steps = (size_t)msg->steps.count;
    size_t temps = (size_t)msg->temps.count;
    size_t marks = steps + 2 < JOB_MARKERS ? steps + 2 : JOB_MARKERS;
    size_t after = (size_t)msg->after.count;
    size_t size = mentions * (sizeof *j->buffers + sizeof *j->arenas) +
                  steps * sizeof *j->launches + temps * (sizeof *j->temps + sizeof *j->pieces) +
                  marks * sizeof *j->mark + after * sizeof *j->after;
    uint8_t *at = j->room = calloc(1, size);
    if (at == NULL) {
        return false;
    }
    j->buffers = carve(&at, mentions, sizeof *j->buffers);
    j->arenas = carve(&at, mentions, sizeof *j->arenas);
    j->launches = carve(&at, steps, sizeof *j->launches);
    j->temps = carve(&at, temps, sizeof *j->temps);
    j->pieces = carve(&at, temps, sizeof *j->pieces);
    j->mark = carve(&at, marks, sizeof *j->mark);
    j->mark_room = (unsigned)marks;
    j->after = carve(&at, after, sizeof *j->after);
    return true;
}

bool job_step_large(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    struct proto_ref arena = {0};
    if ((s->op != OP_WRITE && s->op != OP_READ) || !proto_list_next(&it, &schema_ref, &ref) ||
        ref.size == 0) {
        return false;
    }
    (void)proto_list_next(&it, &schema_ref, &arena);
    return !job_host_as_known(scope, j, s, &arena) ||
           ref.size > (j->step_count == 1 ? JOB_LARGE_PLAIN : JOB_LARGE_COPY);
}

/* Plans one piece for all temporaries that steps mention. They share bytes where no step needs
 * both. If the device gives no piece that large, each temporary has its own. */
static int temps_plan(const struct job_scope *scope, struct job *j, struct err *e)
{
    uint64_t most = scope->device->info.max_alloc;
    int rc = lifetime_plan(j->temps, j->temp_count, &j->temp_bytes, e);
    uint64_t whole =
        rc == 0 && j->program != 0 ? places_bytes(&scope->device->places, j->temp_bytes) : 0;
    if (whole != 0 && (most == 0 || whole <= most)) {
        j->temp_bytes = whole;
        j->placed = true;
    }
    if (rc != 0 || j->temp_bytes <= most || most == 0) {
        return rc;
    }
    j->apart = true;
    j->temp_bytes = 0;
    for (unsigned i = 0; i < j->temp_count; i++) {
        struct lifetime *t = &j->temps[i];
        t->offset = 0;
        t->size = t->first <= t->last ? t->size : 0; /* no step mentions it */
        if (t->size > most) {
            return err_set(e, ERR_DEVICE_MEMORY,
                           "temporary of %" PRIu64 " bytes: the device gives at most %" PRIu64
                           " in one piece",
                           t->size, most);
        }
        j->temp_bytes = sat_add(j->temp_bytes, t->size);
    }
    return 0;
}

void job_set_state(struct job *j, enum job_state state)
{
    if (!job_state_possible(j->state, state)) {
        abort();
    }
    j->state = state;
}

bool job_expired(const struct job *j, uint64_t now_ns, const char *what, struct err *ret_why)
{
    if (now_ns < j->deadline_ns) {
        return false;
    }
    (void)err_set(ret_why, ERR_DEADLINE, "its deadline passed while it waited for %s", what);
    ret_why->effects = ERR_EFFECTS_NONE;
    return true;
}

unsigned job_pieces(const struct job *j)
{
    return j->apart ? j->temp_count : j->temp_bytes > 0;
}

uint64_t job_piece_bytes(const struct job *j, unsigned i)
{
    return j->apart ? j->temps[i].size : j->temp_bytes;
}

void job_pin(struct buffers *buffers, struct job *j)
{
    for (unsigned i = 0; i < j->buffer_count; i++) {
        buffer_pin(buffers, j->buffers[i]);
    }
    j->pinned = true;
}

void job_unpin(struct buffers *buffers, struct job *j)
{
    for (unsigned i = 0; j->pinned && i < j->buffer_count; i++) {
        buffer_unpin(buffers, j->buffers[i]);
    }
    j->pinned = false;
}

int job_temps_clear(const struct job_scope *scope, struct job *j, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < j->piece_count; i++) {
        rc = memory_clear(&scope->device->memory, &j->pieces[i], 0, j->stream, e);
    }
    return rc == 0 ? 0 : err_wrap(e, "zeroing temporaries");
}

/* Pieces that are being zeroed are kept, because only the job's end shows whether the zeros
 * arrived. */
void job_temps_leave(const struct job_scope *scope, struct job *j)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < j->piece_count; i++) {
        total += j->pieces[i].pool.size;
    }
    if (total <= scope->device->memory.limit / JOB_TEMPS_SHARE) {
        return;
    }
    for (unsigned i = 0; i < j->piece_count; i++) {
        struct memory_piece *piece = &j->pieces[i];
        if (piece->ref.block == NULL || piece->dirty) {
            continue;
        }
        if (j->placed) {
            places_leave(&scope->device->places, j->program, piece, j->end.stream, j->end.seq);
        } else {
            memory_free_at(&scope->device->memory, piece, &j->end);
        }
    }
}

void job_temps_free(struct device *device, struct job *j)
{
    for (unsigned i = 0; i < j->piece_count; i++) {
        if (j->placed) {
            places_leave(&device->places, j->program, &j->pieces[i], 0, 0);
        } else {
            memory_free(&device->memory, &j->pieces[i]);
        }
    }
    j->piece_count = 0;
}

void job_temps_cleaned(struct job *j)
{
    for (unsigned i = 0; i < j->piece_count; i++) {
        memory_cleaned(&j->pieces[i]);
    }
}

/* Makes a job with its id and room for its arrays. NULL: no memory. */
static struct job *job_begin(const struct msg_f_job *msg)
{
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL || !room_make(j, msg)) {
        job_destroy(j);
        return NULL;
    }
    j->id = msg->job;
    j->tenant = msg->tenant;
    j->program = msg->program;
    j->deadline_ns = msg->deadline_ns;
    err_init(&j->e);
    return j;
}

struct job *job_refused(const struct msg_f_job *msg)
{
    struct job *j = job_begin(msg);
    if (j != NULL) {
        (void)after_read(j, msg, NULL);
    }
    return j;
}

int job_create(const struct job_scope *scope, const struct msg_f_job *msg, struct job **ret_job,
               struct err *e)
{
    if (msg->stream >= scope->device->stream_count) {
        return err_set(e, ERR_RANGE, "stream %" PRIu64 " of %u", msg->stream,
                       scope->device->stream_count);
    }
    struct job *j = job_begin(msg);
    if (j == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a job of %" PRIu64 " steps", msg->steps.count);
    }
    j->stream = (unsigned)msg->stream;
    int rc = after_read(j, msg, e);
    rc = rc == 0 ? temps_read(j, msg, e) : rc;
    rc = rc == 0 ? steps_check(scope, j, msg, e) : rc;
    rc = rc == 0 ? temps_plan(scope, j, e) : rc;
    if (rc != 0) {
        job_release(scope, j);
        job_destroy(j);
        return rc;
    }
    *ret_job = j;
    return 0;
}

void job_let_go(const struct job_scope *scope, struct job *j)
{
    for (unsigned i = 0; i < j->mark_count; i++) {
        scope->device->b->marker->release(j->mark[i].marker);
    }
    job_temps_free(scope->device, j);
    memory_free(&scope->device->memory, &j->workspace);
    job_unpin(scope->buffers, j);
    for (unsigned i = 0; i < j->buffer_count; i++) {
        buffer_unuse(scope->buffers, j->buffers[i]);
    }
    for (unsigned i = 0; i < j->arena_count; i++) {
        arena_unuse(scope->arenas, j->arenas[i].arena);
    }
    for (unsigned i = 0; i < j->launch_count; i++) {
        module_unuse(scope->modules, j->launches[i].module);
    }
    j->mark_count = j->temp_count = j->piece_count = j->buffer_count = j->launch_count = 0;
    j->arena_count = 0;
}

void job_release(const struct job_scope *scope, struct job *j)
{
    job_let_go(scope, j);
    free(j->room);
    j->room = NULL;
    j->after_count = 0;
}

void job_destroy(struct job *j)
{
    if (j == NULL) {
        return;
    }
    free(j->room);
    if (j->done != j->brief) {
        free(j->done);
    }
    free(j);
}

/* The arena is there, because the job was checked. */
static const struct arena *arena_of(const struct job *j, const struct proto_ref *ref)
{
    unsigned i = 0;
    while (i + 1 < j->arena_count && j->arenas[i].arena->id != ref->id) {
        i++;
    }
    return j->arenas[i].arena;
}

const struct buffer *job_buffer(struct job *j, uint64_t id)
{
    for (unsigned left = j->buffer_count; left > 1 && j->buffers[j->buffer_at]->id != id; left--) {
        j->buffer_at = (j->buffer_at + 1) % j->buffer_count;
    }
    return j->buffers[j->buffer_at];
}

struct backend_ref job_ref(struct job *j, const struct proto_ref *ref)
{
    struct backend_ref r;
    uint64_t size;
    if (ref->tag == REF_TEMP) {
        const struct lifetime *temp = &j->temps[ref->id];
        r = j->pieces[j->apart ? ref->id : 0].ref;
        r.offset += temp->offset;
        size = temp->size;
    } else if (ref->tag == REF_ARENA) {
        const struct arena *a = arena_of(j, ref);
        r = (struct backend_ref){.block = a->block};
        size = a->size;
    } else {
        const struct buffer *b = job_buffer(j, ref->id);
        r = b->piece.ref;
        size = b->size;
    }
    if (ref->offset >= size) { /* an empty array at the end has no bytes to point at */
        return (struct backend_ref){.block = NULL};
    }
    r.offset += ref->offset;
    return r;
}

uint8_t *job_host(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                  const struct proto_ref *arena)
{
    if (arena->tag == REF_ARENA) {
        return arena_of(j, arena)->map.data + arena->offset;
    }
    return s->op == OP_WRITE ? scope->staging->input.data + s->stage
                             : scope->staging->output.data + s->stage;
}

bool job_host_known(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                    const struct proto_ref *arena)
{
    if (arena->tag == REF_ARENA) {
        return arena_of(j, arena)->block != NULL;
    }
    return s->op == OP_WRITE ? scope->staging->input_known : scope->staging->output_known;
}

bool job_host_as_known(const struct job_scope *scope, const struct job *j,
                       const struct proto_wstep *s, const struct proto_ref *arena)
{
    return scope->device->b->memory->register_host == NULL || job_host_known(scope, j, s, arena);
}
