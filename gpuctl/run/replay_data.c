/* What the lines of a recording define: sessions, modules, programs, buffers, ends of jobs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "gpuctl/run/replay.h"

#define CREATED_MOST (UINT64_C(1) << 40) /* bytes of a buffer; the daemon has its own limits */
#define ORDER_LEAST  16u                 /* of a block: 64 KiB */
#define ORDER_MOST   40u

#define ENTER(table, member, item) HASH_ADD(hh, table, member, sizeof(item)->member, item)

int replay_no_memory(struct ctl_err *e)
{
    return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
}

uint64_t replay_number(const json_t *o, const char *name)
{
    struct ctl_err ignored;
    uint64_t value = 0;
    (void)dumped_number(o, name, UINT64_MAX, &value, &ignored); /* recording.c has checked it */
    return value;
}

const char *replay_text(const json_t *o, const char *name)
{
    const char *value = json_string_value(json_object_get(o, name));
    return value != NULL ? value : "";
}

/* ---- sessions -------------------------------------------------------------------------------- */

struct replay_session *replay_root(struct replay_session *s)
{
    while (s->root != s) {
        s->root = s->root->root;
        s = s->root;
    }
    return s;
}

struct replay_session *replay_session(struct replay *r, uint64_t id)
{
    struct replay_session *s = NULL;
    REPLAY_FIND(r->sessions, &id, s);
    if (s != NULL) {
        return s;
    }
    s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->id = id;
        s->root = s;
        ENTER(r->sessions, id, s);
        if (!HASH_ENTERED(s->hh)) {
            free(s);
            s = NULL;
        }
    }
    return s;
}

/* ---- arguments ------------------------------------------------------------------------------- */

int replay_args(const json_t *steps, const json_t *values, replay_visit visit, void *user,
                struct ctl_err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const json_t *args = NULL;
        rc = dumped_list(step, "args", GPUD_MAX_ARGS, &args, e);
        for (size_t k = 0; rc == 0 && k < json_array_size(args); k++) {
            rc = visit(user, json_array_get(args, k), step, (uint32_t)i, (uint32_t)k, e);
        }
    }
    for (size_t k = 0; rc == 0 && k < json_array_size(values); k++) {
        rc = visit(user, json_array_get(values, k), NULL, UINT32_MAX, (uint32_t)k, e);
    }
    return rc;
}

const json_t *replay_steps(const json_t *root, const struct replay_program *p)
{
    return json_object_get(p != NULL ? p->root : root, "steps");
}

/* ---- the first reading ----------------------------------------------------------------------- */

struct joiner {
    struct replay *r;
    struct replay_session *session;
};

/* Sessions that use a buffer of each other are one client. */
static int join(void *user, const json_t *arg, const json_t *step, uint32_t at, uint32_t index,
                struct ctl_err *e)
{
    struct joiner *n = user;
    struct replay_buffer *b = NULL;
    uint64_t handle = 0;
    (void)step;
    (void)at;
    (void)index;
    int rc = dumped_number(arg, "buffer", UINT64_MAX, &handle, e);
    if (rc != 0 || handle == 0) {
        return rc;
    }
    REPLAY_FIND(n->r->buffers, &handle, b);
    if (b == NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "no line before has buffer %#" PRIx64, handle);
    }
    if (b->session == NULL) {
        b->session = n->session;
    }
    replay_root(b->session)->root = replay_root(n->session);
    return 0;
}

static int learn_job(struct replay *r, const json_t *root, struct ctl_err *e)
{
    const json_t *job = json_object_get(root, "job");
    struct replay_program *p = NULL;
    struct joiner n = {.r = r, .session = replay_session(r, replay_number(job, "session"))};
    uint64_t handle = replay_number(root, "program");
    if (n.session == NULL) {
        return replay_no_memory(e);
    }
    if (handle != 0) {
        REPLAY_FIND(r->programs, &handle, p);
    }
    if (handle != 0 && p == NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "no line before has program %#" PRIx64, handle);
    }
    return replay_args(replay_steps(root, p), json_object_get(root, "values"), join, &n, e);
}

static int learn_buffer(struct replay *r, const json_t *root, struct ctl_err *e)
{
    struct replay_buffer *b = NULL;
    uint64_t handle = replay_number(root, "buffer");
    uint64_t session = replay_number(root, "session");
    REPLAY_FIND(r->buffers, &handle, b);
    if (b != NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "buffer %#" PRIx64 " has a line before", handle);
    }
    b = calloc(1, sizeof *b);
    if (b == NULL) {
        return replay_no_memory(e);
    }
    b->handle = handle;
    b->session = session != 0 ? replay_session(r, session) : NULL;
    b->unfit = (replay_number(root, "flags") & GPUD_BUFFER_VARIABLE) != 0;
    int rc = dumped_shape(root, false, &b->shape, e);
    if (rc == 0 && gpud_shape_bytes(b->shape) > CREATED_MOST) {
        rc = ctl_err_set(e, GPUD_ERR_LIMIT, "a buffer of %" PRIu64 " bytes",
                         gpud_shape_bytes(b->shape));
    }
    if (rc == 0) {
        ENTER(r->buffers, handle, b);
    }
    if (rc != 0 || !HASH_ENTERED(b->hh)) {
        free(b);
        return rc != 0 ? rc : replay_no_memory(e);
    }
    return 0;
}

static int learn_module(struct replay *r, json_t *root, struct ctl_err *e)
{
    struct replay_module *m = NULL;
    uint64_t handle = replay_number(root, "module");
    REPLAY_FIND(r->modules, &handle, m);
    if (m != NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "module %#" PRIx64 " has a line before", handle);
    }
    m = calloc(1, sizeof *m);
    if (m != NULL) {
        m->handle = handle;
        m->line = r->recording.line;
        ENTER(r->modules, handle, m);
    }
    if (m == NULL || !HASH_ENTERED(m->hh)) {
        free(m);
        return replay_no_memory(e);
    }
    m->root = json_incref(root);
    return 0;
}

static int learn_program(struct replay *r, json_t *root, struct ctl_err *e)
{
    struct replay_program *p = NULL;
    uint64_t handle = replay_number(root, "program");
    REPLAY_FIND(r->programs, &handle, p);
    if (p != NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "program %#" PRIx64 " has a line before", handle);
    }
    p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->handle = handle;
        p->line = r->recording.line;
        ENTER(r->programs, handle, p);
    }
    if (p == NULL || !HASH_ENTERED(p->hh)) {
        free(p);
        return replay_no_memory(e);
    }
    p->root = json_incref(root);
    return 0;
}

static int learn_results(struct replay_end *x, const json_t *root, struct ctl_err *e)
{
    const json_t *list = json_object_get(root, "results");
    size_t count = json_array_size(list);
    x->result = count > 0 ? calloc(count, sizeof *x->result) : NULL;
    if (count > 0 && x->result == NULL) {
        return replay_no_memory(e);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *o = json_array_get(list, i);
        struct replay_result *to = &x->result[x->result_count++];
        to->arena = replay_number(o, "arena");
        to->offset = replay_number(o, "offset");
        to->step = (uint32_t)replay_number(o, "step");
        to->arg = (uint32_t)replay_number(o, "arg");
        (void)snprintf(to->hash, sizeof to->hash, "%s", replay_text(o, "hash"));
    }
    return 0;
}

static void end_free(struct replay_end *x)
{
    free(x->result);
    free(x);
}

static int learn_end(struct replay *r, const json_t *root, struct ctl_err *e)
{
    struct replay_end *x = NULL;
    uint64_t job = replay_number(root, "job");
    REPLAY_FIND(r->ends, &job, x);
    if (x != NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "job %" PRIu64 " has an end before", job);
    }
    x = calloc(1, sizeof *x);
    if (x == NULL) {
        return replay_no_memory(e);
    }
    x->job = job;
    x->began = json_is_true(json_object_get(root, "began"));
    x->queued_ns = replay_number(root, "queued_ns");
    x->executed_ns = replay_number(root, "executed_ns");
    (void)snprintf(x->state, sizeof x->state, "%s", replay_text(root, "state"));
    (void)snprintf(x->error, sizeof x->error, "%s", replay_text(root, "error"));
    int rc = learn_results(x, root, e);
    if (rc == 0) {
        ENTER(r->ends, job, x);
    }
    if (rc != 0 || !HASH_ENTERED(x->hh)) {
        end_free(x);
        return rc != 0 ? rc : replay_no_memory(e);
    }
    return 0;
}

int replay_learn(struct replay *r, enum recording_line line, json_t *root, struct ctl_err *e)
{
    switch (line) {
    case LINE_MODULE:
        return learn_module(r, root, e);
    case LINE_PROGRAM:
        return learn_program(r, root, e);
    case LINE_BUFFER:
        return learn_buffer(r, root, e);
    case LINE_JOB:
        return learn_job(r, root, e);
    case LINE_END:
        return learn_end(r, root, e);
    case LINE_GAP:
        r->count.lost += replay_number(root, "lost");
        return 0;
    default:
        return 0;
    }
}

/* ---- clients --------------------------------------------------------------------------------- */

static unsigned order_of(uint64_t bytes)
{
    unsigned order = ORDER_LEAST;
    while (order < ORDER_MOST && (UINT64_C(1) << order) < bytes) {
        order++;
    }
    return order;
}

static int block_new(struct replay_client *c, unsigned order, struct replay_block **ret_block,
                     struct ctl_err *e)
{
    struct replay_block *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return replay_no_memory(e);
    }
    b->order = order;
    int rc = gpud_host_alloc(c->client, (size_t)1 << order, &b->data);
    if (rc == 0) {
        HASH_ADD_PTR(c->blocks, data, b);
    }
    if (rc != 0 || !HASH_ENTERED(b->hh)) {
        free(b);
        return rc == 0 ? replay_no_memory(e)
                       : ctl_err_lib(e, rc, "%" PRIu64 " bytes of memory that the daemon shares",
                                     UINT64_C(1) << order);
    }
    *ret_block = b;
    return 0;
}

/* Where no more memory can be had, that of a job that ends serves. */
static int take(struct dumped_source *source, uint64_t bytes, void **ret_data, struct ctl_err *e)
{
    struct replay_client *c = (struct replay_client *)source;
    unsigned order = order_of(bytes);
    struct replay_block *b = c->spare[order];
    int rc = b == NULL ? block_new(c, order, &b, e) : 0;
    while (rc == GPUD_ERR_LIMIT && c->flying > 0 && replay_wait(c, e) == 0) {
        b = c->spare[order];
        rc = b == NULL ? block_new(c, order, &b, e) : 0;
    }
    if (rc != 0) {
        return rc;
    }
    if (b == c->spare[order]) {
        c->spare[order] = b->next;
    }
    b->next = NULL;
    *ret_data = b->data;
    return 0;
}

void replay_give_back(struct replay_client *c, struct dumped *d)
{
    if (d == NULL) {
        return;
    }
    for (uint32_t i = 0; i < d->memory_count; i++) {
        struct replay_block *b = NULL;
        if (d->memory[i].host) {
            HASH_FIND_PTR(c->blocks, &d->memory[i].data, b);
        }
        if (b != NULL) {
            b->next = c->spare[b->order];
            c->spare[b->order] = b;
        }
    }
    dumped_release(d);
    json_decref(d->root);
    free(c->idle);
    c->idle = d;
}

static int client_open(struct replay *r, struct replay_client *c, struct ctl_err *e)
{
    const gpud_options o = {.size = sizeof o, .name = "gpuctl replay"};
    gpud_limits_desc limits = {.size = sizeof limits};
    int rc = gpud_open(r->ctl->url, &o, &c->client);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "session %u of the replay", r->clients + 1);
    }
    c->replay = r;
    c->source = (struct dumped_source){.take = take, .seed = r->options.seed};
    rc = gpud_limits(c->client, &limits);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "limits");
    }
    c->most = limits.max_in_flight > 16 ? limits.max_in_flight - 8 : 8;
    c->inline_most = limits.max_inline < GPUD_MAX_INLINE ? limits.max_inline : GPUD_MAX_INLINE;
    c->host_most = limits.max_arena > limits.max_inline ? limits.max_arena : limits.max_inline;
    return 0;
}

/* A struct of 100 KiB is not cleared for each job: entries behind the counts are never read. */
struct dumped *replay_dumped(struct replay_client *c)
{
    static const struct run_options none = {.job = NULL};
    struct dumped *d = c->idle;
    if (d != NULL) {
        c->idle = NULL;
    } else {
        d = calloc(1, sizeof *d);
    }
    if (d != NULL) {
        d->root = NULL;
        d->run = NULL;
        d->program = NULL;
        d->module_count = d->buffer_count = d->temp_count = d->memory_count = 0;
        d->param_count = d->own_params = d->zeros = 0;
        d->built = false;
        d->client = c->client;
        d->source = &c->source;
        d->options = &none;
        d->host_most = c->host_most;
        d->inline_most = c->inline_most;
    }
    return d;
}

static int load_module(struct replay *r, struct replay_module *m, struct replay_client *c,
                       struct ctl_err *e)
{
    struct dumped *d = replay_dumped(c);
    if (d == NULL) {
        return replay_no_memory(e);
    }
    int rc = dumped_load_module(d, m->root, e);
    if (rc == 0) {
        m->module[c - r->client] = d->module[0].module;
    } else {
        (void)ctl_err_wrap(e, "%s: line %" PRIu64 ": module %s", r->recording.path, m->line,
                           replay_text(m->root, "name"));
    }
    free(d);
    return rc;
}

static int load_modules(struct replay *r, struct ctl_err *e)
{
    int rc = 0;
    for (struct replay_module *m = r->modules; rc == 0 && m != NULL; m = m->hh.next) {
        for (uint32_t i = 0; rc == 0 && i < r->clients; i++) {
            rc = load_module(r, m, &r->client[i], e);
        }
    }
    return rc;
}

int replay_open(struct replay *r, struct ctl_err *e)
{
    gpud_device_desc device = {.size = sizeof device};
    uint32_t next = 0;
    int rc = 0;
    for (struct replay_session *s = r->sessions; rc == 0 && s != NULL; s = s->hh.next) {
        if (s->root != s) {
            continue;
        }
        s->client = &r->client[next % REPLAY_CLIENTS];
        if (next++ < REPLAY_CLIENTS) {
            rc = client_open(r, s->client, e);
            r->clients++; /* also if it is open without its limits */
        }
    }
    if (rc != 0 || r->clients == 0) {
        return rc;
    }
    while (gpud_device_info(r->client[0].client, r->devices, &device) == 0) {
        r->devices++;
    }
    if (r->devices == 0) {
        return ctl_err_set(e, GPUD_ERR_NO_DEVICE, "the daemon has no device");
    }
    return load_modules(r, e);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static int fill_buffer(struct replay_buffer *b, struct ctl_err *e)
{
    uint64_t bytes = gpud_shape_bytes(b->shape);
    void *data = malloc(bytes > 0 ? bytes : 1);
    if (data == NULL) {
        return replay_no_memory(e);
    }
    dumped_invent(&b->client->source.seed, b->shape, data);
    int rc = gpud_write(b->client->client, b->buffer, GPUD_NONE, 0, GPUD_REST, data, NULL);
    free(data);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "write");
}

int replay_make(struct replay *r, const json_t *root, struct ctl_err *e)
{
    struct replay_buffer *b = NULL;
    uint64_t handle = replay_number(root, "buffer");
    const char *content = replay_text(root, "content");
    uint64_t on =
        r->options.device != 0 ? r->options.device - 1 : replay_number(root, "device") % r->devices;
    REPLAY_FIND(r->buffers, &handle, b);
    if (b == NULL || b->session == NULL || b->unfit) {
        return 0; /* no job that runs uses it */
    }
    struct replay_client *c = replay_root(b->session)->client;
    bool zero = strcmp(content, "zero") == 0;
    uint32_t kept = GPUD_BUFFER_STAY | GPUD_BUFFER_MANAGED;
    uint32_t flags =
        ((uint32_t)replay_number(root, "flags") & kept) | (zero ? GPUD_BUFFER_ZERO : 0);
    int rc = gpud_buffer_create_on(c->client, on, b->shape, flags, "gpuctl replay", &b->buffer);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "buffer %#" PRIx64 " of %" PRIu64 " bytes", handle,
                           gpud_shape_bytes(b->shape));
    }
    b->client = c;
    b->known = zero || strcmp(content, "none") == 0;
    return b->known ? 0 : fill_buffer(b, e);
}

int replay_drop(struct replay *r, const json_t *root, struct ctl_err *e)
{
    struct replay_buffer *b = NULL;
    uint64_t handle = replay_number(root, "buffer");
    REPLAY_FIND(r->buffers, &handle, b);
    if (b == NULL || b->buffer.id == 0) {
        return 0;
    }
    int rc = gpud_buffer_free(b->client->client, b->buffer);
    b->buffer.id = 0;
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "buffer %#" PRIx64, handle);
}

/* ---- the end --------------------------------------------------------------------------------- */

#define FREE_ALL(type, table, release)                                                             \
    do {                                                                                           \
        struct type *item;                                                                         \
        struct type *next;                                                                         \
        HASH_ITER(hh, table, item, next)                                                           \
        {                                                                                          \
            HASH_DEL(table, item);                                                                 \
            release(item);                                                                         \
        }                                                                                          \
    } while (0)

static void module_free(struct replay_module *m)
{
    json_decref(m->root);
    free(m);
}

static void program_free(struct replay_program *p)
{
    if (p->built != NULL) {
        dumped_release(p->built);
        json_decref(p->built->root);
        free(p->built);
    }
    json_decref(p->root);
    free(p);
}

/* Jobs have ended: their callbacks ran when the clients were closed, at the latest. */
void replay_forget(struct replay *r)
{
    for (uint32_t i = 0; i < r->clients; i++) {
        gpud_close(r->client[i].client);
        r->client[i].client = NULL;
        free(r->client[i].idle);
        r->client[i].idle = NULL;
    }
    FREE_ALL(replay_program, r->programs, program_free);
    for (uint32_t i = 0; i < r->clients; i++) {
        FREE_ALL(replay_block, r->client[i].blocks, free);
    }
    FREE_ALL(replay_session, r->sessions, free);
    FREE_ALL(replay_module, r->modules, module_free);
    FREE_ALL(replay_buffer, r->buffers, free);
    FREE_ALL(replay_end, r->ends, end_free);
    free(r->recorded.ns);
    free(r->replayed.ns);
    recording_close(&r->recording);
}
