#include "daemon/worker/memory/mapping.h"

#include <time.h>

#include "common/clock.h"
#include "common/log.h"

/* At most this many bytes of new memory are zeroed when they are mapped. */
#define SCRUB_BYTES (UINT64_C(16) << 20)
#define SCRUB_NS    (2 * NS_PER_S)
/* With more calls before it, the device may have other work when memory is mapped. */
#define SCRUB_CALLS 64u

int mapping_init(struct mapping *m, backend_wake_fn wake, void *wake_data, struct err *e)
{
    m->why = ERR_INIT;
    return wake == NULL || m->b->pages == NULL
               ? 0
               : mapper_create(m->b, m->d, wake, wake_data, &m->mapper, e);
}

void mapping_finish(struct mapping *m)
{
    mapper_destroy(m->mapper);
    m->mapper = NULL;
}

/* ---- calls ------------------------------------------------------------------------------------*/

int mapping_reserve(struct mapping *m, uint64_t bytes, void **ret_range, struct err *e)
{
    uint64_t page = m->b->pages->page_bytes(m->d);
    struct backend_block *range = NULL;
    int rc = m->b->pages->reserve(m->d, bytes, &range, e);
    if (rc == 0 && m->mapper != NULL &&
        (rc = mapper_range(m->mapper, page, bytes / page, e)) != 0) {
        m->b->pages->release(m->d, range);
    }
    if (rc == 0) {
        *ret_range = m->range = range;
    }
    return rc;
}

int mapping_create(struct mapping *m, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    return m->mapper != NULL ? mapper_take(m->mapper, bytes, ret_handle, e)
                             : m->b->pages->create(m->d, bytes, ret_handle, e);
}

void mapping_destroy(struct mapping *m, uint64_t handle, uint64_t bytes)
{
    if (m->mapper != NULL) {
        mapper_give(m->mapper, handle);
    } else {
        m->b->pages->destroy(m->d, handle, bytes);
    }
}

int mapping_map(struct mapping *m, uint64_t at, uint64_t handle, uint64_t bytes, struct err *e)
{
    return m->mapper != NULL ? mapper_map(m->mapper, m->range, at, handle, bytes, e)
                             : m->b->pages->map(m->d, m->range, at, handle, bytes, e);
}

int mapping_unmap(struct mapping *m, uint64_t at, uint64_t bytes, struct err *e)
{
    return m->mapper != NULL ? mapper_unmap(m->mapper, m->range, at, bytes, e)
                             : m->b->pages->unmap(m->d, m->range, at, bytes, e);
}

int mapping_access(struct mapping *m, uint64_t at, uint64_t bytes, struct err *e)
{
    return m->mapper != NULL ? mapper_access(m->mapper, m->range, at, bytes, e)
                             : m->b->pages->access(m->d, m->range, at, bytes, e);
}

/* ---- clearing ---------------------------------------------------------------------------------*/

/* Enqueues zeros with a marker behind them. */
static int zeros(struct mapping *m, struct backend_ref ref, uint64_t bytes, struct err *e)
{
    static const uint8_t ZEROS[16];
    struct backend_marker *marker = NULL;
    int rc = m->b->stream->fill(m->scrub, ref, ZEROS, sizeof ZEROS, bytes, e);
    if (rc == 0) {
        rc = m->b->stream->mark(m->scrub, &marker, e);
        rc = rc == 0 ? m->b->stream->flush(m->scrub, e) : rc;
        m->hung = m->hung || rc != 0;
    }
    if (rc == 0) {
        m->marker = marker;
        m->marked_ns = clock_now_ns();
    } else if (marker != NULL) {
        m->b->marker->release(marker);
    }
    return rc;
}

/* Has the device passed the zeros? BACKEND_FAILED: e says why. */
static bool zeros_over(struct mapping *m, enum backend_state *ret_state, struct err *e)
{
    enum backend_state state = m->b->marker->state(m->marker, e);
    bool over = state == BACKEND_DONE || state == BACKEND_FAILED;
    if (!over && clock_now_ns() - m->marked_ns > SCRUB_NS) {
        m->hung = true; /* the command may still run when the memory has its next user */
        (void)err_set(e, ERR_DEVICE_LOST, "zeroing new memory did not end");
        state = BACKEND_FAILED;
        over = true;
    }
    if (over) {
        m->b->marker->release(m->marker);
        m->marker = NULL;
        *ret_state = state;
    }
    return over;
}

static int zeros_wait(struct mapping *m, struct err *e)
{
    const struct timespec pause = {.tv_nsec = 20 * (long)NS_PER_US};
    enum backend_state state = BACKEND_FAILED;
    while (!zeros_over(m, &state, e)) {
        (void)nanosleep(&pause, NULL);
    }
    return state == BACKEND_FAILED ? e->code : 0;
}

void mapping_release(struct mapping *m)
{
    struct err why = ERR_INIT;
    if (m->marker != NULL) { /* the thread waits for these zeros */
        (void)zeros_wait(m, &why);
        mapper_go_on(m->mapper);
    }
    if (m->mapper != NULL) {
        mapper_drain(m->mapper);
    }
    if (m->mapper == NULL || mapper_empty(m->mapper)) {
        m->b->pages->release(m->d, m->range);
    }
    m->range = NULL;
}

static int clear_now(struct mapping *m, struct backend_ref ref, uint64_t bytes, struct err *e)
{
    struct err why = ERR_INIT;
    int rc = zeros(m, ref, bytes, &why);
    rc = rc == 0 ? zeros_wait(m, &why) : rc;
    if (rc != 0 && e != NULL) {
        *e = why;
    }
    return rc;
}

/* New memory may hold bytes of any process. The source may take it back at any time. So the call or
 * the thread that maps it waits for the zeros: some microseconds on an idle device. If the device
 * has other work, the memory is large or zeroing fails, the memory is handed out dirty and zeroed
 * in the order of streams. */
int mapping_clear(struct mapping *m, void *block, uint64_t at, uint64_t bytes, struct err *e)
{
    const struct backend_ref ref = {.block = block, .offset = at};
    if (bytes > SCRUB_BYTES || !m->quiet(m->data)) {
        return ERR_LIMIT;
    }
    if (m->mapper == NULL) {
        return clear_now(m, ref, bytes, e);
    }
    return mapper_waiting(m->mapper) > SCRUB_CALLS ? ERR_LIMIT
                                                   : mapper_clear(m->mapper, at, bytes, e);
}

/* The memory is mapped now. */
static void clear_begin(struct mapping *m, const struct mapper_report *r)
{
    const struct backend_ref ref = {.block = m->range, .offset = r->at};
    struct err why = ERR_INIT;
    m->clearing = *r;
    if (!m->quiet(m->data) || zeros(m, ref, r->bytes, &why) != 0) {
        pool_uncleared(m->pool, r->number, r->at, r->bytes);
        if (!m->hung) { /* else the memory must remain as it is */
            mapper_go_on(m->mapper);
        }
    }
}

/* Returns whether the thread goes on. */
static bool clear_end(struct mapping *m)
{
    enum backend_state state = BACKEND_FAILED;
    struct err why = ERR_INIT;
    if (!zeros_over(m, &state, &why)) {
        return false;
    }
    if (state == BACKEND_FAILED) {
        pool_uncleared(m->pool, m->clearing.number, m->clearing.at, m->clearing.bytes);
    }
    if (!m->hung) { /* else the memory must remain as it is */
        mapper_go_on(m->mapper);
    }
    return !m->hung;
}

/* ---- reports ----------------------------------------------------------------------------------*/

static void failed(struct mapping *m, const struct mapper_report *r)
{
    m->why = r->why;
    m->hung = m->hung || r->why.code == ERR_DEVICE_LOST || r->why.code == ERR_KERNEL_FAULT;
    if (!m->fails) {
        log_say(LOG_MAPPING_FAILED, "device memory could not be %s: %s",
                r->kind == MAPPER_LOST ? "unmapped, and is lost" : "mapped", r->why.text);
    }
    m->fails = true;
    if (r->kind == MAPPER_LOST) {
        pool_lost(m->pool, r->bytes);
    } else {
        pool_failed(m->pool, r->number, r->at, r->bytes, r->kind == MAPPER_STUCK);
    }
}

bool mapping_poll(struct mapping *m)
{
    struct mapper_report r;
    bool any = false;
    if (m->mapper == NULL || m->hung || (m->marker != NULL && !clear_end(m))) {
        return false;
    }
    while (m->marker == NULL && !m->hung && mapper_poll(m->mapper, &r)) {
        any = true;
        if (r.kind == MAPPER_CLEAR) {
            clear_begin(m, &r);
        } else if (r.kind == MAPPER_DIRTY) {
            pool_uncleared(m->pool, r.number, r.at, r.bytes);
        } else if (r.kind == MAPPER_DONE) {
            pool_mapped(m->pool, r.number);
            m->fails = m->fails && mapper_busy(m->mapper);
        } else {
            failed(m, &r);
        }
    }
    return any;
}

int mapping_refused(const struct mapping *m, struct err *e)
{
    return err_set(e, ERR_DEVICE_MEMORY, "the device gave no memory: %s",
                   m->why.code != 0 ? m->why.text : "a mapping failed");
}

bool mapping_busy(const struct mapping *m)
{
    return m->mapper != NULL && mapper_busy(m->mapper);
}

void mapping_drain(struct mapping *m, uint64_t ns)
{
    const struct timespec pause = {.tv_nsec = 20 * (long)NS_PER_US};
    uint64_t until = clock_now_ns() + ns;
    (void)mapping_poll(m);
    while (mapping_busy(m) && !m->hung && clock_now_ns() < until) {
        (void)nanosleep(&pause, NULL);
        (void)mapping_poll(m);
    }
}
