/*
 * Kernels that fault, and one that never ends (docs/faults.md, rows 1-5 and 8), on a device that
 * other sessions use. Only the faulting job fails, the others' jobs end with the right results,
 * sealed buffers are restored, the others are reported as lost, and the worker is back soon. A
 * process that uses the device without gpud notices nothing.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/gpu/direct.h"
#include "tests/gpu/system.h"

#define OTHERS 40u      /* jobs of the other session, more than a worker takes at a time */
#define WINDOW 8u       /* so many does a worker take at first */
#define COUNT  4096u    /* elements of its arrays */
#define SEALED 1000000u /* elements of its buffers */

/* Each of the other session's jobs takes so long at least that many of them are not over when the
 * fault comes, 50 ms after the start or at the time limit, whatever serves them beside it. */
static const struct {
    const char *item;
    const char *kernel;
    int code; /* what the job ends with */
    uint64_t time_limit_ns, spin_ns;
    bool beside; /* a process with a context of its own computes, too */
} rows[] = {
    {"fault 1, null store", "null_store", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, false},
    {"fault 2, misaligned", "misaligned", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, false},
    {"fault 3, device assert", "device_assert", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, false},
    {"fault 3, trap", "device_trap", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, false},
    {"fault 4, bad jump", "bad_jump", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, false},
    {"fault 5, shared memory", "shared_out", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, false},
    {"fault 8, endless kernel", "endless", GPUD_ERR_TIME_LIMIT, 500 * MS, 100 * MS, false},
    {"fault 1, other process", "null_store", GPUD_ERR_KERNEL_FAULT, 0, 25 * MS, true},
};

/* The session that did nothing wrong. */
struct other {
    gpud_client *c;
    gpud_program *program;
    gpud_buffer sealed, plain;
    gpud_job *job[OTHERS];
    float x[COUNT];
};

static gpud_buffer buffer_of(gpud_client *c, float value)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, SEALED), 0, NULL, &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(value)));
    return b;
}

/* Waits a while on the device, then y = 2x + 1, read back. */
static void other_open(struct other *o, const struct daemon *d, uint64_t spin_ns)
{
    const gpud_grid one = {.size = sizeof one, .global = {1, 1, 1}, .local = {1, 1, 1}};
    memset(o, 0, sizeof *o);
    o->c = client_open(d->url);
    gpud_kernel spin = gpu_kernel(o->c, gpu_module(o->c), "spin");
    for (unsigned i = 0; i < COUNT; i++) {
        o->x[i] = (float)i;
    }
    const gpud_shape shape = gpud_shape_1d(GPUD_F32, COUNT);
    ck_gpud_ok(gpud_program_create(o->c, "other", &o->program));
    gpud_arg y = gpud_program_temp(o->program, shape);
    gpud_arg x = gpud_program_temp(o->program, shape);
    const gpud_arg ns = gpud_u64(spin_ns);
    ck_assert_int_ge(gpud_program_launch(o->program, spin, &ns, 1, &one), 0);
    ck_assert_int_ge(gpud_program_write(o->program, x, gpud_host_in(o->x, COUNT, GPUD_F32)), 0);
    ck_assert_int_ge(gpud_program_fill(o->program, y, gpud_f32(1)), 0);
    const gpud_arg args[] = {gpud_f32(2), gpud_arg_with(x, GPUD_IN), gpud_arg_with(y, GPUD_INOUT)};
    ck_assert_int_ge(gpud_program_launch(o->program, kernel_find(o->c, "axpy"), args, 3, NULL), 0);
    ck_assert_int_ge(gpud_program_read(o->program, gpud_arg_with(y, GPUD_IN)), 0);
    ck_gpud_ok(gpud_program_seal(o->program));
    ck_gpud_ok(gpud_run(o->c, o->program, NULL, 0, NULL, NULL)); /* its kernels are loaded now */
    o->sealed = buffer_of(o->c, 5);
    o->plain = buffer_of(o->c, 6);
    ck_gpud_ok(gpud_buffer_seal(o->c, o->sealed));
}

static void other_submit(struct other *o)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        ck_gpud_ok(gpud_submit(o->c, o->program, NULL, 0, NULL, &o->job[i]));
    }
}

static unsigned other_left(const struct other *o)
{
    unsigned left = 0;
    for (unsigned i = 0; i < OTHERS; i++) {
        left += !gpud_job_done(o->job[i]);
    }
    return left;
}

/* Every job ended well, with the right numbers; how many ran again. */
static unsigned other_check(struct other *o)
{
    static float values[SEALED];
    unsigned replayed = 0;
    for (unsigned i = 0; i < OTHERS; i++) {
        const void *data = NULL;
        size_t bytes = 0;
        gpud_job_times times = {.size = sizeof times};
        ck_gpud_ok(gpud_wait(o->job[i], PATIENCE));
        ck_gpud_ok(gpud_job_output(o->job[i], 4, 0, &data, &bytes));
        ck_assert_uint_eq(bytes, COUNT * sizeof(float));
        for (unsigned k = 0; k < COUNT; k++) {
            float value = 0;
            memcpy(&value, (const char *)data + k * sizeof value, sizeof value);
            ck_assert_msg(value == 2 * o->x[k] + 1, "job %u: element %u is %g", i, k,
                          (double)value);
        }
        ck_gpud_ok(gpud_job_timing(o->job[i], &times));
        replayed += times.replays > 0;
        gpud_job_free(o->job[i]);
    }
    ck_gpud_ok(gpud_read(o->c, o->sealed, GPUD_F32, 0, GPUD_REST, values, NULL));
    for (unsigned k = 0; k < SEALED; k++) {
        ck_assert_msg(values[k] == 5, "sealed: element %u is %g", k, (double)values[k]);
    }
    ck_gpud_err(gpud_read(o->c, o->plain, GPUD_F32, 0, GPUD_REST, values, NULL),
                GPUD_ERR_BUFFER_LOST);
    return replayed;
}

static void other_close(struct other *o)
{
    gpud_program_free(o->program);
    gpud_close(o->c);
}

/* ---- the device ------------------------------------------------------------------------------ */

/* What keeps a device from serving, by the daemon's words; SERVES holds the sum of the others. */
enum phase { SERVES, ENDING, PAUSE, STARTING, PROBING, ELSE, PHASES };

static const struct {
    const char *word, *figure;
} phases[PHASES] = {
    [ENDING] = {"ending its worker", "until it was gone"},
    [PAUSE] = {"restarting", "until the next"},
    [STARTING] = {"starting", "starting"},
    [PROBING] = {"probing", "its first job"},
    [ELSE] = {"", "otherwise away"},
};

struct away {
    enum phase phase; /* since at_ns */
    uint64_t at_ns;
    uint64_t now_ns[PHASES];     /* since the device does not serve */
    uint64_t longest_ns[PHASES]; /* of the longest such time */
    char problem[512];           /* the last one */
    unsigned left;               /* the others' jobs that were not over when it began */
    bool seen;
};

static enum phase phase_of(const char *problem)
{
    static const char begin[] = "device 0 is ";
    const char *word = strstr(problem, begin);
    enum phase p = ENDING;
    if (word == NULL) {
        return ELSE;
    }
    word += strlen(begin);
    while (p < ELSE && strncmp(word, phases[p].word, strlen(phases[p].word)) != 0) {
        p++;
    }
    return p;
}

static void away_look(struct away *a, const struct other *o)
{
    gpud_table *t = NULL;
    ck_gpud_ok(gpud_query(o->c, "status", NULL, &t));
    int serving = gpud_table_find(t, "serving");
    int problem = gpud_table_find(t, "problem");
    ck_assert(serving >= 0 && problem >= 0);
    enum phase phase = SERVES;
    if (gpud_table_value(t, 0, (uint32_t)serving) == 0) {
        (void)snprintf(a->problem, sizeof a->problem, "%s",
                       gpud_table_text(t, 0, (uint32_t)problem));
        phase = phase_of(a->problem);
    }
    gpud_table_free(t);
    uint64_t at_ns = now_ns();
    if (a->phase != SERVES) {
        a->now_ns[a->phase] += at_ns - a->at_ns;
        a->now_ns[SERVES] += at_ns - a->at_ns;
    }
    if (phase == SERVES && a->now_ns[SERVES] > a->longest_ns[SERVES]) {
        memcpy(a->longest_ns, a->now_ns, sizeof a->longest_ns);
    }
    if (phase == SERVES) {
        memset(a->now_ns, 0, sizeof a->now_ns);
    } else if (!a->seen) {
        a->seen = true;
        a->left = other_left(o);
    }
    a->phase = phase;
    a->at_ns = at_ns;
}

/* Looks every millisecond until all has ended. */
static void watch(struct away *a, struct other *o, gpud_job *bad)
{
    uint64_t end_ns = now_ns() + PATIENCE;
    *a = (struct away){.phase = SERVES, .at_ns = now_ns()};
    while (other_left(o) > 0 || gpud_wait(bad, 0) == GPUD_ERR_TIMEOUT || a->phase != SERVES) {
        ck_assert_msg(now_ns() < end_ns, "%u jobs never ended; the last trouble: %s", other_left(o),
                      a->seen ? a->problem : "none was seen");
        away_look(a, o);
        pause_ms(1);
    }
}

static void away_record(const struct away *a, struct record *r)
{
    /* How long a context takes to open is the driver's: item "opening". */
    uint64_t ours_ns = a->longest_ns[SERVES] - a->longest_ns[STARTING];
    record_figure(r, "worker away at most", (double)a->longest_ns[SERVES] / 1e6, "ms");
    record_target(r, "of that not opening the device", (double)ours_ns / 1e6, "ms", RECORD_AT_MOST,
                  2000);
    for (enum phase p = ENDING; p < PHASES; p++) {
        if (p != ELSE || a->longest_ns[p] > 0) {
            record_figure(r, phases[p].figure, (double)a->longest_ns[p] / 1e6, "ms");
        }
    }
    /* else nothing waited, and the row shows nothing */
    record_target(r, "others' jobs not over then", a->left, "", RECORD_AT_LEAST, WINDOW + 1);
}

/* ---- a process without gpud ------------------------------------------------------------------ */

#define KEPT 65536u /* bytes of its memory */

struct beside {
    atomic_bool ready, stop;
    _Atomic uint64_t kernels, longest_ns;
};

/* Computes on a context of its own until it is stopped; its memory must keep its contents. */
static int beside_work(void *data)
{
    struct beside *b = data;
    struct direct d;
    CUdeviceptr memory = 0;
    static unsigned char kept[KEPT], got[KEPT];
    direct_open(&d);
    CUfunction spin = direct_kernel(&d, "spin");
    memset(kept, 0x5a, sizeof kept);
    must(d.cu.MemAlloc(&memory, KEPT));
    must(d.cu.MemcpyHtoDAsync(memory, kept, KEPT, d.stream));
    while (!atomic_load(&b->stop)) {
        uint64_t begin_ns = now_ns();
        direct_launch(&d, spin, 0, 2 * MS);
        direct_wait(&d);
        uint64_t took_ns = now_ns() - begin_ns;
        if (atomic_load(&b->kernels) > 0 && took_ns > atomic_load(&b->longest_ns)) {
            atomic_store(&b->longest_ns, took_ns);
        }
        (void)atomic_fetch_add(&b->kernels, 1);
        atomic_store(&b->ready, true);
    }
    must(d.cu.MemcpyDtoHAsync(got, memory, KEPT, d.stream));
    direct_wait(&d);
    must(d.cu.MemFree(memory));
    direct_close(&d);
    return memcmp(kept, got, KEPT) == 0 ? 0 : 3;
}

static struct beside *beside_start(pid_t *ret_pid)
{
    struct beside *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(b, MAP_FAILED);
    *ret_pid = process_start(beside_work, b);
    ck_until(atomic_load(&b->ready));
    return b;
}

/* Goes on after the fault, and ends well. */
static void beside_end(struct beside *b, pid_t pid, struct record *r)
{
    uint64_t kernels = atomic_load(&b->kernels);
    ck_until(atomic_load(&b->kernels) > kernels + 1);
    atomic_store(&b->stop, true);
    int status = process_wait(pid);
    ck_assert_msg(status == 0, "the process without gpud %s (%d)",
                  status == 3 ? "found its memory changed" : "failed", status);
    record_figure(r, "its kernels", (double)atomic_load(&b->kernels), "");
    record_figure(r, "its longest", (double)atomic_load(&b->longest_ns) / 1e6, "ms");
    (void)munmap(b, sizeof *b);
}

/* ---- all of it ------------------------------------------------------------------------------- */

START_TEST(fault)
{
    static struct other o;
    struct daemon d;
    struct record r;
    struct away away;
    struct beside *beside = NULL;
    pid_t pid = 0;
    gpud_client *c = gpu_begin(&d);
    gpud_kernel kernel = gpu_kernel(c, gpu_module(c), rows[_i].kernel);
    gpud_error error = {.size = sizeof error};
    other_open(&o, &d, rows[_i].spin_ns);
    uint64_t restarts = query_value(c, "status", NULL, "restarts");
    pid_t front = d.pid;
    record_begin(&r, rows[_i].item);
    if (rows[_i].beside) {
        beside = beside_start(&pid);
    }

    gpud_job *bad = gpu_launch(c, kernel, NULL, 0, rows[_i].time_limit_ns);
    other_submit(&o);
    watch(&away, &o, bad);
    ck_gpud_ok(gpud_job_error(bad, &error));
    ck_assert_msg(error.code == rows[_i].code, "%s instead of %s: %s", gpud_err_name(error.code),
                  gpud_err_name(rows[_i].code), error.text);
    unsigned replayed = other_check(&o);
    restarts = query_value(c, "status", NULL, "restarts") - restarts;
    ck_assert_uint_gt(restarts, 0);
    ck_assert_int_eq(d.pid, front);

    record_note(&r, "%s", error.text);
    away_record(&away, &r);
    record_figure(&r, "workers ended", (double)restarts, "");
    record_figure(&r, "others' jobs", OTHERS, "");
    record_figure(&r, "of them run again", replayed, "");
    if (rows[_i].code == GPUD_ERR_KERNEL_FAULT) { /* of a time limit the driver says nothing */
        record_figure(&r, "CUresult", error.vendor, "");
    }
    if (beside != NULL) {
        beside_end(beside, pid, &r);
    }
    bool passed = record_end(&r);
    gpud_job_free(bad);
    other_close(&o);
    daemon_end(&d, c);
    ck_assert_msg(passed, "a target was missed");
}
END_TEST

Suite *faults_suite(void)
{
    Suite *s = suite_create("faults");
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        gpu_add(s, rows[i].item, fault, i);
    }
    return s;
}
