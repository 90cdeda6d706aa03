/* What the simulated front asks for: buffers, and jobs that use them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/shape.h"
#include "tests/sim/worker/ward_front.h"

#define JOBS_MAX    48u                 /* that have not ended */
#define UNREAD_BYTE 0xe5u               /* of no tenant's: the job does not write it */
#define STEP_MOST   ((uint64_t)6 << 20) /* bytes */

/* ---- buffers --------------------------------------------------------------------------------- */

uint64_t front_bytes(const struct ward_front *f)
{
    uint64_t bytes = 0;
    for (const struct thing *t = f->things; t != NULL; t = t->next) {
        bytes += t->arena ? 0 : t->bytes;
    }
    return bytes;
}

/* tenant 0: of any. */
struct thing *front_pick(struct ward *w, struct chance *c, uint32_t tenant, bool arena)
{
    unsigned count = 0;
    struct thing *t = w->front->things;
    for (; t != NULL; t = t->next) {
        count +=
            t->arena == arena && t->state == THING_READY && (tenant == 0 || t->tenant == tenant);
    }
    if (count == 0) {
        return NULL;
    }
    unsigned n = (unsigned)chance_below(c, count);
    for (t = w->front->things; t != NULL; t = t->next) {
        if (t->arena == arena && t->state == THING_READY && (tenant == 0 || t->tenant == tenant) &&
            n-- == 0) {
            break;
        }
    }
    return t;
}

static void restore(struct ward *w, struct chance *c, struct thing *t)
{
    struct err e = ERR_INIT;
    if (memfd_create_sealed("restore", t->bytes, &t->host, &e) != 0) {
        ward_broken(w, "front", "%s", e.text);
    }
    model_random(c, t->tenant, t->data, t->bytes);
    memcpy(t->host.data, t->data, t->bytes);
    thing_define(t, 0, t->bytes, true);
    t->sealed = t->restored = true;
    const struct msg_f_buffer_restore m = {.id = t->id,
                                           .size = t->bytes,
                                           .tenant = t->tenant,
                                           .exported = t->exported,
                                           .managed = t->managed};
    front_send(w, &schema_msg_f_buffer_restore, &m, t->host.fd);
}

static struct thing *thing_make(struct ward_front *f, uint32_t tenant, uint64_t bytes)
{
    struct thing *t = calloc(1, sizeof *t);
    t->id = ++f->ids;
    t->tenant = tenant;
    t->bytes = bytes;
    t->data = malloc(bytes); /* what nothing defines is not compared */
    t->defined = calloc(1, bytes / WARD_GRAIN + 1);
    t->host = MEMFD_NONE;
    DL_APPEND(f->things, t);
    return t;
}

/* The variable of a module, which has no other name yet. */
static bool new_variable(struct ward *w)
{
    struct asked_module *x = w->front->modules;
    while (x != NULL && (x->state != THING_READY || x->named)) {
        x = x->next;
    }
    if (x == NULL) {
        return false;
    }
    x->named = true;
    struct thing *t = thing_make(w->front, WARD_MODULE_TENANT, WARD_VARIABLE);
    t->variable = true;
    thing_define(t, 0, t->bytes, true);
    memset(t->data, 0, t->bytes);
    ward_log(w, "buffer %" PRIu64 " is the variable of module %" PRIu64, t->id, x->id);
    const struct msg_f_buffer_create m = {.id = t->id,
                                          .size = t->bytes,
                                          .tenant = t->tenant,
                                          .module = x->id,
                                          .variable = bytes_str("table")};
    front_send(w, &schema_msg_f_buffer_create, &m, -1);
    return true;
}

void front_new_buffer(struct ward *w, struct chance *c)
{
    struct ward_front *f = w->front;
    const struct ward_params *p = &w->params;
    if (p->variables != 0 && chance_percent(c, 10) && new_variable(w)) {
        return;
    }
    uint64_t bytes = chance_spread(c, 16, w->params.buffer_kib << 10) / 16 * 16;
    if (front_bytes(f) + bytes > w->params.wanted_kib << 10) {
        return;
    }
    struct thing *t = thing_make(f, 1 + (uint32_t)chance_below(c, p->tenants), bytes);
    t->exported = p->exports > 0 && chance_percent(c, (unsigned)p->exports);
    t->managed = p->manages > 0 && !t->exported && chance_percent(c, (unsigned)p->manages);
    ward_log(w, "buffer %" PRIu64 " of tenant %u, %" PRIu64 " bytes%s", t->id, t->tenant, bytes,
             t->exported  ? ", exported"
             : t->managed ? ", managed"
                          : "");
    if (chance_percent(c, 15)) {
        restore(w, c, t);
        return;
    }
    f->tenant[t->tenant].acts = true;
    bool zero = chance_percent(c, 40);
    thing_define(t, 0, bytes, zero);
    if (zero) {
        memset(t->data, 0, bytes);
    }
    t->stays = chance_percent(c, 3) && !t->exported && !t->managed;
    const struct msg_f_buffer_create m = {.id = t->id,
                                          .size = bytes,
                                          .zero = zero,
                                          .tenant = t->tenant,
                                          .stays = t->stays,
                                          .exported = t->exported,
                                          .managed = t->managed};
    front_send(w, &schema_msg_f_buffer_create, &m, -1);
}

void front_free_buffer(struct ward *w, struct thing *t)
{
    const struct msg_f_buffer_free m = {.id = t->id};
    ward_log(w, "buffer %" PRIu64 " is freed", t->id);
    front_send(w, &schema_msg_f_buffer_free, &m, -1);
    t->state = THING_GONE;
    front_forget(w->front, t);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static uint64_t side_most(const struct side *s, const struct asked_job *j)
{
    return s->kind == SIDE_TEMP ? j->temp[s->temp] : s->thing->bytes;
}

/* A part that begins at a grain, and ends at one or with the whole. */
static void part(struct chance *c, struct side *s, const struct asked_job *j, uint64_t most)
{
    uint64_t all = side_most(s, j);
    uint64_t grains = (all + WARD_GRAIN - 1) / WARD_GRAIN;
    uint64_t first = chance_percent(c, 50) ? 0 : chance_below(c, grains);
    uint64_t count = chance_percent(c, 50) ? grains - first : 1 + chance_below(c, grains - first);
    if (count * WARD_GRAIN > most) {
        count = most / WARD_GRAIN;
    }
    s->at = first * WARD_GRAIN;
    s->bytes = count * WARD_GRAIN < all - s->at ? count * WARD_GRAIN : all - s->at;
}

/* Memory of the device: a buffer or a temporary. False: there is none. */
static bool device_side(struct ward *w, struct chance *c, struct asked_job *j, bool writes,
                        struct side *s)
{
    if (j->temps > 0 && chance_percent(c, 30)) {
        *s = (struct side){.kind = SIDE_TEMP, .temp = (unsigned)chance_below(c, j->temps)};
        return true;
    }
    struct thing *t = front_pick(w, c, j->tenant, false);
    *s = (struct side){.kind = SIDE_THING, .thing = t};
    return t != NULL && !(writes && t->sealed);
}

/* An arena of the tenant that is still being registered: a front that had the jobs on another
 * worker before knows that kernels reach it. */
static struct thing *early_arena(const struct ward *w, struct chance *c, uint32_t tenant)
{
    const struct ward_params *p = &w->params;
    struct thing *t = p->early > 0 && p->imports != 0 ? w->front->things : NULL;
    while (t != NULL &&
           (!t->arena || t->answered || t->tenant != tenant || t->state != THING_READY)) {
        t = t->next;
    }
    return t != NULL && chance_percent(c, (unsigned)p->early) ? t : NULL;
}

/* Memory of a kernel: also an arena that it reaches. */
static bool kernel_side(struct ward *w, struct chance *c, struct asked_job *j, bool writes,
                        struct side *s)
{
    struct thing *t = early_arena(w, c, j->tenant);
    bool early = t != NULL;
    t = !early && chance_percent(c, 15) ? front_pick(w, c, j->tenant, true) : t;
    if (early || (t != NULL && t->align != 0 && t->align <= WARD_GRAIN)) {
        *s = (struct side){.kind = SIDE_THING, .thing = t};
        return true;
    }
    return device_side(w, c, j, writes, s);
}

static bool meets(const struct side *a, const struct side *b)
{
    bool same =
        a->kind == b->kind && (a->kind == SIDE_THING ? a->thing == b->thing
                               : a->kind == SIDE_TEMP || a->kind == SIDE_STAGE ? a->temp == b->temp
                                                                               : false);
    return same && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

/* A piece of staging memory that no job uses. Input and output are told apart by `temp`. */
static bool stage(struct ward *w, const struct asked_job *mine, unsigned which, struct side *s)
{
    struct side want = {.kind = SIDE_STAGE, .temp = which, .bytes = s->bytes};
    for (bool moved = true; moved;) {
        moved = false;
        const struct asked_job *j = mine;
        for (bool own = true; j != NULL; j = own ? w->front->jobs : j->next, own = false) {
            for (unsigned i = 0; !j->settled && i < j->steps; i++) {
                const struct side *o = which == 0 ? &j->step[i].src : &j->step[i].dst;
                if (meets(o, &want)) {
                    want.at = o->at + o->bytes;
                    moved = true;
                }
            }
        }
    }
    want.at = want.at / 16 * 16;
    *s = want;
    uint64_t *staged = &w->front->staged[which];
    bool fits = want.at + want.bytes <= WARD_STAGE;
    *staged = fits && want.at + want.bytes > *staged ? want.at + want.bytes : *staged;
    return fits;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* The host's side of a copy: staging memory, or an arena. */
static bool host_side(struct ward *w, struct chance *c, struct asked_job *j, const struct side *of,
                      unsigned which, struct side *s)
{
    struct thing *t = chance_percent(c, 20) ? front_pick(w, c, j->tenant, true) : NULL;
    if (t != NULL && t->bytes >= of->bytes) {
        uint64_t at = chance_below(c, (t->bytes - of->bytes) / WARD_GRAIN + 1) * WARD_GRAIN;
        *s = (struct side){.kind = SIDE_THING, .thing = t, .at = at, .bytes = of->bytes};
        return true;
    }
    *s = (struct side){.bytes = rounded(of->bytes)};
    bool found = stage(w, j, which, s);
    s->bytes = of->bytes;
    return found;
}

static enum step_kind choose_kind(struct chance *c, const struct asked_job *j)
{
    uint64_t n = chance_below(c, j->module != 0 ? 100 : 78);
    return n < 30   ? STEP_WRITE
           : n < 60 ? STEP_READ
           : n < 68 ? STEP_FILL
           : n < 78 ? STEP_COPY
           : n < 86 ? STEP_SET
                    : STEP_MIX;
}

/* Copies to the host are not in the order of the job's stream. What they read of a temporary that
 * the job has not written is undefined: commands of earlier jobs may still write it. */
static bool temp_written(const struct asked_job *j, unsigned temp)
{
    bool written = false;
    for (unsigned i = 0; i < j->steps; i++) {
        const struct side *s = &j->step[i].dst;
        written = written || (s->kind == SIDE_TEMP && s->temp == temp);
    }
    return written;
}

static bool make_move(struct ward *w, struct chance *c, struct asked_job *j, struct step *s)
{
    bool writes = s->kind == STEP_WRITE;
    struct side *device = writes ? &s->dst : &s->src;
    if (!device_side(w, c, j, writes, device)) {
        return false;
    }
    if (w->params.defined != 0 && !writes && device->kind == SIDE_TEMP &&
        !temp_written(j, device->temp)) {
        return false;
    }
    part(c, device, j, STEP_MOST);
    return host_side(w, c, j, device, writes ? 0 : 1, writes ? &s->src : &s->dst);
}

/* A fill, a copy or a kernel. */
static bool make_work(struct ward *w, struct chance *c, struct asked_job *j, struct step *s)
{
    bool kernel = s->kind == STEP_SET || s->kind == STEP_MIX;
    bool two = s->kind == STEP_COPY || s->kind == STEP_MIX;
    if (kernel ? !kernel_side(w, c, j, true, &s->dst) : !device_side(w, c, j, true, &s->dst)) {
        return false;
    }
    part(c, &s->dst, j, STEP_MOST);
    if (!two) {
        return true;
    }
    if (kernel ? !kernel_side(w, c, j, false, &s->src) : !device_side(w, c, j, false, &s->src)) {
        return false;
    }
    part(c, &s->src, j, s->dst.bytes);
    s->dst.bytes = s->src.bytes = s->src.bytes < s->dst.bytes ? s->src.bytes : s->dst.bytes;
    return s->dst.bytes > 0 && !meets(&s->dst, &s->src);
}

static void add_steps(struct ward *w, struct chance *c, struct asked_job *j)
{
    uint64_t count = chance_spread(c, 1, WARD_STEPS);
    uint64_t most = w->params.steps_most;
    for (uint64_t n = most > 0 && most < count ? most : count; n > 0; n--) {
        struct step *s = &j->step[j->steps];
        *s = (struct step){.kind = choose_kind(c, j), .k = (uint32_t)chance_below(c, 1000)};
        bool moves = s->kind == STEP_WRITE || s->kind == STEP_READ;
        if (moves ? !make_move(w, c, j, s) : !make_work(w, c, j, s)) {
            *s = (struct step){.k = 0};
            continue;
        }
        if (s->kind == STEP_WRITE && s->src.kind == SIDE_STAGE) {
            model_random(c, j->tenant, w->front->input.data + s->src.at, s->src.bytes);
        } else if (s->kind == STEP_READ && s->dst.kind == SIDE_STAGE) {
            for (uint64_t i = 0; i < s->dst.bytes; i += 64) {
                w->front->output.data[s->dst.at + i] = UNREAD_BYTE;
            }
        }
        j->steps++;
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Is one of the sides written, where both use bytes of a thing? */
static bool hazard(const struct asked_job *a, const struct asked_job *b)
{
    for (unsigned i = 0; i < a->steps; i++) {
        for (unsigned k = 0; k < b->steps; k++) {
            const struct step *x = &a->step[i];
            const struct step *y = &b->step[k];
            if ((x->dst.kind == SIDE_THING &&
                 (meets(&x->dst, &y->dst) || meets(&x->dst, &y->src))) ||
                (y->dst.kind == SIDE_THING && meets(&x->src, &y->dst))) {
                return true;
            }
        }
    }
    return false;
}

/* False: it would come after too many jobs. */
static bool order(const struct ward_front *f, struct asked_job *j)
{
    unsigned running = 0;
    for (const struct asked_job *o = f->jobs; o != NULL; o = o->next) {
        running += !o->settled;
        if (!o->settled && hazard(o, j)) {
            if (j->afters == FRAME_AFTER_MAX) {
                return false;
            }
            j->after[j->afters++] = o->id;
        }
    }
    return running < JOBS_MAX;
}

static struct proto_ref ref_of(const struct side *s, int access)
{
    return (struct proto_ref){.tag = s->kind == SIDE_TEMP ? REF_TEMP
                                     : s->thing->arena    ? REF_ARENA
                                                          : REF_BUFFER,
                              .id = s->kind == SIDE_TEMP ? s->temp : s->thing->id,
                              .offset = s->at,
                              .size = s->bytes,
                              .access = (uint64_t)access};
}

static void step_add(struct proto_wstep *m, const struct proto_ref *args, unsigned count,
                     struct capbuf *steps)
{
    struct capbuf list;
    capbuf_init(&list, FRAME_MAX_BYTES);
    for (unsigned i = 0; i < count; i++) {
        (void)proto_list_add(&schema_ref, &args[i], &list, NULL);
    }
    m->args = proto_list_of(&list, count);
    (void)proto_list_add(&schema_wstep, m, steps, NULL);
    capbuf_finish(&list);
}

static void transfer_write(const struct asked_job *j, const struct step *s, unsigned index,
                           struct capbuf *steps)
{
    static const uint64_t OPS[] = {OP_WRITE, OP_READ, OP_FILL, OP_COPY};
    uint8_t pattern[4];
    struct proto_wstep m = {.op = OPS[s->kind], .step = index};
    const struct side *device = s->kind == STEP_READ ? &s->src : &s->dst;
    const struct side *other = s->kind == STEP_READ ? &s->dst : &s->src;
    struct proto_ref args[2] = {ref_of(device, 0)};
    unsigned count = 1;
    if (other->kind == SIDE_STAGE) {
        m.stage = other->at;
    } else if (other->kind != SIDE_NONE) {
        args[count++] = ref_of(other, 0);
    }
    if (s->kind == STEP_FILL) {
        memset(pattern, ward_tagged(j->tenant, s->k), sizeof pattern);
        m.pattern = bytes_of(pattern, (size_t)1 << s->k % 3);
    }
    step_add(&m, args, count, steps);
}

/* A kernel for [at, at + bytes) of its step, or the library's operation for that. */
static void kernel_write(const struct asked_job *j, const struct step *s, struct proto_wstep m,
                         uint64_t at, uint64_t bytes, struct capbuf *steps)
{
    bool sets = s->kind == STEP_SET;
    const struct ward_value value = {
        .tenant = j->tenant, .k = s->k + (sets ? (uint32_t)at : 0), .job = j->id};
    struct side part[2] = {s->dst, s->src};
    struct proto_ref args[3];
    unsigned count = 0;
    for (unsigned i = 0; i < (sets ? 1u : 2u); i++) {
        part[i].at += at;
        part[i].bytes = bytes;
        args[count++] = ref_of(&part[i], i == 1 ? ACCESS_IN : sets ? ACCESS_OUT : ACCESS_INOUT);
    }
    args[count++] = (struct proto_ref){.tag = REF_VALUE, .value = bytes_of(&value, sizeof value)};
    m.module = m.op == OP_LAUNCH ? j->module : 0;
    m.entry = bytes_str(sets ? "set" : "mix");
    m.gx = m.op == OP_LAUNCH ? bytes : 0;
    step_add(&m, args, count, steps);
}

/* A kernel does not reach each byte of an arena. */
static bool in_arena(const struct side *s)
{
    return s->kind == SIDE_THING && s->thing->arena;
}

/* Returns the number of steps: a library may run in place of the kernel, at times for its first
 * half only. */
static unsigned step_write(const struct ward *w, const struct asked_job *j, const struct step *s,
                           unsigned index, struct capbuf *steps)
{
    uint64_t bytes = s->dst.bytes;
    if (s->kind != STEP_SET && s->kind != STEP_MIX) {
        transfer_write(j, s, index, steps);
        return 1;
    }
    bool serves = w->params.libraries != 0 && s->k % 4 != 0;
    bool halves = serves && s->k % 4 == 1 && bytes > 1 && !in_arena(&s->dst) && !in_arena(&s->src);
    struct proto_wstep m = {.op = FRAME_OP_LIBRARY, .step = index, .after = halves, .covers = 1};
    if (serves) {
        kernel_write(j, s, m, 0, halves ? bytes / 2 : bytes, steps);
    }
    m = (struct proto_wstep){.op = OP_LAUNCH, .step = index};
    if (halves) {
        kernel_write(j, s, m, bytes / 2, bytes - bytes / 2, steps);
    }
    kernel_write(j, s, m, 0, bytes, steps);
    return 1u + serves + halves;
}

static void job_send(struct ward *w, const struct asked_job *j)
{
    struct capbuf after;
    struct capbuf temps;
    struct capbuf steps;
    unsigned count = 0;
    capbuf_init(&after, FRAME_MAX_BYTES);
    capbuf_init(&temps, FRAME_MAX_BYTES);
    capbuf_init(&steps, FRAME_MAX_BYTES);
    for (unsigned i = 0; i < j->afters; i++) {
        const struct proto_jobref ref = {.job = j->after[i]};
        (void)proto_list_add(&schema_jobref, &ref, &after, NULL);
    }
    for (unsigned i = 0; i < j->temps; i++) {
        const struct proto_wtemp temp = {.size = j->temp[i]};
        (void)proto_list_add(&schema_wtemp, &temp, &temps, NULL);
    }
    for (unsigned i = 0; i < j->steps; i++) {
        count += step_write(w, j, &j->step[i], i, &steps);
    }
    const struct msg_f_job m = {.job = j->id,
                                .stream = j->stream,
                                .after = proto_list_of(&after, j->afters),
                                .temps = proto_list_of(&temps, j->temps),
                                .steps = proto_list_of(&steps, count),
                                .tenant = j->tenant,
                                .rank = j->rank,
                                .deadline_ns = j->deadline_ns,
                                .program = j->program};
    front_send(w, &schema_msg_f_job, &m, -1);
    capbuf_finish(&after);
    capbuf_finish(&temps);
    capbuf_finish(&steps);
}

static void job_log(struct ward *w, const struct asked_job *j)
{
    static const char *const NAMES[] = {"write", "read", "fill", "copy", "set", "mix"};
    if (w->log == NULL) {
        return;
    }
    ward_log(w, "job %" PRIu64 " of tenant %u on stream %u, deadline %" PRId64 " us", j->id,
             j->tenant, j->stream,
             j->deadline_ns == NS_NEVER ? -1 : (int64_t)(j->deadline_ns - w->now_ns) / 1000);
    for (unsigned i = 0; i < j->afters; i++) {
        ward_log(w, "    after %" PRIu64, j->after[i]);
    }
    for (unsigned i = 0; i < j->temps; i++) {
        ward_log(w, "    temporary %u: %" PRIu64 " bytes", i, j->temp[i]);
    }
    for (unsigned i = 0; i < j->steps; i++) {
        const struct side *s[] = {&j->step[i].dst, &j->step[i].src};
        for (unsigned k = 0; k < 2; k++) {
            if (s[k]->kind == SIDE_THING || s[k]->kind == SIDE_TEMP) {
                ward_log(w, "    %s %s %s %" PRIu64 ": %" PRIu64 " bytes at %" PRIu64,
                         NAMES[j->step[i].kind], k == 0 ? "to" : "from",
                         s[k]->kind == SIDE_TEMP ? "temporary"
                         : s[k]->thing->arena    ? "arena"
                                                 : "buffer",
                         s[k]->kind == SIDE_TEMP ? s[k]->temp : s[k]->thing->id, s[k]->bytes,
                         s[k]->at);
            }
        }
    }
}

static void cancel(struct ward *w, void *actor, uint64_t id)
{
    struct asked_job *j = front_job(w->front, id);
    (void)actor;
    if (j != NULL && !j->ended) {
        const struct msg_f_cancel m = {.job = id};
        j->cancelled = true;
        ward_log(w, "job %" PRIu64 " is cancelled", id);
        front_send(w, &schema_msg_f_cancel, &m, -1);
    }
}

static uint64_t some_module(const struct ward_front *f)
{
    const struct asked_module *x = f->modules;
    while (x != NULL && x->state != THING_READY) {
        x = x->next;
    }
    return x != NULL ? x->id : 0;
}

static void job_fill(struct ward *w, struct chance *c, struct asked_job *j)
{
    const struct ward_params *p = &w->params;
    *j = (struct asked_job){.id = ++w->front->ids,
                            .tenant = 1 + (uint32_t)chance_below(c, p->tenants),
                            .stream = (unsigned)chance_below(c, p->streams + 1),
                            .rank = (int64_t)chance_below(c, 1000),
                            .sent_ns = w->now_ns,
                            .deadline_ns = NS_NEVER,
                            .module = some_module(w->front)};
    if (chance_percent(c, (unsigned)p->deadlines)) {
        j->deadline_ns = w->now_ns + chance_spread(c, 1000, 5 * NS_PER_S);
    }
    if (chance_percent(c, 30)) {
        uint64_t most = chance_percent(c, 80) ? 65536 : p->buffer_kib << 10;
        j->temps = 1 + (unsigned)chance_below(c, WARD_TEMPS);
        for (unsigned i = 0; i < j->temps; i++) {
            j->temp[i] = chance_spread(c, 256, most) / WARD_GRAIN * WARD_GRAIN;
        }
        j->program = chance_percent(c, 50) ? 1 + chance_below(c, 4) : 0;
    }
    add_steps(w, c, j);
}

/* Bytes of the device that the job needs: no less than these. */
static uint64_t needs(const struct asked_job *j)
{
    uint64_t bytes = 0; /* with a library's workspace, though it may not serve */
    for (unsigned i = 0; i < j->temps; i++) {
        bytes += j->temp[i];
    }
    for (unsigned i = 0; i < j->steps; i++) {
        const struct side *s[] = {&j->step[i].dst, &j->step[i].src};
        bytes += ward_workspace(s[0]->bytes);
        for (unsigned k = 0; k < 2; k++) {
            bytes += s[k]->kind == SIDE_THING && !s[k]->thing->arena ? s[k]->thing->bytes : 0;
        }
    }
    return bytes;
}

/* Exported memory has whole pages. */
static uint64_t staying(const struct ward *w)
{
    uint64_t page = w->params.page_kib << 10;
    uint64_t bytes = 0;
    for (const struct thing *t = w->front->things; t != NULL; t = t->next) {
        bytes += t->stays || t->managed ? t->bytes : t->exported ? t->bytes + page : 0;
    }
    for (const struct asked_module *x = w->front->modules; x != NULL; x = x->next) {
        bytes += w->params.variables != 0 ? WARD_VARIABLE : 0;
    }
    return bytes;
}

/* What other jobs and buffers have can go to the host, and the job fits: it has to wait, but the
 * worker must not refuse it. */
static bool is_small(const struct ward *w, const struct asked_job *j)
{
    const struct ward_params *p = &w->params;
    bool refuses = p->refuse_memory > 0 || p->refuse_unmap > 0 || p->refuse_host > 0 ||
                   p->foreign > 0 || p->limits > 0 || p->page_kib == 0;
    bool hosts = p->spill_kib >= 2 * p->wanted_kib;
    return !refuses && hosts && needs(j) + staying(w) <= (p->limit_kib << 10) / 4;
}

static void side_use(const struct side *s)
{
    if (s->kind == SIDE_THING) {
        s->thing->uses++;
    }
}

void front_new_job(struct ward *w, struct chance *c)
{
    struct asked_job *j = calloc(1, sizeof *j);
    job_fill(w, c, j);
    if (j->steps == 0 || !order(w->front, j)) {
        free(j);
        return;
    }
    for (unsigned i = 0; i < j->steps; i++) {
        side_use(&j->step[i].dst);
        side_use(&j->step[i].src);
    }
    DL_APPEND(w->front->jobs, j);
    j->small = is_small(w, j);
    w->front->tenant[j->tenant].acts = true;
    job_log(w, j);
    job_send(w, j);
    if (chance_percent(c, (unsigned)w->params.cancels)) {
        ward_at(w, w->now_ns + chance_spread(c, 1000, 100 * NS_PER_MS), cancel, NULL, j->id);
    }
}
