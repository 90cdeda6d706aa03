#include "daemon/worker/memory/mapper.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "daemon/pool/marks.h"

enum call_kind {
    CALL_NONE, /* the entry that a lane begins with */
    CALL_TAKE,
    CALL_MAP,
    CALL_UNMAP,
    CALL_ACCESS,
    CALL_CLEAR,
    CALL_GIVE,
};

/* An entry of a lane. */
struct entry {
    struct entry *_Atomic next;
};

/* A queue with one producer and one consumer. The consumer keeps the entry that it took last, so
 * that the producer always has one to append to. */
struct lane {
    struct entry *first; /* the consumer's */
    struct entry *last;  /* the producer's */
};

struct handle;

struct call {
    struct entry entry; /* first: a lane frees entries */
    enum call_kind kind;
    atomic_bool watched;
    struct backend_block *range;
    struct handle *handle;
    uint64_t at, bytes;
};

/* A handle's last call is a part of it, so that giving it back needs no memory. */
struct handle {
    struct call give; /* first: a lane frees entries */
    uint64_t driver;  /* the thread's: the driver's name */
    uint64_t bytes;
    bool there; /* the thread's: the driver has made it */
};

struct news {
    struct entry entry; /* first: a lane frees entries */
    struct mapper_report report;
};

struct mapper {
    const struct backend *b;
    struct backend_device *d; /* not owned */
    backend_wake_fn wake;
    void *wake_data;
    pthread_t thread;
    struct lane calls;
    struct lane reports;
    sem_t work; /* counts calls, and the end */
    sem_t go;   /* mapper_go_on */
    uint64_t issued;
    uint64_t seen; /* number of the last call that mapper_poll reported as complete */
    atomic_uint_fast64_t done;
    /* the thread's: */
    uint64_t page;
    struct marks bad;   /* pages of the range that could not be mapped */
    struct marks shut;  /* pages that are mapped, and could not be made accessible */
    struct marks stuck; /* pages that could not be unmapped */
    atomic_bool any_stuck;
    struct err refusal; /* why a handle was not made */
};

/* ---- lanes ------------------------------------------------------------------------------------*/

static bool lane_init(struct lane *l)
{
    struct call *none = calloc(1, sizeof *none);
    l->first = l->last = none != NULL ? &none->entry : NULL;
    return none != NULL;
}

static void lane_append(struct lane *l, struct entry *x)
{
    atomic_init(&x->next, NULL);
    struct entry *last = l->last;
    l->last = x;
    atomic_store_explicit(&last->next, x, memory_order_release);
}

/* NULL: it is empty. The entry remains until the next one is taken. */
static struct entry *lane_take(struct lane *l)
{
    struct entry *old = l->first;
    struct entry *next = atomic_load_explicit(&old->next, memory_order_acquire);
    if (next != NULL) {
        l->first = next;
        free(old);
    }
    return next;
}

static bool lane_empty(const struct lane *l)
{
    return atomic_load_explicit(&l->first->next, memory_order_acquire) == NULL;
}

static void lane_finish(struct lane *l)
{
    while (l->first != NULL && lane_take(l) != NULL) {
    }
    free(l->first);
}

/* ---- in the thread ----------------------------------------------------------------------------*/

static void wait_for(sem_t *s)
{
    while (sem_wait(s) != 0 && errno == EINTR) {
    }
}

/* A report must not be lost, so without memory the thread tries again. */
static void report(struct mapper *m, enum mapper_kind kind, const struct call *c,
                   const struct err *why)
{
    const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
    struct news *n = malloc(sizeof *n);
    while (n == NULL) {
        (void)nanosleep(&pause, NULL);
        n = malloc(sizeof *n);
    }
    n->report = (struct mapper_report){.kind = kind,
                                       .number = atomic_load(&m->done) + 1,
                                       .at = c->at,
                                       .bytes = c->bytes,
                                       .why = *why};
    lane_append(&m->reports, &n->entry);
}

static uint64_t end_of(const struct mapper *m, const struct call *c)
{
    return (c->at + c->bytes) / m->page;
}

static bool within(const struct mapper *m, const struct marks *set, const struct call *c)
{
    return marks_next(set, c->at / m->page) < end_of(m, c); /* MARKS_NONE is beyond */
}

static void mark(struct mapper *m, struct marks *set, const struct call *c, bool on)
{
    for (uint64_t s = c->at / m->page; s < end_of(m, c); s++) {
        if (on) {
            marks_add(set, s);
        } else {
            marks_remove(set, s);
        }
    }
}

static void take(struct mapper *m, struct handle *h)
{
    struct err why = ERR_INIT;
    h->there = m->b->pages->create(m->d, h->bytes, &h->driver, &why) == 0;
    if (!h->there) {
        m->refusal = why;
    }
}

/* A failed handle is reported where it would be mapped. */
static void map(struct mapper *m, const struct call *c)
{
    struct err why = m->refusal;
    bool stuck = within(m, &m->stuck, c);
    int rc = c->handle->there ? 0 : why.code;
    if (rc == 0 && stuck) {
        rc = err_set(&why, ERR_DEVICE_MEMORY, "what was mapped there could not be unmapped");
    }
    if (rc == 0) {
        err_init(&why);
        rc = m->b->pages->map(m->d, c->range, c->at, c->handle->driver, c->bytes, &why);
    }
    if (rc != 0) {
        mark(m, &m->bad, c, true);
        report(m, stuck ? MAPPER_STUCK : MAPPER_FAILED, c, &why);
    }
}

static void unmap(struct mapper *m, const struct call *c)
{
    struct err why = ERR_INIT;
    mark(m, &m->shut, c, false);
    if (within(m, &m->bad, c)) { /* it is not mapped */
        mark(m, &m->bad, c, false);
    } else if (m->b->pages->unmap(m->d, c->range, c->at, c->bytes, &why) != 0) {
        mark(m, &m->stuck, c, true);
        atomic_store(&m->any_stuck, true);
        report(m, MAPPER_LOST, c, &why);
    }
}

/* Pages that could not be mapped lie between others, which are good. */
static void allow(struct mapper *m, const struct call *c)
{
    uint64_t end = end_of(m, c);
    for (uint64_t s = c->at / m->page; s < end;) {
        uint64_t bad = marks_next(&m->bad, s);
        uint64_t stop = bad < end ? bad : end;
        if (stop > s) {
            struct err why = ERR_INIT;
            const struct call part = {.at = s * m->page, .bytes = (stop - s) * m->page};
            if (m->b->pages->access(m->d, c->range, part.at, part.bytes, &why) != 0) {
                mark(m, &m->shut, &part, true);
                report(m, MAPPER_FAILED, &part, &why);
            }
        }
        s = stop + (stop < end);
    }
}

static void give(struct mapper *m, const struct handle *h)
{
    if (h->there) {
        m->b->pages->destroy(m->d, h->driver, h->bytes);
    }
}

static void ring(struct mapper *m)
{
    m->wake(m->wake_data);
}

/* The loop clears on its own streams. */
static void clear(struct mapper *m, const struct call *c)
{
    struct err none = ERR_INIT;
    if (within(m, &m->bad, c) || within(m, &m->shut, c)) {
        report(m, MAPPER_DIRTY, c, &none);
        return;
    }
    report(m, MAPPER_CLEAR, c, &none);
    ring(m);
    wait_for(&m->go);
}

static void make(struct mapper *m, struct call *c)
{
    switch (c->kind) {
    case CALL_TAKE:
        take(m, c->handle);
        break;
    case CALL_MAP:
        map(m, c);
        break;
    case CALL_UNMAP:
        unmap(m, c);
        break;
    case CALL_ACCESS:
        allow(m, c);
        break;
    case CALL_CLEAR:
        clear(m, c);
        break;
    case CALL_GIVE:
        give(m, c->handle);
        break;
    case CALL_NONE:
        break;
    }
}

/* The last call always wakes the loop, so a mark that comes too late is not missed. */
static void *on_thread(void *data)
{
    struct mapper *m = data;
    struct err e = ERR_INIT;
    if (m->b->pages->enter != NULL) {
        (void)m->b->pages->enter(m->d, &e); /* on failure each call says why */
    }
    for (;;) {
        wait_for(&m->work);
        struct entry *x = lane_take(&m->calls);
        if (x == NULL) {
            return NULL; /* the end */
        }
        struct call *c = (struct call *)x;
        make(m, c);
        atomic_fetch_add(&m->done, 1);
        if (atomic_load(&c->watched) || lane_empty(&m->calls)) {
            ring(m);
        }
    }
}

/* ---- on the loop ------------------------------------------------------------------------------*/

static void append(struct mapper *m, struct call *c)
{
    m->issued++;
    lane_append(&m->calls, &c->entry);
    (void)sem_post(&m->work); /* it fails only beyond SEM_VALUE_MAX */
}

static int call(struct mapper *m, const struct call *like, struct err *e)
{
    struct call *c = malloc(sizeof *c);
    if (c == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a call of the driver");
    }
    *c = *like;
    atomic_init(&c->watched, false);
    append(m, c);
    return 0;
}

int mapper_take(struct mapper *m, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    struct handle *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a handle");
    }
    h->bytes = bytes;
    int rc = call(m, &(struct call){.kind = CALL_TAKE, .handle = h}, e);
    if (rc != 0) {
        free(h);
        return rc;
    }
    *ret_handle = (uint64_t)(uintptr_t)h;
    return 0;
}

static struct handle *handle_of(uint64_t name)
{
    return (struct handle *)(uintptr_t)name;
}

int mapper_map(struct mapper *m, struct backend_block *range, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e)
{
    return call(m,
                &(struct call){.kind = CALL_MAP,
                               .range = range,
                               .handle = handle_of(handle),
                               .at = at,
                               .bytes = bytes},
                e);
}

int mapper_unmap(struct mapper *m, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    return call(m, &(struct call){.kind = CALL_UNMAP, .range = range, .at = at, .bytes = bytes}, e);
}

int mapper_access(struct mapper *m, struct backend_block *range, uint64_t at, uint64_t bytes,
                  struct err *e)
{
    return call(m, &(struct call){.kind = CALL_ACCESS, .range = range, .at = at, .bytes = bytes},
                e);
}

int mapper_clear(struct mapper *m, uint64_t at, uint64_t bytes, struct err *e)
{
    return call(m, &(struct call){.kind = CALL_CLEAR, .at = at, .bytes = bytes}, e);
}

void mapper_give(struct mapper *m, uint64_t handle)
{
    struct handle *h = handle_of(handle);
    h->give.kind = CALL_GIVE;
    h->give.handle = h;
    append(m, &h->give);
}

int mapper_range(struct mapper *m, uint64_t page_bytes, uint64_t pages, struct err *e)
{
    m->page = page_bytes;
    int rc = marks_init(&m->bad, pages, e);
    rc = rc == 0 ? marks_init(&m->shut, pages, e) : rc;
    return rc == 0 ? marks_init(&m->stuck, pages, e) : rc;
}

bool mapper_empty(const struct mapper *m)
{
    return !atomic_load(&m->any_stuck);
}

uint64_t mapper_issued(const struct mapper *m)
{
    return m->issued;
}

bool mapper_busy(const struct mapper *m)
{
    return m->seen < m->issued;
}

uint64_t mapper_waiting(const struct mapper *m)
{
    return m->issued - atomic_load(&m->done);
}

void mapper_watch(struct mapper *m)
{
    atomic_store(&((struct call *)m->calls.last)->watched, true);
}

/* `done` is read first: what failed before is in the lane then. */
bool mapper_poll(struct mapper *m, struct mapper_report *ret_report)
{
    uint64_t done = atomic_load(&m->done);
    struct entry *x = lane_take(&m->reports);
    if (x != NULL) {
        *ret_report = ((struct news *)x)->report;
        return true;
    }
    if (done == m->seen) {
        return false;
    }
    m->seen = done;
    *ret_report = (struct mapper_report){.kind = MAPPER_DONE, .number = done};
    return true;
}

void mapper_go_on(struct mapper *m)
{
    (void)sem_post(&m->go);
}

void mapper_drain(struct mapper *m)
{
    const struct timespec pause = {.tv_nsec = 20 * (long)NS_PER_US};
    struct mapper_report r;
    while (mapper_busy(m)) {
        while (mapper_poll(m, &r)) {
            if (r.kind == MAPPER_CLEAR) {
                mapper_go_on(m);
            }
        }
        (void)nanosleep(&pause, NULL);
    }
}

static void finish(struct mapper *m)
{
    lane_finish(&m->calls);
    lane_finish(&m->reports);
    (void)sem_destroy(&m->work);
    (void)sem_destroy(&m->go);
    marks_finish(&m->bad);
    marks_finish(&m->shut);
    marks_finish(&m->stuck);
    free(m);
}

int mapper_create(const struct backend *b, struct backend_device *d, backend_wake_fn wake,
                  void *wake_data, struct mapper **ret_mapper, struct err *e)
{
    struct mapper *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for the calls of the driver");
    }
    m->b = b;
    m->d = d;
    m->wake = wake;
    m->wake_data = wake_data;
    (void)sem_init(&m->work, 0, 0); /* it fails only for a value out of range */
    (void)sem_init(&m->go, 0, 0);
    int rc = lane_init(&m->calls) && lane_init(&m->reports) ? 0 : ENOMEM;
    rc = rc == 0 ? pthread_create(&m->thread, NULL, on_thread, m) : rc;
    if (rc != 0) {
        finish(m);
        return err_set(e, ERR_NOMEM, "starting the thread that maps memory: %s", strerror(rc));
    }
    *ret_mapper = m;
    return 0;
}

void mapper_destroy(struct mapper *m)
{
    if (m == NULL) {
        return;
    }
    mapper_drain(m);
    (void)sem_post(&m->work); /* without a call: the end */
    (void)pthread_join(m->thread, NULL);
    finish(m);
}
