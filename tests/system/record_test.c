/* Recordings: what one daemon records another one runs again, with the same results. And what ends
 * a recording, and who may have one. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define N      1000u
#define ROUNDS 20u
#define SOME   15000u /* floats that travel with a job */

static struct daemon d;
static struct daemon again; /* where it is replayed */
static char out[DAEMON_OUTPUT];
static char err[DAEMON_OUTPUT];
static char file[DAEMON_PATH + 64]; /* the recording */
static const char *const backends[] = {"sim", "opencl"};

static const char twice[] = "//@kernel twice(in f32 x[n], out f32 y[n]) over n\n"
                            "{\n    y[i] = 2.0f * x[i];\n}\n";

/* ---- a load ---------------------------------------------------------------------------------- */

static void fill_data(float *data, unsigned round)
{
    for (unsigned i = 0; i < N; i++) {
        data[i] = (float)(i + round);
    }
}

/* A program with parameters, run often: to = scale * data + to, and what is read back. */
static void run_programs(gpud_client *c, gpud_buffer to)
{
    gpud_program *p = NULL;
    float data[N];
    ck_gpud_ok(gpud_program_create(c, "scaled", &p));
    gpud_shape shape = gpud_shape_1d(GPUD_F32, N);
    gpud_arg scale =
        gpud_program_param(p, "scale", GPUD_PARAM_SCALAR, (gpud_shape){.dtype = GPUD_F32});
    gpud_arg in = gpud_program_param(p, "in", GPUD_PARAM_DATA, shape);
    gpud_arg temp = gpud_program_temp(p, shape);
    gpud_arg args[] = {scale, temp, gpud_inout(to)};
    ck_assert_int_eq(gpud_program_write(p, temp, in), 0);
    ck_assert_int_eq(gpud_program_launch(p, kernel_find(c, "axpy"), args, 3, NULL), 1);
    ck_assert_int_eq(gpud_program_read(p, gpud_slice(to, 0, 10)), 2);
    ck_gpud_ok(gpud_program_seal(p));
    for (unsigned i = 0; i < ROUNDS; i++) {
        gpud_job *job = NULL;
        fill_data(data, i);
        gpud_arg values[] = {gpud_f32(2), gpud_host_in(data, N, GPUD_F32)};
        const gpud_submit_options o = {
            .size = sizeof o, .label = "program", .job_class = GPUD_CLASS_BATCH};
        ck_gpud_ok(gpud_run(c, p, values, 2, &o, &job));
        gpud_job_free(job);
    }
    gpud_program_free(p);
}

/* Launches with arrays of the client, plain and shared, and copies both ways. */
static void run_calls(gpud_client *c, gpud_buffer to)
{
    float data[N];
    float sums[N];
    float *shared = NULL;
    void *memory = NULL;
    ck_gpud_ok(gpud_host_alloc(c, N * sizeof *shared, &memory));
    shared = memory;
    fill_data(data, 3);
    memset(sums, 0, sizeof sums);
    memset(shared, 0, N * sizeof *shared);
    gpud_kernel axpy = kernel_find(c, "axpy");
    for (unsigned i = 0; i < 3; i++) {
        gpud_arg args[] = {gpud_f32(3), gpud_host_in(data, N, GPUD_F32),
                           gpud_host_inout(sums, N, GPUD_F32)};
        gpud_arg others[] = {gpud_f32(3), gpud_host_in(data, N, GPUD_F32),
                             gpud_host_inout(shared, N, GPUD_F32)};
        ck_gpud_ok(gpud_call(c, axpy, args, 3, NULL));
        ck_gpud_ok(gpud_call(c, axpy, others, 3, NULL));
    }
    ck_gpud_ok(gpud_fill(c, gpud_slice(to, 0, 5), gpud_f32(7)));
    ck_gpud_ok(gpud_read(c, to, GPUD_F32, 0, GPUD_REST, sums, NULL));
}

/* A kernel of the client's, on a buffer that another session published. */
static void run_kernels(gpud_client *c, bool loads)
{
    gpud_buffer from = {0};
    gpud_buffer to = {0};
    gpud_module m = {0};
    gpud_kernel kernel;
    float data[N];
    const gpud_module_options o = {.size = sizeof o, .name = "doubling", .file = "twice.gk"};
    ck_gpud_ok(gpud_buffer_open(c, "shared", &from));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), 0, "own", &to));
    if (loads) {
        ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, twice, strlen(twice), &o, &m));
        ck_gpud_ok(gpud_module_kernel(c, m, "twice", &kernel));
        gpud_arg args[] = {gpud_in(from), gpud_out(to)};
        ck_gpud_ok(gpud_call(c, kernel, args, 2, NULL));
    } else {
        ck_gpud_ok(gpud_copy(c, gpud_slice(to, 0, GPUD_REST), gpud_slice(from, 0, GPUD_REST)));
    }
    ck_gpud_ok(gpud_read(c, to, GPUD_F32, 0, GPUD_REST, data, NULL));
    ck_gpud_ok(gpud_buffer_free(c, to));
    ck_gpud_ok(gpud_buffer_free(c, from));
}

/* Jobs of several sessions, some of which share a buffer. One of them fails. */
static void run_load(const char *url, bool loads)
{
    gpud_client *one = client_open(url);
    gpud_client *two = client_open(url);
    gpud_client *three = client_open(url);
    gpud_buffer to = {0};
    gpud_buffer other = {0};
    float data[N];
    fill_data(data, 0);
    ck_gpud_ok(gpud_buffer_create(one, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_ZERO, "sums", &to));
    ck_gpud_ok(gpud_buffer_publish(one, to, "shared", GPUD_IN, 0));
    ck_gpud_ok(gpud_buffer_create(two, gpud_shape_1d(GPUD_F32, N), 0, "other", &other));
    ck_gpud_ok(gpud_write(two, other, GPUD_F32, 0, GPUD_REST, data, NULL));
    run_programs(one, to);
    run_calls(two, other);
    run_kernels(three, loads);
    gpud_close(three);
    gpud_close(two);
    gpud_close(one);
}

/* ---- recordings ------------------------------------------------------------------------------ */

/* The folder of recordings is in the service manager's state folder. */
static void spawn(void)
{
    ck_assert_int_eq(setenv("STATE_DIRECTORY", d.dir, 1), 0);
    daemon_spawn(&d);
    ck_assert_int_eq(unsetenv("STATE_DIRECTORY"), 0);
    daemon_wait_ready(&d);
}

static void begin(const char *backend)
{
    daemon_prepare(&d, "--backend", backend, "--set", "compile.wall_ms=120000", NULL);
    spawn();
}

static void find_file(void)
{
    json_t *root = NULL;
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "status", "-o", "json", NULL), 0);
    root = json_loads(out, 0, NULL);
    const json_t *row = json_array_get(json_object_get(root, "record"), 0);
    ck_assert_msg(row != NULL, "%s", out);
    (void)snprintf(file, sizeof file, "%s", json_string_value(json_object_get(row, "file")));
    json_decref(root);
}

static void record(const char *backend, const char *option)
{
    begin(backend);
    int rc = gpuctl(&d, out, err, "record", "start", "one", option, NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    run_load(d.url, strcmp(backend, "sim") != 0);
    rc = gpuctl(&d, out, err, "record", "stop", NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    find_file();
}

static json_int_t figure(const char *name)
{
    json_t *root = json_loads(out, 0, NULL);
    const json_t *row = json_array_get(json_object_get(root, "replay"), 0);
    const json_t *value = json_object_get(row, name);
    ck_assert_msg(json_is_integer(value), "no %s: %s %s", name, out, err);
    json_int_t number = json_integer_value(value);
    json_decref(root);
    return number;
}

/* All jobs end as recorded, and all results are the recorded ones: also where results of one job
 * lead to those of another. */
START_TEST(a_load_is_replayed_elsewhere)
{
    record(backends[_i], "--with-data");
    daemon_stop(&d);
    daemon_start(&again, "--backend", backends[_i], "--set", "compile.wall_ms=120000", NULL);
    int rc = gpuctl(&again, out, err, "replay", file, "--speed", "0", "-o", "json", NULL);
    ck_assert_msg(rc == 0, "%d: %s %s", rc, out, err);
    ck_assert_int_ge(figure("jobs"), ROUNDS + 10);
    ck_assert_int_eq(figure("as_recorded"), figure("jobs"));
    ck_assert_int_ge(figure("results"), ROUNDS + 8);
    ck_assert_int_eq(figure("same_results"), figure("results"));
    ck_assert_int_eq(figure("unknown_results"), 0);
    ck_assert_int_eq(figure("sessions"), 2); /* two of the three share a buffer */
    rc = gpuctl(&again, out, err, "replay", file, "--speed", "50", "--jobs", "5", "--json", NULL);
    ck_assert_msg(rc == 0 && figure("jobs") == 5, "%d: %s %s", rc, out, err);
    daemon_stop(&again);
}
END_TEST

/* Without contents jobs run with invented data, and results that depend on it are not compared. */
START_TEST(a_load_without_data_is_replayed)
{
    static char text[DAEMON_OUTPUT];
    record("sim", NULL);
    file_read(file, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "data_hash"));
    ck_assert_ptr_null(strstr(text, "data_base64"));
    int rc = gpuctl(&d, out, err, "replay", file, "--speed", "0", "-o", "json", NULL);
    ck_assert_msg(rc == 0, "%d: %s %s", rc, out, err);
    ck_assert_int_eq(figure("as_recorded"), figure("jobs"));
    ck_assert_int_ge(figure("unknown_results"), ROUNDS);
    ck_assert_ptr_nonnull(strstr(err, "record with data"));
    daemon_stop(&d);
}
END_TEST

/* Changes what follows the text in the file, as many bytes. */
static void change(const char *after, const char *to)
{
    static char text[4 * DAEMON_OUTPUT];
    file_read(file, text, sizeof text);
    char *at = strstr(text, after);
    ck_assert_msg(at != NULL, "no %s", after);
    memcpy(at + strlen(after), to, strlen(to));
    file_write(file, text, strlen(text));
}

/* The replay shows another result, and another end of a job, with its line. */
START_TEST(differences_are_told)
{
    record("sim", "--with-data");
    change("\"arg\":0,\"bytes\":40,\"hash\":\"", "0000");
    int rc = gpuctl(&d, out, err, "replay", file, "--speed", "0", "-o", "json", NULL);
    ck_assert_msg(rc == 6, "%d: %s %s", rc, out, err);
    ck_assert_int_eq(figure("differing"), 1);
    ck_assert_int_eq(figure("same_results"), figure("results") - 1);
    ck_assert_msg(strstr(err, "step 2, argument 0: the result has another hash") != NULL, "%s",
                  err);
    ck_assert_msg(strstr(err, "(line ") != NULL, "%s", err);
    change("\"state\":\"", "lost");
    rc = gpuctl(&d, out, err, "replay", file, "--speed", "0", "-o", "json", NULL);
    ck_assert_msg(rc == 6 && figure("uncompared") == 1, "%d: %s %s", rc, out, err);
    daemon_stop(&d);
}
END_TEST

static void refuses(int code, const char *why)
{
    int rc = gpuctl(&d, out, err, "replay", file, "--speed", "0", NULL);
    ck_assert_msg(rc == code && strstr(err, why) != NULL, "%d, not \"%s\": %s", rc, why, err);
}

/* A recording comes from outside. What is wrong with it is named by its line, before or when it
 * is used; and a recording that was cut is as good as it is long. */
START_TEST(recordings_are_checked)
{
    static const char head[] =
        "{\"line\":\"recording\",\"format\":\"gpud-recording\",\"version\":1}\n";
    static const struct {
        const char *line, *why;
    } bad[] = {
        {"{\"line\":\"buffer\",\"at_ns\":1,\"buffer\":\"0x1\",\"session\":1,\"type\":\"f31\","
         "\"shape\":[4]}",
         "line 2: type \"f31\""},
        {"{\"line\":\"buffer\",\"at_ns\":1,\"buffer\":\"0x1\",\"session\":1,\"type\":\"f32\","
         "\"shape\":[9223372036854775807,9]}",
         "line 2: type \"f32\" and shape"},
        {"{\"line\":\"buffer\",\"at_ns\":1,\"buffer\":\"0x1\",\"session\":1,\"type\":\"f32\","
         "\"shape\":[99999999999999]}",
         "line 2: a buffer of"},
        {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"steps\":[{\"op\":\"read\",\"args\":[{\"what\":\"buffer\",\"buffer\":\"0x9\"}]}]}",
         "line 2: no line before has buffer 0x9"},
        {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"program\":\"0x9\"}",
         "line 2: no line before has program 0x9"},
        {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"steps\":[{\"op\":\"jump\",\"args\":[]}]}",
         "line 2: step 0: \"jump\""},
        {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"steps\":[{\"op\":\"launch\",\"kernel\":\"thrice\",\"args\":[]}]}",
         "line 2: step 0: thrice"},
        {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"steps\":[{\"op\":\"launch\",\"kernel\":\"k\",\"module\":\"0x7\",\"args\":[{}]}]}",
         "line 2: no line before has module 0x7"},
        {"{\"line\":\"module\",\"at_ns\":1,\"module\":\"0x7\",\"what\":\"loaded\",\"lang\":1,"
         "\"source\":\"nonsense\",\"source_hash\":\"00\"}\n"
         "{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"steps\":[]}",
         "line 2: module : source has the hash"},
        {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[],"
         "\"steps\":[{\"op\":\"read\",\"args\":7}]}",
         "line 2: args is no list"},
    };
    begin("sim");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, "%s%s\n", head, bad[i].line);
        (void)snprintf(file, sizeof file, "%s/bad.jsonl", d.dir);
        file_write(file, text, strlen(text));
        refuses(1, bad[i].why);
    }
    file_write(file, head, strlen(head));
    int rc = gpuctl(&d, out, err, "replay", file, NULL);
    ck_assert_msg(rc == 0 && strstr(err, "cut") != NULL, "%d: %s", rc, err);
    file_write(file, "", 0);
    refuses(1, "it has no whole line");
    ck_assert_int_eq(gpuctl(&d, out, err, "replay", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "replay", file, "--speed", "-1", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "replay", file, "--speed", "nan", NULL), 2);
    daemon_stop(&d);
}
END_TEST

/* ---- begin and end --------------------------------------------------------------------------- */

static void await_state(const char *state)
{
    gpud_client *c = client_open(d.url);
    char now[64];
    do {
        pause_ms(10);
        query_text(c, "status", NULL, "recording", now, sizeof now);
    } while (strcmp(now, state) != 0); /* Check's time-out is the limit */
    gpud_close(c);
}

static void some_jobs(const char *url, unsigned count)
{
    static float data[SOME];
    gpud_client *c = client_open(url);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, SOME), 0, "b", &b));
    for (unsigned i = 0; i < count; i++) {
        ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, data, NULL));
    }
    gpud_close(c);
}

/* One at a time; a file is never overwritten; names name files of one folder alone. */
START_TEST(recordings_begin_and_end)
{
    static const char *const names[] = {"../one", "a/b",     ".one",     "-one",
                                        "",       "one two", "\303\251", "one\n"};
    begin("sim");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int rc = gpuctl(&d, out, err, "record", "start", "--", names[i], NULL);
        ck_assert_msg(rc == 1 || rc == 2, "\"%s\": %d: %s", names[i], rc, err);
    }
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "stop", NULL), 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "one", NULL), 0);
    find_file();
    struct stat st;
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "two", NULL), 75);
    ck_assert_msg(strstr(err, "stop it first") != NULL, "%s", err);
    some_jobs(d.url, 3);
    await_state("recording");
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "stop", NULL), 0);
    await_state("stopped");
    int rc = gpuctl(&d, out, err, "record", "start", "one", NULL);
    ck_assert_msg(rc == 1 && strstr(err, "it exists") != NULL, "%d: %s", rc, err);
    await_state("failed");
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "two", NULL), 0);
    some_jobs(d.url, 3);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "stop", NULL), 0);
    daemon_stop(&d);
}
END_TEST

/* The limit of the file ends the recording; jobs go on. */
START_TEST(a_recording_has_a_limit)
{
    struct stat st;
    begin("sim");
    int rc =
        gpuctl(&d, out, err, "record", "start", "one", "--with-data", "--file-size", "64K", NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    find_file();
    some_jobs(d.url, 50);
    await_state("full");
    some_jobs(d.url, 50);
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_int_le(st.st_size, 65536);
    rc = gpuctl(&d, out, err, "replay", file, "--speed", "0", NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "two", "--file-size", "1K", NULL), 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "two", NULL), 0);
    daemon_stop(&d);
}
END_TEST

/* FAULT other: the disk of a recording is full
 * required: the recording ends, with a line in the log and a state in `gpuctl status`; jobs go on,
 *   and what is in the file can be replayed
 * defence: `front/record/recorder.c`: flush; `front/record/record.c`: put
 * also: `front_recorder_test`: a_full_disk_ends_it, a_slow_disk_costs_lines
 * mutants: recorder-full-disk, recorder-lost */
START_TEST(a_full_disk_ends_a_recording)
{
    const struct rlimit some = {.rlim_cur = 16 << 20, .rlim_max = 16 << 20};
    (void)signal(SIGXFSZ, SIG_IGN); /* as a full disk: an error, and no signal */
    begin("sim");
    ck_assert_int_eq(prlimit(d.pid, RLIMIT_FSIZE, &some, NULL), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "one", "--with-data", NULL), 0);
    find_file();
    gpud_client *c = client_open(d.url);
    char now[64] = "";
    while (strcmp(now, "failed") != 0) {
        some_jobs(d.url, 20);
        query_text(c, "status", NULL, "recording", now, sizeof now);
    }
    some_jobs(d.url, 20);
    ck_until(daemon_logged(&d, "ends: it cannot be written: File too large"));
    int rc = gpuctl(&d, out, err, "replay", file, "--speed", "0", NULL);
    ck_assert_msg(rc == 0 && strstr(err, "cut") != NULL, "%d: %s", rc, err);
    gpud_close(c);
    daemon_stop(&d);
}
END_TEST

/* --record: from the start on, to a file of the operator's. The recording ends with the front. */
START_TEST(a_daemon_records_from_its_start)
{
    static char text[DAEMON_OUTPUT];
    daemon_prepare(&d, "--backend", "sim", "--record", file, NULL);
    (void)snprintf(file, sizeof file, "%s/start.jsonl", d.dir);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    some_jobs(d.url, 3);
    await_state("recording");
    daemon_hand_over(&d);
    file_read(file, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\"line\":\"job\""));
    ck_assert_ptr_nonnull(strstr(text, "{\"line\":\"stop\""));
    daemon_spawn(&d); /* the file exists now: it serves all the same */
    daemon_wait_ready(&d);
    await_state("failed");
    ck_assert(daemon_logged(&d, "the file cannot be made: it exists"));
    some_jobs(d.url, 3);
    daemon_stop(&d);
}
END_TEST

/* A recording has the work of all tenants, so it is for administrators alone. */
START_TEST(others_have_no_recordings)
{
    char far[64];
    char ipc[DAEMON_PATH];
    gpud_table *t = NULL;
    tcp_url(far, sizeof far);
    daemon_prepare(&d, "--backend", "sim", "--listen", ipc, "--listen", far, NULL);
    (void)snprintf(ipc, sizeof ipc, "%s", d.url);
    spawn();
    gpud_client *c = client_open(far);
    ck_gpud_err(gpud_control(c, "record-start", "one"), GPUD_ERR_PERMISSION);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "start", "one", NULL), 0);
    ck_gpud_err(gpud_control(c, "record-stop", NULL), GPUD_ERR_PERMISSION);
    ck_gpud_err(gpud_query(c, "record", NULL, &t), GPUD_ERR_PERMISSION);
    ck_assert_int_eq(gpuctl(&d, out, err, "--url", far, "record", "status", NULL), 4);
    gpud_close(c);
    ck_assert_int_eq(gpuctl(&d, out, err, "record", "stop", NULL), 0);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("system_record");
    suite_add_loop(suite, a_load_is_replayed_elsewhere, 2);
    suite_add(suite, a_load_without_data_is_replayed);
    suite_add(suite, differences_are_told);
    suite_add(suite, recordings_are_checked);
    suite_add(suite, recordings_begin_and_end);
    suite_add(suite, a_recording_has_a_limit);
    suite_add(suite, a_full_disk_ends_a_recording);
    suite_add(suite, a_daemon_records_from_its_start);
    suite_add(suite, others_have_no_recordings);
    return system_main(suite);
}
