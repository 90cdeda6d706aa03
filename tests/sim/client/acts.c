/* What users do with buffers, modules and queries. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client/libsim.h"

#define ELEMENT 4u

/* ---- handles --------------------------------------------------------------------------------- */

void buffer_forget(struct user *u, unsigned index)
{
    struct sim_client *c = u->c;
    unsigned last = --c->buffers;
    c->buffer[index] = c->buffer[last];
    u->handle[index] = u->handle[last];
}

/* Returns the index of the buffer, or their number. */
static unsigned index_of(const struct sim_client *c, const struct sim_buffer *b)
{
    unsigned i = 0;
    while (i < c->buffers && c->buffer[i] != b) {
        i++;
    }
    return i;
}

void client_forget(struct sim_client *c, struct sim_buffer *b)
{
    unsigned i = index_of(c, b);
    if (i < c->buffers) {
        buffer_forget(user_of(c), i);
    }
}

static void buffer_keep(struct user *u, struct sim_buffer *b, gpud_buffer handle)
{
    struct sim_client *c = u->c;
    for (unsigned i = 0; i < c->buffers; i++) {
        if (u->handle[i].id == handle.id) {
            sim_fail(u->s, "handle: user %u gets handle %#" PRIx64 " twice", u->index, handle.id);
        }
    }
    if (b != NULL && index_of(c, b) == c->buffers && c->buffers < SIM_HANDLES) {
        u->handle[c->buffers] = handle;
        c->buffer[c->buffers++] = b;
    } else {
        (void)CALL(u, gpud_buffer_free, u->lib, handle);
    }
}

void buffer_gone(struct user *u, struct sim_buffer *b)
{
    rules_lost(u->s, b);
    b->known_lost = true;
    client_forget(u->c, b);
}

static unsigned some_buffer(struct user *u, struct chance *r)
{
    return (unsigned)chance_below(r, u->c->buffers);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void create(struct user *u, struct chance *r)
{
    struct sim *s = u->s;
    char label[16];
    gpud_buffer handle;
    (void)snprintf(label, sizeof label, "b%u", s->buffers);
    struct sim_buffer *b = model_buffer(s);
    bool large = chance_percent(r, 5);
    uint64_t elements = large ? 1 + chance_below(r, s->p.memory_kib * 300)
                              : 1 + chance_below(r, SIM_CONTENT / ELEMENT);
    b->bytes = elements * ELEMENT;
    b->zero = chance_percent(r, 60);
    b->maker = u->c;
    gpud_shape shape = gpud_shape_1d(GPUD_F32, elements);
    uint32_t flags = b->zero ? GPUD_BUFFER_ZERO : 0;
    uint64_t device = chance_below(r, s->p.devices);
    int rc = chance_percent(r, 10 + (unsigned)s->p.spread)
                 ? CALL(u, gpud_buffer_create_on, u->lib, device, shape, flags, label, &handle)
                 : CALL(u, gpud_buffer_create, u->lib, shape, flags, label, &handle);
    if (rc == 0 && b->handle == 0) {
        sim_fail(s, "create: user %u gets a buffer that the front did not make", u->index);
    }
    if (rc == 0) {
        buffer_keep(u, b, handle);
    } else {
        b->freed = true; /* if it exists, libgpud frees it */
    }
}

static void destroy(struct user *u, struct chance *r)
{
    unsigned i = some_buffer(u, r);
    struct sim_buffer *b = u->c->buffer[i];
    gpud_buffer handle = u->handle[i];
    bool mine = b->maker == u->c;
    buffer_forget(u, i);
    int rc = CALL(u, gpud_buffer_free, u->lib, handle);
    b->freed = b->freed || mine;
    if (rc != 0 && !u->c->starved) {
        sim_fail(u->s, "free: user %u cannot free buffer %#" PRIx64 ": %s", u->index, b->handle,
                 gpud_err_name(rc));
    }
    if (rc == 0 && CALL(u, gpud_buffer_free, u->lib, handle) != GPUD_ERR_STALE_HANDLE) {
        sim_fail(u->s, "free: user %u frees buffer %#" PRIx64 " twice", u->index, b->handle);
    }
}

/* An error of a call that names the buffer. */
static void learn(struct user *u, struct sim_buffer *b, int rc)
{
    if (rc == GPUD_ERR_BUFFER_LOST) {
        buffer_gone(u, b);
    }
}

static void seal(struct user *u, struct chance *r)
{
    unsigned i = some_buffer(u, r);
    struct sim_buffer *b = u->c->buffer[i];
    b->sealing = true;
    int rc = CALL(u, gpud_buffer_seal, u->lib, u->handle[i]);
    if (rc == 0) {
        b->sealed = true;
        b->sealed_era = u->s->era;
    }
    learn(u, b, rc);
}

static void describe(struct user *u, struct chance *r)
{
    unsigned i = some_buffer(u, r);
    struct sim_buffer *b = u->c->buffer[i];
    gpud_buffer_desc d = {.size = sizeof d};
    int rc = CALL(u, gpud_buffer_info, u->lib, u->handle[i], &d);
    if (rc == 0 && gpud_shape_bytes(d.shape) != b->bytes) {
        sim_fail(u->s, "info: buffer %#" PRIx64 " has %" PRIu64 " bytes, not %" PRIu64, b->handle,
                 gpud_shape_bytes(d.shape), b->bytes);
    }
    learn(u, b, rc);
}

static void publish(struct user *u, struct chance *r)
{
    unsigned i = some_buffer(u, r);
    struct sim_buffer *b = u->c->buffer[i];
    char name[16];
    (void)snprintf(name, sizeof name, "name%u", (unsigned)chance_below(r, 4));
    int rc = CALL(u, gpud_buffer_publish, u->lib, u->handle[i], name,
                  chance_percent(r, 70) ? GPUD_INOUT : GPUD_IN, chance_below(r, 3) * NS_PER_S);
    learn(u, b, rc);
}

/* The label says which buffer it is. */
static void open_named(struct user *u, struct chance *r)
{
    struct sim *s = u->s;
    char name[16];
    gpud_buffer handle;
    gpud_buffer_desc d = {.size = sizeof d};
    (void)snprintf(name, sizeof name, "name%u", (unsigned)chance_below(r, 4));
    if (CALL(u, gpud_buffer_open, u->lib, name, &handle) != 0) {
        return;
    }
    int rc = CALL(u, gpud_buffer_info, u->lib, handle, &d);
    unsigned number = d.label[0] == 'b' ? (unsigned)strtoul(d.label + 1, NULL, 10) : s->buffers;
    bool known = rc == 0 && number < s->buffers;
    buffer_keep(u, known ? s->buffer[number] : NULL, handle);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void find_axpy(struct user *u)
{
    gpud_kernel k;
    if (CALL(u, gpud_kernel_find, u->lib, "axpy", &k) == 0) {
        u->axpy = k;
    }
}

static void unload(struct user *u, struct chance *r)
{
    unsigned k = (unsigned)chance_below(r, u->modules);
    int rc = CALL(u, gpud_module_unload, u->lib, u->module[k]);
    if (rc != 0 && !u->c->starved) {
        sim_fail(u->s, "unload: user %u cannot unload a module: %s", u->index, gpud_err_name(rc));
    }
    unsigned last = --u->modules;
    u->module[k] = u->module[last];
    u->kernel[k] = u->kernel[last];
    u->bad[k] = u->bad[last];
}

static void load(struct user *u, bool bad, struct chance *r)
{
    char source[64];
    gpud_module m;
    gpud_kernel k;
    const gpud_module_options options = {.size = sizeof options, .name = "m", .file = "m.gk"};
    unsigned number = (unsigned)chance_below(r, bad ? 4 : 1000);
    (void)snprintf(source, sizeof source, "source %u %s", number, bad ? "of trouble" : "");
    if (u->modules == KERNELS_MAX) {
        unload(u, r);
        return;
    }
    if (CALL(u, gpud_module_load, u->lib, GPUD_LANG_DIALECT, source, strlen(source), &options,
             &m) != 0) {
        return;
    }
    if (CALL(u, gpud_module_kernel, u->lib, m, "twist", &k) != 0) {
        (void)CALL(u, gpud_module_unload, u->lib, m);
        return;
    }
    u->module[u->modules] = m;
    u->kernel[u->modules] = k;
    u->bad[u->modules++] = bad ? 1 + number : 0;
}

/* ---- queries --------------------------------------------------------------------------------- */

static void inquire(struct user *u, struct chance *r)
{
    static const char *const what[] = {"devices",  "pool",    "kernels", "jobs",
                                       "sessions", "tenants", "config",  "timeline"};
    gpud_table *t = NULL;
    char text[256];
    gpud_limits_desc limits = {.size = sizeof limits};
    unsigned n = (unsigned)chance_below(r, 100);
    if (n < 30) {
        job_cancel_some(u, r);
    } else if (n < 45 && CALL(u, gpud_query, u->lib, what[chance_below(r, 8)], NULL, &t) == 0) {
        gpud_table_free(t);
    } else if (n < 60) {
        (void)CALL(u, gpud_ping, u->lib, NULL);
    } else if (n < 75) {
        (void)CALL(u, gpud_explain, u->lib, 1 + chance_below(r, 100), text, sizeof text);
    } else if (n < 85) {
        (void)CALL(u, gpud_limits, u->lib, &limits);
    } else if (n < 95) {
        job_flush(u, chance_spread(r, NS_PER_MS, NS_PER_S));
    } else if (n >= 95 && CALL(u, gpud_pool_take, u->lib, NULL, &t) == 0) {
        gpud_table_free(t);
    }
}

static void control(struct user *u, struct chance *r)
{
    static const char *const what[] = {"drain",  "resume",    "resume",
                                       "reload", "pool-trim", "session-kill"};
    struct sim *s = u->s;
    char value[24] = "";
    unsigned n = (unsigned)chance_below(r, sizeof what / sizeof what[0]);
    if (n == 5) {
        s->killed_session = true;
        (void)snprintf(value, sizeof value, "%u", (unsigned)chance_below(r, s->clients + 4));
    }
    (void)CALL(u, gpud_control, u->lib, what[n], value);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void ask(struct user *u, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 100);
    if (n < 12 || (u->c->buffers == 0 && n < 60)) {
        create(u, r);
    } else if (n < 25 && u->c->buffers > 0) {
        static void (*const does[])(struct user * u, struct chance * r) = {
            destroy, destroy, seal, describe, publish, open_named};
        does[chance_below(r, sizeof does / sizeof does[0])](u, r);
    } else if (n < 28) {
        load(u, u->s->p.faults > 0 && chance_percent(r, 25), r);
    } else if (n < 30 && u->modules > 0) {
        unload(u, r);
    } else if (n < 33) {
        find_axpy(u);
    } else if (n < 45) {
        job_wait_some(u, r);
    } else {
        job_something(u, r);
    }
}

static void crowd(struct user *u, struct chance *r)
{
    unsigned count = (unsigned)chance_spread(r, 8, 128);
    for (unsigned i = 0; i < count && u->lib != NULL && !u->dying; i++) {
        job_something(u, r);
    }
}

static void act_of_course(struct user *u, const struct act *a)
{
    struct chance r = chance_of(a->r, 5);
    switch (a->event) {
    case COURSE_ASK:
        ask(u, &r);
        break;
    case COURSE_INQUIRE:
        inquire(u, &r);
        break;
    case COURSE_CROWD:
        crowd(u, &r);
        break;
    case COURSE_GUILT:
        if (u->modules > 0 && u->c->buffers > 0) {
            job_guilty(u, &r);
        } else {
            load(u, true, &r);
        }
        break;
    case COURSE_CONTROL:
        control(u, &r);
        break;
    default:
        break;
    }
}

void act_do(struct user *u, const struct act *a)
{
    switch (a->kind) {
    case ACT_EVENT:
        act_of_course(u, a);
        break;
    case ACT_LOOK:
        job_look(u, a->buffer);
        break;
    case ACT_RESUME:
        (void)CALL(u, gpud_control, u->lib, "resume", NULL);
        break;
    case ACT_CANCEL:
        job_cancel_it(u, a->job);
        break;
    default:
        break;
    }
}

void acts_forget(struct user *u)
{
    struct sim_client *c = u->c;
    for (unsigned i = 0; i < c->buffers; i++) {
        c->buffer[i]->freed = c->buffer[i]->freed || c->buffer[i]->maker == c;
    }
    c->buffers = 0;
    u->modules = u->losses = 0;
    u->axpy = (gpud_kernel){0};
    u->acts = 0;
}

/* ---- what became of buffers ------------------------------------------------------------------ */

static bool names_one(const struct sim_job *j, bool (*is)(const struct sim_buffer *b))
{
    for (unsigned i = 0; i < j->steps; i++) {
        const struct sim_buffer *from = j->step[i].from;
        if (is(j->step[i].to) || (from != NULL && is(from))) {
            return true;
        }
    }
    return false;
}

static bool is_freed(const struct sim_buffer *b)
{
    return b->freed;
}

/* Or it ended with a session. */
static bool is_gone(const struct sim_buffer *b)
{
    return b->freed || b->known_lost || b->lied;
}

bool job_names_freed(const struct sim_job *j)
{
    return names_one(j, is_freed);
}

bool job_names_gone(const struct sim_job *j)
{
    return names_one(j, is_gone);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Once for each handle, and only for handles that the user has or had. */
static void take_loss(struct user *u, uint64_t id)
{
    unsigned i = 0;
    for (unsigned k = 0; k < u->losses && k < LOSSES_MAX; k++) {
        if (u->lost[k] == id) {
            sim_fail(u->s, "event: user %u gets two events that its buffer %#" PRIx64 " is lost",
                     u->index, id);
        }
    }
    u->lost[u->losses++ % LOSSES_MAX] = id;
    while (i < u->c->buffers && u->handle[i].id != id) {
        i++;
    }
    if (i < u->c->buffers) {
        buffer_gone(u, u->c->buffer[i]);
    }
}

void act_event(gpud_client *lib, const gpud_event *event, void *user)
{
    struct user *u = user;
    struct sim *s = u->s;
    const char *call = callback_begin(u);
    sim_log(s, "user %u: event %d of buffer %#" PRIx64 " %s", u->index, event->kind,
            event->buffer.id, event->text);
    if (lib != u->lib) {
        sim_fail(s, "event: user %u gets an event of another client", u->index);
    }
    if (event->kind == GPUD_EVENT_BUFFER_LOST && event->buffer.id != 0) {
        take_loss(u, event->buffer.id);
    }
    callback_end(u, call);
}
