/* Users: each is a fiber that opens a client of libgpud, calls it, and closes it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client/libsim.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/sim_told.h"

#define URL      "ipc:///sim/gpud.sock"
#define AGAIN_NS (200 * NS_PER_MS) /* until a user asks for a session again */
#define BACK_NS  NS_PER_S          /* until a user that left has another */

static struct {
    struct user *user; /* owned */
    struct user *now;  /* that runs; NULL: none */
} users;

struct user *user_of(const struct sim_client *c)
{
    return &users.user[c->index];
}

struct user *user_now(void)
{
    return users.now;
}

/* ---- when they run --------------------------------------------------------------------------- */

static void run(struct user *u)
{
    users.now = u;
    fiber_resume(u->fiber);
    users.now = NULL;
}

static void on_poke(struct sim *s, const struct hap *h)
{
    struct user *u = h->actor;
    (void)s;
    u->poked = false;
    run(u);
}

void user_poke(struct user *u)
{
    if (!u->poked) {
        u->poked = true;
        sim_at(u->s, u->s->now_ns, on_poke, u, 0, 0);
    }
}

static void on_wake(struct sim *s, const struct hap *h)
{
    struct user *u = h->actor;
    if (u->wake_ns <= s->now_ns) {
        u->wake_ns = NS_NEVER;
        user_poke(u);
    }
}

/* One hap at a time: it comes at the earliest time, and then plans the next one. */
void user_wakes(struct user *u)
{
    bool fired = u->timer_ns <= u->s->now_ns; /* the user has seen that, or does not look */
    uint64_t timer_ns = fired ? NS_NEVER : u->timer_ns;
    uint64_t at_ns = u->until_ns < timer_ns ? u->until_ns : timer_ns;
    if (at_ns < u->wake_ns) {
        u->wake_ns = at_ns;
        sim_at(u->s, at_ns, on_wake, u, 0, 0);
    }
}

void user_sleep(uint64_t until_ns)
{
    struct user *u = users.now;
    memory_of(NULL);
    u->until_ns = until_ns;
    user_wakes(u);
    fiber_stop();
    memory_of(u->call != NULL ? u : NULL);
}

static void pause_until(struct user *u, uint64_t until_ns)
{
    while (u->s->now_ns < until_ns) {
        user_sleep(until_ns);
    }
}

/* ---- calls of libgpud ------------------------------------------------------------------------ */

void call_begin(struct user *u, const char *name)
{
    u->call = name;
    u->call_ns = u->s->now_ns;
    sim_log(u->s, "user %u: %s", u->index, name);
    memory_of(u);
}

int call_end(struct user *u, int rc)
{
    struct sim *s = u->s;
    uint64_t took = s->now_ns - u->call_ns;
    const char *name = u->call;
    memory_of(NULL);
    u->call = NULL;
    sim_log(s, "user %u: %s is %s%s%s", u->index, name, rc >= 0 ? "well" : gpud_err_name(rc),
            rc < 0 ? ": " : "", rc < 0 ? gpud_last_error()->text : "");
    if (rc < 0 && strcmp(gpud_err_name(rc), "UNKNOWN") == 0) {
        sim_fail(s, "call: %s of user %u returns %d, which is no error", name, u->index, rc);
    }
    bool text = gpud_last_error()->text[0] != '\0' || memory_failed() || s->lies;
    if (rc < 0 && (gpud_last_error()->code != rc || !text)) {
        sim_fail(s, "call: %s of user %u returns %s, and its last error is %s", name, u->index,
                 gpud_err_name(rc), gpud_err_name(gpud_last_error()->code));
    }
    if (u->timeout_ns != 0 && took > 4 * u->timeout_ns + SLACK_NS && s->stalled_ns < u->call_ns) {
        sim_fail(s, "late: %s of user %u takes %" PRIu64 " ms, and its limit is %" PRIu64 " ms",
                 name, u->index, took / NS_PER_MS, u->timeout_ns / NS_PER_MS);
    }
    return rc;
}

const char *callback_begin(struct user *u)
{
    const char *call = u->call;
    memory_of(NULL);
    u->call = NULL;
    return call;
}

void callback_end(struct user *u, const char *call)
{
    u->call = call;
    memory_of(u);
}

/* ---- their lives ----------------------------------------------------------------------------- */

static void begin_life(struct user *u)
{
    struct sim_client *c = u->c;
    struct chance r = chance_of(u->s->course->seed ^ c->index, 1000 + ++c->lives);
    seen_forget(u);
    memset(c->daemon_id, 0, sizeof c->daemon_id);
    c->left_era = 0;
    c->said_bye = false;
    u->c->starved = false;
    u->dying = false;
    u->lacks = u->misses = false;
    u->down_ns = 0;
    u->dispatches = chance_percent(&r, 70);
    u->timeout_ns = chance_percent(&r, 50) ? 0 : chance_spread(&r, 100 * NS_PER_MS, 30 * NS_PER_S);
    u->reconnect_ns = chance_percent(&r, 50) ? 0 : chance_spread(&r, NS_PER_S, 120 * NS_PER_S);
    struct chance other = chance_of(u->s->course->seed ^ c->index, 2000 + c->lives);
    bool rings = chance_percent(&other, (unsigned)u->s->p.rings);
    (void)setenv("GPUD_LANE", rings ? "auto" : "nng", 1);
}

static void open_client(struct user *u)
{
    struct sim *s = u->s;
    begin_life(u);
    const gpud_options options = {.size = sizeof options,
                                  .name = "sim",
                                  .timeout_ns = u->timeout_ns,
                                  .reconnect_ns = u->reconnect_ns};
    if (CALL(u, gpud_open, URL, &options, &u->lib) != 0) {
        u->lib = NULL;
        if (memory_left(u) != 0) {
            sim_fail(s, "left: gpud_open of user %u has failed, and left %zu allocations", u->index,
                     memory_left(u));
        }
        u->opening = u->c->uid != SIM_STRANGER;
        u->c->state = u->opening ? CLIENT_AWAY : CLIENT_GONE;
        pause_until(u, s->now_ns + AGAIN_NS);
        return;
    }
    u->opening = false;
    u->c->state = CLIENT_ON;
    (void)CALL(u, gpud_set_event_cb, u->lib, act_event, u);
}

static void close_client(struct user *u, bool another)
{
    struct sim *s = u->s;
    call_begin(u, "gpud_close");
    gpud_close(u->lib);
    uint64_t took = s->now_ns - u->call_ns;
    (void)call_end(u, 0);
    if (took > NS_PER_S + SLACK_NS && s->stalled_ns < s->now_ns - took) {
        sim_fail(s, "late: gpud_close of user %u takes %" PRIu64 " ms", u->index, took / NS_PER_MS);
    }
    u->lib = NULL;
    arrays_forget(u);
    jobs_closed(u);
    acts_forget(u);
    if (memory_left(u) != 0) {
        sim_fail(s, "left: user %u has closed its client, and %zu allocations are left", u->index,
                 memory_left(u));
    }
    memory_fail_user(u, 0);
    u->c->state = another ? CLIENT_AWAY : CLIENT_GONE;
    u->opening = another;
    if (another) {
        pause_until(u, s->now_ns + BACK_NS);
        u->opening = !s->settling || u->index == 0; /* it may be needed to end a drain */
        u->c->state = u->opening ? CLIENT_AWAY : CLIENT_GONE;
    }
}

/* ---- what they do ---------------------------------------------------------------------------- */

static void act_push(struct user *u, struct act a)
{
    if (u->acts < ACTS_MAX) {
        u->act[(u->act_first + u->acts++) % ACTS_MAX] = a;
        user_poke(u);
    }
}

static bool act_queued(const struct user *u, enum act_kind kind)
{
    for (unsigned i = 0; i < u->acts; i++) {
        if (u->act[(u->act_first + i) % ACTS_MAX].kind == kind) {
            return true;
        }
    }
    return false;
}

static void act_next(struct user *u)
{
    struct act a = u->act[u->act_first];
    u->act_first = (u->act_first + 1) % ACTS_MAX;
    u->acts--;
    if (a.kind == ACT_BYE || a.kind == ACT_LEAVE) {
        bool another = a.event == COURSE_BYE || a.event == COURSE_LEAVE;
        close_client(u, another);
    } else {
        act_do(u, &a);
    }
}

/* Whatever is readable is read before the loop waits again. */
static bool dispatch(struct user *u)
{
    struct sim *s = u->s;
    uint64_t since = s->now_ns;
    unsigned times = 0;
    bool listens = (u->dispatches && s->now_ns >= u->mute_until_ns) || s->settling;
    while (listens && u->lib != NULL && system_ready(gpud_fd(u->lib))) {
        (void)CALL(u, gpud_dispatch, u->lib);
        if (s->now_ns == since && ++times > 10000) {
            sim_fail(s, "loop: the descriptor of user %u stays readable", u->index);
        }
    }
    return times > 0;
}

static void live(void *arg)
{
    struct user *u = arg;
    for (;;) {
        if (u->lib == NULL && u->opening) {
            open_client(u);
        } else if (u->lib != NULL && u->acts > 0) {
            act_next(u);
        } else if (dispatch(u)) {
            continue;
        } else if (u->lib != NULL && u->s->settling && u->live > 0) {
            jobs_collect(u, NS_PER_S);
        } else {
            u->sleeps = true;
            user_sleep(u->mute_until_ns > u->s->now_ns ? u->mute_until_ns : NS_NEVER);
            u->sleeps = false;
        }
    }
}

/* ---- what a course does ---------------------------------------------------------------------- */

static void die(struct user *u)
{
    u->acts = 0;
    u->dying = true;
    for (struct wire *w = u->wires; w != NULL; w = w->next) {
        if (w->fd >= 0) {
            wire_break(w, false, false);
        }
    }
    act_push(u, (struct act){.kind = ACT_LEAVE, .event = COURSE_LEAVE});
}

static void cut(struct user *u, bool quiet, struct chance *r)
{
    bool lost = chance_percent(r, 50);
    for (struct wire *w = u->wires; w != NULL; w = w->next) {
        if (w->fd >= 0 && w->served) {
            wire_break(w, lost, quiet);
        }
    }
}

/* Bytes wait in the wires (wires.c), so nothing of them is on the agenda. */
bool client_is_arrival(const struct hap *h)
{
    (void)h;
    return false;
}

void client_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    struct sim_client *c = &s->client[e->kind == COURSE_CONTROL ? 0 : e->actor % s->clients];
    struct user *u = user_of(c);
    if (u->lib == NULL || u->dying) {
        return;
    }
    switch (e->kind) {
    case COURSE_BREAK:
    case COURSE_MOVE:
        cut(u, e->kind == COURSE_MOVE, r);
        break;
    case COURSE_LEAVE:
        die(u);
        break;
    case COURSE_BYE:
        act_push(u, (struct act){.kind = ACT_BYE, .event = COURSE_BYE});
        break;
    case COURSE_MUTE:
        u->mute_until_ns = s->now_ns + chance_spread(r, NS_PER_MS, 60 * NS_PER_S);
        break;
    case COURSE_AGAIN:
        memory_fail_user(u, (long)chance_spread(r, 1, 64));
        break;
    default:
        act_push(u, (struct act){.kind = ACT_EVENT, .event = e->kind, .r = chance_next(r)});
        break;
    }
}

void clients_begin(struct sim *s)
{
    s->clients = s->p.clients < USERS_MAX ? (unsigned)s->p.clients : USERS_MAX;
    s->client = calloc(s->clients, sizeof *s->client);
    users.user = calloc(s->clients, sizeof *users.user);
    s->p.tokens = 0;                      /* these clients have no TLS */
    s->p.roles = s->p.watch = 0;          /* and ask for what they may have */
    (void)setenv("GPUD_SPIN_US", "0", 1); /* the clock stands still meanwhile */
    memory_begin();
    system_begin(s);
    rings_begin(s);
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        struct user *u = &users.user[i];
        c->index = i;
        c->uid = i == 0 ? 0 : i == 7 ? SIM_STRANGER : 1000 + i % (unsigned)s->p.tenants;
        c->tenant = c->gid = c->uid;
        *u = (struct user){.s = s, .c = c, .index = i, .opening = true};
        u->timer_ns = u->wake_ns = NS_NEVER;
        u->until_ns = s->now_ns + NS_PER_MS * i;
        u->fiber = fiber_make(live, u);
        user_wakes(u);
    }
}

void clients_end(struct sim *s)
{
    system_end(s);
    jobs_free(s);
    wires_free(s);
    for (unsigned i = 0; i < s->clients; i++) {
        seen_forget(&users.user[i]);
        fiber_free(users.user[i].fiber);
    }
    free(users.user);
    free(s->client);
    free(s->parcel);
    while (s->requests != NULL) {
        struct sim_request *r = s->requests;
        s->requests = r->next;
        free(r->data);
        free(r);
    }
}

/* ---- what sim_run.c and sim_exec.c ask of clients -------------------------------------------- */

bool client_idle(const struct sim_client *c)
{
    const struct user *u = user_of(c);
    return u->sleeps && !u->poked && u->acts == 0 && u->live == 0 && u->down_ns == 0;
}

void client_return(struct sim *s, struct sim_client *c)
{
    struct user *u = user_of(c);
    (void)s;
    if (u->lib == NULL && !u->opening) {
        c->state = CLIENT_AWAY;
        u->opening = true;
        user_poke(u);
    }
}

/* sim_run.c sends an administrator's request this way: the end of a drain. */
struct sim_request *client_send(struct sim *s, struct sim_client *c, const struct schema *schema,
                                void *msg)
{
    struct user *u = user_of(c);
    (void)s;
    (void)schema;
    (void)msg;
    if (!act_queued(u, ACT_RESUME)) {
        act_push(u, (struct act){.kind = ACT_RESUME});
    }
    return NULL;
}

/* libgpud waits by itself. At the end its user reads what comes. */
void ask_wait(struct sim *s, struct sim_client *c)
{
    struct user *u = user_of(c);
    (void)s;
    memory_fail_user(u, 0);
    if (u->lib != NULL && u->sleeps && (u->live > 0 || system_ready(gpud_fd(u->lib)))) {
        user_poke(u);
    }
}

void ask_last_look(struct sim *s, struct sim_client *c, struct sim_buffer *b)
{
    (void)s;
    act_push(user_of(c), (struct act){.kind = ACT_LOOK, .buffer = b});
}

void ask_bye(struct sim *s, struct sim_client *c)
{
    (void)s;
    act_push(user_of(c), (struct act){.kind = ACT_BYE, .event = COURSE_KINDS});
}

/* These clients only cancel: a job that does not end meets its limit. */
void ask_cancel_of(struct sim *s, struct sim_job *j, bool kill)
{
    (void)s;
    (void)kill;
    act_push(user_of(j->client), (struct act){.kind = ACT_CANCEL, .job = j});
}

/* No bursts: what the front tells of jobs is the same for all clients. */
bool told_goes_on(struct sim *s)
{
    (void)s;
    return false;
}

void told_reset(void)
{
    told_begin(false);
}
