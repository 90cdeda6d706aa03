#include "daemon/worker/memory/registrar.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#define PAGE 4096u /* bytes of the smallest page */

void registrar_init(struct registrar *r, const struct backend *b, struct backend_device *d,
                    uv_loop_t *loop)
{
    *r = (struct registrar){.b = b, .d = d, .loop = loop};
    r->work.data = r;
}

bool registrar_busy(const struct registrar *r)
{
    return r->turns.first != NULL;
}

bool registration_left(const struct registration *x)
{
    return x->kind == REGISTRAR_ADD ? x->size > 0 : x->at < x->size;
}

bool registration_known(const struct registration *x)
{
    return x->kind == REGISTRAR_ADD ? x->known > 0 : x->at < x->known;
}

/* ---- in the thread ----------------------------------------------------------------------------*/

static uint64_t slice_at(const struct registrar *r, const struct registration *x, uint64_t at)
{
    const struct backend_memory_ops *ops = r->b->memory;
    uint64_t rest = x->size - at;
    uint64_t most = rest < REGISTRAR_SLICE ? rest : REGISTRAR_SLICE;
    return ops->register_host == NULL ? most
           : ops->host_slice == NULL  ? rest
                                      : ops->host_slice(r->d, x->data, x->size, at);
}

/* All or nothing is registered. */
static void undo(const struct registrar *r, struct registration *x)
{
    for (uint64_t at = 0, n; at < x->known; at += n) {
        n = slice_at(r, x, at);
        r->b->memory->unregister_host(r->d, x->data + at, (size_t)n);
    }
    x->known = x->at = 0;
}

/* Linux before 5.14 cannot do it, and then each page is touched. */
static int populate(uint8_t *data, uint64_t size, struct err *e)
{
    if (madvise(data, (size_t)size, MADV_POPULATE_WRITE) == 0) {
        return 0;
    }
    if (errno != EINVAL) {
        return err_errno(e, ERR_DEVICE_MEMORY, "%" PRIu64 " bytes of host memory", size);
    }
    for (uint64_t at = 0; at < size; at += PAGE) {
        *(volatile uint8_t *)(data + at) = 0;
    }
    return 0;
}

static void add(const struct registrar *r, struct registration *x)
{
    const struct backend_memory_ops *ops = r->b->memory;
    uint64_t n = slice_at(r, x, x->at);
    uint8_t *data = x->data + x->at;
    int rc = ops->register_host != NULL ? ops->register_host(r->d, data, (size_t)n, true, &x->e)
                                        : populate(data, n, &x->e);
    if (rc != 0) {
        undo(r, x);
        return;
    }
    x->known += ops->register_host != NULL ? n : 0;
    x->at += n;
}

static void drop(const struct registrar *r, struct registration *x)
{
    uint64_t n = slice_at(r, x, x->at);
    if (x->at < x->known) {
        r->b->memory->unregister_host(r->d, x->data + x->at, (size_t)n);
    }
    (void)munmap(x->data + x->at, (size_t)n);
    x->at += n;
}

static void on_work(uv_work_t *work)
{
    struct registrar *r = work->data;
    if (r->busy->kind == REGISTRAR_ADD) {
        add(r, r->busy);
    } else {
        drop(r, r->busy);
    }
}

/* ---- on the loop ------------------------------------------------------------------------------*/

static void on_work_done(uv_work_t *work, int status);

static void next(struct registrar *r)
{
    if (r->busy == NULL && r->turns.first != NULL) {
        r->busy = (struct registration *)r->turns.first;
        (void)uv_queue_work(r->loop, &r->work, on_work,
                            on_work_done); /* fails without a function */
    }
}

static void end(struct registrar *r, struct registration *x)
{
    turns_remove(&r->turns, &x->turn);
    x->done(x);
}

static void on_work_done(uv_work_t *work, int status)
{
    struct registrar *r = work->data;
    struct registration *x = r->busy;
    (void)status; /* it is never cancelled */
    r->busy = NULL;
    turns_pass(&r->turns);
    bool over = x->kind == REGISTRAR_REMOVE || x->e.code != 0 || x->at == x->size;
    if (!over && x->stopped) {
        (void)err_set(&x->e, ERR_CANCELLED, "the memory is no longer needed");
    }
    if (over || x->stopped) {
        end(r, x);
    }
    next(r);
}

static void put(struct registrar *r, struct registration *x, uint64_t tenant)
{
    turns_add(&r->turns, &x->turn, tenant);
    next(r);
}

void registrar_add(struct registrar *r, struct registration *x, uint64_t tenant)
{
    x->kind = REGISTRAR_ADD;
    x->at = x->known = 0;
    x->stopped = false;
    x->e = ERR_INIT;
    put(r, x, tenant);
}

void registrar_stop(struct registrar *r, struct registration *x)
{
    x->stopped = true;
    if (x != r->busy) {
        (void)err_set(&x->e, ERR_CANCELLED, "the memory is no longer needed");
        end(r, x);
    }
}

void registrar_remove(struct registrar *r, struct registration *x, uint64_t tenant)
{
    if (x->kind == REGISTRAR_ADD) {
        x->kind = REGISTRAR_REMOVE;
        x->at = 0;
    }
    put(r, x, tenant);
}
