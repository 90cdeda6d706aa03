/*
 * The agenda, and what the worker's calls of libc and libuv become: its clock is the world's, its
 * mapping thread is a context of its own that runs in steps of the agenda, and what it gives to
 * threads of libuv's is done in one step.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <pthread.h>
#include <semaphore.h>

#include "tests/sim/worker/ward.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES ((size_t)256 << 10)

/* A thread of the worker. */
struct ward_fiber {
    ucontext_t context, loop;
    void *(*run)(void *data);
    void *data;
    void *stack;
    bool inside; /* it runs now */
    bool over;
    const void *waits; /* a semaphore; NULL: it does not wait for one */
    void *fake;        /* AddressSanitizer's */
};

/* What a thread of libuv's does. */
struct ward_work {
    struct ward_work *next;
    uv_work_t *work;
    uv_work_cb run;
    uv_after_work_cb after;
};

static struct ward *here;
static bool beside;        /* a thread of libuv's works */
static bool sent;          /* a frame was sent */
static unsigned under_way; /* entries that threads have not done yet */

/* ---- agenda ---------------------------------------------------------------------------------- */

void ward_at(struct ward *w, uint64_t at_ns, void (*run)(struct ward *w, void *actor, uint64_t a),
             void *actor, uint64_t a)
{
    const struct hap h = {.at_ns = at_ns > w->now_ns ? at_ns : w->now_ns,
                          .run = (void (*)(void))run,
                          .actor = actor,
                          .a = a};
    haps_add(&w->agenda, h);
}

uint64_t ward_next_ns(const struct ward *w)
{
    return haps_next_ns(&w->agenda);
}

void ward_advance(struct ward *w, uint64_t to_ns)
{
    while (ward_next_ns(w) <= to_ns) {
        const struct hap h = haps_take(&w->agenda);
        w->now_ns = h.at_ns > w->now_ns ? h.at_ns : w->now_ns;
        ((void (*)(struct ward * w, void *actor, uint64_t a)) h.run)(w, h.actor, h.a);
    }
    w->now_ns = to_ns > w->now_ns ? to_ns : w->now_ns;
}

uint64_t ward_kept_ns(const struct ward *w, uint64_t since_ns)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < w->calls && i < WARD_CALLS; i++) {
        const struct ward_call *c = &w->call[i];
        uint64_t from = c->from_ns > since_ns ? c->from_ns : since_ns;
        uint64_t to = c->to_ns < w->now_ns ? c->to_ns : w->now_ns;
        ns += to > from ? to - from : 0;
    }
    return ns;
}

uint64_t ward_while(struct ward *w, uint64_t usual_ns)
{
    uint64_t n = chance_below(&w->chance, 100);
    return n < 30   ? chance_below(&w->chance, usual_ns / 8 + 1)
           : n < 95 ? chance_below(&w->chance, 2 * usual_ns + 1)
                    : chance_below(&w->chance, 20 * usual_ns + 1);
}

/* ---- the thread that maps memory ------------------------------------------------------------- */

static void enter(struct ward *w, void *actor, uint64_t a)
{
    struct ward_fiber *f = actor;
    (void)w;
    (void)a;
    f->inside = true;
#ifdef __SANITIZE_ADDRESS__
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, f->stack, STACK_BYTES);
#endif
    (void)swapcontext(&f->loop, &f->context);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
    f->inside = false;
}

#ifdef __SANITIZE_ADDRESS__
static const void *loop_stack;
static size_t loop_bytes;
#endif

static void leave(struct ward_fiber *f)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(f->over ? NULL : &f->fake, loop_stack, loop_bytes);
#endif
    (void)swapcontext(&f->context, &f->loop);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(f->fake, &loop_stack, &loop_bytes);
#endif
}

static void fiber_main(void)
{
    struct ward_fiber *f = here->fiber;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, &loop_stack, &loop_bytes);
#endif
    (void)f->run(f->data);
    f->over = true;
    leave(f);
}

void ward_pass(struct ward *w, uint64_t ns)
{
    struct ward_fiber *f = w->fiber;
    if (f != NULL && f->inside) {
        ward_at(w, w->now_ns + ns, enter, f, 0);
        leave(f);
    } else {
        ward_advance(w, w->now_ns + ns);
    }
}

void ward_call(struct ward *w, uint64_t ns)
{
    if (w->fiber == NULL || !w->fiber->inside) {
        w->call[w->calls++ % WARD_CALLS] =
            (struct ward_call){.from_ns = w->now_ns, .to_ns = w->now_ns + ns};
    }
    ward_pass(w, ns);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *data)
{
    struct ward_fiber *f = calloc(1, sizeof *f);
    (void)attr;
    *thread = 0;
    if (here->fiber != NULL || f == NULL) {
        abort(); /* the worker has one thread of its own */
    }
    f->run = run;
    f->data = data;
    f->stack = malloc(STACK_BYTES);
    (void)getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->context, fiber_main, 0);
    here->fiber = f;
    ward_at(here, here->now_ns + 1000, enter, f, 0);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret)
{
    struct ward_fiber *f = here->fiber;
    (void)thread;
    (void)ret;
    while (!f->over) {
        ward_advance(here, ward_next_ns(here));
    }
    free(f->stack);
    free(f);
    here->fiber = NULL;
    return 0;
}

/* A semaphore's count lies where libc has its own. */
static unsigned *count_of(sem_t *s)
{
    return (unsigned *)(void *)s;
}

int __wrap_sem_init(sem_t *s, int shared, unsigned value);
int __wrap_sem_init(sem_t *s, int shared, unsigned value)
{
    (void)shared;
    *count_of(s) = value;
    return 0;
}

int __wrap_sem_destroy(sem_t *s);
int __wrap_sem_destroy(sem_t *s)
{
    (void)s;
    return 0;
}

int __wrap_sem_post(sem_t *s);
int __wrap_sem_post(sem_t *s)
{
    struct ward_fiber *f = here->fiber;
    ++*count_of(s);
    if (f != NULL && f->waits == s) {
        f->waits = NULL;
        ward_at(here, here->now_ns + ward_while(here, 2000), enter, f, 0);
    }
    return 0;
}

int __wrap_sem_wait(sem_t *s);
int __wrap_sem_wait(sem_t *s)
{
    struct ward_fiber *f = here->fiber;
    while (*count_of(s) == 0) {
        f->waits = s;
        leave(f);
    }
    --*count_of(s);
    return 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* In place of libc's for libuv, too. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
    if (here == NULL) {
        return (int)syscall(SYS_clock_gettime, id, t);
    }
    t->tv_sec = (time_t)(here->now_ns / NS_PER_S);
    t->tv_nsec = (long)(here->now_ns % NS_PER_S);
    return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
    (void)rest;
    ward_pass(here, (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec);
    return 0;
}

/* The worker has one timer of this kind. An eventfd stands for it. */
static int timer = -1;
static uint64_t timer_set; /* how often it was set */

static void ring(struct ward *w, void *actor, uint64_t a)
{
    const uint64_t one = 1;
    (void)w;
    (void)actor;
    if (a == timer_set) {
        (void)!write(timer, &one, sizeof one);
    }
}

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock;
    (void)flags;
    timer = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return timer;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *was);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *was)
{
    uint64_t rung;
    uint64_t at_ns = (uint64_t)to->it_value.tv_sec * NS_PER_S + (uint64_t)to->it_value.tv_nsec;
    (void)was;
    if (fd != timer || (flags & TFD_TIMER_ABSTIME) == 0) {
        abort();
    }
    (void)!read(timer, &rung, sizeof rung);
    timer_set++;
    if (at_ns > 0) {
        ward_at(here, at_ns, ring, NULL, timer_set);
    }
    return 0;
}

/* ---- threads of libuv's ---------------------------------------------------------------------- */

static void done(struct ward *w, void *actor, uint64_t a)
{
    struct ward_work *x = actor;
    (void)a;
    x->next = NULL;
    *w->works_end = x;
    w->works_end = &x->next;
}

static void work(struct ward *w, void *actor, uint64_t a)
{
    struct ward_work *x = actor;
    (void)a;
    beside = true;
    x->run(x->work);
    beside = false;
    ward_at(w, w->now_ns + ward_while(w, w->params.call_ns), done, x, 0);
}

int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb run, uv_after_work_cb after);
int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb run, uv_after_work_cb after)
{
    struct ward_work *x = calloc(1, sizeof *x);
    req->loop = loop;
    x->work = req;
    x->run = run;
    x->after = after;
    under_way++;
    ward_at(here, here->now_ns + ward_while(here, 20000), work, x, 0);
    return 0;
}

bool ward_works_end(struct ward *w)
{
    bool any = w->works != NULL;
    while (w->works != NULL) {
        struct ward_work *x = w->works;
        w->works = x->next;
        w->works_end = w->works != NULL ? w->works_end : &w->works;
        under_way--;
        x->after(x->work, 0);
        free(x);
    }
    return any;
}

/* The channel has frames only after a call of this. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    sent = true;
    return __real_sendmsg(fd, m, flags);
}

bool ward_sent(void)
{
    bool any = sent;
    sent = false;
    return any;
}

bool ward_on_loop(const struct ward *w)
{
    return !beside && !(w->fiber != NULL && w->fiber->inside);
}

bool ward_threads_work(const struct ward *w)
{
    (void)w;
    return under_way > 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

void __wrap__exit(int status) __attribute__((noreturn));
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status)
{
    if (here != NULL) {
        ward_front_lost(here, status);
        status = 0;
    }
    __real__exit(status);
}

void ward_time_begin(struct ward *w)
{
    w->works_end = &w->works;
    under_way = 0;
    here = w;
}

void ward_time_end(struct ward *w)
{
    haps_finish(&w->agenda);
    here = NULL;
}
