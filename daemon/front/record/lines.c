#include "daemon/front/record/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#include "common/clock.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/utf8.h"
#include "daemon/front/model/job_state.h"
#include "daemon/front/model/work.h"
#include "daemon/front/record/json.h"
#include "daemon/front/settings/tenant_limits.h"
#include "proto/codec.h"

/* The name of a kernel, for steps, which have its handle. */
struct kernel_name {
    struct entry_kernel kernel;
    UT_hash_handle hh;
};

struct lines {
    bool data;
    uint64_t begin_ns;
    struct kernel_name *kernels; /* owned; uthash by handle */
};

/* What a job entry has besides its message. */
struct chunks {
    const uint8_t *at;
    unsigned count;
};

struct lines *lines_create(bool data, uint64_t begin_ns)
{
    struct lines *l = calloc(1, sizeof *l);
    if (l != NULL) {
        l->data = data;
        l->begin_ns = begin_ns;
    }
    return l;
}

void lines_destroy(struct lines *l)
{
    struct kernel_name *k;
    struct kernel_name *next;
    if (l == NULL) {
        return;
    }
    HASH_ITER(hh, l->kernels, k, next)
    {
        HASH_DEL(l->kernels, k);
        free(k);
    }
    free(l);
}

/* ---- parts of lines -------------------------------------------------------------------------- */

static void line_begin(const struct lines *l, struct capbuf *out, const char *line, uint64_t at_ns)
{
    json_open(out, NULL, '{');
    json_str(out, "line", line);
    json_uint(out, "at_ns", at_ns > l->begin_ns ? at_ns - l->begin_ns : 0);
}

static void line_end(struct capbuf *out)
{
    json_close(out, '}');
    (void)capbuf_append(out, "\n", 1);
}

static void put_number(struct capbuf *out, const char *name, uint64_t value)
{
    if (value != 0) {
        json_uint(out, name, value);
    }
}

static void put_hash(struct capbuf *out, const char *name, struct bytes data)
{
    char hash[HASH_TEXT_BYTES];
    json_str(out, name, hash_text(hash_of(data.data, data.size), hash));
}

static void put_shape(struct capbuf *out, uint64_t dtype, uint64_t ndim, const uint64_t *dim)
{
    if (dtype == DTYPE_NONE) {
        return;
    }
    json_str(out, "type", dtype_name((int)dtype));
    if (ndim > 0) {
        json_open(out, "shape", '[');
        for (uint64_t i = 0; i < ndim && i < SHAPE_MAX_DIMS; i++) {
            json_uint(out, NULL, dim[i]);
        }
        json_close(out, ']');
    }
}

/* A text of a module: readable if it is one. */
static void put_code(struct capbuf *out, const char *name, struct bytes text)
{
    char member[40];
    if (text.size == 0) {
        return;
    }
    if (utf8_valid(text) && memchr(text.data, '\0', text.size) == NULL) {
        json_text(out, name, text);
    } else {
        (void)snprintf(member, sizeof member, "%s_base64", name);
        json_base64(out, member, text);
    }
    (void)snprintf(member, sizeof member, "%s_hash", name);
    put_hash(out, member, text);
}

static void put_data(const struct lines *l, struct capbuf *out, struct bytes data)
{
    json_uint(out, "bytes", data.size);
    if (l->data) {
        json_base64(out, "data_base64", data);
    }
    put_hash(out, "data_hash", data);
}

/* The chunk at the iterator's place; moves on. NULL: there are no more. */
static const uint8_t *chunk_next(struct chunks *c, struct entry_chunk *ret_chunk)
{
    if (c->count == 0) {
        return NULL;
    }
    memcpy(ret_chunk, c->at, sizeof *ret_chunk);
    const uint8_t *bytes = c->at + sizeof *ret_chunk;
    c->at = bytes + entry_round(ret_chunk->size);
    c->count--;
    return bytes;
}

static struct bytes chunk_of(struct chunks c, uint64_t arena, uint64_t first)
{
    struct entry_chunk chunk;
    const uint8_t *bytes;
    while ((bytes = chunk_next(&c, &chunk)) != NULL) {
        if (chunk.arena == arena && chunk.first == first) {
            return bytes_of(bytes, chunk.size);
        }
    }
    return (struct bytes){.data = NULL};
}

/* ---- steps and arguments --------------------------------------------------------------------- */

static void put_arg_data(const struct lines *l, struct capbuf *out, const struct proto_arg *a,
                         struct chunks c)
{
    if (a->tag == ARG_INLINE && a->data.size > 0) {
        put_data(l, out, a->data);
    } else if (a->tag == ARG_STRUCT) { /* a scalar of several members */
        json_base64(out, "data_base64", a->data);
    } else if (a->tag == ARG_ARENA) {
        struct bytes data = chunk_of(c, a->handle, a->first);
        json_handle(out, "arena", a->handle);
        put_number(out, "offset", a->first);
        if (data.data != NULL) {
            put_data(l, out, data);
        }
    }
}

static void put_arg(const struct lines *l, struct capbuf *out, const struct proto_arg *a,
                    struct chunks c)
{
    const uint64_t dim[] = {a->d0, a->d1, a->d2, a->d3};
    json_open(out, NULL, '{');
    json_str(out, "what", work_arg_name(a->tag));
    if (a->tag == ARG_BUFFER) {
        json_handle(out, "buffer", a->handle);
    } else if (a->tag == ARG_TEMP || a->tag == ARG_PARAM) {
        json_uint(out, "index", a->handle);
    }
    if (a->tag == ARG_LOCAL) {
        put_number(out, "bytes", a->count);
    } else if (a->tag != ARG_ARENA) {
        put_number(out, "first", a->first);
        put_number(out, "count", a->count);
    }
    json_str(out, "access", a->access != ACCESS_NONE ? access_name((int)a->access) : "");
    json_str(out, "view", a->view != DTYPE_NONE ? dtype_name((int)a->view) : "");
    put_shape(out, a->dtype, a->ndim, dim);
    if (a->tag == ARG_SCALAR) {
        json_handle(out, "bits", a->bits);
    }
    put_arg_data(l, out, a, c);
    json_close(out, '}');
}

static void put_args(const struct lines *l, struct capbuf *out, const char *name,
                     struct proto_list list, struct chunks c)
{
    struct proto_iter it = proto_iter_of(list);
    struct proto_arg a;
    json_open(out, name, '[');
    while (proto_list_next(&it, &schema_arg, &a)) {
        put_arg(l, out, &a, c);
    }
    json_close(out, ']');
}

static void put_grid(struct capbuf *out, const char *name, uint64_t x, uint64_t y, uint64_t z)
{
    json_open(out, name, '[');
    json_uint(out, NULL, x);
    json_uint(out, NULL, y);
    json_uint(out, NULL, z);
    json_close(out, ']');
}

static void put_step(const struct lines *l, struct capbuf *out, const struct proto_step *s,
                     struct chunks c)
{
    const char *op = work_op_name(s->op);
    struct kernel_name *k = NULL;
    json_open(out, NULL, '{');
    json_str(out, "op", op != NULL ? op : "");
    if (s->op == OP_LAUNCH) {
        HASH_FIND(hh, l->kernels, &s->kernel, sizeof s->kernel, k);
        json_str(out, "kernel", k != NULL ? k->kernel.name : "");
        if (k != NULL && k->kernel.module != 0) {
            json_handle(out, "module", k->kernel.module);
        }
    }
    if (s->gx != 0) {
        put_grid(out, "global", s->gx, s->gy, s->gz);
        put_grid(out, "local", s->lx, s->ly, s->lz);
    }
    put_number(out, "shared", s->shared);
    put_args(l, out, "args", s->args, c);
    json_close(out, '}');
}

static void put_steps(const struct lines *l, struct capbuf *out, struct proto_list list,
                      struct chunks c)
{
    struct proto_iter it = proto_iter_of(list);
    struct proto_step s;
    json_open(out, "steps", '[');
    while (proto_list_next(&it, &schema_step, &s)) {
        put_step(l, out, &s, c);
    }
    json_close(out, ']');
}

static void put_params(struct capbuf *out, struct proto_list list)
{
    struct proto_iter it = proto_iter_of(list);
    struct proto_param p;
    json_open(out, "params", '[');
    while (proto_list_next(&it, &schema_param, &p)) {
        const uint64_t dim[] = {p.d0, p.d1, p.d2, p.d3};
        json_open(out, NULL, '{');
        json_str(out, "what", work_param_name(p.kind));
        if (p.name.size > 0) {
            json_text(out, "name", p.name);
        }
        put_shape(out, p.dtype, p.ndim, dim);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_temps(struct capbuf *out, struct proto_list list)
{
    struct proto_iter it = proto_iter_of(list);
    struct proto_temp t;
    json_open(out, "temps", '[');
    while (proto_list_next(&it, &schema_temp, &t)) {
        const uint64_t dim[] = {t.d0, t.d1, t.d2, t.d3};
        json_open(out, NULL, '{');
        put_shape(out, t.dtype, t.ndim, dim);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool add_kernels(struct lines *l, const struct entry *x)
{
    const struct entry_kernel *k = (const struct entry_kernel *)(x + 1);
    for (uint64_t i = 0; i < x->count; i++) {
        struct kernel_name *known = NULL;
        HASH_FIND(hh, l->kernels, &k[i].handle, sizeof k[i].handle, known);
        struct kernel_name *name = known == NULL ? calloc(1, sizeof *name) : NULL;
        if (name == NULL && known == NULL) {
            return false;
        }
        if (known == NULL) {
            name->kernel = k[i];
            HASH_ADD(hh, l->kernels, kernel.handle, sizeof name->kernel.handle, name);
            if (!HASH_ENTERED(name->hh)) {
                free(name);
                return false;
            }
        }
    }
    return true;
}

/* The bytes behind the entry, or behind what was taken before. */
static struct bytes take(const uint8_t **at, size_t size)
{
    struct bytes taken = bytes_of(*at, size);
    *at += size;
    return taken;
}

static struct proto_list take_list(const uint8_t **at, struct entry_list list)
{
    return (struct proto_list){.raw = take(at, list.size), .count = list.count};
}

static void module_line(const struct entry *x, struct capbuf *out)
{
    const uint8_t *at = (const uint8_t *)(x + 1);
    char hash[HASH_TEXT_BYTES];
    json_handle(out, "module", x->id);
    json_str(out, "what", x->module.loaded ? "loaded" : "built-in");
    json_str(out, "name", x->module.name);
    json_str(out, "hash", hash_text(x->module.hash, hash));
    json_uint(out, "lang", (uint64_t)x->module.lang);
    json_str(out, "file", x->module.file);
    struct bytes text = take(&at, x->module.text);
    struct bytes options = take(&at, x->module.options);
    struct bytes signature = take(&at, x->module.signature);
    if (options.size > 0) {
        json_text(out, "options", options);
    }
    if (signature.size > 0) {
        json_text(out, "signature", signature);
    }
    put_code(out, "source", text);
    struct proto_iter it = proto_iter_of(take_list(&at, x->module.headers));
    struct proto_header h;
    json_open(out, "headers", '[');
    while (proto_list_next(&it, &schema_header, &h)) {
        json_open(out, NULL, '{');
        json_text(out, "name", h.name);
        put_code(out, "header", h.text);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void program_line(const struct lines *l, const struct entry *x, struct capbuf *out)
{
    const uint8_t *at = (const uint8_t *)(x + 1);
    json_handle(out, "program", x->id);
    json_str(out, "name", x->program.name);
    put_params(out, take_list(&at, x->program.params));
    put_temps(out, take_list(&at, x->program.temps));
    put_steps(l, out, take_list(&at, x->program.steps), (struct chunks){.count = 0});
}

static void buffer_line(const struct entry *x, struct capbuf *out)
{
    static const char *const contents[] = {
        [CONTENT_NONE] = "none", [CONTENT_ZERO] = "zero", [CONTENT_UNKNOWN] = "unknown"};
    json_handle(out, "buffer", x->id);
    put_number(out, "session", x->buffer.session);
    json_str(out, "tenant", x->buffer.tenant);
    json_uint(out, "device", x->buffer.device);
    put_shape(out, x->buffer.shape.dtype, x->buffer.shape.ndim, x->buffer.shape.dim);
    json_uint(out, "bytes", shape_bytes(&x->buffer.shape));
    put_number(out, "flags", x->buffer.flags);
    json_str(out, "label", x->buffer.label);
    json_str(out, "published", x->buffer.name);
    json_str(out, "content", contents[x->buffer.content]);
}

static void job_facts(const struct entry *x, const struct msg_submit *m, struct capbuf *out)
{
    json_open(out, "job", '{');
    json_uint(out, "id", x->id);
    json_str(out, "tenant", x->job.tenant);
    json_uint(out, "session", x->job.session);
    json_str(out, "client", x->job.client);
    if (m->label.size > 0) {
        json_text(out, "label", m->label);
    }
    json_str(out, "class", tenant_classes[x->job.job_class]);
    json_int(out, "priority", m->priority);
    put_number(out, "deadline_ns", m->deadline_ns);
    put_number(out, "time_limit_ns", m->limit_ns);
    if (m->trace_id != 0) {
        json_handle(out, "trace_id", m->trace_id);
    }
    if (m->device != 0) {
        json_uint(out, "wants_device", m->device - 1);
    }
    json_close(out, '}');
}

static void job_line(const struct lines *l, const struct entry *x, struct capbuf *out)
{
    const uint8_t *at = (const uint8_t *)(x + 1);
    struct msg_submit m;
    struct bytes message =
        x->job.body != NULL ? message_view(x->job.body) : bytes_of(at, x->job.bytes);
    struct chunks c = {.at = at + entry_round(x->job.bytes), .count = x->job.chunks};
    if (proto_decode(&schema_msg_submit, message, &m, NULL) != 0) {
        return; /* not possible: it was decoded before */
    }
    job_facts(x, &m, out);
    if (m.program != 0) {
        json_handle(out, "program", m.program);
    } else {
        put_temps(out, m.temps);
        put_steps(l, out, m.steps, c);
    }
    put_args(l, out, "values", m.bindings, c);
}

static void end_line(const struct entry *x, struct capbuf *out)
{
    struct chunks c = {.at = (const uint8_t *)(x + 1), .count = x->end.chunks};
    struct entry_chunk chunk;
    const uint8_t *bytes;
    json_uint(out, "job", x->id);
    json_str(out, "state", job_state_name((enum job_state)x->end.state));
    if (x->end.code != 0) {
        json_str(out, "error", err_name(x->end.code));
        json_int(out, "step", x->end.step);
        json_str(out, "text", x->end.text);
    }
    if (x->end.placed) {
        json_uint(out, "device", x->end.device);
    }
    json_bool(out, "began", x->end.began);
    json_uint(out, "queued_ns", x->end.queued_ns);
    json_uint(out, "executed_ns", x->end.executed_ns);
    json_open(out, "results", '[');
    while ((bytes = chunk_next(&c, &chunk)) != NULL) {
        json_open(out, NULL, '{');
        if (chunk.arena != 0) {
            json_handle(out, "arena", chunk.arena);
            put_number(out, "offset", chunk.first);
        } else {
            json_uint(out, "step", chunk.first);
            json_uint(out, "arg", chunk.arg);
        }
        json_uint(out, "bytes", chunk.size);
        put_hash(out, "hash", bytes_of(bytes, chunk.size));
        json_close(out, '}');
    }
    json_close(out, ']');
}

bool lines_entry(struct lines *l, const struct entry *x, struct capbuf *out)
{
    static const char *const names[] = {
        [ENTRY_GAP] = "gap",         [ENTRY_KERNELS] = "",      [ENTRY_MODULE] = "module",
        [ENTRY_PROGRAM] = "program", [ENTRY_BUFFER] = "buffer", [ENTRY_FREE] = "free",
        [ENTRY_JOB] = "job",         [ENTRY_END] = "end"};
    if (x->kind == ENTRY_KERNELS) {
        return add_kernels(l, x);
    }
    line_begin(l, out, names[x->kind], x->at_ns);
    switch (x->kind) {
    case ENTRY_GAP:
        json_uint(out, "lost", x->lost);
        break;
    case ENTRY_MODULE:
        module_line(x, out);
        break;
    case ENTRY_PROGRAM:
        program_line(l, x, out);
        break;
    case ENTRY_BUFFER:
        buffer_line(x, out);
        break;
    case ENTRY_FREE:
        json_handle(out, "buffer", x->id);
        break;
    case ENTRY_JOB:
        job_line(l, x, out);
        break;
    default:
        end_line(x, out);
        break;
    }
    line_end(out);
    return !out->failed;
}

/* ---- the first and the last line ------------------------------------------------------------- */

bool lines_head(const struct lines_head *head, struct capbuf *out)
{
    time_t seconds = (time_t)(head->wall_ns / NS_PER_S);
    char when[32] = "";
    struct tm tm;
    if (gmtime_r(&seconds, &tm) != NULL) {
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    json_open(out, NULL, '{');
    json_str(out, "line", "recording");
    json_str(out, "format", "gpud-recording");
    json_uint(out, "version", 1);
    json_str(out, "build", head->build);
    json_str(out, "time", when);
    json_bool(out, "data", head->data);
    json_uint(out, "file_bytes", head->file_bytes);
    json_open(out, "devices", '[');
    for (unsigned i = 0; i < head->devices; i++) {
        const struct lines_device *d = &head->device[i];
        json_open(out, NULL, '{');
        json_uint(out, "device", d->device);
        json_str(out, "backend", d->backend);
        json_str(out, "name", d->name);
        json_uint(out, "memory", d->memory);
        json_close(out, '}');
    }
    json_close(out, ']');
    line_end(out);
    return !out->failed;
}

bool lines_stop(const char *why, uint64_t at_ns, uint64_t jobs, uint64_t lost, struct capbuf *out)
{
    json_open(out, NULL, '{');
    json_str(out, "line", "stop");
    json_uint(out, "at_ns", at_ns);
    json_str(out, "why", why);
    json_uint(out, "jobs", jobs);
    json_uint(out, "lost", lost);
    line_end(out);
    return !out->failed;
}
