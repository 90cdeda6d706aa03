#include "daemon/front/clients/offload.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/thread.h"

#define STACK_BYTES ((size_t)256 * 1024)

struct offload {
    pthread_mutex_t lock;
    struct offload_job *done; /* ended jobs whose `done` the loop has to call */
    unsigned running;
    bool destroyed; /* jobs that end from now on are orphaned */
    bool loop_left; /* the loop does not refer to it any more, so the last thread frees it */
    uv_async_t async;
    void (*closed)(void *data);
    void *data;
};

static void offload_free(struct offload *a)
{
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void finish(struct offload_job *job)
{
    struct offload *a = job->offload;
    (void)pthread_mutex_lock(&a->lock);
    bool orphaned = a->destroyed;
    if (!orphaned) {
        job->next = a->done;
        a->done = job;
        /* under the lock, so that the handle is not closed meanwhile */
        (void)uv_async_send(&a->async);
    }
    a->running--;
    bool last = a->running == 0 && a->loop_left;
    (void)pthread_mutex_unlock(&a->lock);
    if (orphaned) {
        job->orphaned(job);
    }
    if (last) {
        offload_free(a);
    }
}

static void *run(void *data)
{
    struct offload_job *job = data;
    job->work(job);
    finish(job);
    return NULL;
}

void offload_run(struct offload *a, struct offload_job *job)
{
    pthread_t thread;
    job->offload = a;
    (void)pthread_mutex_lock(&a->lock);
    a->running++;
    (void)pthread_mutex_unlock(&a->lock);
    if (thread_start(STACK_BYTES, run, job, &thread)) {
        (void)pthread_detach(thread);
    } else {
        (void)run(job);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void report(struct offload *a)
{
    (void)pthread_mutex_lock(&a->lock);
    struct offload_job *job = a->done;
    a->done = NULL;
    (void)pthread_mutex_unlock(&a->lock);
    while (job != NULL) {
        struct offload_job *next = job->next;
        job->done(job);
        job = next;
    }
}

static void on_async(uv_async_t *async)
{
    report(async->data);
}

int offload_create(uv_loop_t *loop, struct offload **ret_offload, struct err *e)
{
    struct offload *a = calloc(1, sizeof *a);
    if (a == NULL || pthread_mutex_init(&a->lock, NULL) != 0) {
        free(a);
        return err_set(e, ERR_NOMEM, "no memory for offload threads");
    }
    if (uv_async_init(loop, &a->async, on_async) != 0) {
        offload_free(a);
        return err_set(e, ERR_IO, "threads beside the loop");
    }
    a->async.data = a;
    *ret_offload = a;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct offload *a = handle->data;
    void (*closed)(void *data) = a->closed;
    void *data = a->data;
    (void)pthread_mutex_lock(&a->lock);
    a->loop_left = true;
    bool last = a->running == 0;
    (void)pthread_mutex_unlock(&a->lock);
    if (last) {
        offload_free(a);
    }
    closed(data);
}

void offload_destroy(struct offload *a, void (*closed)(void *data), void *data)
{
    bool last = false;
    a->closed = closed;
    a->data = data;
    while (!last) { /* a report may start another job */
        report(a);
        (void)pthread_mutex_lock(&a->lock);
        last = a->destroyed = a->done == NULL;
        (void)pthread_mutex_unlock(&a->lock);
    }
    uv_close((uv_handle_t *)&a->async, on_closed);
}
