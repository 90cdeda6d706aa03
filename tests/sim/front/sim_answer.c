/* What answers mean to clients: handles, results, events. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_roles.h"

static void must_decode(struct sim *s, const struct schema *schema, struct bytes message, void *msg)
{
    struct err e = ERR_INIT;
    if (proto_decode(schema, message, msg, &e) != 0) {
        sim_fail(s, "answer: %s", e.text);
    }
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void go_on(struct sim *s, struct sim_client *c)
{
    c->state = CLIENT_ON;
    for (unsigned i = 0; i < c->open_count; i++) {
        client_resend(s, c->open[i]);
    }
    ask_wait(s, c);
}

/* Handles of modules and the like are void with another front; buffers may live on. */
/* The client has acknowledged results of jobs whose ids it never learned, and sends these jobs
 * again. The former front has forgotten them, so they may run twice. */
static void doubt_strays(struct sim_client *c)
{
    for (unsigned i = 0; i < c->open_count && c->strays != NULL; i++) {
        struct sim_job *j = c->open[i]->job;
        if (j != NULL && j->async) {
            j->lied = j->vague = true;
            model_doubt(j);
        }
    }
    strays_drop(c);
}

static void other_front(struct sim_client *c, bool known)
{
    c->programs = c->modules = c->arenas = c->kernels = 0;
    c->axpy = c->bulk = c->bulk_module = 0;
    c->events = 0;
    doubt_strays(c);
    client_reopen(c);
    for (unsigned i = 0; !known && i < c->buffers; i++) {
        c->buffer[i]->known_lost = true;
    }
    c->buffers = known ? c->buffers : 0;
}

/* May a front have ended a session that it knew? As clients conclude it. Its jobs in flight ran on,
 * and buffers that it had published are there, so a job that is sent again runs again. */
static bool may_be_over(const struct sim *s, const struct sim_client *c,
                        const struct msg_welcome *m)
{
    return m->up_ns >= m->linger_ns || s->now_ns >= c->left_ns + m->linger_ns;
}

static void forget_jobs(const struct sim_client *c)
{
    for (unsigned i = 0; i < c->open_count; i++) {
        struct sim_job *j = c->open[i]->job;
        if (j != NULL) {
            j->forgotten = true;
            model_doubt(j);
        }
    }
}

/* The socket decides, or the token, or a section, or the uid. */
static void check_tenant(struct sim *s, const struct sim_client *c, struct bytes name)
{
    char wanted[PROTO_NAME_MAX + 1];
    roles_tenant(s, c, wanted);
    if (name.size != strlen(wanted) || memcmp(name.data, wanted, name.size) != 0) {
        sim_fail(s, "tenant: client %u gets a session of %.*s instead of %s", c->index,
                 (int)name.size, (const char *)name.data, wanted);
    }
}

static void take_welcome(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct sim_client *c = q->client;
    static const uint8_t none[PROTO_CLIENT_ID_BYTES];
    struct msg_welcome m;
    must_decode(s, &schema_msg_welcome, message, &m);
    if (roles_barred(s, c)) {
        sim_fail(s, "stranger: client %u, uid %u, group %u, may not connect, and gets a session",
                 c->index, c->uid, c->gid);
    }
    if (far_welcome(s, q)) {
        return;
    }
    check_tenant(s, c, m.tenant);
    bool first = memcmp(c->daemon_id, none, sizeof none) == 0;
    bool same = memcmp(c->daemon_id, m.daemon_id.data, sizeof none) == 0;
    memcpy(c->daemon_id, m.daemon_id.data, sizeof none);
    bool known = m.resumed != 0 && m.session == c->session; /* else a lost WELCOME named it */
    c->session = m.session;
    if (first || (same && known)) {
        go_on(s, c);
    } else if (same) {
        if (client_remembered(s, c) && !c->said_bye) {
            sim_fail(s, "session: client %u is back in time, and its session is gone", c->index);
        }
        client_over(s, c);
    } else {
        rules_resumed(s, c, m.resumed != 0);
        rules_remembered(s, c);
        other_front(c, m.resumed != 0);
        if (m.resumed == 0 && may_be_over(s, c, &m)) {
            forget_jobs(c);
        }
        go_on(s, c);
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void take_outputs(struct sim_job *j, const struct proto_result *r)
{
    struct proto_iter it = proto_iter_of(r->outputs);
    struct proto_output o;
    while (proto_list_next(&it, &schema_output, &o)) {
        struct sim_step *t = o.step < j->steps ? &j->step[o.step] : NULL;
        if (t != NULL && (t->op == OP_READ || t->inlined) && o.data.size == t->count * 4) {
            memcpy(t->got, o.data.data, o.data.size);
            t->answered = true;
        }
    }
}

static void forget_job(struct sim_client *c, const struct sim_job *j)
{
    for (unsigned i = 0; i < c->jobs; i++) {
        if (c->job[i] == j) {
            c->job[i--] = c->job[--c->jobs];
        }
    }
}

/* A former front may have run it, too: what it wrote then is not certain. */
static void doubt_former(struct sim *s, const struct sim_job *j)
{
    if (j->code != 0 && j->request->sent_era != s->era) {
        model_doubt(j);
    }
}

static void take_result(struct sim *s, struct sim_job *j, const struct proto_result *r)
{
    static const char over[] = "turn_overrun_ms";
    if (j->outcome == OUTCOME_KNOWN) {
        if (j->id == r->job && j->code != (int)r->code) {
            sim_fail(s, "result: job %" PRIu64 " of client %u ends twice: %s, and %s", r->job,
                     j->client->index, err_name(j->code), err_name((int)r->code));
        }
        return;
    }
    j->outcome = OUTCOME_KNOWN;
    j->id = r->job;
    j->id_era = s->era;
    j->code = (int)r->code;
    j->effects = (unsigned)r->effects;
    j->replays = (unsigned)r->replays;
    j->overran = r->code == ERR_TIME_LIMIT &&
                 memmem(r->text.data, r->text.size, over, sizeof over - 1) != NULL;
    sim_log(s, "client %u: job %" PRIu64 " (request %" PRIu64 ") ends: %s, effects %u %.*s",
            j->client->index, j->id, j->request->seq, err_name(j->code), j->effects,
            (int)r->text.size, (const char *)r->text.data);
    take_outputs(j, r);
    doubt_former(s, j);
    forget_job(j->client, j);
    rules_result(s, j);
    fair_result(s, j);
    feed_result(s, j);
}

static void take_results(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct msg_results m;
    struct proto_result r;
    must_decode(s, &schema_msg_results, message, &m);
    struct proto_iter it = proto_iter_of(m.results);
    if (q->job == NULL || !proto_list_next(&it, &schema_result, &r)) {
        sim_fail(s, "answer: a result for no job");
    }
    take_result(s, q->job, &r);
}

static struct sim_job *job_of(struct sim *s, const struct sim_client *c, uint64_t id)
{
    for (unsigned i = 0; i < c->jobs; i++) {
        if (c->job[i]->id == id && c->job[i]->id_era == s->era) {
            return c->job[i];
        }
    }
    return NULL;
}

static bool had_result(const struct sim *s, const struct sim_client *c, uint64_t id)
{
    for (unsigned i = s->jobs; i > 0; i--) {
        const struct sim_job *j = s->job[i - 1];
        if (j->client == c && j->id == id && j->id_era == s->era && j->outcome == OUTCOME_KNOWN) {
            return true;
        }
    }
    return false;
}

static void take_notice(struct sim *s, struct sim_client *c, const struct proto_notice *n)
{
    struct sim_buffer *b = n->kind == NOTICE_BUFFER_LOST ? model_find(s, n->handle) : NULL;
    for (unsigned i = 0; i < c->open_count && b == NULL && n->kind == NOTICE_BUFFER_LOST; i++) {
        unsigned kind = c->open[i]->kind;
        if (kind == MSG_KIND_BUFFER_CREATE || kind == MSG_KIND_BUFFER_OPEN) {
            c->early[c->early_count++ % 64] = n->handle; /* its handle is on its way */
            return;
        }
    }
    if (n->kind == NOTICE_BUFFER_LOST && b == NULL && !memory_failed()) {
        sim_fail(s, "notice: client %u learns that buffer %#" PRIx64 " is lost, which never was",
                 c->index, n->handle);
    }
    if (b != NULL) {
        rules_lost(s, b);
        b->known_lost = true;
        client_forget(c, b);
    }
}

/* Results may come before the ACCEPTED that names their job: the client keeps them until then. */
struct sim_stray {
    struct sim_stray *next;
    size_t size;
    uint8_t data[]; /* EVENTS */
};

void strays_drop(struct sim_client *c)
{
    while (c->strays != NULL) {
        struct sim_stray *x = c->strays;
        c->strays = x->next;
        free(x);
    }
}

static bool awaits_id(const struct sim_client *c)
{
    for (unsigned i = 0; i < c->open_count; i++) {
        if (c->open[i]->job != NULL && c->open[i]->job->async) {
            return true;
        }
    }
    return false;
}

static void keep_stray(struct sim_client *c, struct bytes message)
{
    struct sim_stray *x = malloc(sizeof *x + message.size);
    x->next = c->strays;
    x->size = message.size;
    memcpy(x->data, message.data, message.size);
    c->strays = x;
}

static void unknown_result(struct sim *s, const struct sim_client *c, uint64_t job)
{
    if (s->era == 1 && !memory_failed()) {
        sim_fail(s, "events: client %u gets %s result of job %" PRIu64, c->index,
                 had_result(s, c, job) ? "a second" : "an unknown", job);
    }
}

/* Returns whether the jobs of all results are known now. */
static bool take_stray(struct sim *s, struct sim_client *c, const struct sim_stray *x)
{
    struct msg_events m;
    struct proto_result r;
    bool all = true;
    must_decode(s, &schema_msg_events, bytes_of(x->data, x->size), &m);
    struct proto_iter it = proto_iter_of(m.results);
    while (proto_list_next(&it, &schema_result, &r)) {
        struct sim_job *j = job_of(s, c, r.job);
        if (j != NULL) {
            take_result(s, j, &r);
        } else if (!had_result(s, c, r.job) && awaits_id(c)) {
            all = false;
        } else if (!had_result(s, c, r.job)) {
            unknown_result(s, c, r.job);
        }
    }
    return all;
}

/* A job got its id, or its request was refused. */
static void look_at_strays(struct sim *s, struct sim_client *c)
{
    for (struct sim_stray **at = &c->strays; *at != NULL;) {
        struct sim_stray *x = *at;
        if (take_stray(s, c, x)) {
            *at = x->next;
            free(x);
        } else {
            at = &x->next;
        }
    }
}

/* Returns whether one of the results is of a job that may get its id later. */
static bool take_event_results(struct sim *s, struct sim_client *c, const struct msg_events *m)
{
    struct proto_iter it = proto_iter_of(m->results);
    struct proto_result r;
    bool stray = false;
    while (proto_list_next(&it, &schema_result, &r)) {
        struct sim_job *j = job_of(s, c, r.job);
        if (j != NULL) {
            take_result(s, j, &r);
        } else if (awaits_id(c)) {
            stray = true;
        } else {
            unknown_result(s, c, r.job);
        }
    }
    return stray;
}

static void take_events(struct sim *s, struct sim_client *c, struct bytes message)
{
    struct msg_events m;
    struct proto_notice n;
    must_decode(s, &schema_msg_events, message, &m);
    c->waits = false;
    if (m.number == c->events + 1) {
        c->events++;
        if (take_event_results(s, c, &m)) {
            keep_stray(c, message);
        }
        struct proto_iter it = proto_iter_of(m.notices);
        while (proto_list_next(&it, &schema_notice, &n)) {
            take_notice(s, c, &n);
        }
    } else if (m.number != c->events && m.number != 0) {
        sim_fail(s, "events: client %u gets number %" PRIu64 " after %" PRIu64, c->index, m.number,
                 c->events);
    }
    ask_wait(s, c);
}

static void take_accepted(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct msg_accepted m;
    must_decode(s, &schema_msg_accepted, message, &m);
    if (q->kind == MSG_KIND_SUBMIT && q->job != NULL) {
        if (!q->job->async) {
            sim_fail(s, "answer: request %" PRIu64 " of client %u is accepted, and waits", q->seq,
                     q->client->index);
        }
        rules_job_id(s, q->job, m.job);
        q->job->id = m.job;
        q->job->id_era = s->era;
        sim_log(s, "client %u: request %" PRIu64 " is job %" PRIu64, q->client->index, q->seq,
                m.job);
        look_at_strays(s, q->client);
    }
}

/* ---- handles --------------------------------------------------------------------------------- */

/* It is sealed, or published. */
static void take_change(struct sim *s, const struct sim_request *q)
{
    struct sim_buffer *b = q->buffer;
    if (q->kind == MSG_KIND_BUFFER_SEAL && b != NULL) {
        b->sealed = true;
        b->sealed_era = s->era;
    }
    if (q->kind == MSG_KIND_BUFFER_PUBLISH && b != NULL) {
        struct msg_buffer_publish asked;
        must_decode(s, &schema_msg_buffer_publish, bytes_of(q->data, q->size), &asked);
        b->read_only = asked.rights == ACCESS_IN;
        b->published = true;
    }
}

static void keep_buffer(const struct sim *s, struct sim_client *c, struct sim_buffer *b)
{
    if (c->buffers < SIM_HANDLES) { /* others are not used until the session ends */
        c->buffer[c->buffers++] = b;
    } else if (s->p.special == WORLD_HOARD) { /* those in use are of all ages */
        c->buffer[chance_mix(b->handle) % SIM_HANDLES] = b;
    }
}

/* Of its own tenant, the name alone counts. */
static bool opens_granted(struct sim *s, const struct sim_request *q)
{
    struct msg_buffer_open asked;
    char own[PROTO_NAME_MAX + 1];
    must_decode(s, &schema_msg_buffer_open, bytes_of(q->data, q->size), &asked);
    roles_tenant(s, q->client, own);
    return asked.owner.size > 0 && !bytes_equal_str(asked.owner, own);
}

static void take_buffer(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct msg_buffer m;
    struct sim_client *c = q->client;
    struct sim_buffer *b = q->buffer;
    must_decode(s, &schema_msg_buffer, message, &m);
    take_change(s, q);
    if (q->kind == MSG_KIND_BUFFER_OPEN) {
        b = opens_granted(s, q) ? grants_opened(s, q, &m) : model_find(s, m.handle);
    }
    bool fresh = q->kind == MSG_KIND_BUFFER_CREATE || q->kind == MSG_KIND_BUFFER_OPEN;
    if (!fresh || b == NULL) {
        return;
    }
    if (q->kind == MSG_KIND_BUFFER_CREATE) {
        if (model_find(s, m.handle) != NULL && model_find(s, m.handle) != b) {
            sim_fail(s, "handle: buffer %#" PRIx64 " was given twice", m.handle);
        }
        model_name(s, b, m.handle);
        b->era = s->era;
        sim_log(s, "client %u: request %" PRIu64 " is buffer %#" PRIx64, c->index, q->seq,
                m.handle);
        buffer_find_worker(s, b);
    }
    client_forget(c, b);
    for (unsigned i = 0; i < 64 && i < c->early_count; i++) {
        if (c->early[i] == m.handle) {
            b->known_lost = true;
            return;
        }
    }
    keep_buffer(s, c, b);
}

static void take_module(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct msg_module m;
    struct proto_kernel k;
    struct sim_client *c = q->client;
    must_decode(s, &schema_msg_module, message, &m);
    struct proto_iter it = proto_iter_of(m.kernels);
    if (c->modules == sizeof c->module / sizeof c->module[0]) {
        return;
    }
    c->module[c->modules++] = m.module;
    if (c->bulk_module == UINT64_MAX && m.kernels.count == 1 &&
        proto_list_next(&it, &schema_kernel, &k)) {
        c->bulk_module = m.module;
        c->bulk = k.handle;
        return;
    }
    while (proto_list_next(&it, &schema_kernel, &k) && c->kernels < 8) {
        c->kernel_inout[c->kernels] = bytes_equal_str(k.name, "twist");
        c->kernel_bad[c->kernels] = (unsigned)q->what;
        c->kernel_module[c->kernels] = m.module;
        c->kernel[c->kernels++] = k.handle;
    }
}

static void take_handle(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct sim_client *c = q->client;
    if (q->kind == MSG_KIND_KERNEL_FIND) {
        struct msg_kernel_found m;
        struct proto_kernel k;
        must_decode(s, &schema_msg_kernel_found, message, &m);
        struct proto_iter it = proto_iter_of(m.kernels);
        c->axpy = proto_list_next(&it, &schema_kernel, &k) ? k.handle : 0;
    } else if (q->kind == MSG_KIND_PROGRAM_CREATE && c->programs < 8) {
        struct msg_program m;
        must_decode(s, &schema_msg_program, message, &m);
        c->program[c->programs++] = m.program;
    } else if (q->kind == MSG_KIND_ARENA_CREATE && c->arenas < 4) {
        struct msg_arena m;
        must_decode(s, &schema_msg_arena, message, &m);
        c->arena[c->arenas++] = m.arena;
    } else if (q->kind == MSG_KIND_MODULE_LOAD) {
        take_module(s, q, message);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool may_not_be(int code)
{
    return code == ERR_PROTOCOL || code == ERR_INTERNAL || code == ERR_VERSION;
}

static void take_submit_error(struct sim *s, struct sim_job *j, const struct msg_error *m)
{
    bool unclear = m->code == ERR_STATE && (j->request->sendings > 1 || memory_failed());
    if (j->outcome != OUTCOME_OPEN) {
        return;
    }
    j->outcome = unclear ? OUTCOME_UNKNOWN : OUTCOME_KNOWN;
    j->code = (int)m->code;
    j->effects = (unsigned)m->effects;
    forget_job(j->client, j);
    doubt_former(s, j);
    if (unclear || j->effects != 0) {
        model_doubt(j);
    }
}

static void take_error(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct msg_error m;
    struct sim_client *c = q->client;
    must_decode(s, &schema_msg_error, message, &m);
    sim_log(s, "client %u: request %" PRIu64 " of kind %u: %s %.*s", c->index, q->seq, q->kind,
            err_name((int)m.code), (int)m.text.size, (const char *)m.text.data);
    if (may_not_be((int)m.code) && !s->lies && !memory_failed()) {
        sim_fail(s, "error: request %" PRIu64 " of client %u is answered by %s: %.*s", q->seq,
                 c->index, err_name((int)m.code), (int)m.text.size, (const char *)m.text.data);
    }
    if (q->kind == MSG_KIND_HELLO && roles_barred(s, c)) {
        client_break(s, c, false);
        c->state = CLIENT_GONE;
    } else if (q->kind == MSG_KIND_HELLO) {
        client_break(s, c, !far_refused(s, q, &m));
    } else if (q->kind == MSG_KIND_WAIT) {
        c->waits = false;
        client_break(s, c, true); /* the session went to another connection, or is over */
    } else if (q->kind == MSG_KIND_SUBMIT && q->job != NULL) {
        take_submit_error(s, q->job, &m);
        fair_result(s, q->job);
        look_at_strays(s, c);
    } else if (q->kind == MSG_KIND_MODULE_LOAD && c->bulk_module == UINT64_MAX) {
        c->bulk_module = 0; /* loads it again */
    } else if (q->buffer != NULL && m.code == ERR_BUFFER_LOST) {
        rules_lost(s, q->buffer);
        q->buffer->known_lost = true;
        client_forget(c, q->buffer);
    }
}

void answer_take(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct sim_client *c = q->client;
    switch (proto_kind(message)) {
    case MSG_KIND_ERROR:
        take_error(s, q, message);
        break;
    case MSG_KIND_WELCOME:
        take_welcome(s, q, message);
        break;
    case MSG_KIND_EVENTS:
        take_events(s, c, message);
        break;
    case MSG_KIND_RESULTS:
        take_results(s, q, message);
        break;
    case MSG_KIND_ACCEPTED:
        take_accepted(s, q, message);
        break;
    case MSG_KIND_BUFFER:
        take_buffer(s, q, message);
        break;
    case MSG_KIND_DONE:
        if (q->kind == MSG_KIND_BYE) {
            client_over(s, c);
        }
        break;
    default:
        take_handle(s, q, message);
        break;
    }
    if (c->leaving && c->state == CLIENT_ON && client_idle(c)) {
        ask_bye(s, c);
    }
}
