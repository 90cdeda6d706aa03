/*
 * Kernels that fault, and one that never ends (docs/faults.md, rows 1-5 and 8), on a device that
 * other sessions use: the faulting job alone fails, the others' jobs end with the right results,
 * sealed buffers are restored, others told as lost, and the worker is back soon.
 */
#include <string.h>

#include "tests/gpu/system.h"

#define OTHERS 24u      /* jobs of the other session, more than a worker takes at a time */
#define COUNT  4096u    /* elements of its arrays */
#define SEALED 1000000u /* elements of its buffers */
#define SPIN   (5 * MS) /* what each of its jobs takes at least */

static const struct {
    const char *item;
    const char *kernel;
    int code; /* what the job ends with */
    uint64_t time_limit_ns;
} rows[] = {
    {"fault 1, null store", "null_store", GPUD_ERR_KERNEL_FAULT, 0},
    {"fault 2, misaligned", "misaligned", GPUD_ERR_KERNEL_FAULT, 0},
    {"fault 3, device assert", "device_assert", GPUD_ERR_KERNEL_FAULT, 0},
    {"fault 3, trap", "device_trap", GPUD_ERR_KERNEL_FAULT, 0},
    {"fault 4, bad jump", "bad_jump", GPUD_ERR_KERNEL_FAULT, 0},
    {"fault 5, shared memory", "shared_out", GPUD_ERR_KERNEL_FAULT, 0},
    {"fault 8, endless kernel", "endless", GPUD_ERR_TIME_LIMIT, 500 * MS},
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
static void other_open(struct other *o, const struct daemon *d)
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
    const gpud_arg ns = gpud_u64(SPIN);
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

static bool other_done(const struct other *o)
{
    bool done = true;
    for (unsigned i = 0; i < OTHERS; i++) {
        done = done && gpud_job_done(o->job[i]);
    }
    return done;
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

/* The longest time in which the device served nobody, as the daemon tells, until all has ended. */
static uint64_t watch(struct other *o, gpud_job *bad)
{
    uint64_t down_ns = 0;
    uint64_t longest_ns = 0;
    uint64_t end_ns = now_ns() + PATIENCE;
    bool ready = true;
    while (!other_done(o) || gpud_wait(bad, 0) == GPUD_ERR_TIMEOUT || !ready) {
        char state[64];
        ck_assert_msg(now_ns() < end_ns, "the jobs never ended");
        query_text(o->c, "devices", "0", "state", state, sizeof state);
        uint64_t at_ns = now_ns();
        bool now_ready = strcmp(state, "ready") == 0;
        down_ns = ready && !now_ready ? at_ns : down_ns;
        if (!now_ready && at_ns - down_ns > longest_ns) {
            longest_ns = at_ns - down_ns;
        }
        ready = now_ready;
        pause_ms(1);
    }
    return longest_ns;
}

START_TEST(fault)
{
    static struct other o;
    struct daemon d;
    struct record r;
    gpud_client *c = gpu_begin(&d);
    gpud_kernel kernel = gpu_kernel(c, gpu_module(c), rows[_i].kernel);
    gpud_error error = {.size = sizeof error};
    other_open(&o, &d);
    uint64_t restarts = query_value(c, "status", NULL, "restarts");
    pid_t front = d.pid;
    record_begin(&r, rows[_i].item);

    gpud_job *bad = gpu_launch(c, kernel, NULL, 0, rows[_i].time_limit_ns);
    other_submit(&o);
    uint64_t down_ns = watch(&o, bad);
    ck_gpud_ok(gpud_job_error(bad, &error));
    ck_assert_msg(error.code == rows[_i].code, "%s instead of %s: %s", gpud_err_name(error.code),
                  gpud_err_name(rows[_i].code), error.text);
    unsigned replayed = other_check(&o);
    restarts = query_value(c, "status", NULL, "restarts") - restarts;
    ck_assert_uint_gt(restarts, 0);
    ck_assert_int_eq(d.pid, front);

    record_note(&r, "%s", error.text);
    record_target(&r, "worker away at most", (double)down_ns / 1e6, "ms", RECORD_AT_MOST, 2000);
    record_figure(&r, "workers ended", (double)restarts, "");
    record_figure(&r, "others' jobs", OTHERS, "");
    record_figure(&r, "of them run again", replayed, "");
    record_figure(&r, "CUresult", error.vendor, "");
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
    suite_add_loop(s, fault, (int)(sizeof rows / sizeof rows[0]));
    return s;
}
