#include "daemon/worker/spill/waiting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"

#define WAITING_MAX 256u /* the front has at most as many jobs in flight */
/* Some events that help are not seen here: another process or a driver may free memory of the
 * device. Waiting jobs are therefore retried periodically, and less often the more of them wait. */
#define AGAIN_NS (100 * NS_PER_MS)
/* Tries of a job which moved buffers and failed, before it has to pause. Else two jobs, of which
 * one may pass the other, could take each other's buffers for ever, and no job would be without
 * hope. Fewer for a job that all others may pass. */
#define VAIN_MOST   32u
#define VAIN_PASSED 4u

struct waiting_job {
    struct job *job;
    int64_t rank;
    uint64_t deadline; /* ns */
    bool announced;    /* the front knows that it waits */
    bool renews;       /* and hears it again */
    bool asks;         /* and heard how much it lacks */
    bool stalled;      /* nothing under way can help: others may pass */
    bool late;         /* the running jobs that would help have run for long: others may pass */
    bool behind;       /* it comes after a waiting job: others may pass */
    bool maps;         /* it has its memory, which is being mapped, or an arena registered: others
                          may pass */
    bool own;          /* its tenant's hard limit is in the way: other tenants' jobs may pass */
    bool moves;        /* spill_moves() after the last try: it goes on in the next turn */
    bool moved;        /* … after an earlier one */
    unsigned vain;     /* tries that moved buffers and failed, since the last pause */
    struct err e;      /* why the last try failed; code 0: there was no try */
    int rc;            /* result of spill_acquire() at that try */
    uint64_t changes;  /* spill_changes() after that try */
    uint64_t tried;    /* ns: time of the last try */
    struct waiting_job *prev, *next;
    size_t size;
    uint8_t frame[];
};

void waiting_init(struct waiting *w, struct spill *spill, const struct ledger *ledger,
                  struct waiting_callbacks callbacks, void *data)
{
    *w = (struct waiting){.spill = spill, .ledger = ledger, .callbacks = callbacks, .data = data};
}

bool waiting_behind(const struct waiting *w, const struct job *j)
{
    for (unsigned i = 0; w->first != NULL && i < j->after_count; i++) {
        const struct job *before = ledger_find(w->ledger, j->after[i]);
        if (before != NULL && before->state == JOB_WAITING) {
            return true;
        }
    }
    return false;
}

/* Is there a waiting job before `end` (NULL: anywhere) that this job must not pass? A job within
 * its tenant's guarantee may pass all. */
static bool blocked(const struct waiting *w, const struct job *j, const struct waiting_job *end)
{
    const struct waiting_job *x = w->first;
    while (x != NULL && x != end &&
           (x->maps || x->stalled || x->late || x->behind ||
            (x->own && x->job->tenant != j->tenant))) {
        x = x->next;
    }
    return x != NULL && x != end && !spill_assured(w->spill, j);
}

static void enter(struct waiting *w, struct waiting_job *x)
{
    struct waiting_job *at = w->first;
    while (at != NULL && at->rank <= x->rank) {
        at = at->next;
    }
    if (at == NULL) {
        DL_APPEND(w->first, x);
    } else {
        DL_PREPEND_ELEM(w->first, at, x);
    }
    x->job->waiting = x;
    job_set_state(x->job, JOB_WAITING);
    w->count++;
}

/* `rc` and `tried`: the result of a first try, if there was one. */
static int park(struct waiting *w, struct job *j, struct bytes frame, const struct msg_f_job *msg,
                int rc, const struct err *tried, struct err *e)
{
    if (w->count >= WAITING_MAX) {
        return err_set(e, ERR_LIMIT, "%u jobs wait for device memory already", w->count);
    }
    struct waiting_job *new = calloc(1, sizeof *new + frame.size);
    if (new == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to let job %" PRIu64 " wait for device memory",
                       j->id);
    }
    *new = (struct waiting_job){.job = j,
                                .rank = msg->rank,
                                .deadline = msg->deadline_ns,
                                .size = frame.size,
                                .stalled = rc == SPILL_NEVER,
                                .maps = rc == 0,
                                .behind = rc != 0 && waiting_behind(w, j),
                                .e = *tried,
                                .rc = rc,
                                .moves = tried->code != 0 && spill_moves(w->spill),
                                .changes = spill_changes(w->spill),
                                .tried = clock_now_ns()};
    memcpy(new->frame, frame.data, frame.size);
    enter(w, new);
    return 0;
}

int waiting_offer(struct waiting *w, struct job *j, struct bytes frame, const struct msg_f_job *msg,
                  struct err *e)
{
    int rc = ERR_DEVICE_MEMORY;
    struct err tried = ERR_INIT;
    if (!blocked(w, j, NULL) && !waiting_behind(w, j)) {
        rc = spill_acquire(w->spill, j, &tried);
    }
    if (rc == 0 && spill_late_memory(w->spill, j) == POOL_READY &&
        job_arenas_late(j, &tried) == POOL_READY) {
        spill_begin(j);
        w->callbacks.start(w->data, j, msg, frame);
        return 0;
    }
    if (rc != 0 && !spill_short(rc) && (rc != SPILL_NEVER || msg->deadline_ns == NS_NEVER)) {
        *e = tried;
        return tried.code;
    }
    bool has = rc == 0;
    rc = park(w, j, frame, msg, rc, &tried, e);
    if (rc != 0 && has) {
        spill_give_up(w->spill, j, &tried);
    }
    if (rc == 0 && !has) { /* mapping is brief: the front hears of it at the next poll, if at all */
        waiting_poll(w, clock_now_ns());
    }
    return rc;
}

static void take_out(struct waiting *w, struct waiting_job *x)
{
    x->job->waiting = NULL;
    job_set_state(x->job, JOB_ADMITTED);
    DL_DELETE(w->first, x);
    w->count--;
    if (x->announced) {
        w->callbacks.announce(w->data, x->job, false);
    }
}

void waiting_remove(struct waiting *w, struct job *j)
{
    struct waiting_job *x = j->waiting;
    x->announced = false;
    take_out(w, x);
    free(x);
}

static void fail(struct waiting *w, struct waiting_job *x, struct err *why)
{
    take_out(w, x);
    w->callbacks.fail(w->data, x->job, why);
    free(x);
}

static void start(struct waiting *w, struct waiting_job *x)
{
    struct msg_f_job msg;
    struct err e = ERR_INIT;
    take_out(w, x);
    struct bytes frame = bytes_of(x->frame, x->size);
    spill_begin(x->job);
    if (proto_decode(&schema_msg_f_job, frame, &msg, &e) == 0) {
        w->callbacks.start(w->data, x->job, &msg, frame);
    } else { /* cannot happen: the frame was decoded on arrival */
        w->callbacks.fail(w->data, x->job, &e);
    }
    free(x);
}

static bool has_to_pause(const struct waiting_job *x)
{
    return x->vain >= (x->stalled || x->late ? VAIN_PASSED : VAIN_MOST);
}

/* Would a try have the last one's result, after a walk over all buffers, or is it too early for
 * one? Buffers move for one job in each poll. */
static bool keeps_result(const struct waiting *w, const struct waiting_job *x, uint64_t now)
{
    if (x->e.code == 0) {
        return false; /* there was no try */
    }
    if (x->moves) {
        return w->moved == now;
    }
    bool same = x->changes == spill_changes(w->spill);
    return (same || has_to_pause(x)) && now < x->tried + w->count * AGAIN_NS;
}

/* The pause of a job is over. Jobs that paused together would go on together, and take each other's
 * buffers again: those behind this one pause anew. */
static void go_on(struct waiting_job *x, uint64_t now)
{
    bool passed = x->stalled || x->late;
    x->vain = 0;
    for (struct waiting_job *y = x->next; y != NULL && !passed; y = y->next) {
        y->tried = has_to_pause(y) ? now : y->tried;
    }
}

static int again(struct waiting *w, struct waiting_job *x, uint64_t now)
{
    if (keeps_result(w, x, now)) {
        return x->rc;
    }
    if (has_to_pause(x)) {
        go_on(x, now);
    }
    x->tried = now;
    struct err e = ERR_INIT;
    uint64_t moved = spill_moved(w->spill);
    x->rc = spill_acquire(w->spill, x->job, &e);
    x->e = e;
    x->vain += spill_moved(w->spill) != moved;
    x->changes = spill_changes(w->spill);
    x->moves = x->rc != 0 && spill_moves(w->spill);
    w->moved = x->moves ? now : w->moved;
    return x->rc;
}

static void fail_late(struct waiting *w, struct waiting_job *x)
{
    struct err e = ERR_INIT;
    if (x->maps) {
        err_init(&x->e);
        spill_give_up(w->spill, x->job, &e);
        err_init(&e);
    } else if (x->e.code == 0) { /* there was no try */
        spill_explain(w->spill, x->job, &x->e);
    }
    (void)err_set(&e, ERR_DEADLINE, "its deadline passed while it waited for device memory%s%s",
                  x->e.code != 0 ? ": "
                  : x->maps      ? " to be mapped, or for an arena to be registered"
                                 : "",
                  x->e.text);
    fail(w, x, &e);
}

/* A job whose memory is mapped. Returns whether it waits on, for an arena. */
static bool reaching(struct waiting *w, struct waiting_job *x)
{
    struct err why = ERR_INIT;
    struct err ignored = ERR_INIT;
    switch (job_arenas_late(x->job, &why)) {
    case POOL_READY:
        start(w, x);
        return false;
    case POOL_FAILED:
        spill_give_up(w->spill, x->job, &ignored);
        fail(w, x, &why);
        return false;
    case POOL_WAITS:
        break;
    }
    return true;
}

/* A job that has its memory. Returns whether it waits on. If the memory could not be mapped, the
 * job is one that waits for memory again, and is tried at once. */
static bool mapping(struct waiting *w, struct waiting_job *x)
{
    switch (spill_late_memory(w->spill, x->job)) {
    case POOL_READY:
        return reaching(w, x);
    case POOL_FAILED:
        x->maps = false;
        spill_give_up(w->spill, x->job, &x->e);
        x->rc = ERR_DEVICE_MEMORY;
        break;
    case POOL_WAITS:
        break;
    }
    return true;
}

/* Can nothing under way help the job that was just refused? What has changed since may have helped
 * a job that pauses. A job that shared the search for buffers to move, and came late, has another
 * one. */
static bool is_hopeless(const struct waiting *w, struct waiting_job *x, int rc)
{
    bool present = x->changes == spill_changes(w->spill);
    bool over =
        present && !x->moves && w->callbacks.still(w->data, x->own ? &x->job->tenant : NULL);
    bool late = over && x->moved;
    x->moved = x->moves || (x->moved && !late);
    x->moves = x->moves || late;
    bool rises = rc == ERR_DEVICE_MEMORY && spill_rises(w->spill); /* the front answers that */
    return rc == SPILL_NEVER || (over && !late && !rises);
}

/* Returns false if the job no longer waits. */
static bool try(struct waiting *w, struct waiting_job *x, uint64_t now)
{
    struct err e = ERR_INIT;
    if (now >= x->deadline) {
        fail_late(w, x);
        return false;
    }
    if (x->maps && !mapping(w, x)) {
        return false;
    }
    if (x->maps) {
        return true;
    }
    x->behind = waiting_behind(w, x->job);
    x->late = spill_late(w->spill, x->job);
    if (x->behind || blocked(w, x->job, x)) {
        return true;
    }
    int rc = again(w, x, now);
    x->maps = rc == 0;
    if (rc == 0) {
        return mapping(w, x);
    }
    e = x->e;
    bool failed = rc != SPILL_NEVER && !spill_short(rc);
    x->own = rc == ERR_LIMIT;
    bool hopeless = is_hopeless(w, x, rc);
    if (failed || (hopeless && x->deadline == NS_NEVER)) {
        fail(w, x, &e);
        return false;
    }
    x->stalled = x->stalled || hopeless; /* for good */
    return true;
}

static bool is_news(const struct waiting *w, const struct waiting_job *x)
{
    return !x->announced || x->renews || (!x->asks && waiting_wants(w, x->job) > 0);
}

static void announce(const struct waiting *w, struct waiting_job *x)
{
    x->announced = true;
    x->renews = false;
    x->asks = waiting_wants(w, x->job) > 0;
    w->callbacks.announce(w->data, x->job, true);
}

void waiting_poll(struct waiting *w, uint64_t now)
{
    struct waiting_job *x = w->first;
    while (x != NULL) {
        struct waiting_job *next = x->next;
        x = try(w, x, now) ? next : w->first; /* the end of a wait may let any other job go */
    }
    DL_FOREACH(w->first, x)
    {
        if (is_news(w, x)) {
            announce(w, x);
        }
    }
}

void waiting_renew(struct waiting *w)
{
    struct waiting_job *x;
    DL_FOREACH(w->first, x)
    {
        x->renews = true;
    }
}

uint64_t waiting_wants(const struct waiting *w, const struct job *j)
{
    bool has = j->waiting == NULL || j->waiting->maps || j->waiting->own || j->waiting->behind;
    return !has && spill_rises(w->spill) ? spill_lacks(w->spill, j) : 0;
}

bool waiting_maps(const struct waiting *w, const uint64_t *tenant)
{
    const struct waiting_job *x = w->first;
    while (x != NULL && !(x->maps && (tenant == NULL || x->job->tenant == *tenant))) {
        x = x->next;
    }
    return x != NULL;
}

bool waiting_moves(const struct waiting *w)
{
    const struct waiting_job *x = w->first;
    while (x != NULL && !x->moves) {
        x = x->next;
    }
    return x != NULL;
}

void waiting_announce(struct waiting *w)
{
    struct waiting_job *x;
    DL_FOREACH(w->first, x)
    {
        announce(w, x);
    }
}
