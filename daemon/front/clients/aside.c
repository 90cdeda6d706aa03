#include "daemon/front/clients/aside.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define STACK_BYTES ((size_t)256 * 1024)

struct aside {
    pthread_mutex_t lock;
    struct aside_job *done; /* not told of yet */
    unsigned running;
    bool left;      /* nobody is told of anything any more */
    bool loop_left; /* the loop holds nothing of it; the last thread frees it */
    uv_async_t async;
    void (*closed)(void *data);
    void *data;
};

static void aside_free(struct aside *a)
{
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void finish(struct aside_job *job)
{
    struct aside *a = job->aside;
    (void)pthread_mutex_lock(&a->lock);
    bool left = a->left;
    if (!left) {
        job->next = a->done;
        a->done = job;
        (void)uv_async_send(&a->async); /* under the lock: it is not closed */
    }
    a->running--;
    bool last = a->running == 0 && a->loop_left;
    (void)pthread_mutex_unlock(&a->lock);
    if (left) {
        job->left(job);
    }
    if (last) {
        aside_free(a);
    }
}

static void *run(void *data)
{
    struct aside_job *job = data;
    job->work(job);
    finish(job);
    return NULL;
}

static bool start(struct aside_job *job)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attr) != 0) {
        return false;
    }
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    bool started = pthread_create(&thread, &attr, run, job) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return started;
}

void aside_run(struct aside *a, struct aside_job *job)
{
    job->aside = a;
    (void)pthread_mutex_lock(&a->lock);
    a->running++;
    (void)pthread_mutex_unlock(&a->lock);
    if (!start(job)) {
        (void)run(job);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void tell(struct aside *a)
{
    (void)pthread_mutex_lock(&a->lock);
    struct aside_job *job = a->done;
    a->done = NULL;
    (void)pthread_mutex_unlock(&a->lock);
    while (job != NULL) {
        struct aside_job *next = job->next;
        job->done(job);
        job = next;
    }
}

static void on_async(uv_async_t *async)
{
    tell(async->data);
}

int aside_create(uv_loop_t *loop, struct aside **ret_aside, struct err *e)
{
    struct aside *a = calloc(1, sizeof *a);
    if (a == NULL || pthread_mutex_init(&a->lock, NULL) != 0) {
        free(a);
        return err_set(e, ERR_NOMEM, "threads beside the loop");
    }
    if (uv_async_init(loop, &a->async, on_async) != 0) {
        aside_free(a);
        return err_set(e, ERR_IO, "threads beside the loop");
    }
    a->async.data = a;
    *ret_aside = a;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct aside *a = handle->data;
    void (*closed)(void *data) = a->closed;
    void *data = a->data;
    (void)pthread_mutex_lock(&a->lock);
    a->loop_left = true;
    bool last = a->running == 0;
    (void)pthread_mutex_unlock(&a->lock);
    if (last) {
        aside_free(a);
    }
    closed(data);
}

void aside_destroy(struct aside *a, void (*closed)(void *data), void *data)
{
    bool left = false;
    a->closed = closed;
    a->data = data;
    while (!left) { /* what is told of may give more work */
        tell(a);
        (void)pthread_mutex_lock(&a->lock);
        left = a->left = a->done == NULL;
        (void)pthread_mutex_unlock(&a->lock);
    }
    uv_close((uv_handle_t *)&a->async, on_closed);
}
