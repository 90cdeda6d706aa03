/* The table `program`: what a job was submitted with, as long as the daemon has it. An element of
 * the program is a row. Rows `content` follow the row that they are of, in pieces. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base64.h"
#include "daemon/front/model/module.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/rights.h"
#include "daemon/front/views/table_view.h"

#define PIECE       768u                 /* bytes of a content in a row: 1024 as base64 */
#define CONTENT_MAX (3u * 1024u * 1024u) /* bytes of all contents of a table */

/* Texts of a module, in their order. */
enum { TEXT_FILE, TEXT_OPTIONS, TEXT_SIGNATURE, TEXT_SOURCE, TEXT_HEADERS };

enum program_part {
    PART_JOB,
    PART_PARAMS,
    PART_TEMPS,
    PART_STEPS,
    PART_VALUES,
    PART_BUFFERS,
    PART_MODULES,
    PART_END,
};

struct program_row {
    const char *row;
    const char *what, *name, *hash, *access, *view, *text, *content;
    uint64_t number, handle, module, first, count, value, bytes;
    uint64_t global[3], local[3], shared;
    int dtype;
    char shape[96];
};

#define PROGRAM_COLUMNS(COLUMN, WIDE)                                                              \
    COLUMN(row, TEXT, r->row)                                                                      \
    COLUMN(number, UINT, r->number)                                                                \
    COLUMN(what, TEXT, r->what)                                                                    \
    COLUMN(name, TEXT, r->name)                                                                    \
    COLUMN(handle, HANDLE, r->handle)                                                              \
    COLUMN(module, HANDLE, r->module)                                                              \
    COLUMN(hash, TEXT, r->hash)                                                                    \
    COLUMN(access, TEXT, r->access)                                                                \
    COLUMN(type, TEXT, r->dtype != DTYPE_NONE ? dtype_name(r->dtype) : "")                         \
    COLUMN(shape, TEXT, r->shape)                                                                  \
    COLUMN(first, UINT, r->first)                                                                  \
    COLUMN(count, UINT, r->count)                                                                  \
    COLUMN(value, HANDLE, r->value)                                                                \
    COLUMN(view, TEXT, r->view)                                                                    \
    COLUMN(bytes, BYTES, r->bytes)                                                                 \
    COLUMN(global_x, UINT, r->global[0])                                                           \
    COLUMN(global_y, UINT, r->global[1])                                                           \
    COLUMN(global_z, UINT, r->global[2])                                                           \
    COLUMN(local_x, UINT, r->local[0])                                                             \
    COLUMN(local_y, UINT, r->local[1])                                                             \
    COLUMN(local_z, UINT, r->local[2])                                                             \
    COLUMN(shared, BYTES, r->shared)                                                               \
    COLUMN(content, TEXT, r->content)                                                              \
    COLUMN(text, TEXT, r->text)

static void put(struct table_query *q, const struct program_row *r)
{
    struct table *t = &q->table;
    turn_count(q->f, TABLE_ROW_UNITS);
    TABLE_ROW(PROGRAM_COLUMNS);
}

static const char *access_of(uint64_t access)
{
    return access != ACCESS_NONE ? access_name((int)access) : "";
}

static void shape_put(struct program_row *r, uint64_t dtype, uint64_t ndim, const uint64_t d[4])
{
    size_t used = 0;
    r->dtype = (int)dtype;
    for (unsigned i = 0; i < ndim && i < SHAPE_MAX_DIMS; i++) {
        used += (size_t)snprintf(r->shape + used, sizeof r->shape - used, "%s%" PRIu64,
                                 i > 0 ? "x" : "", d[i]);
    }
}

/* ---- contents -------------------------------------------------------------------------------- */

/* The next calls of `next` write the content. */
static const char *content_follows(struct table_query *q, const char *what, struct bytes content)
{
    q->walk.what = what;
    q->walk.rest = content;
    return "follows";
}

/* The same, unless the session may not have it, or the table has too many bytes of contents. */
static const char *content_begin(struct table_query *q, const struct job *j, const char *what,
                                 struct bytes content)
{
    if (!rights_content(&q->f->rights, q->s, j->tenant)) {
        return "withheld";
    }
    if (content.size > q->walk.room) {
        return "large";
    }
    q->walk.room -= content.size;
    return content_follows(q, what, content);
}

static void content_piece(struct table_query *q)
{
    struct program_walk *w = &q->walk;
    char text[BASE64_BYTES(PIECE)];
    size_t size = w->rest.size < PIECE ? w->rest.size : PIECE;
    base64_encode(bytes_of(w->rest.data, size), text);
    const struct program_row r = {.row = "content", .what = w->what, .bytes = size, .text = text};
    w->rest.data += size;
    w->rest.size -= size;
    put(q, &r);
}

/* ---- the job --------------------------------------------------------------------------------- */

static void fact(struct table_query *q, const char *name, const char *text)
{
    const struct program_row r = {.row = "job", .name = name, .text = text};
    put(q, &r);
}

static void fact_number(struct table_query *q, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    fact(q, name, text);
}

static void job_rows(struct table_query *q, const struct job *j)
{
    const struct msg_submit *m = &j->request->msg.submit;
    char priority[24];
    (void)snprintf(priority, sizeof priority, "%lld", (long long)j->priority);
    fact_number(q, "id", j->id);
    fact(q, "tenant", j->tenant->name);
    fact_number(q, "session", j->session_id);
    fact(q, "label", j->label);
    fact(q, "state", job_state_name(j->state));
    fact(q, "waits_for", job_wait_name(j->wait));
    fact(q, "class", tenant_classes[j->job_class]);
    fact(q, "priority", priority);
    fact_number(q, "deadline_ns", m->deadline_ns);
    fact_number(q, "time_limit_ns", m->limit_ns);
    fact_number(q, "trace_id", j->trace_id);
    if (m->device != 0) {
        fact_number(q, "wants_device", m->device - 1);
    }
    if (j->device != NULL) {
        fact_number(q, "device", device_shown(j->device));
        fact(q, "backend", j->device->backend);
    }
    fact_number(q, "submitted_ns", j->submitted_ns);
    fact_number(q, "started_ns", j->started_ns);
    fact_number(q, "now_ns", front_now(q->f));
    if (j->program != NULL) {
        fact(q, "program", j->program->name);
    }
}

/* ---- steps and arguments --------------------------------------------------------------------- */

static void step_row(struct table_query *q, const struct proto_step *s)
{
    const struct kernel *k = s->op == OP_LAUNCH ? idmap_get(&q->f->kernels, s->kernel) : NULL;
    const struct module *m = k != NULL ? k->module : NULL;
    const char *op = work_op_name(s->op);
    char hash[HASH_TEXT_BYTES] = "";
    const struct program_row r = {
        .row = "step",
        .number = q->walk.number++,
        .what = op != NULL ? op : "",
        .name = k != NULL ? k->name : "",
        .handle = s->kernel,
        .module = m != NULL && m->tenant != NULL ? m->id : 0,
        .hash = m != NULL ? hash_text(m->hash, hash) : "",
        .global = {s->gx, s->gy, s->gz},
        .local = {s->lx, s->ly, s->lz},
        .shared = s->shared,
    };
    put(q, &r);
    q->walk.args = proto_iter_of(s->args);
    q->walk.arg = 0;
}

static void arg_row(struct table_query *q, const struct job *j, const char *row, uint64_t number,
                    const struct proto_arg *a)
{
    const uint64_t d[4] = {a->d0, a->d1, a->d2, a->d3};
    struct program_row r = {
        .row = row,
        .number = number,
        .what = work_arg_name(a->tag),
        .handle = a->handle,
        .access = access_of(a->access),
        .first = a->first,
        .count = a->count,
        .value = a->tag == ARG_ARENA ? 0 : a->bits,
        .view = a->view != DTYPE_NONE ? dtype_name((int)a->view) : "",
        .bytes = a->data.size,
    };
    shape_put(&r, a->dtype, a->ndim, d);
    if (a->data.size > 0 && a->tag == ARG_INLINE) {
        r.content = content_begin(q, j, "data", a->data);
    } else if (a->data.size > 0) { /* a struct is a scalar of several members */
        r.content = content_follows(q, "data", a->data);
    } else if (a->tag == ARG_ARENA) {
        r.content = "shared";
    }
    put(q, &r);
}

static void param_row(struct table_query *q, const struct proto_param *p)
{
    const uint64_t d[4] = {p->d0, p->d1, p->d2, p->d3};
    char name[PROTO_NAME_MAX + 1];
    struct program_row r = {
        .row = "param", .number = q->walk.number++, .what = work_param_name(p->kind), .name = name};
    (void)bytes_to_str(p->name, name, sizeof name);
    shape_put(&r, p->dtype, p->ndim, d);
    put(q, &r);
}

static void temp_row(struct table_query *q, const struct proto_temp *temp)
{
    const uint64_t d[4] = {temp->d0, temp->d1, temp->d2, temp->d3};
    struct program_row r = {.row = "temp", .number = q->walk.number++};
    shape_put(&r, temp->dtype, temp->ndim, d);
    put(q, &r);
}

/* ---- buffers and modules --------------------------------------------------------------------- */

static void buffer_row(struct table_query *q, const struct work_use *u)
{
    const struct buffer *b = u->buffer;
    struct program_row r = {
        .row = "buffer",
        .number = q->walk.number++,
        .what = buffer_state_name(b),
        .name = b->name,
        .handle = b->handle,
        .access = access_of((uint64_t)u->access),
        .bytes = b->bytes,
        .first = idmap_generation(b->handle),
        .count = b->shown,
        .value = b->flags,
        .text = b->label,
    };
    shape_put(&r, b->shape.dtype, b->shape.ndim, b->shape.dim);
    put(q, &r);
}

static void build_rows(struct table_query *q, const struct module *m)
{
    for (const struct build *b = m->builds; b != NULL; b = b->next) {
        char hash[HASH_TEXT_BYTES];
        const struct program_row r = {.row = "build",
                                      .what = b->backend,
                                      .name = b->arch,
                                      .module = m->id,
                                      .hash = hash_text(b->hash, hash),
                                      .bytes = b->binary_size};
        if (b->state == BUILD_DONE) {
            put(q, &r);
        }
    }
}

/* A module of the daemon has no source to repeat it with: kernels are found by their names. */
static void module_row(struct table_query *q, const struct module *m)
{
    char hash[HASH_TEXT_BYTES];
    bool own = m->tenant != NULL;
    const struct program_row r = {
        .row = "module",
        .number = q->walk.number++,
        .what = own ? "loaded" : "built-in",
        .name = m->name,
        .module = m->id,
        .hash = hash_text(m->hash, hash),
        .value = (uint64_t)m->lang,
        .bytes = own ? m->text.size : 0,
    };
    put(q, &r);
    build_rows(q, m);
    q->walk.text = own ? 0 : UINT32_MAX;
}

static struct bytes module_text(const struct module *m, unsigned which, const char **ret_what)
{
    static const char *const what[] = {[TEXT_FILE] = "file",
                                       [TEXT_OPTIONS] = "options",
                                       [TEXT_SIGNATURE] = "signature",
                                       [TEXT_SOURCE] = "source"};
    const struct bytes text[] = {[TEXT_FILE] = bytes_str(m->file),
                                 [TEXT_OPTIONS] = bytes_str(m->options),
                                 [TEXT_SIGNATURE] = bytes_str(m->signature_text),
                                 [TEXT_SOURCE] = m->text};
    *ret_what = what[which];
    return text[which];
}

/* The next text of the module before: a row with its name, and then its content. false: there are
 * no more. */
static bool module_next(struct table_query *q, const struct job *j)
{
    struct program_walk *w = &q->walk;
    const struct module *m = w->number > 0 ? j->work.modules[w->number - 1] : NULL;
    char name[PROTO_HEADER_NAME_MAX + 1] = "";
    char hash[HASH_TEXT_BYTES];
    struct program_row r = {.row = "text", .name = name};
    struct bytes text;
    bool code = w->text >= TEXT_SOURCE;
    if (m == NULL || w->text > TEXT_HEADERS) {
        return false;
    }
    if (w->text < TEXT_HEADERS) {
        text = module_text(m, w->text++, &r.what);
        w->more = proto_iter_of(m->headers);
    } else {
        struct proto_header h;
        if (!proto_list_next(&w->more, &schema_header, &h)) {
            w->text = UINT32_MAX;
            return false;
        }
        r.what = "header";
        text = h.text;
        (void)bytes_to_str(h.name, name, sizeof name);
    }
    r.bytes = text.size;
    r.hash = code ? hash_text(hash_of(text.data, text.size), hash) : "";
    r.content = text.size == 0 ? ""
                : code         ? content_begin(q, j, r.what, text)
                               : content_follows(q, r.what, text);
    put(q, &r);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The job whose program the session may read. */
static int find(struct table_query *q, const struct job **ret_job, struct err *e)
{
    uint64_t id = q->query->job;
    const struct job *j = job_find(q->f->jobs, id);
    if (j == NULL || !rights_sees(&q->f->rights, q->s, j->tenant)) {
        return err_set(e, ERR_NOT_FOUND,
                       "there is no job %" PRIu64 "; only the last %u ended jobs are listed", id,
                       HISTORY_MAX);
    }
    if (!rights_reads(&q->f->rights, q->s, j->tenant)) {
        return err_set(e, ERR_PERMISSION,
                       "the program of job %" PRIu64
                       " is for its tenant, administrators, and tenants whose section has the "
                       "role see or cancel",
                       id);
    }
    if (j->request == NULL && job_ended(j)) {
        return err_set(e, ERR_STATE,
                       "job %" PRIu64 " has ended (%s), and its program is not kept: submit it "
                       "again, and ask while it waits or runs",
                       id, job_state_name(j->state));
    }
    if (j->request == NULL) {
        return err_set(e, ERR_STATE, "the program of job %" PRIu64 " is not known: %s", id,
                       j->tenant == NULL ? "it is the daemon's own" : "an earlier daemon took it");
    }
    *ret_job = j;
    return 0;
}

static void program_begin(struct table_query *q)
{
    const struct job *j = NULL;
    struct table *t = &q->table;
    TABLE_HEADER(PROGRAM_COLUMNS);
    q->walk = (struct program_walk){.part = PART_JOB, .room = CONTENT_MAX};
    (void)find(q, &j, &t->error);
}

static struct proto_list list_of(const struct job *j, unsigned part)
{
    static const struct proto_list none;
    const struct msg_submit *m = &j->request->msg.submit;
    const struct program *p = j->program;
    switch (part) {
    case PART_PARAMS:
        return p != NULL ? p->params : none;
    case PART_TEMPS:
        return p != NULL ? p->temps : m->temps;
    case PART_STEPS:
        return p != NULL ? p->steps : m->steps;
    case PART_VALUES:
        return m->bindings;
    default:
        return none;
    }
}

static void part_begin(struct table_query *q, const struct job *j, unsigned part)
{
    q->walk.part = part;
    q->walk.number = 0;
    q->walk.text = UINT32_MAX;
    q->walk.list = proto_iter_of(list_of(j, part));
}

/* The next argument of the step before, or else the next step. false: there are no more. */
static bool steps_next(struct table_query *q, const struct job *j)
{
    struct proto_step s;
    struct proto_arg a;
    if (q->walk.args.left > 0 && proto_list_next(&q->walk.args, &schema_arg, &a)) {
        arg_row(q, j, "arg", q->walk.arg++, &a);
        return true;
    }
    if (!proto_list_next(&q->walk.list, &schema_step, &s)) {
        return false;
    }
    step_row(q, &s);
    return true;
}

/* The next element of a list of records without lists. */
static bool records_next(struct table_query *q, const struct job *j)
{
    struct program_walk *w = &q->walk;
    struct proto_param p;
    struct proto_temp temp;
    struct proto_arg a;
    if (w->part == PART_PARAMS && proto_list_next(&w->list, &schema_param, &p)) {
        param_row(q, &p);
        return true;
    }
    if (w->part == PART_TEMPS && proto_list_next(&w->list, &schema_temp, &temp)) {
        temp_row(q, &temp);
        return true;
    }
    if (w->part == PART_VALUES && proto_list_next(&w->list, &schema_arg, &a)) {
        arg_row(q, j, "value", w->number++, &a);
        return true;
    }
    return false;
}

static bool modules_next(struct table_query *q, const struct job *j)
{
    if (module_next(q, j)) {
        return true;
    }
    if (q->walk.number == j->work.module_count) {
        return false;
    }
    module_row(q, j->work.modules[q->walk.number]);
    return true;
}

static bool part_next(struct table_query *q, const struct job *j)
{
    switch (q->walk.part) {
    case PART_JOB:
        job_rows(q, j);
        return false;
    case PART_STEPS:
        return steps_next(q, j);
    case PART_BUFFERS:
        if (q->walk.number == j->work.use_count) {
            return false;
        }
        buffer_row(q, &j->work.uses[q->walk.number]);
        return true;
    case PART_MODULES:
        return modules_next(q, j);
    default:
        return records_next(q, j);
    }
}

/* The job may end between two slices of its table. */
static bool program_next(struct table_query *q)
{
    const struct job *j = NULL;
    if (q->table.error.code != 0 || find(q, &j, &q->table.error) != 0) {
        return false;
    }
    if (q->walk.rest.size > 0) {
        content_piece(q);
    } else if (!part_next(q, j)) {
        part_begin(q, j, q->walk.part + 1);
    }
    return q->walk.part != PART_END;
}

const struct table_view view_program = {"program", program_begin, program_next, false};
