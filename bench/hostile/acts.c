#include "bench/hostile/acts.h"

#include <errno.h>
#include <gpud/gpud.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/echo.h"
#include "common/clock.h"

#define WINDOW      256u /* jobs at once of one session */
#define LARGE       ((uint64_t)512 << 20)
#define PIECE       ((uint64_t)4 << 20)
#define SESSIONS    250u /* of one process */
#define SOURCE_ROOM 4096u

/* A client; while there is none, the process waits and tries again. */
static gpud_client *client_of(const char *url, struct act_tally *t)
{
    const gpud_options o = {.size = sizeof o,
                            .name = "hostile",
                            .connect_timeout_ns = NS_PER_S,
                            .timeout_ns = 60 * NS_PER_S,
                            .reconnect_ns = NS_PER_S};
    gpud_client *c = NULL;
    while (gpud_open(url, &o, &c) != 0) {
        atomic_fetch_add(&t->refused, 1);
        (void)usleep(1000);
    }
    return c;
}

static void count(struct act_tally *t, int code)
{
    atomic_fetch_add(code == 0 ? &t->done : &t->refused, 1);
}

/* ---- floods --------------------------------------------------------------------------------- */

static void take(struct act_tally *t, gpud_job **job)
{
    if (*job != NULL) {
        count(t, gpud_wait(*job, GPUD_FOREVER));
        gpud_job_free(*job);
        *job = NULL;
    }
}

/* As many jobs as a session may have, without a pause, whatever a refusal asks for. */
static void flood(const char *url, struct act_tally *t)
{
    gpud_job *job[WINDOW] = {NULL};
    gpud_client *c = client_of(url, t);
    gpud_buffer b = {0};
    while (gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 1024), 0, NULL, &b) != 0) {
        count(t, -1);
    }
    gpud_kernel fill;
    if (gpud_kernel_find(c, "fill", &fill) != 0) {
        bench_die("a kernel: %s", gpud_last_error()->text);
    }
    const gpud_arg args[] = {gpud_u32(7), gpud_out(b)};
    for (unsigned i = 0;; i = (i + 1) % WINDOW) {
        take(t, &job[i]);
        if (gpud_launch(c, fill, args, 2, NULL, NULL, &job[i]) != 0) {
            count(t, -1);
            job[i] = NULL;
        }
    }
}

/* ---- source --------------------------------------------------------------------------------- */

/* Each source is new to the daemon. */
static unsigned long serial(void)
{
    static unsigned long next;
    return (unsigned long)getpid() * 1000000ul + next++;
}

static int load(gpud_client *c, const char *source, gpud_module *ret_module)
{
    const gpud_module_options o = {.size = sizeof o, .name = "hostile", .file = "hostile.cl"};
    return gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), &o, ret_module);
}

/* A session whose kernel writes to address 0, and a client that ends in the middle. */
static void crash_once(const char *url, struct act_tally *t)
{
    static const gpud_grid one = {.size = sizeof one, .global = {1}, .local = {1}};
    char source[SOURCE_ROOM];
    gpud_module m = {0};
    gpud_kernel k = {0};
    int32_t y = 0;
    const gpud_arg arg = gpud_host_inout(&y, 1, GPUD_I32);
    gpud_client *c = client_of(url, t);
    (void)snprintf(source, sizeof source,
                   "__kernel void bad(__global int *y) { *(volatile __global int *)0 = %lu; }",
                   serial());
    if (load(c, source, &m) == 0 && gpud_module_kernel_at(c, m, 0, &k) == 0) {
        count(t, gpud_call(c, k, &arg, 1, &one) != 0 ? 0 : -1);
    } else {
        count(t, -1);
    }
    gpud_job *job = NULL;
    gpud_arg fill[] = {gpud_i32(1), gpud_host_out(&y, 1, GPUD_I32)};
    gpud_kernel filler;
    if (gpud_kernel_find(c, "fill", &filler) == 0) {
        (void)gpud_launch(c, filler, fill, 2, NULL, NULL, &job);
    }
    (void)kill(getpid(), SIGKILL);
}

static void crash(const char *url, struct act_tally *t)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            crash_once(url, t);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid) {
            bench_die("a client that crashes: %s", strerror(errno));
        }
    }
}

/* Kernels that do not end, each of a source of its own, so that none is quarantined. */
static void endless(const char *url, struct act_tally *t)
{
    static const gpud_grid one = {.size = sizeof one, .global = {1}, .local = {1}};
    char source[SOURCE_ROOM];
    gpud_client *c = client_of(url, t);
    for (;;) {
        gpud_module m = {0};
        gpud_kernel k = {0};
        float y[2] = {0};
        const gpud_arg arg = gpud_host_inout(y, 2, GPUD_F32);
        (void)snprintf(source, sizeof source,
                       "__kernel void endless(__global volatile float *y)"
                       " { while (y[0] < 1.0f) { y[1] += %lu.0f; } }",
                       serial());
        if (load(c, source, &m) != 0 || gpud_module_kernel_at(c, m, 0, &k) != 0) {
            count(t, -1);
            continue;
        }
        count(t, gpud_call(c, k, &arg, 1, &one) == GPUD_ERR_TIME_LIMIT ? 0 : -1);
        (void)gpud_module_unload(c, m);
    }
}

/* 2^20 additions from 20 lines, for a compiler that unrolls what is left. */
static void bomb(const char *url, struct act_tally *t)
{
    char source[SOURCE_ROOM];
    gpud_client *c = client_of(url, t);
    for (;;) {
        int n = snprintf(source, sizeof source, "#define X0 y[0] = y[0] * y[1] + %lu;\n", serial());
        for (unsigned i = 1; i <= 20; i++) {
            n += snprintf(source + n, sizeof source - (size_t)n, "#define X%u X%u X%u\n", i, i - 1,
                          i - 1);
        }
        (void)snprintf(source + n, sizeof source - (size_t)n,
                       "__kernel void bomb(__global volatile int *y) { X20 }");
        gpud_module m = {0};
        (void)load(c, source, &m); /* it ends at a limit */
        count(t, 0);
    }
}

/* ---- memory and sessions -------------------------------------------------------------------- */

static void zeros(const char *url, struct act_tally *t)
{
    gpud_client *c = client_of(url, t);
    for (;;) {
        gpud_buffer b[4];
        unsigned made = 0;
        while (made < 4) {
            int rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, LARGE), GPUD_BUFFER_ZERO, NULL,
                                        &b[made]);
            count(t, rc);
            if (rc != 0) {
                break;
            }
            made++;
        }
        for (unsigned i = 0; i < made; i++) { /* what was not written needs no zeroing */
            for (uint64_t at = 0; at < LARGE; at += PIECE) {
                (void)gpud_fill(c, gpud_arg_with(gpud_slice(b[i], at, PIECE), GPUD_OUT),
                                gpud_u8(7));
            }
        }
        while (made > 0) {
            (void)gpud_buffer_free(c, b[--made]);
        }
    }
}

/* Opens and closes as many sessions as it gets, which ask for what is dear to tell. */
static void sessions(const char *url, struct act_tally *t)
{
    static const gpud_options o = {.size = sizeof o,
                                   .name = "hostile",
                                   .connect_timeout_ns = NS_PER_S,
                                   .timeout_ns = 60 * NS_PER_S,
                                   .reconnect_ns = NS_PER_S};
    static gpud_client *c[SESSIONS];
    for (unsigned i = 0;; i = (i + 1) % SESSIONS) {
        gpud_table *table = NULL;
        if (c[i] != NULL) {
            count(t, gpud_query(c[i], "sessions", NULL, &table));
            gpud_table_free(table);
            gpud_close(c[i]);
            c[i] = NULL;
        }
        if (gpud_open(url, &o, &c[i]) != 0) {
            atomic_fetch_add(&t->refused, 1);
            c[i] = NULL;
        }
    }
}

const struct act acts[] = {
    {"floods", "jobs/s", 4, 1, false, false, flood},
    {"crashes", "crashes/s", 2, 1, true, false, crash},
    {"compile bombs", "bombs/s", 4, 1, true, false, bomb},
    {"zeros", "GiB/s", 4, 0.5, false, false, zeros},
    {"1,000 sessions", "sessions/s", 4, 1, false, false, sessions},
    {"endless kernels", "kernels/s", 2, 1, true, true, endless},
};
const unsigned act_count = sizeof acts / sizeof acts[0];

void act_work(const void *hostile, int in, int out)
{
    const struct hostile *h = hostile;
    (void)in;
    errno = 0;
    if (nice(19) == -1 && errno != 0) {
        bench_die("nice: %s", strerror(errno));
    }
    if (write(out, "", 1) != 1) {
        _Exit(EXIT_FAILURE);
    }
    h->act->work(h->url, h->tally);
}
