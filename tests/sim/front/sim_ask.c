/* The requests of clients. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/front/rules/sim_access.h"
#include "tests/sim/front/sim_gather.h"
#include "tests/sim/front/sim_stray.h"

#define ELEMENT 4u

uint64_t ask_number(struct sim_client *c)
{
    return c->next++;
}

void ask_encode(struct sim *s, const struct schema *schema, const void *record, struct capbuf *out)
{
    struct err e = ERR_INIT;
    if (proto_list_add(schema, record, out, &e) != 0) {
        sim_fail(s, "client: %s: %s", schema->name, e.text);
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

static struct sim_buffer *some_buffer(struct sim_client *c, struct chance *r)
{
    return c->buffers > 0 ? c->buffer[chance_below(r, c->buffers)] : NULL;
}

void ask_new(struct sim *s, struct sim_client *c, uint64_t elements, bool zero, uint64_t device)
{
    char label[SIM_LABEL];
    struct sim_buffer *b = model_buffer(s);
    b->bytes = elements * ELEMENT;
    b->zero = zero;
    b->maker = c;
    grants_label(s, label);
    struct msg_buffer_create m = {.seq = ask_number(c),
                                  .dtype = DTYPE_F32,
                                  .ndim = 1,
                                  .d0 = elements,
                                  .flags = zero,
                                  .label = bytes_str(label),
                                  .device = device};
    client_send(s, c, &schema_msg_buffer_create, &m)->buffer = b;
}

static void ask_create(struct sim *s, struct sim_client *c, struct chance *r)
{
    bool large = chance_percent(r, 5);
    uint64_t elements = large ? 1 + chance_below(r, s->p.memory_kib * 300)
                              : 1 + chance_below(r, SIM_CONTENT / ELEMENT);
    bool zero = chance_percent(r, 60);
    ask_new(s, c, elements, zero,
            chance_percent(r, 10 + (unsigned)s->p.spread) ? 1 + chance_below(r, s->p.devices) : 0);
}

void ask_free(struct sim *s, struct sim_client *c, struct sim_buffer *b)
{
    if (b == NULL) {
        return;
    }
    struct msg_buffer_free m = {.seq = ask_number(c), .handle = b->handle};
    b->freed = b->freed || b->maker == c;
    client_forget(c, b);
    client_send(s, c, &schema_msg_buffer_free, &m)->buffer = b;
}

static void ask_of_buffer(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_buffer *b = some_buffer(c, r);
    char name[32];
    if (b == NULL) {
        return;
    }
    unsigned n = (unsigned)chance_below(r, 3);
    if (n == 0) {
        struct msg_buffer_info m = {.seq = ask_number(c), .handle = b->handle};
        client_send(s, c, &schema_msg_buffer_info, &m)->buffer = b;
    } else if (n == 1) {
        struct msg_buffer_seal m = {.seq = ask_number(c), .handle = b->handle};
        b->sealing = true;
        client_send(s, c, &schema_msg_buffer_seal, &m)->buffer = b;
    } else {
        (void)snprintf(name, sizeof name, "name%u", (unsigned)chance_below(r, 4));
        struct msg_buffer_publish m = {.seq = ask_number(c),
                                       .handle = b->handle,
                                       .name = bytes_str(name),
                                       .rights = chance_percent(r, 70) ? 3 : 1,
                                       .linger_ns = chance_below(r, 3) * NS_PER_S};
        b->publishes += b->maker == c; /* others are refused */
        client_send(s, c, &schema_msg_buffer_publish, &m)->buffer = b;
    }
}

static void ask_open(struct sim *s, struct sim_client *c, struct chance *r)
{
    char name[32];
    (void)snprintf(name, sizeof name, "name%u", (unsigned)chance_below(r, 4));
    struct msg_buffer_open m = {.seq = ask_number(c), .name = bytes_str(name)};
    (void)client_send(s, c, &schema_msg_buffer_open, &m);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct proto_arg arg_of(const struct sim_buffer *b, uint64_t first, uint64_t count)
{
    return (struct proto_arg){
        .tag = ARG_BUFFER, .handle = b->handle, .first = first, .count = count};
}

/* A part of the buffer; mostly all of it. */
static void choose_part(const struct sim_buffer *b, struct chance *r, uint64_t *ret_first,
                        uint64_t *ret_count)
{
    uint64_t all = b->bytes / ELEMENT;
    all = all < SIM_CONTENT / ELEMENT ? all : SIM_CONTENT / ELEMENT;
    *ret_first = chance_percent(r, 60) ? 0 : chance_below(r, all);
    *ret_count =
        *ret_first == 0 && chance_percent(r, 80) ? all : 1 + chance_below(r, all - *ret_first);
}

/* A slice that ends behind its buffer. */
static void go_beyond(struct sim_job *j, struct sim_step *t)
{
    t->to_first = t->to->bytes / ELEMENT - t->count + 1;
    j->wrong = true;
}

static const uint8_t zeros[SIM_ARENA];

/* A kernel that writes one of two arrays takes no arrays that overlap in part. */
static bool overlap(const struct sim_step *t)
{
    return t->op == OP_LAUNCH && !t->inlined && t->from == t->to && t->from_first != t->to_first &&
           t->from_first < t->to_first + t->count && t->to_first < t->from_first + t->count;
}

static unsigned choose_op(struct sim_client *c, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 100);
    bool can_launch = c->axpy != 0 || c->kernels > 0;
    return n < 22                  ? OP_FILL
           : n < 40                ? OP_WRITE
           : n < 58                ? OP_COPY
           : n < 80 || !can_launch ? OP_READ
                                   : OP_LAUNCH;
}

/* The kernel of a launch; the step and the job learn what it does. */
static uint64_t choose_kernel(struct sim_client *c, struct chance *r, struct sim_step *t,
                              struct sim_job *j)
{
    t->inout = true;
    if (c->kernels == 0 || (c->axpy != 0 && chance_percent(r, 50))) {
        return c->axpy;
    }
    unsigned k = (unsigned)chance_below(r, c->kernels);
    t->inout = c->kernel_inout[k];
    t->bad = c->kernel_bad[k] * 2 + (c->kernel_bad[k] != 0 && t->inout);
    j->guilty = j->guilty || t->bad != 0;
    j->loaded = true;
    return c->kernel[k];
}

static void add_args(struct sim *s, struct sim_step *t, uint64_t axpy, struct capbuf *args,
                     struct proto_step *p)
{
    struct proto_arg to = arg_of(t->to, t->to_first, t->count);
    struct proto_arg value = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = t->value};
    struct proto_arg from = t->from != NULL ? arg_of(t->from, t->from_first, t->count) : to;
    uint32_t data[SIM_CONTENT / ELEMENT];
    for (uint32_t i = 0; i < SIM_CONTENT / ELEMENT; i++) {
        data[i] = t->value + i;
    }
    struct proto_arg bytes = {.tag = ARG_INLINE,
                              .access = ACCESS_IN,
                              .dtype = DTYPE_F32,
                              .ndim = 1,
                              .d0 = t->count,
                              .data = bytes_of(data, t->count * ELEMENT)};
    if (t->inlined) {
        bytes.access = t->inout ? ACCESS_INOUT : ACCESS_OUT;
        bytes.data = t->inout ? bytes.data : bytes_str("");
    }
    unsigned count = 0;
    const struct proto_arg *list[3];
    if (t->op == OP_LAUNCH) {
        if (p->kernel == axpy) {
            list[count++] = &value;
        }
        list[count++] = &from;
        list[count++] = t->inlined ? &bytes : &to;
    } else {
        list[count++] = &to;
        if (t->op != OP_READ) {
            list[count++] = t->op == OP_FILL ? &value : t->op == OP_WRITE ? &bytes : &from;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        ask_encode(s, &schema_arg, list[i], args);
    }
    p->args = proto_list_of(args, count);
}

void ask_encode_step(struct sim *s, const struct sim_job *j, struct sim_step *t, uint64_t kernel,
                     struct capbuf *steps)
{
    struct proto_step p = {.op = t->op, .kernel = kernel};
    struct capbuf args;
    capbuf_init(&args, 65536);
    add_args(s, t, j->client->axpy, &args, &p);
    ask_encode(s, &schema_step, &p, steps);
    capbuf_finish(&args);
}

/* The client knows that it may not write the buffer. */
static bool guarded(const struct sim_client *c, const struct sim_buffer *b)
{
    return b->sealed || (b->read_only && b->publishes == 1 && b->maker != c);
}

/* reads: it writes no buffer. */
static void add_step(struct sim *s, struct sim_job *j, struct chance *r, bool reads,
                     struct capbuf *steps)
{
    struct sim_client *c = j->client;
    struct sim_step *t = &j->step[j->steps++];
    struct proto_step p = {.op = reads ? OP_READ : choose_op(c, r)};
    struct chance other = chance_of(j->r, 40 + j->steps); /* what courses of older trees lack */
    if (reads && c->axpy + c->kernels > 0 && chance_percent(&other, 40)) {
        p.op = OP_LAUNCH;
    }
    t->op = (unsigned)p.op;
    t->to = some_buffer(c, r);
    t->value = 1 + (uint32_t)chance_below(r, UINT32_MAX);
    choose_part(t->to, r, &t->to_first, &t->count);
    if (t->op == OP_COPY || t->op == OP_LAUNCH) {
        uint64_t count = 0;
        t->from = some_buffer(c, r);
        choose_part(t->from, r, &t->from_first, &count);
        t->count = t->count < count ? t->count : count;
    }
    if (t->op == OP_LAUNCH) {
        p.kernel = choose_kernel(c, r, t, j);
        t->inlined = reads;
        t->to = reads ? t->from : t->to;
        t->guarded = p.kernel != c->axpy && guarded(c, t->from);
    }
    if (chance_percent(&other, 1) && !t->inlined) {
        go_beyond(j, t);
    }
    j->wrong = j->wrong || overlap(t);
    j->writes = j->writes || step_writes(t);
    ask_encode_step(s, j, t, p.kernel, steps);
}

struct sim_job *ask_job(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_job *j = model_job(s);
    j->client = c;
    j->life = c->lives;
    j->r = chance_next(r);
    return j;
}

/* Texts of clients may be anything. */
static const char *label_of(const struct sim *s, const struct sim_job *j)
{
    static const char *const some[] = {"",
                                       "plain",
                                       "a b=c",
                                       "\" job=1 error=-",
                                       "\n2026-01-01T00:00:00.000000Z tenant=root",
                                       "\\x41\x7f\xc3\xa9"};
    return s->p.watch != 0 ? some[chance_mix(j->r) % (sizeof some / sizeof some[0])] : "";
}

void ask_job_send(struct sim *s, struct sim_job *j, struct msg_submit *m)
{
    struct sim_client *c = j->client;
    m->label = bytes_str(label_of(s, j));
    m->seq = ask_number(c);
    if (c->jobs == sizeof c->job / sizeof c->job[0]) { /* no place to wait for its result */
        m->flags &= ~(uint64_t)SUBMIT_ASYNC;
    }
    j->async = (m->flags & SUBMIT_ASYNC) != 0;
    j->sent_ns = s->now_ns;
    j->ends = s->ends;
    j->priority = m->priority;
    j->limit_ns = m->limit_ns;
    j->deadline_ns = m->deadline_ns;
    uint64_t class = j->safe ? CLASS_USUAL : chance_mix(j->r) % (2 * CLASS_BATCH);
    m->job_class = j->flow != 0 ? m->job_class : class > CLASS_BATCH ? CLASS_USUAL : class;
    j->banned = rules_banned(s, j);
    j->paused_ns = strikes_paused_ns(s, c->tenant);
    j->request = client_send(s, c, &schema_msg_submit, m);
    j->request->job = j;
    if (j->async) {
        c->job[c->jobs++] = j;
    }
    sim_log(s, "client %u: request %" PRIu64 " submits %u steps, flags %" PRIu64, c->index, m->seq,
            j->steps, m->flags);
    for (unsigned i = 0; i < j->steps; i++) {
        const struct sim_step *t = &j->step[i];
        sim_log(s,
                "    op %u of %#" PRIx64 " at %" PRIu64 ", %" PRIu64 " elements; from %#" PRIx64
                " at %" PRIu64 "; value %#x",
                t->op, t->to->handle, t->to_first, t->count, t->from != NULL ? t->from->handle : 0,
                t->from_first, t->value);
    }
}

bool ask_room(const struct sim_client *c)
{
    return c->jobs + 1 < sizeof c->job / sizeof c->job[0] &&
           c->open_count + 64 <= sizeof c->open / sizeof c->open[0];
}

/* Writes all of a buffer in parts that touch, in any order. */
static unsigned add_parts(struct sim *s, struct sim_job *j, struct chance *r, struct capbuf *steps)
{
    struct sim_client *c = j->client;
    struct sim_buffer *b = some_buffer(c, r);
    uint64_t all = b->bytes / ELEMENT;
    unsigned parts = 2 + (unsigned)chance_below(r, SIM_STEPS - 1);
    unsigned from = (unsigned)chance_below(r, parts);
    if (b->bytes > SIM_CONTENT || all < parts) {
        return 0;
    }
    for (unsigned i = 0; i < parts; i++) {
        unsigned k = (i + from) % parts;
        struct sim_step *t = &j->step[j->steps++];
        struct proto_step p = {.op = chance_percent(r, 50) ? OP_FILL : OP_WRITE};
        struct capbuf args;
        capbuf_init(&args, 65536);
        *t = (struct sim_step){.op = (unsigned)p.op, .to = b, .to_first = all * k / parts};
        t->count = all * (k + 1) / parts - t->to_first;
        t->value = 1 + (uint32_t)chance_below(r, UINT32_MAX);
        add_args(s, t, c->axpy, &args, &p);
        ask_encode(s, &schema_step, &p, steps);
        capbuf_finish(&args);
    }
    j->writes = true;
    return parts;
}

static void ask_submit(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (c->buffers == 0 || !ask_room(c)) {
        return;
    }
    struct sim_job *j = ask_job(s, c, r);
    struct chance other = chance_of(j->r, 70);
    struct capbuf steps;
    capbuf_init(&steps, 65536);
    unsigned count = 1 + (unsigned)chance_below(r, SIM_STEPS);
    bool reads = chance_percent(r, 25); /* may run again when its worker ends */
    unsigned parts = chance_percent(&other, 6) ? add_parts(s, j, &other, &steps) : 0;
    count = parts > 0 ? parts : count;
    for (unsigned i = parts; i < count; i++) {
        add_step(s, j, r, reads, &steps);
    }
    struct msg_submit m = {.steps = proto_list_of(&steps, count)};
    m.flags = chance_percent(r, 50) ? SUBMIT_ASYNC : 0;
    m.flags |= chance_percent(r, 8) ? SUBMIT_DETACHED : 0;
    m.flags |= chance_percent(r, 25) ? SUBMIT_BLOCK : 0;
    m.priority = chance_percent(r, 20) ? (int64_t)chance_below(r, 20) - 5 : 0;
    m.deadline_ns = chance_percent(r, 10) ? chance_spread(r, NS_PER_MS, 10 * NS_PER_S) : 0;
    m.limit_ns = chance_percent(r, 6) ? chance_spread(r, NS_PER_MS, 10 * NS_PER_S) : 0;
    m.device = chance_percent(r, 4) ? 1 + chance_below(r, s->p.devices) : 0;
    ask_job_send(s, j, &m);
    capbuf_finish(&steps);
    if (s->p.spread > 0 && chance_percent(&other, 8)) {
        ask_gather(s, c, &other);
    }
}

/* ---- programs, modules, arenas --------------------------------------------------------------- */

/* `fill what with value`, then `read what`. */
static void ask_program(struct sim *s, struct sim_client *c)
{
    struct capbuf params, steps, args[2];
    const struct proto_param param[] = {
        {.name = bytes_str("what"), .kind = PARAM_BUFFER, .dtype = DTYPE_F32},
        {.name = bytes_str("value"), .kind = PARAM_SCALAR, .dtype = DTYPE_F32}};
    capbuf_init(&params, 4096);
    capbuf_init(&steps, 4096);
    for (unsigned i = 0; i < 2; i++) {
        struct proto_arg arg = {.tag = ARG_PARAM, .handle = 0};
        struct proto_step step = {.op = i == 0 ? OP_FILL : OP_READ};
        capbuf_init(&args[i], 4096);
        ask_encode(s, &schema_param, &param[i], &params);
        ask_encode(s, &schema_arg, &arg, &args[i]);
        arg.handle = 1;
        if (i == 0) {
            ask_encode(s, &schema_arg, &arg, &args[i]);
        }
        step.args = proto_list_of(&args[i], i == 0 ? 2 : 1);
        ask_encode(s, &schema_step, &step, &steps);
    }
    struct msg_program_create m = {.seq = ask_number(c),
                                   .name = bytes_str("paint"),
                                   .params = proto_list_of(&params, 2),
                                   .steps = proto_list_of(&steps, 2)};
    (void)client_send(s, c, &schema_msg_program_create, &m);
    capbuf_finish(&params);
    capbuf_finish(&steps);
    capbuf_finish(&args[0]);
    capbuf_finish(&args[1]);
}

static void ask_run(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_buffer *b = some_buffer(c, r);
    if (c->programs == 0 || b == NULL || b->bytes > SIM_CONTENT) {
        ask_program(s, c);
        return;
    }
    struct sim_job *j = ask_job(s, c, r);
    struct capbuf bindings;
    uint64_t all = b->bytes / ELEMENT;
    uint32_t value = (uint32_t)chance_below(r, UINT32_MAX);
    const struct proto_arg args[] = {arg_of(b, 0, 0),
                                     {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = value}};
    capbuf_init(&bindings, 4096);
    ask_encode(s, &schema_arg, &args[0], &bindings);
    ask_encode(s, &schema_arg, &args[1], &bindings);
    j->steps = 2;
    j->writes = true;
    j->step[0] = (struct sim_step){.op = OP_FILL, .to = b, .count = all, .value = value};
    j->step[1] = (struct sim_step){.op = OP_READ, .to = b, .count = all};
    struct msg_submit m = {.program = c->program[chance_below(r, c->programs)],
                           .bindings = proto_list_of(&bindings, 2),
                           .flags = chance_percent(r, 50) ? SUBMIT_ASYNC : 0};
    ask_job_send(s, j, &m);
    capbuf_finish(&bindings);
}

static void load(struct sim *s, struct sim_client *c, bool bad, struct chance *r)
{
    char source[64];
    unsigned number = (unsigned)chance_below(r, bad ? 4 : 1000);
    (void)snprintf(source, sizeof source, "source %u %s", number, bad ? "of trouble" : "");
    ask_load_named(s, c, source, bad ? 1 + number : 0);
}

void ask_load_named(struct sim *s, struct sim_client *c, const char *source, unsigned bad)
{
    struct msg_module_load m = {.seq = ask_number(c),
                                .name = bytes_str("m"),
                                .lang = LANG_DIALECT,
                                .source = bytes_str(source),
                                .file = bytes_str("m.gk")};
    client_send(s, c, &schema_msg_module_load, &m)->what = bad;
}

static void ask_load(struct sim *s, struct sim_client *c, struct chance *r)
{
    load(s, c, s->p.faults > 0 && chance_percent(r, 25), r);
}

static void ask_unload(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (c->modules == 0) {
        return;
    }
    unsigned k = (unsigned)chance_below(r, c->modules);
    struct msg_module_unload m = {.seq = ask_number(c), .module = c->module[k]};
    c->module[k] = c->module[--c->modules];
    if (c->bulk_module == m.module) {
        c->bulk = c->bulk_module = 0;
    }
    for (unsigned i = 0; i < c->kernels; i++) {
        if (c->kernel_module[i] == m.module) {
            unsigned last = --c->kernels;
            c->kernel[i] = c->kernel[last];
            c->kernel_inout[i] = c->kernel_inout[last];
            c->kernel_bad[i] = c->kernel_bad[last];
            c->kernel_module[i] = c->kernel_module[last];
            i--;
        }
    }
    (void)client_send(s, c, &schema_msg_module_unload, &m);
}

void ask_find(struct sim *s, struct sim_client *c)
{
    struct msg_kernel_find m = {.seq = ask_number(c), .name = bytes_str("axpy")};
    (void)client_send(s, c, &schema_msg_kernel_find, &m);
}

static void ask_arena(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (c->arenas > 0 && chance_percent(r, 40)) {
        struct msg_arena_free m = {.seq = ask_number(c), .arena = c->arena[--c->arenas]};
        (void)client_send(s, c, &schema_msg_arena_free, &m);
        return;
    }
    struct msg_arena_create m = {.seq = ask_number(c), .bytes = SIM_ARENA};
    (void)client_send(s, c, &schema_msg_arena_create, &m);
}

/* Adds to a part of the client's memory in place, so that a second run has other results. */
static void ask_in_place(struct sim *s, struct sim_client *c, struct sim_job *j, struct chance *r)
{
    struct capbuf args, steps;
    const struct proto_arg value = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = 1};
    const struct proto_arg arena = {.tag = ARG_ARENA,
                                    .handle = c->arena[chance_below(r, c->arenas)],
                                    .first = ELEMENT * chance_below(r, SIM_ARENA / ELEMENT / 2),
                                    .dtype = DTYPE_F32,
                                    .ndim = 1,
                                    .d0 = 1 + chance_below(r, 64)};
    const struct proto_arg fresh = {.tag = ARG_INLINE,
                                    .access = ACCESS_IN,
                                    .dtype = DTYPE_F32,
                                    .ndim = 1,
                                    .d0 = arena.d0,
                                    .data = bytes_of(zeros, arena.d0 * ELEMENT)};
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    ask_encode(s, &schema_arg, &value, &args);
    ask_encode(s, &schema_arg, &fresh, &args);
    ask_encode(s, &schema_arg, &arena, &args);
    const struct proto_step p = {
        .op = OP_LAUNCH, .kernel = c->axpy, .args = proto_list_of(&args, 3)};
    ask_encode(s, &schema_step, &p, &steps);
    j->writes = true;
    struct msg_submit m = {.steps = proto_list_of(&steps, 1),
                           .flags = chance_percent(r, 50) ? SUBMIT_ASYNC : 0};
    ask_job_send(s, j, &m);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

/* Between a buffer and an arena, whose content is not followed. */
static void ask_exchange(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_buffer *b = some_buffer(c, r);
    if (c->arenas == 0 || b == NULL || b->bytes > SIM_CONTENT) {
        ask_arena(s, c, r);
        return;
    }
    bool into = chance_percent(r, 40); /* into the buffer */
    struct sim_job *j = ask_job(s, c, r);
    struct chance other = chance_of(j->r, 60);
    if (c->axpy != 0 && chance_percent(&other, 50)) {
        ask_in_place(s, c, j, &other);
        return;
    }
    struct capbuf args, steps;
    uint64_t all = b->bytes / ELEMENT;
    struct proto_arg arena = {.tag = ARG_ARENA,
                              .handle = c->arena[chance_below(r, c->arenas)],
                              .first = ELEMENT * chance_below(r, SIM_ARENA / ELEMENT - all),
                              .dtype = DTYPE_F32,
                              .ndim = 1,
                              .d0 = all};
    struct proto_arg buffer = arg_of(b, 0, 0);
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    ask_encode(s, &schema_arg, &buffer, &args);
    ask_encode(s, &schema_arg, &arena, &args);
    struct proto_step p = {.op = into ? OP_WRITE : OP_READ, .args = proto_list_of(&args, 2)};
    ask_encode(s, &schema_step, &p, &steps);
    j->writes = into;
    j->steps = 1;
    j->step[0] = (struct sim_step){.op = into ? OP_WRITE : OP_READ, .to = b, .count = all};
    j->step[0].unknown = into;
    struct msg_submit m = {.steps = proto_list_of(&steps, 1),
                           .flags = chance_percent(r, 50) ? SUBMIT_ASYNC : 0};
    ask_job_send(s, j, &m);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

struct proto_arg ask_inline(uint32_t data[SIM_SMALL], uint64_t count)
{
    for (unsigned i = 0; i < SIM_SMALL; i++) {
        data[i] = i;
    }
    return (struct proto_arg){.tag = ARG_INLINE,
                              .access = ACCESS_IN,
                              .dtype = DTYPE_F32,
                              .ndim = 1,
                              .d0 = count,
                              .data = bytes_of(data, count * sizeof data[0])};
}

/* ---- crowds and guilty jobs ------------------------------------------------------------------ */

void ask_crowd(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = (unsigned)chance_spread(r, 8, s->clients > 100 ? 64 : 1024);
    bool submits = chance_percent(r, 70);
    for (unsigned i = 0; i < count; i++) {
        (submits ? ask_submit : ask_something)(s, c, r);
    }
}

void ask_load_bad(struct sim *s, struct sim_client *c, struct chance *r)
{
    load(s, c, true, r);
}

void ask_guilty_send(struct sim *s, struct sim_job *j, const struct capbuf *steps, struct chance *r)
{
    struct msg_submit m = {.steps = proto_list_of(steps, 1),
                           .flags = chance_percent(r, 70) ? SUBMIT_ASYNC : 0};
    if (s->p.special == WORLD_OVERRUNS && chance_percent(r, 30)) {
        m.limit_ns = chance_spread(r, 200 * NS_PER_MS, 900 * NS_PER_MS);
    }
    j->guilty = j->loaded = true;
    ask_job_send(s, j, &m);
}

/* A launch of a kernel that ends workers, with an array of the job's own, so that it may run
 * again. */
void ask_guilt_with(struct sim *s, struct sim_client *c, unsigned k, struct chance *r)
{
    struct sim_job *j = ask_job(s, c, r);
    struct sim_step *t = &j->step[j->steps++];
    struct proto_step p = {.op = OP_LAUNCH, .kernel = c->kernel[k]};
    struct capbuf args, steps;
    capbuf_init(&args, 65536);
    capbuf_init(&steps, 65536);
    *t = (struct sim_step){.op = OP_LAUNCH,
                           .inlined = chance_percent(r, 80),
                           .inout = c->kernel_inout[k],
                           .bad = c->kernel_bad[k] * 2 + c->kernel_inout[k]};
    t->from = t->to = some_buffer(c, r);
    t->count = 1 + chance_below(r, t->from->bytes / ELEMENT < 8 ? 1 : 4);
    t->to_first = t->inlined ? 0 : t->count; /* apart from what it reads */
    t->to_first = t->to_first + t->count <= t->to->bytes / ELEMENT ? t->to_first : 0;
    j->wrong = overlap(t);
    j->writes = !t->inlined;
    add_args(s, t, c->axpy, &args, &p);
    ask_encode(s, &schema_step, &p, &steps);
    ask_guilty_send(s, j, &steps, r);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

void ask_something(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 100);
    if (c->open_count + 64 > sizeof c->open / sizeof c->open[0]) {
        return;
    }
    if (s->p.sockets != 0 && chance_percent(r, 20)) {
        ask_grants(s, c, r);
    } else if (n < 12 || (c->buffers == 0 && n < 60)) {
        ask_create(s, c, r);
    } else if (n < 16) {
        ask_free(s, c, some_buffer(c, r));
    } else if (n < 22) {
        ask_of_buffer(s, c, r);
    } else if (n < 25) {
        ask_open(s, c, r);
    } else if (n < 29) {
        ask_load(s, c, r);
    } else if (n < 31) {
        ask_unload(s, c, r);
    } else if (n < 35) {
        ask_find(s, c);
    } else if (n < 41) {
        ask_run(s, c, r);
    } else if (n < 47) {
        ask_exchange(s, c, r);
    } else {
        ask_submit(s, c, r);
    }
}

/* ---- without a number ------------------------------------------------------------------------ */

static uint64_t some_job(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (c->jobs > 0 && chance_percent(r, 80)) {
        return c->job[chance_below(r, c->jobs)]->id;
    }
    return s->f != NULL ? 1 + chance_below(r, s->f->next_job) : 1;
}

static void ask_cancel(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct msg_cancel m = {.job = 0};
    m.kill = s->p.special == WORLD_DOMAINS ? chance_percent(r, 50) : c->next % 3 == 0;
    if (c->open_count > 0 && chance_percent(r, 50)) {
        struct sim_request *q = c->open[chance_below(r, c->open_count)];
        m.number = q->seq;
        if (q->job != NULL) {
            q->job->cancelled = true;
            q->job->killed = q->job->killed || m.kill != 0;
        }
    } else if (c->jobs > 0) {
        struct sim_job *j = c->job[chance_below(r, c->jobs)];
        m.job = j->id;
        j->cancelled = true;
        j->killed = j->killed || m.kill != 0;
    }
    if (m.job != 0 || m.number != 0) {
        (void)client_send(s, c, &schema_msg_cancel, &m);
    }
}

void ask_cancel_of(struct sim *s, struct sim_job *j, bool kill)
{
    struct msg_cancel m = {.number = j->request->seq, .kill = kill};
    j->cancelled = true;
    j->killed = j->killed || kill;
    (void)client_send(s, j->client, &schema_msg_cancel, &m);
}

static void ask_query(struct sim *s, struct sim_client *c, struct chance *r)
{
    static const char *const what[] = {"devices",  "pool",    "kernels", "jobs",
                                       "sessions", "tenants", "config",  "timeline"};
    struct msg_query m = {.what = bytes_str(what[chance_below(r, sizeof what / sizeof what[0])])};
    (void)client_send(s, c, &schema_msg_query, &m);
}

void ask_unnumbered(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 100);
    if (n < 30) {
        ask_cancel(s, c, r);
    } else if (n < 50) {
        struct msg_explain m = {.job = some_job(s, c, r)};
        (void)client_send(s, c, &schema_msg_explain, &m);
    } else if (n < 65) {
        struct msg_job_info m = {.job = some_job(s, c, r)};
        (void)client_send(s, c, &schema_msg_job_info, &m);
    } else if (n < 80) {
        ask_query(s, c, r);
    } else if (n < 88) {
        struct msg_ping m = {.value = 1};
        (void)client_send(s, c, &schema_msg_ping, &m);
    } else if (n < 94) {
        struct msg_job_find m = {.number = 1 + chance_below(r, c->next)};
        (void)client_send(s, c, &schema_msg_job_find, &m);
    } else {
        struct msg_pool_take m = {.timeout_ns = NS_PER_S};
        (void)client_send(s, c, &schema_msg_pool_take, &m);
    }
}

void ask_control(struct sim *s, struct sim_client *c, struct chance *r)
{
    static const char *const what[] = {"drain",  "resume",    "resume",
                                       "reload", "pool-trim", "session-kill"};
    char value[24] = "";
    unsigned n = (unsigned)chance_below(r, sizeof what / sizeof what[0]);
    if (s->p.watch != 0 && chance_percent(r, 60)) {
        record_ask(s, c, r);
        return;
    }
    if (n == 5) {
        s->killed_session = true;
        (void)snprintf(value, sizeof value, "%u", (unsigned)chance_below(r, s->clients + 4));
    }
    if (n == 3) {
        static const uint64_t windows[] = {0, 1, 4, 64};
        s->p.window = windows[chance_below(r, 4)];
        s->p.queue_max = chance_percent(r, 50) ? 8 + chance_below(r, 64) : 4096;
        s->queue_most = s->p.queue_max > s->queue_most ? s->p.queue_max : s->queue_most;
    }
    struct msg_control m = {.what = bytes_str(what[n]), .value = bytes_str(value)};
    (void)client_send(s, c, &schema_msg_control, &m);
}

void ask_wait(struct sim *s, struct sim_client *c)
{
    if (c->waits || c->state != CLIENT_ON || (!s->settling && (s->p.reads == 0 || c->mute))) {
        return;
    }
    c->waits = true;
    struct msg_wait m = {.timeout_ns = 20 * NS_PER_S, .taken = c->events};
    c->wait = client_send(s, c, &schema_msg_wait, &m);
}

/* ---- the end --------------------------------------------------------------------------------- */

void ask_last_look(struct sim *s, struct sim_client *c, struct sim_buffer *b)
{
    struct chance r = chance_of(b->handle, 3);
    struct sim_job *j = ask_job(s, c, &r);
    struct capbuf args, steps;
    uint64_t all = b->bytes / ELEMENT;
    all = all < SIM_CONTENT / ELEMENT ? all : SIM_CONTENT / ELEMENT;
    struct proto_arg arg = arg_of(b, 0, all);
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    ask_encode(s, &schema_arg, &arg, &args);
    struct proto_step p = {.op = OP_READ, .args = proto_list_of(&args, 1)};
    ask_encode(s, &schema_step, &p, &steps);
    j->last = true;
    j->steps = 1;
    j->step[0] = (struct sim_step){.op = OP_READ, .to = b, .count = all};
    struct msg_submit m = {.steps = proto_list_of(&steps, 1), .flags = SUBMIT_BLOCK};
    ask_job_send(s, j, &m);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

void ask_bye(struct sim *s, struct sim_client *c)
{
    struct msg_bye m = {.seq = 0};
    c->leaving = false;
    c->said_bye = true;
    (void)client_send(s, c, &schema_msg_bye, &m);
}
