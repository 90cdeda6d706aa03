#include "daemon/launcher/workers.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/launcher/launch.h"
#include "proto/codec.h"

/* A worker that has just started wants the processor for itself. */
#define PREPARE_NS (100 * NS_PER_MS)
/* How long a prepared worker waits without a worker beside it: longer than most pauses of a device
 * whose workers fail. */
#define ALONE_NS (5 * NS_PER_S)
#define END_MS   100u           /* how long the end of a killed one is waited for */
#define AGAIN_NS (3 * NS_PER_S) /* from the end of a killed prepared worker until the next */

/* ---- processes ------------------------------------------------------------------------------- */

/* The entry has frame and device. fd: what becomes its staging memory. last: one more argument;
 * NULL: none. */
static int start(struct workers *w, struct child *child, struct proto_list args, const int fd[2],
                 const char *last, struct err *e)
{
    struct slot slot;
    int pair[2] = {-1, -1};
    int rc = slots_take(&w->slots, w->children, child->device, &slot, e);
    rc = rc == 0 ? seqpacket_pair(pair, e) : rc;
    if (rc != 0) {
        return rc;
    }
    const char *cached[] = {"--cache", slot.cache, last, NULL};
    const char *const *more = slot.cache[0] != '\0' ? cached : cached + 2;
    struct spawn s = {
        .program = w->program, .name = "gpud-worker", .fd = {pair[1], fd[0], fd[1]}, .fd_count = 3};
    child->identity = slot.identity;
    child->slot = slot.number;
    launch(child, s, args, more, w->journal);
    (void)close(pair[1]);
    if (child->code == 0) {
        child->fd[CHILD_CHANNEL] = pair[0];
    } else {
        (void)close(pair[0]);
    }
    return 0;
}

/* ---- prepared workers ------------------------------------------------------------------------ */

/* Whether both are of the same device, with the same arguments. */
static bool are_like(const struct child *a, const struct child *b)
{
    struct msg_l_worker one;
    struct msg_l_worker other;
    return bytes_equal(a->device, b->device) &&
           proto_decode(&schema_msg_l_worker, a->frame, &one, NULL) == 0 &&
           proto_decode(&schema_msg_l_worker, b->frame, &other, NULL) == 0 &&
           bytes_equal(one.args.raw, other.args.raw);
}

/* A running process of this kind that is like `child`; NULL: there is none. */
static struct child *find_like(struct workers *w, enum child_kind kind, const struct child *child)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *other = &w->children->child[i];
        if (other->kind == kind && other->pid > 0 && !other->timed_out && are_like(other, child)) {
            return other;
        }
    }
    return NULL;
}

/* Ends a prepared worker. false: the kernel has not ended it yet. */
static bool end(struct workers *w, struct child *prepared)
{
    const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
    child_signal(prepared, SIGKILL);
    for (unsigned i = 0; i < END_MS && prepared->pid > 0; i++) {
        (void)nanosleep(&pause, NULL);
        children_reap(w->children);
    }
    if (prepared->pid > 0) {
        return false;
    }
    child_remove(prepared);
    return true;
}

bool workers_yield(struct workers *w)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &w->children->child[i];
        if (child->kind == CHILD_PREPARED) {
            return end(w, child);
        }
    }
    return false;
}

unsigned workers_vacate(struct workers *w, struct bytes device)
{
    unsigned left = 0;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &w->children->child[i];
        if (child->kind != CHILD_PREPARED || child->pid <= 0 ||
            !bytes_equal(child->device, device)) {
            continue;
        }
        if (child->timed_out || !end(w, child)) {
            child->timed_out = true; /* it becomes no worker */
            left++;
        }
    }
    return left;
}

/* Gives the prepared worker its memory, and its entry's process to `child`. false: it has ended, or
 * is about to. */
static bool hand_over(struct child *prepared, struct child *child, const struct frame_fds *fds)
{
    struct frame_fds memory = {.fd = {fds->fd[0], fds->fd[1]}, .count = 2};
    if (seqpacket_send(prepared->fd[CHILD_INPUT], "", 1, &memory, NULL) != 0) {
        return false;
    }
    child->pid = child->number = prepared->pid;
    child->identity = prepared->identity;
    child->slot = prepared->slot;
    child->fd[CHILD_CHANNEL] = prepared->fd[CHILD_CHANNEL];
    child->owed = OWED_STARTED;
    prepared->fd[CHILD_CHANNEL] = -1;
    prepared->pid = 0;
    child_remove(prepared);
    return true;
}

/* A user of the pool is for a worker first. */
static bool users_left(const struct workers *w)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        taken += child_works(&w->children->child[i]);
    }
    return w->slots.users == 0 || taken < w->slots.users / 2;
}

/* It gets its memory when it becomes a worker, through a socket in its place
 * (daemon/worker/main.c). */
static int start_prepared(struct workers *w, struct child *child, const struct child *worker,
                          struct err *e)
{
    struct msg_l_worker asked;
    int pair[2] = {-1, -1};
    int rc = proto_decode(&schema_msg_l_worker, worker->frame, &asked, e);
    if (rc == 0 && (child_keep(&child->frame, worker->frame) != 0 ||
                    child_keep(&child->device, worker->device) != 0)) {
        rc = err_set(e, ERR_NOMEM, "no memory");
    }
    rc = rc == 0 ? seqpacket_pair(pair, e) : rc;
    if (rc == 0) {
        const int places[2] = {pair[1], pair[1]};
        child->fd[CHILD_INPUT] = pair[0];
        rc = start(w, child, asked.args, places, "--prepared", e);
        (void)close(pair[1]);
    }
    child->owed = 0;
    if (rc == 0 && child->code != 0) {
        rc = err_set(e, child->code, "%s", child->text);
    }
    return rc;
}

static void prepare(struct workers *w, const struct child *worker)
{
    struct err e = ERR_INIT;
    struct child *child = users_left(w) ? children_add(w->children, CHILD_PREPARED, 0) : NULL;
    if (child != NULL && start_prepared(w, child, worker, &e) != 0) {
        log_say(LOG_WORKER_NOT_PREPARED, "the next worker is not prepared: %s", e.text);
        child_remove(child);
    }
}

static void tend_worker(struct workers *w, struct child *worker, uint64_t now)
{
    if (worker->prepare_at > now) {
        return;
    }
    worker->prepare_at = NS_NEVER;
    if (find_like(w, CHILD_PREPARED, worker) == NULL) {
        prepare(w, worker);
    }
}

/* A prepared worker that exits by itself is of no use to its worker, and gets no successor. */
static void replace(struct workers *w, struct child *child, uint64_t now)
{
    struct child *worker = find_like(w, CHILD_WORKER, child);
    if (worker != NULL && WIFSIGNALED(child->status)) {
        worker->prepare_at = ns_add(now, AGAIN_NS);
    }
    child_remove(child);
}

static void tend_prepared(struct workers *w, struct child *child, uint64_t now)
{
    if (child->pid <= 0) {
        replace(w, child, now);
    } else if (find_like(w, CHILD_WORKER, child) != NULL) {
        child->kill_at = NS_NEVER;
    } else if (child->kill_at == NS_NEVER) {
        child->kill_at = ns_add(now, ALONE_NS);
    }
}

uint64_t workers_tend(struct workers *w, uint64_t now, bool may)
{
    uint64_t next = NS_NEVER;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        if (w->children->child[i].kind == CHILD_PREPARED) {
            tend_prepared(w, &w->children->child[i], now);
        }
    }
    for (unsigned i = 0; i < CHILDREN_MAX && may; i++) {
        struct child *child = &w->children->child[i];
        if (child->kind == CHILD_WORKER && child->pid > 0) {
            tend_worker(w, child, now);
            next = child->prepare_at < next ? child->prepare_at : next;
        }
    }
    return next;
}

/* ---- workers --------------------------------------------------------------------------------- */

/* Without a free user a prepared worker gives its own back. */
static int start_new(struct workers *w, struct child *child, const struct msg_l_worker *msg,
                     const struct frame_fds *fds, struct err *e)
{
    int rc = start(w, child, msg->args, fds->fd, NULL, e);
    return rc == ERR_LIMIT && workers_yield(w) ? start(w, child, msg->args, fds->fd, NULL, e) : rc;
}

int workers_start(struct workers *w, struct child *child, const struct msg_l_worker *msg,
                  struct bytes frame, struct frame_fds *fds, struct err *e)
{
    if (child_keep(&child->frame, frame) != 0 || child_keep(&child->device, msg->device) != 0) {
        return err_set(e, ERR_NOMEM, "no memory for a worker");
    }
    struct child *prepared = find_like(w, CHILD_PREPARED, child);
    if (prepared != NULL && !msg->prepare) {
        (void)end(w, prepared); /* the settings want none */
        prepared = NULL;
    }
    if (prepared == NULL || !hand_over(prepared, child, fds)) {
        int rc = start_new(w, child, msg, fds, e);
        if (rc != 0 || child->code != 0) {
            return rc;
        }
    }
    child->fd[CHILD_INPUT] = fds->fd[0];
    child->fd[CHILD_OUTPUT] = fds->fd[1];
    child->fd[CHILD_RECORD] = fds->fd[2];
    fds->count = 0;
    child->prepare_at = msg->prepare ? ns_add(clock_now_ns(), PREPARE_NS) : NS_NEVER;
    children_replace(w->children, child);
    return 0;
}
