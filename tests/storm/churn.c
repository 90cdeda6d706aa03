/*
 * Clients that come, have jobs done, and leave or crash: when all are gone and nothing lingers, the
 * daemon has no descriptor more than after the first tenth of the jobs, and its heap is no larger.
 * scripts/nightly.sh churn runs it with 10^6 jobs.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/chance.h"
#include "tests/storm/usage.h"
#include "tests/system/harness/harness.h"

#define VISITORS  8u    /* at a time */
#define WARM      3000u /* jobs at least, until tables have the size that they keep */
#define VISIT     100u  /* jobs */
#define WINDOW    16u   /* of them at once */
#define ITEMS     64u
#define SETTLE_MS 2500u      /* longer than what lingers */
#define HEAP_MAX  (64 << 10) /* bytes that the front may have more */

static struct {
    uint64_t jobs;
    const char *device;
} options = {.jobs = 1000000, .device = "sim"};

static struct daemon d;
static _Atomic uint64_t *jobs_done; /* shared with the clients */

/* ---- a client ------------------------------------------------------------------------------- */

struct visitor {
    gpud_client *c;
    gpud_kernel axpy;
    gpud_buffer buffer;
    float *shared; /* WINDOW arrays of ITEMS, which the daemon reads and writes in place */
    gpud_job *job[WINDOW];
};

/* What a service has: memory that it shares, a buffer, a published name, a program. */
static void arrive(struct visitor *v, uint64_t number)
{
    char name[32];
    void *memory = NULL;
    gpud_program *p = NULL;
    v->c = client_open(d.url);
    v->axpy = kernel_find(v->c, "axpy");
    ck_gpud_ok(gpud_host_alloc(v->c, sizeof(float) * WINDOW * ITEMS, &memory));
    v->shared = memory;
    ck_gpud_ok(gpud_buffer_create(v->c, gpud_shape_1d(GPUD_F32, ITEMS), 0, NULL, &v->buffer));
    ck_gpud_ok(gpud_fill(v->c, gpud_out(v->buffer), gpud_f32(1)));
    (void)snprintf(name, sizeof name, "v%" PRIu64, number);
    ck_gpud_ok(gpud_buffer_publish(v->c, v->buffer, name, GPUD_IN, 0));
    ck_gpud_ok(gpud_program_create(v->c, name, &p));
    ck_gpud_ok(gpud_program_seal(p));
    ck_gpud_ok(gpud_run(v->c, p, NULL, 0, NULL, NULL));
    gpud_program_free(p);
}

/* y = 2 x + y, with x of ones. */
static void begin_job(struct visitor *v, unsigned slot)
{
    float *y = v->shared + (size_t)slot * ITEMS;
    for (unsigned i = 0; i < ITEMS; i++) {
        y[i] = (float)(slot + i);
    }
    const gpud_arg args[] = {gpud_f32(2), gpud_in(v->buffer), gpud_host(y, ITEMS, GPUD_F32)};
    const gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
    ck_gpud_ok(gpud_launch(v->c, v->axpy, args, 3, NULL, &o, &v->job[slot]));
}

static void end_job(struct visitor *v, unsigned slot)
{
    const float *y = v->shared + (size_t)slot * ITEMS;
    ck_gpud_ok(gpud_wait(v->job[slot], PATIENCE));
    gpud_job_free(v->job[slot]);
    v->job[slot] = NULL;
    for (unsigned i = 0; i < ITEMS; i++) {
        ck_assert_float_eq(y[i], (float)(slot + i + 2));
    }
    (void)atomic_fetch_add(jobs_done, 1);
}

/* Half of them close their session; a quarter end with it and a quarter are killed, in the middle
 * of their jobs. */
static int visit(void *data)
{
    struct chance chance = {*(uint64_t *)data};
    struct visitor v = {.c = NULL};
    uint64_t leaves = chance_below(&chance, 4);
    uint64_t last = leaves < 2 ? VISIT : WINDOW + chance_below(&chance, VISIT - WINDOW);
    arrive(&v, *(uint64_t *)data);
    for (unsigned i = 0; i < last; i++) {
        unsigned slot = i % WINDOW;
        if (v.job[slot] != NULL) {
            end_job(&v, slot);
        }
        begin_job(&v, slot);
    }
    if (leaves == 3) {
        (void)raise(SIGKILL);
    }
    if (leaves == 2) {
        _exit(0);
    }
    for (unsigned slot = 0; slot < WINDOW; slot++) {
        end_job(&v, slot);
    }
    gpud_close(v.c);
    return 0;
}

/* ---- the course ----------------------------------------------------------------------------- */

/* Clients come and go until so many jobs are done. How many there were. */
static uint64_t churn(uint64_t jobs, uint64_t *seed)
{
    unsigned here = 0;
    uint64_t came = 0;
    int status = 0;
    while (here > 0 || atomic_load(jobs_done) < jobs) {
        if (here < VISITORS && atomic_load(jobs_done) < jobs) {
            ++*seed;
            (void)process_start(visit, seed);
            here++;
            came++;
            continue;
        }
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_msg((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                          (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
                      "a client ended with wait status %d, after %" PRIu64 " jobs", status,
                      atomic_load(jobs_done));
        here--;
    }
    return came;
}

struct parts {
    struct usage front, launcher, worker;
};

static struct parts settled(struct heap_page *heap)
{
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "status", NULL, "sessions") == 1);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    gpud_close(c);
    pause_ms(SETTLE_MS);
    uint64_t bytes = heap_of_front(heap); /* first: it gives free pages back */
    struct parts p = {usage_of(d.pid), usage_of(daemon_launcher(&d)),
                      usage_of(daemon_worker(&d, 0))};
    p.front.heap = bytes;
    return p;
}

/* Returns whether there is a descriptor more. */
static bool tell(const char *what, const struct usage *before, const struct usage *after)
{
    int more = (int)(after->descriptors - before->descriptors);
    ck_assert_uint_gt(before->descriptors, 0);
    ck_assert_uint_gt(after->descriptors, 0);
    (void)printf("churn: %-8s descriptors %u, %+d; pages %" PRIu64 " KiB, %+" PRId64 " KiB", what,
                 after->descriptors, more, after->pages / 1024,
                 ((int64_t)after->pages - (int64_t)before->pages) / 1024);
    if (after->heap > 0) {
        (void)printf("; heap %" PRIu64 " bytes, %+" PRId64, after->heap,
                     (int64_t)after->heap - (int64_t)before->heap);
    }
    (void)printf("\n");
    return more > 0;
}

START_TEST(nothing_is_left_of_jobs)
{
    uint64_t seed = 0;
    bool sim = strcmp(options.device, "sim") == 0;
    jobs_done =
        mmap(NULL, sizeof *jobs_done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((const void *)jobs_done, MAP_FAILED);
    daemon_prepare(&d, "--backend", options.device, "--backend-options", sim ? "speed=0" : "",
                   "--set", "jobs.session_linger_ms=500", NULL);
    struct heap_page *heap = heap_begin(d.dir);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    uint64_t clients = churn(options.jobs / 10 > WARM ? options.jobs / 10 : WARM, &seed);
    struct parts before = settled(heap);
    clients += churn(options.jobs, &seed);
    struct parts after = settled(heap);
    (void)printf("churn: %" PRIu64 " jobs done rightly, %" PRIu64 " clients\n",
                 atomic_load(jobs_done), clients);
    bool more = tell("front", &before.front, &after.front);
    more = tell("launcher", &before.launcher, &after.launcher) || more;
    more = tell("worker", &before.worker, &after.worker) || more;
    (void)fflush(stdout);
    ck_assert(!more);
    ck_assert_int_le((int64_t)after.front.heap - (int64_t)before.front.heap, HEAP_MAX);
    daemon_stop(&d);
}
END_TEST

int main(int argc, char **argv)
{
    static const struct option known[] = {{"jobs", required_argument, NULL, 'j'},
                                          {"device", required_argument, NULL, 'd'},
                                          {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        if (option == 'j') {
            options.jobs = strtoull(optarg, NULL, 10);
        } else if (option == 'd') {
            options.device = optarg;
        } else {
            return 2;
        }
    }
    if (options.jobs < 10 || optind < argc) {
        (void)fprintf(stderr,
                      "usage: churn [--jobs N] [--device sim|opencl|cuda]; at least 10 jobs\n");
        return 2;
    }
    Suite *suite = suite_create("churn");
    tcase_set_timeout(suite_add(suite, nothing_is_left_of_jobs), 4 * 3600);
    return system_main(suite);
}
