#include "tests/storm/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/harness/harness.h"

/* BUSY and LIMIT are refusals: the queue is full, or descriptors have run out. */
const int expect_pure[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, 0};
const int expect_resident[] = {GPUD_ERR_BUSY,        GPUD_ERR_LIMIT,     GPUD_ERR_BUFFER_LOST,
                               GPUD_ERR_WORKER_LOST, GPUD_ERR_UNDEFINED, 0};
/* CLOSED: the daemon was away for so long that the session has ended. */
const int expect_arena[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, GPUD_ERR_WORKER_LOST, GPUD_ERR_CLOSED,
                            0};

/* ---- calls -------------------------------------------------------------------------------- */

void call_begin(struct client *k, const char *call)
{
    struct place *p = &k->l->place[k->index];
    atomic_store(&p->call, call);
    atomic_store(&p->deed, k->deed);
    atomic_store(&p->quiet_ns, atomic_load(&k->l->quiet_ns));
    atomic_store(&p->serial, ++k->serial);
}

void call_end(struct client *k)
{
    struct place *p = &k->l->place[k->index];
    uint64_t took = atomic_load(&k->l->quiet_ns) - atomic_load(&p->quiet_ns);
    uint64_t longest = atomic_load(&k->l->longest_ns[k->deed]);
    while (took > longest &&
           !atomic_compare_exchange_weak(&k->l->longest_ns[k->deed], &longest, took)) {
    }
    if (took > atomic_load(&k->l->hang_ns[k->deed])) {
        ledger_break(k->l, BREACH_HANG, "client %u: %s in deed %s took %.1f s of quiet time",
                     k->index, atomic_load(&p->call), deed_name(k->deed), (double)took / 1e9);
    }
    atomic_store(&p->serial, 0);
}

int call_result(struct client *k, int code)
{
    call_end(k);
    return code;
}

/* ---- what may happen ---------------------------------------------------------------------- */

bool expect(struct client *k, int code, const char *what, const int *codes)
{
    struct tally *t = &k->l->tally[k->deed];
    if (code == 0) {
        return true;
    }
    atomic_fetch_add(&t->failed[-code < (int)CODES ? -code : 0], 1);
    while (*codes != 0 && *codes != code) {
        codes++;
    }
    if (*codes == 0) {
        ledger_break(k->l, BREACH_UNEXPECTED, "client %u, deed %s: %s: %s: %s", k->index,
                     deed_name(k->deed), what, gpud_err_name(code), gpud_last_error()->text);
    }
    return false;
}

struct mark mark_now(const struct client *k)
{
    struct mark m;
    for (unsigned i = 0; i < VICTIM_COUNT; i++) { /* a mishap that begins between them is within */
        m.harmed[i] = atomic_load(&k->l->harmed[i]);
        m.within[i] = atomic_load(&k->l->active[i]) > 0;
    }
    return m;
}

bool harmed(const struct client *k, const struct mark *m, enum victim victim)
{
    return m->within[victim] || atomic_load(&k->l->harmed[victim]) != m->harmed[victim];
}

bool harmed_worker(const struct client *k, const struct mark *m)
{
    return harmed(k, m, VICTIM_WORKER) || harmed(k, m, VICTIM_LAUNCHER) ||
           harmed(k, m, VICTIM_FRONT);
}

bool harmed_both(const struct client *k, const struct mark *m)
{
    return harmed(k, m, VICTIM_FRONT) &&
           (harmed(k, m, VICTIM_WORKER) || harmed(k, m, VICTIM_LAUNCHER));
}

/* ---- tasks -------------------------------------------------------------------------------- */

static void answered(gpud_job *job, int code, void *user)
{
    (void)job;
    struct task *t = user;
    t->answers++;
    t->code = code;
}

void task_prepare(struct task *t)
{
    t->job = NULL;
    t->answers = 0;
    t->code = 0;
    t->effects = 0;
    t->acknowledged = false;
}

void task_options(struct task *t, gpud_submit_options *o)
{
    *o = (gpud_submit_options){.size = sizeof *o, .done = answered, .user = t};
}

static bool among(int code, const int *codes)
{
    while (*codes != 0 && *codes != code) {
        codes++;
    }
    return *codes != 0;
}

/* A job that was acknowledged is refused no more. */
static void check_acknowledged(struct client *k, const struct task *t, const gpud_error *error)
{
    bool refusal = t->code == GPUD_ERR_BUSY || t->code == GPUD_ERR_DRAINING ||
                   t->code == GPUD_ERR_NOT_FOUND || t->code == GPUD_ERR_CLOSED;
    if (t->acknowledged && refusal) {
        ledger_break(k->l, BREACH_LOST, "client %u, deed %s: acknowledged, then %s: %s", k->index,
                     deed_name(k->deed), gpud_err_name(t->code), error->text);
    }
}

int task_finish(struct client *k, struct task *t, const int *codes)
{
    if (t->job == NULL) {
        return t->code;
    }
    gpud_error error = {.size = sizeof error};
    t->acknowledged = t->acknowledged || (!gpud_job_done(t->job) && gpud_job_id(t->job) != 0);
    int code = CALL(k, "gpud_wait", gpud_wait(t->job, CLIENT_PATIENCE));
    (void)gpud_job_error(t->job, &error);
    if (t->answers != 1) {
        ledger_break(k->l, t->answers == 0 ? BREACH_LOST : BREACH_DOUBLED,
                     "client %u, deed %s: %u answers of a job (%s)", k->index, deed_name(k->deed),
                     t->answers, gpud_err_name(code));
    }
    t->code = code;
    t->effects = error.effects;
    check_acknowledged(k, t, &error);
    if (code == 0) {
        atomic_fetch_add(&k->l->jobs, 1);
    } else {
        atomic_fetch_add(&k->l->tally[k->deed].failed[-code < (int)CODES ? -code : 0], 1);
        if (!among(code, codes)) {
            ledger_break(k->l, BREACH_UNEXPECTED, "client %u, deed %s: a job: %s: %s", k->index,
                         deed_name(k->deed), gpud_err_name(code), error.text);
        }
    }
    gpud_job_free(t->job);
    t->job = NULL;
    return code;
}

/* ---- sessions ----------------------------------------------------------------------------- */

static void on_event(gpud_client *c, const gpud_event *event, void *user)
{
    (void)c;
    struct client *k = user;
    atomic_fetch_add(&k->l->events[(unsigned)event->kind % 16], 1);
}

bool client_begin(struct client *k)
{
    static const int none[] = {GPUD_ERR_BUSY, 0};
    gpud_options o = {.size = sizeof o,
                      .timeout_ns = CLIENT_PATIENCE,
                      .connect_timeout_ns = CLIENT_PATIENCE,
                      .reconnect_ns = CLIENT_PATIENCE};
    int rc = CALL(k, "gpud_open", gpud_open(k->url, &o, &k->c));
    if (!expect(k, rc, "gpud_open", none)) {
        pause_ms(20);
        return false;
    }
    (void)gpud_set_event_cb(k->c, on_event, k);
    rc = CALL(k, "gpud_kernel_find", gpud_kernel_find(k->c, "axpy", &k->axpy));
    rc = rc == 0 ? CALL(k, "gpud_kernel_find", gpud_kernel_find(k->c, "add", &k->add)) : rc;
    if (!expect(k, rc, "gpud_kernel_find", none)) {
        client_end(k);
        return false;
    }
    atomic_fetch_add(&k->l->sessions, 1);
    return true;
}

void client_end(struct client *k)
{
    atomic_store(&k->l->shared[k->index], 0);
    call_begin(k, "gpud_close");
    gpud_close(k->c);
    call_end(k);
    gpud_program_free(k->program);
    k->c = NULL;
    k->program = NULL;
    k->arena = NULL;
    k->counter.id = 0;
    k->shared.id = 0;
    memset(k->sealed, 0, sizeof k->sealed);
}

static void do_one(struct client *k)
{
    static void (*const deeds[])(struct client *) = {
        deed_call,   deed_async,    deed_counter, deed_program,  deed_arena, deed_sealed,
        deed_shared, deed_transfer, deed_module,  deed_detached, deed_leave};
    static const uint8_t weights[] = {4, 4, 6, 4, 4, 4, 3, 2, 1, 1, 1};
    unsigned sum = 0;
    for (unsigned i = 0; i < DEED_COUNT; i++) {
        sum += weights[i];
    }
    unsigned at = (unsigned)chance_below(&k->chance, sum);
    unsigned deed = 0;
    while (at >= weights[deed]) {
        at -= weights[deed++];
    }
    if (deed == DEED_MODULE && !k->modules) {
        deed = DEED_CALL;
    }
    k->deed = (enum deed)deed;
    deeds[deed](k);
    atomic_fetch_add(&k->l->tally[deed].done, 1);
}

int client_work(void *data)
{
    const struct client_start *s = data;
    struct client k = {.l = s->l,
                       .index = s->index,
                       .modules = s->modules,
                       .url = s->url,
                       .chance = {s->seed * 1000003 + s->index}};
    while (!atomic_load(&k.l->stop)) {
        if (k.c == NULL && !client_begin(&k)) {
            continue;
        }
        do_one(&k);
        if (chance_one_in(&k.chance, 4)) {
            pause_ms((unsigned)chance_below(&k.chance, 20));
        }
    }
    if (k.c != NULL) {
        client_end(&k);
    }
    return 0;
}
