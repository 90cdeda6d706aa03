#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/transport/tcp/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/client/fake_int.h"

static void check(int rc, const char *what)
{
    if (rc != 0) {
        (void)fprintf(stderr, "fake daemon: %s: %s\n", what, nng_strerror(rc));
        exit(1);
    }
}

static void receive(struct slot *s)
{
    s->state = SLOT_RECV;
    nng_ctx_recv(s->ctx, s->aio);
}

static void seq_note(struct fake *f, uint64_t seq)
{
    if (seq == 0 || seq >= SEQS) {
        return;
    }
    f->twice += f->seen[seq] & 1;
    f->seen[seq] |= 1;
    if (seq > f->highest) {
        f->highest = seq;
    }
}

/* Whether the request acknowledges a number that this session has not admitted yet. */
static bool miscounts(struct fake *f, uint64_t ack)
{
    while (f->expect < SEQS && (f->seen[f->expect] & 3) != 0) {
        f->expect++;
    }
    return ack >= f->expect;
}

static struct bytes view(nng_msg *m)
{
    return bytes_of(nng_msg_body(m), nng_msg_len(m));
}

static void hold(struct slot *s, nng_msg *m)
{
    s->state = SLOT_HELD;
    s->msg = m;
    s->order = ++s->fake->order;
    (void)pthread_cond_broadcast(&s->fake->changed);
}

static void greet(struct fake *f, int pipe)
{
    f->greeted[f->greeted_count++ % GREETED] = (struct greeted){pipe, f->life};
}

/* What an earlier life's connection still carries never comes to the daemon after it; nor what one
 * carries that was dropped: a WAIT of it that an NNG thread brings late would take the place of the
 * next connection's. */
static bool of_this_life(const struct fake *f, int pipe)
{
    for (unsigned i = 0; i < GREETED; i++) {
        if (f->greeted[i].pipe == pipe && f->greeted[i].life == f->life) {
            return true;
        }
    }
    return false;
}

static bool understood(const struct fake *f, nng_msg *m, union any *ret_msg, struct err *e)
{
    const struct schema *schema = schema_find(proto_kind(view(m)));
    return schema != NULL && nng_msg_len(m) <= f->max_message && schema->size <= sizeof *ret_msg &&
           proto_decode(schema, view(m), ret_msg, e) == 0;
}

static bool waits_for_room(const struct fake *f, unsigned kind, const union any *msg)
{
    return kind == MSG_KIND_SUBMIT && f->mode == FAKE_BUSY &&
           (msg->submit.flags & SUBMIT_BLOCK) != 0;
}

/* Takes one request. */
static void request(struct slot *s, nng_msg *m)
{
    struct fake *f = s->fake;
    unsigned kind = proto_kind(view(m));
    union any msg;
    struct err e = ERR_INIT;
    int pipe = nng_pipe_id(nng_msg_get_pipe(m));
    if (kind == MSG_KIND_HELLO) {
        greet(f, pipe);
        fake_hello(s, view(m));
    } else if (!of_this_life(f, pipe)) {
        receive(s);
    } else if (!understood(f, m, &msg, &e)) {
        fake_answer_error(s, ERR_PROTOCOL, e.text);
    } else if (miscounts(f, msg.ping.ack)) {
        fake_answer_error(s, ERR_PROTOCOL, "no such number was admitted yet");
    } else if (msg.ping.seq > 0 && msg.ping.seq < SEQS && f->not_admitted > 0) {
        f->not_admitted--;
        f->seen[msg.ping.seq] |= 4;
        fake_answer_open(s, f->not_admitted_code);
    } else if (waits_for_room(f, kind, &msg)) {
        f->mode = FAKE_SERVE;
        f->seen[msg.submit.seq] |= 4;
        fake_answer_open(s, ERR_BUSY);
    } else {
        seq_note(f, msg.ping.seq);
        if (kind == MSG_KIND_WAIT) {
            if (f->waiting != NULL) {
                receive(f->waiting); /* of a connection that is gone */
            }
            f->waiting = s;
            s->state = SLOT_HELD;
            if (msg.wait.taken >= f->event_number) {
                f->done_count -= f->told;
                memmove(f->done, f->done + f->told, f->done_count * sizeof f->done[0]);
                f->told = 0;
            }
            fake_events(f);
        } else if (f->mode == FAKE_SILENT || (kind == MSG_KIND_SUBMIT && f->mode == FAKE_HOLD)) {
            hold(s, m);
            return;
        } else {
            fake_serve(s, kind, &msg);
        }
    }
    nng_msg_free(m);
}

static void aio_done(void *arg)
{
    struct slot *s = arg;
    struct fake *f = s->fake;
    (void)pthread_mutex_lock(&f->lock);
    int rc = nng_aio_result(s->aio);
    if (rc == NNG_ECLOSED) {
        (void)pthread_mutex_unlock(&f->lock);
        return;
    }
    if (s->state == SLOT_RECV && rc == 0) {
        nng_msg *m = nng_aio_get_msg(s->aio);
        nng_aio_set_msg(s->aio, NULL);
        request(s, m);
    } else {
        if (rc != 0 && s->state == SLOT_SEND) {
            nng_msg_free(nng_aio_get_msg(s->aio));
        }
        receive(s);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

static struct fake *kept; /* those that were left */
static struct pipe_list {
    pthread_mutex_t lock;
    nng_pipe pipes[64];
    unsigned count;
    bool cut; /* some were closed from this side */
} pipes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void pipe_changed(nng_pipe p, nng_pipe_ev ev, void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&pipes.lock);
    if (ev == NNG_PIPE_EV_ADD_PRE && pipes.count < 64) {
        pipes.pipes[pipes.count++] = p;
    }
    for (unsigned i = 0; ev == NNG_PIPE_EV_REM_POST && i < pipes.count; i++) {
        if (nng_pipe_id(pipes.pipes[i]) == nng_pipe_id(p)) {
            pipes.pipes[i] = pipes.pipes[--pipes.count];
        }
    }
    (void)pthread_mutex_unlock(&pipes.lock);
}

struct fake *fake_start(const char *url)
{
    struct fake *f = calloc(1, sizeof *f);
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->changed, NULL);
    f->seen = calloc(1, SEQS);
    f->expect = 1;
    f->life = 1;
    f->max_inflight = 256;
    f->minor = PROTO_MINOR;
    f->max_message = PROTO_MESSAGE_MAX;
    f->linger_ns = 10 * NS_PER_S;
    if (url != NULL) {
        (void)snprintf(f->url, sizeof f->url, "%s", url);
    } else {
        (void)snprintf(f->dir, sizeof f->dir, "/tmp/gpud-test.XXXXXX");
        if (mkdtemp(f->dir) == NULL) {
            exit(1);
        }
        (void)snprintf(f->url, sizeof f->url, "ipc://%s/s", f->dir);
    }
    check(nng_rep0_open(&f->socket), "socket");
    check(nng_pipe_notify(f->socket, NNG_PIPE_EV_ADD_PRE, pipe_changed, NULL), "notify");
    check(nng_pipe_notify(f->socket, NNG_PIPE_EV_REM_POST, pipe_changed, NULL), "notify");
    for (unsigned i = 0; i < SLOTS; i++) {
        f->slots[i].fake = f;
    }
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slots[i];
        check(nng_ctx_open(&s->ctx, f->socket), "context");
        check(nng_aio_alloc(&s->aio, aio_done, s), "aio");
        receive(s);
    }
    (void)pthread_mutex_unlock(&f->lock);
    nng_listener listener;
    check(nng_listen(f->socket, f->url, &listener, 0), "listen");
    if (url != NULL) {
        int port = 0;
        check(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), "port");
        (void)snprintf(f->url, sizeof f->url, "tcp://127.0.0.1:%d", port);
    }
    return f;
}

static void remove_dir(const struct fake *f)
{
    if (f->dir[0] != '\0') {
        (void)unlink(f->url + strlen("ipc://"));
        (void)rmdir(f->dir);
    }
}

void fake_leave(struct fake *f)
{
    f->left_before = kept;
    kept = f;
    remove_dir(f);
}

void fake_stop(struct fake *f)
{
    if (pipes.cut) {
        fake_leave(f); /* the test's process ends now */
        return;
    }
    (void)nng_close(f->socket);
    for (unsigned i = 0; i < SLOTS; i++) {
        nng_aio_stop(f->slots[i].aio);
    }
    (void)pthread_mutex_lock(&f->lock); /* what NNG's threads did lies behind us */
    for (unsigned i = 0; i < SLOTS; i++) {
        nng_aio_free(f->slots[i].aio);
        if (f->slots[i].msg != NULL) {
            nng_msg_free(f->slots[i].msg);
        }
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        free(f->buffers[i].data);
    }
    remove_dir(f);
    (void)pthread_mutex_unlock(&f->lock);
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
    free(f->seen);
    free(f);
}

const char *fake_url(const struct fake *f)
{
    return f->url;
}

void fake_mode(struct fake *f, enum fake_mode mode)
{
    (void)pthread_mutex_lock(&f->lock);
    f->mode = mode;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_minor(struct fake *f, uint64_t minor)
{
    (void)pthread_mutex_lock(&f->lock);
    f->minor = minor;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_not_admit(struct fake *f, unsigned count, int code)
{
    (void)pthread_mutex_lock(&f->lock);
    f->not_admitted = count;
    f->not_admitted_code = code;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_fail(struct fake *f, int code, bool on_device)
{
    (void)pthread_mutex_lock(&f->lock);
    f->fails = code;
    f->fails_on_device = on_device;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_garble(struct fake *f, enum fake_garble how, uint64_t seed)
{
    (void)pthread_mutex_lock(&f->lock);
    f->garble = how;
    f->seed = seed;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_share(struct fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->shares = true;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_limit(struct fake *f, uint64_t max_inflight)
{
    (void)pthread_mutex_lock(&f->lock);
    f->max_inflight = max_inflight;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_limit_message(struct fake *f, uint64_t max_message)
{
    (void)pthread_mutex_lock(&f->lock);
    f->max_message = max_message;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_linger(struct fake *f, uint64_t ns)
{
    (void)pthread_mutex_lock(&f->lock);
    f->linger_ns = ns;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_lineage(struct fake *f, uint64_t lineage)
{
    (void)pthread_mutex_lock(&f->lock);
    f->lineage = lineage;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_up(struct fake *f, uint64_t ns)
{
    (void)pthread_mutex_lock(&f->lock);
    f->up_ns = ns;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_results_first(struct fake *f, bool on)
{
    (void)pthread_mutex_lock(&f->lock);
    f->results_first = on;
    (void)pthread_mutex_unlock(&f->lock);
}

static struct slot *held_slot(struct fake *f, bool newest)
{
    struct slot *best = NULL;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slots[i];
        if (s->msg != NULL &&
            (best == NULL || (newest ? s->order > best->order : s->order < best->order))) {
            best = s;
        }
    }
    return best;
}

void fake_release(struct fake *f, bool reverse)
{
    struct slot *s;
    (void)pthread_mutex_lock(&f->lock);
    f->mode = FAKE_SERVE;
    while ((s = held_slot(f, reverse)) != NULL) {
        union any msg;
        nng_msg *m = s->msg;
        unsigned kind = proto_kind(view(m));
        s->msg = NULL;
        check(proto_decode(schema_find(kind), view(m), &msg, NULL), "held request");
        fake_serve(s, kind, &msg);
        nng_msg_free(m);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_wait_held(struct fake *f, unsigned count)
{
    (void)pthread_mutex_lock(&f->lock);
    for (;;) {
        unsigned held = 0;
        for (unsigned i = 0; i < SLOTS; i++) {
            held += f->slots[i].msg != NULL ? 1 : 0;
        }
        if (held >= count) {
            break;
        }
        (void)pthread_cond_wait(&f->changed, &f->lock);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

static void forget_held(struct fake *f)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slots[i];
        if (s->msg != NULL) {
            nng_msg_free(s->msg);
            s->msg = NULL;
            receive(s);
        }
    }
    if (f->waiting != NULL) {
        receive(f->waiting);
        f->waiting = NULL;
    }
}

static void pipes_close(void)
{
    pipes.cut = true;
    nng_pipe list[64];
    (void)pthread_mutex_lock(&pipes.lock);
    unsigned count = pipes.count;
    pipes.count = 0;
    memcpy(list, pipes.pipes, sizeof list);
    (void)pthread_mutex_unlock(&pipes.lock);
    for (unsigned i = 0; i < count; i++) {
        (void)nng_pipe_close(list[i]);
    }
}

void fake_drop(struct fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    memset(f->greeted, 0, sizeof f->greeted); /* what they still carry is of nobody */
    forget_held(f);
    (void)pthread_mutex_unlock(&f->lock);
    pipes_close();
}

void fake_restart(struct fake *f, bool adopts)
{
    (void)pthread_mutex_lock(&f->lock);
    f->life++;
    f->knows_session = adopts;
    if (!adopts) {
        memset(f->seen, 0, SEQS);
    }
    f->expect = adopts ? f->expect : 1;
    f->event_number = 0;
    f->done_count = adopts ? f->done_count : 0; /* untaken results are told again */
    f->told = 0;
    forget_held(f);
    (void)pthread_mutex_unlock(&f->lock);
    pipes_close();
}

void fake_forget_buffers(struct fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < BUFFERS; i++) {
        free(f->buffers[i].data);
        f->buffers[i] = (struct fake_buffer){0};
    }
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_refuse_loads(struct fake *f, int code)
{
    (void)pthread_mutex_lock(&f->lock);
    f->refuses_loads = code;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_forget_jobs(struct fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->forgets_jobs = true;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_lose(struct fake *f, uint64_t handle)
{
    (void)pthread_mutex_lock(&f->lock);
    f->lost[f->lost_count++] = handle;
    fake_events(f);
    (void)pthread_mutex_unlock(&f->lock);
}

static uint64_t locked(struct fake *f, const uint64_t *value)
{
    (void)pthread_mutex_lock(&f->lock);
    uint64_t v = *value;
    (void)pthread_mutex_unlock(&f->lock);
    return v;
}

#define GETTER(name)                                                                               \
    uint64_t fake_##name(struct fake *f)                                                           \
    {                                                                                              \
        return locked(f, &f->name);                                                                \
    }
GETTER(executed)

GETTER(twice)

GETTER(stale)

GETTER(arenas)

uint64_t fake_gaps(struct fake *f)
{
    uint64_t gaps = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (uint64_t i = 1; i <= f->highest; i++) {
        gaps += (f->seen[i] & ~4u) == 0 ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return gaps;
}

uint64_t fake_live(struct fake *f)
{
    uint64_t live = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < BUFFERS; i++) {
        live += f->buffers[i].handle != 0 ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return live;
}
