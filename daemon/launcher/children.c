#include "daemon/launcher/children.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

void children_init(struct children *c)
{
    memset(c->child, 0, sizeof c->child);
    copies_init(&c->copies);
}

/* A tenant's own worker may have no successor, so records of ended workers add up. */
static struct child *oldest_departed(struct children *c)
{
    struct child *oldest = NULL;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &c->child[i];
        bool older = oldest == NULL || child->id < oldest->id;
        bool gone = child_departed(child) && child->owed == 0 && older;
        oldest = gone && !copies_of(&c->copies, child->id) ? child : oldest;
    }
    return oldest;
}

struct child *children_add(struct children *c, enum child_kind kind, uint64_t id)
{
    struct child *child = NULL;
    for (unsigned i = 0; i < CHILDREN_MAX && child == NULL; i++) {
        child = c->child[i].kind == CHILD_FREE ? &c->child[i] : NULL;
    }
    if (child == NULL && kind != CHILD_PREPARED) {
        child = oldest_departed(c);
    }
    if (child != NULL) {
        if (child->kind != CHILD_FREE) {
            child_remove(child);
        }
        *child = (struct child){.kind = kind,
                                .id = id,
                                .fd = {-1, -1, -1, -1},
                                .kill_at = NS_NEVER,
                                .prepare_at = NS_NEVER};
    }
    return child;
}

struct child *children_find(struct children *c, uint64_t id)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &c->child[i];
        bool known = child->kind != CHILD_FREE && child->kind != CHILD_PREPARED;
        if (known && child->pid > 0 && child->id == id) {
            return child;
        }
    }
    return NULL;
}

/* Closes the first `count`. */
static void close_fds(struct child *child, int count)
{
    for (int i = 0; i < count; i++) {
        if (child->fd[i] >= 0) {
            (void)close(child->fd[i]);
            child->fd[i] = -1;
        }
    }
}

void child_remove(struct child *child)
{
    close_fds(child, CHILD_FDS);
    free((void *)(uintptr_t)child->frame.data);
    free((void *)(uintptr_t)child->device.data);
    *child = (struct child){.kind = CHILD_FREE};
}

int child_keep(struct bytes *own, struct bytes from)
{
    uint8_t *copy = malloc(from.size > 0 ? from.size : 1);
    if (copy == NULL) {
        return ERR_NOMEM;
    }
    if (from.size > 0) {
        memcpy(copy, from.data, from.size);
    }
    free((void *)(uintptr_t)own->data);
    *own = bytes_of(copy, from.size);
    return 0;
}

bool child_works(const struct child *child)
{
    return child->pid > 0 && (child->kind == CHILD_WORKER || child->kind == CHILD_PREPARED);
}

bool child_departed(const struct child *child)
{
    return child->kind == CHILD_WORKER && child->pid <= 0 && child->fd[CHILD_RECORD] >= 0;
}

void child_ended(struct child *child)
{
    if (child_departed(child)) {
        close_fds(child, CHILD_RECORD);
    } else {
        child_remove(child);
    }
}

void children_replace(struct children *c, const struct child *worker)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &c->child[i];
        if (child == worker || !child_departed(child) ||
            !bytes_equal(child->device, worker->device)) {
            continue;
        }
        copies_move(&c->copies, child->id, worker->id);
        if (child->owed == 0) {
            child_remove(child);
        } else {
            (void)close(child->fd[CHILD_RECORD]);
            child->fd[CHILD_RECORD] = -1;
        }
    }
}

static void reap_one(struct child *child)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return;
    }
    /* the group's number cannot be reused before the child is reaped */
    child_signal(child, SIGKILL);
    int status = 0;
    if (waitpid(child->pid, &status, WNOHANG) ==
        child->pid) { /* it has ended: no signal interrupts */
        child->status = status;
        child->pid = 0;
        if (child->kind == CHILD_PREPARED) {
            return; /* the front does not know it: workers_tend removes it */
        }
        child->owed |= OWED_ENDED;
        if ((child->owed & OWED_STARTED) == 0) {
            close_fds(child, CHILD_RECORD);
        }
    }
}

void children_reap(struct children *c)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        if (c->child[i].pid > 0) {
            reap_one(&c->child[i]);
        }
    }
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid > 0) {
        (void)identity_kill(child->identity, -child->pid,
                            signal); /* fails only if the child has just ended */
    }
}

void children_signal(struct children *c, int signal)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        child_signal(&c->child[i], signal);
    }
}

unsigned children_running(const struct children *c)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        count += c->child[i].pid > 0;
    }
    return count;
}

uint64_t children_expire(struct children *c, uint64_t now)
{
    uint64_t next = NS_NEVER;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &c->child[i];
        if (child->pid <= 0 || child->kill_at == NS_NEVER) {
            continue;
        }
        if (child->kill_at <= now) {
            child->timed_out = true;
            child->kill_at = NS_NEVER;
            child_signal(child, SIGKILL);
        } else if (child->kill_at < next) {
            next = child->kill_at;
        }
    }
    return next;
}

void children_orphan(struct children *c)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &c->child[i];
        child->owed = 0;
        if (child->kind != CHILD_FREE && child->pid <= 0) {
            child_ended(child);
        } else if (!child_works(child)) {
            child_signal(child, SIGKILL);
        }
    }
}
