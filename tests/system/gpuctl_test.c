/* gpuctl as a user runs it. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

static char out[DAEMON_OUTPUT];
static char err[DAEMON_OUTPUT];

/* A .npy file of floats, as NumPy writes it. */
static void npy_write(const char *path, const float *values, unsigned count)
{
    char file[1024] = "\x93NUMPY\x01";
    file[7] = 0;
    char header[119];
    int n = snprintf(header, sizeof header,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%u,), }", count);
    memset(header + n, ' ', sizeof header - (size_t)n);
    header[117] = '\n';
    file[8] = 118;
    memcpy(file + 10, header, 118);
    memcpy(file + 128, values, count * sizeof *values);
    file_write(path, file, 128 + count * sizeof *values);
}

START_TEST(run_with_files)
{
    struct daemon d;
    char in[160];
    char x[160];
    char save[160];
    char result[160];
    float values[] = {1, 2, 3, 4};
    char bytes[512];
    daemon_start(&d, "--backend", "sim", NULL);
    (void)snprintf(in, sizeof in, "%s/x.npy", d.dir);
    (void)snprintf(x, sizeof x, "x=in:@%s", in);
    (void)snprintf(result, sizeof result, "%s/y.npy", d.dir);
    (void)snprintf(save, sizeof save, "y=%s", result);
    npy_write(in, values, 4);
    int status = gpuctl(&d, out, err, "run", "scale", "--arg", "a=f32:2.5", "--arg", x, "--arg",
                        "y=out:f32:4", "--save", save, NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    FILE *f = fopen(result, "re");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    ck_assert_uint_gt(n, 16);
    ck_assert_mem_eq(bytes, "\x93NUMPY", 6);
    ck_assert_uint_eq((n - 4 * sizeof(float)) % 64, 0);
    memcpy(values, bytes + n - sizeof values, sizeof values);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_float_eq(values[i], 2.5f * (float)(i + 1));
    }
    daemon_stop(&d);
}
END_TEST

START_TEST(exit_codes)
{
    struct daemon d;
    daemon_start(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    ck_assert_int_eq(gpuctl(&d, out, err, "ping", NULL), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "no_such_kernel", NULL), 1);
    ck_assert_msg(strstr(err, "no_such_kernel") != NULL, "%s", err);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(gpuctl(&d, out, err, "no_such_command", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", NULL), 2);
    /* ten seconds of work in half a second */
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "fill", "--arg", "value=f32:1", "--arg",
                            "x=out:f32:10000", "--timeout", "500", NULL),
                     124);
    daemon_stop(&d);
    ck_assert_int_eq(gpuctl(&d, out, err, "status", NULL), 3);
    ck_assert_str_ne(err, "");
}
END_TEST

START_TEST(json)
{
    static const char *const commands[] = {"status",  "devices", "pool",
                                           "kernels", "jobs",    "sessions"};
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    for (unsigned i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        json_error_t why;
        ck_assert_int_eq(gpuctl(&d, out, err, commands[i], "-o", "json", NULL), 0);
        json_t *value = json_loads(out, 0, &why);
        ck_assert_msg(value != NULL, "%s: %s: %s", commands[i], why.text, out);
        json_decref(value);
    }
    ck_assert_msg(strstr(out, "gpuctl") != NULL, "its own session is not there: %s", out);
    daemon_stop(&d);
}
END_TEST

/* The member of the row of this check. */
static const char *doctor_text(const json_t *value, const char *check, const char *member)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(value, "doctor"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "check")), check) == 0) {
            return json_string_value(json_object_get(row, member));
        }
    }
    ck_abort_msg("no check %s: %s", check, out);
    return NULL;
}

START_TEST(doctor)
{
    static const char *const good[] = {"socket", "settings", "versions", "daemon", "cache"};
    struct daemon d;
    json_error_t why;
    daemon_start(&d, "--backend", "sim", NULL);
    (void)gpuctl(&d, out, err, "doctor", "-o", "json", NULL); /* the host may lack something */
    json_t *value = json_loads(out, 0, &why);
    ck_assert_msg(value != NULL, "%s: %s", why.text, out);
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(strcmp(doctor_text(value, good[i], "result"), "ok") == 0, "%s", out);
    }
    ck_assert_msg(strcmp(doctor_text(value, "health", "result"), "skipped") == 0, "%s", out);
    json_decref(value);
    ck_assert_int_eq(gpuctl(&d, out, err, "doctor", "daemon", "socket", NULL), 0);
    ck_assert_msg(strstr(out, "2 ok, 0 skipped, 0 warnings, 0 failures") != NULL, "%s", out);
    ck_assert_int_eq(gpuctl(&d, out, err, "doctor", "nothing", NULL), 2);

    ck_assert_int_eq(setenv("GPUD_TIMEOUT_MS", "200", 1), 0);
    ck_assert_int_eq(kill(d.pid, SIGSTOP), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "doctor", "daemon", "socket", NULL), 1);
    ck_assert_msg(strstr(out, "it hangs") != NULL && strstr(out, "kill -KILL") != NULL, "%s", out);
    ck_assert_int_eq(gpuctl(&d, out, err, "devices", NULL), 3); /* nothing waits for ever */
    ck_assert_int_eq(unsetenv("GPUD_TIMEOUT_MS"), 0);

    daemon_kill(&d);
    ck_assert_int_eq(gpuctl(&d, out, err, "doctor", "daemon", "socket", NULL), 1);
    ck_assert_msg(strstr(out, "nothing listens there") != NULL, "%s", out);
}
END_TEST

/* The measured times vary; the test checks that the table is complete and that each cell is a
 * time. */
START_TEST(bench)
{
    struct daemon d;
    json_error_t why;
    size_t i;
    json_t *row;
    daemon_start(&d, "--backend", "sim", "--backend-options", "speed=0", NULL);
    int status = gpuctl(&d, out, err, "bench", "--quick", "--device", "0", "-o", "json", NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    json_t *value = json_loads(out, 0, &why);
    ck_assert_msg(value != NULL, "%s: %s", why.text, out);
    const json_t *rows = json_object_get(value, "bench");
    ck_assert_uint_eq(json_array_size(rows), 9);
    json_array_foreach(rows, i, row)
    {
        bool trip = strcmp(json_string_value(json_object_get(row, "what")), "null job") == 0;
        ck_assert_int_eq(json_is_null(json_object_get(row, "size")), trip);
        ck_assert_int_eq(json_is_null(json_object_get(row, "at_once")), !trip);
        ck_assert_int_gt(json_integer_value(json_object_get(row, "p50")), 0);
        ck_assert_int_ge(json_integer_value(json_object_get(row, "p99")),
                         json_integer_value(json_object_get(row, "p50")));
        ck_assert_int_gt(json_integer_value(json_object_get(row, "per_second")), 0);
    }
    json_decref(value);
    ck_assert_int_eq(gpuctl(&d, out, err, "bench", "--quick", "--device", "7", NULL), 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "bench", "more", NULL), 2);
    daemon_stop(&d);
}
END_TEST

/* Files that cannot be read or written are reported before anything is computed. */
START_TEST(files_come_first)
{
    static const char *const bad[][2] = {
        {"x=in:f32=1,2", "y=/proc/y.npy"},        {"x=in:f32=1,2", "y=raw:/dev/null"},
        {"x=in:f32=1,2", "y=/nowhere/y.npy"},     {"x=in:@/dev/zero", "y=raw:/tmp/never"},
        {"x=in:@/proc/stat", "y=raw:/tmp/never"}, {"x=in:@/", "y=raw:/tmp/never"},
    };
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    uint64_t before = query_value(c, "status", NULL, "done");
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int status = gpuctl(&d, out, err, "run", "scale", "--arg", "a=f32:2", "--arg", bad[i][0],
                            "--arg", "y=out:f32:2", "--save", bad[i][1], "--max-input", "1M", NULL);
        ck_assert_msg(status == 1, "%u: %d: %s", i, status, err);
        ck_assert_msg(strstr(err, strchr(bad[i][i < 3 ? 1 : 0], '/')) != NULL, "%s", err);
    }
    char name[400]; /* 255 bytes are the most that a name may have */
    (void)snprintf(name, sizeof name, "y=raw:%s/%0256d", d.dir, 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "scale", "--arg", "a=f32:2", "--arg",
                            "x=in:f32=1,2", "--arg", "y=out:f32:2", "--save", name, NULL),
                     1);
    ck_assert_msg(strstr(err, "name too long") != NULL, "%s", err);
    ck_assert_uint_eq(query_value(c, "status", NULL, "done"), before);
    (void)snprintf(name, sizeof name, "y=raw:%s/%0255d", d.dir, 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "scale", "--arg", "a=f32:2", "--arg",
                            "x=in:f32=1,2", "--arg", "y=out:f32:2", "--save", name, NULL),
                     0);
    ck_assert_int_eq(unlink(name + strlen("y=raw:")), 0);
    ck_assert_int_ne(access("/tmp/never", F_OK), 0);
    daemon_end(&d, c);
}
END_TEST

START_TEST(sizes_that_mean_nothing_are_refused)
{
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    int status = gpuctl(&d, out, err, "run", "scale", "--arg", "2", "--arg", "in:f32=1,2", "--arg",
                        "out:f32:2", "--global", "2", NULL);
    ck_assert_int_eq(status, 2);
    ck_assert_msg(strstr(err, "--global") != NULL && strstr(err, "over n") != NULL, "%s", err);
    daemon_stop(&d);
}
END_TEST

START_TEST(devices_are_told)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "devices=2", NULL);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create_on(c, 1, gpud_shape_1d(GPUD_F32, 1000), 0, NULL, &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(0)));
    for (unsigned i = 0; i < 2; i++) {
        gpud_device_desc device = {.size = sizeof device};
        ck_gpud_ok(gpud_device_info(c, i, &device));
        ck_assert_uint_eq(device.id, i);
        ck_assert_uint_eq(device.memory_bytes,
                          query_value(c, "devices", i == 0 ? "0" : "1", "memory"));
        ck_assert_uint_gt(device.memory_bytes, 0);
        ck_assert(device.simulated && !device.cpu);
        ck_assert_str_eq(device.backend, "sim");
        ck_assert_str_eq(device.state, "ready");
        ck_assert_str_ne(device.name, "");
        ck_assert_uint_ge(device.memory_used, i == 1 ? 4000 : 0);
        ck_assert_uint_le(device.memory_used, i == 1 ? device.memory_bytes : 0);
    }
    gpud_device_desc none = {.size = sizeof none};
    ck_gpud_err(gpud_device_info(c, 2, &none), GPUD_ERR_NOT_FOUND);
    daemon_end(&d, c);
}
END_TEST

/* A valid file is read again; a file with a mistake changes nothing, and its mistake is
 * reported. */
START_TEST(reload_reads_again)
{
    struct daemon d;
    char file[160];
    daemon_prepare(&d, "--backend", "sim", NULL);
    (void)snprintf(file, sizeof file, "%s/gpud.conf", d.dir);
    static const char warn[] = "[daemon]\nlog_level = warn\n";
    static const char debug[] = "[daemon]\nlog_level = debug\n";
    static const char bad[] = "[daemon]\nlog_level = loud\n";
    file_write(file, warn, sizeof warn - 1);
    d.args[d.arg_count++] = "--config";
    d.args[d.arg_count++] = file;
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "check", file, NULL), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "show", "-o", "csv", NULL), 0);
    ck_assert_msg(strstr(out, "log_level,warn") != NULL, "%s", out);
    file_write(file, debug, sizeof debug - 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "reload", NULL), 0);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "show", "-o", "csv", NULL), 0);
    ck_assert_msg(strstr(out, "log_level,debug") != NULL, "%s", out);
    file_write(file, bad, sizeof bad - 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "check", file, NULL), 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "reload", NULL), 1);
    ck_assert_msg(strstr(err, "loud") != NULL && strstr(err, "gpud.conf:2") != NULL, "%s", err);
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "show", "-o", "csv", NULL), 0);
    ck_assert_msg(strstr(out, "log_level,debug") != NULL, "%s", out);
    daemon_stop(&d);
}
END_TEST

static gpud_buffer floats(gpud_client *c, uint64_t count)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, count), GPUD_BUFFER_ZERO, NULL, &b));
    return b;
}

/* With items=1000 it takes a millisecond for each element. */
static gpud_job *fill(gpud_client *c, gpud_buffer b)
{
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, NULL, &job));
    return job;
}

static bool idle(gpud_client *c)
{
    return query_value(c, "status", NULL, "queued") == 0 &&
           query_value(c, "status", NULL, "in_flight") == 0;
}

/* The device has another job, so that it is queued still when gpuctl has ended. */
START_TEST(detached_jobs_outlive_gpuctl)
{
    struct daemon d;
    float values[8] = {0};
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.window=1", NULL);
    gpud_buffer shared = floats(c, 8);
    ck_gpud_ok(gpud_buffer_publish(c, shared, "shared", GPUD_INOUT, 0));
    gpud_job *before = fill(c, floats(c, 3000));
    job_await_dispatch(c, before);
    int status = gpuctl(&d, out, err, "run", "fill", "--arg", "value=f32:7", "--arg",
                        "x=out:%shared", "--detach", NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    ck_assert_ptr_nonnull(strstr(err, "job "));
    ck_until(idle(c));
    ck_gpud_ok(gpud_read(c, shared, GPUD_F32, 0, 8, values, NULL));
    ck_assert_float_eq(values[0], 7);
    ck_assert_float_eq(values[7], 7);
    ck_assert_uint_eq(query_value(c, "status", NULL, "cancelled"), 0);
    gpud_job_free(before);
    daemon_end(&d, c);
}
END_TEST

/* What programs read has the job's number. */
START_TEST(a_detached_job_is_told_as_asked)
{
    struct daemon d;
    char wanted[64];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_buffer shared = floats(c, 8);
    ck_gpud_ok(gpud_buffer_publish(c, shared, "shared", GPUD_INOUT, 0));
    int status = gpuctl(&d, out, err, "-o", "json", "run", "fill", "--arg", "value=f32:7", "--arg",
                        "x=out:%shared", "--detach", NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    const char *number = strstr(err, "job ");
    ck_assert_ptr_nonnull(number);
    json_t *all = json_loads(out, 0, NULL);
    ck_assert_msg(all != NULL, "%s", out);
    const json_t *row = json_array_get(json_object_get(all, "job"), 0);
    const json_t *job = json_object_get(row, "job");
    ck_assert_msg(json_is_integer(job), "%s", out);
    (void)snprintf(wanted, sizeof wanted, "job %lld\n", (long long)json_integer_value(job));
    ck_assert_msg(strncmp(number, wanted, strlen(wanted)) == 0, "%s%s", err, out);
    json_decref(all);
    status = gpuctl(&d, out, err, "run", "fill", "--arg", "value=f32:7", "--arg", "x=out:%shared",
                    "--detach", NULL);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(out, ""); /* the text for people */
    ck_until(idle(c));
    daemon_end(&d, c);
}
END_TEST

/* Its jobs end with it: also one that a worker has already, and has not begun. */
START_TEST(a_session_is_killed_with_its_jobs)
{
    struct daemon d;
    char text[1024];
    char number[24];
    gpud_limits_desc limits = {.size = sizeof limits};
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.window=8", NULL);
    gpud_client *killed = client_open(d.url);
    gpud_buffer b = floats(killed, 20000); /* 20 s: its worker is ended long before */
    gpud_job *running = fill(killed, b);
    gpud_job *behind = fill(killed, b);
    ck_until(gpud_dispatch(killed) == 0 && gpud_job_id(behind) != 0 &&
             gpud_explain(killed, gpud_job_id(behind), text, sizeof text) == 0 &&
             strstr(text, "on device 0") != NULL);
    ck_gpud_ok(gpud_limits(killed, &limits));
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)limits.session);
    ck_assert_int_eq(gpuctl(&d, out, err, "session", "kill", number, NULL), 0);
    ck_until(query_value(c, "status", NULL, "cancelled") == 1);
    ck_assert_uint_eq(query_value(c, "status", NULL, "in_flight"), 1);
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    ck_until(idle(c));
    gpud_job_free(running);
    gpud_job_free(behind);
    gpud_close(killed);
    daemon_end(&d, c);
}
END_TEST

/* The operator is served even when other clients have taken all connections. */
START_TEST(full_houses_can_be_looked_at)
{
    static const char *const setting[] = {"jobs.sessions_max=2", "daemon.connections_max=2"};
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--set", setting[_i], NULL);
    gpud_client *last = client_open(d.url);
    int status = gpuctl(&d, out, err, "sessions", "-o", "csv", NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    ck_assert_uint_eq(query_value(c, "status", NULL, "connections_refused"), 0);
    gpud_close(last);
    daemon_end(&d, c);
}
END_TEST

/* The daemon narrows a table to rows with a text; where none has it, the head is there. */
START_TEST(tables_are_filtered)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_table *all = NULL;
    gpud_table *some = NULL;
    gpud_table *none = NULL;
    ck_gpud_ok(gpud_query(c, "kernels", "", &all));
    ck_gpud_ok(gpud_query(c, "kernels", "axpy", &some));
    ck_gpud_ok(gpud_query(c, "kernels", "no such kernel", &none));
    ck_assert_uint_gt(gpud_table_rows(some), 0);
    ck_assert_uint_lt(gpud_table_rows(some), gpud_table_rows(all));
    ck_assert_uint_eq(gpud_table_rows(none), 0);
    for (uint32_t r = 0; r < gpud_table_rows(some); r++) {
        const char *name = gpud_table_text(some, r, (uint32_t)gpud_table_find(some, "name"));
        const char *module = gpud_table_text(some, r, (uint32_t)gpud_table_find(some, "module"));
        ck_assert_msg(strstr(name, "axpy") != NULL || strstr(module, "axpy") != NULL, "%s", name);
    }
    gpud_table_free(all);
    gpud_table_free(some);
    gpud_table_free(none);
    ck_assert_int_eq(gpuctl(&d, out, err, "kernels", "axpy", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "axpy"));
    ck_assert_ptr_null(strstr(out, "histogram"));
    ck_assert_int_eq(gpuctl(&d, out, err, "kernels", "no such kernel", NULL), 0);
    ck_assert_int_eq(strncmp(out, "NAME MODULE", 11), 0);
    daemon_end(&d, c);
}
END_TEST

/* The jobs that gpuctl lists with these options, as JSON; owned by the caller. */
static json_t *jobs_listed(const struct daemon *d, const char *option, const char *value)
{
    int status = gpuctl(d, out, err, "jobs", "-o", "json", option, value, NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    json_t *all = json_loads(out, 0, NULL);
    ck_assert_msg(all != NULL, "%s", out);
    return all;
}

static size_t count_listed(const struct daemon *d, const char *option, const char *value)
{
    json_t *all = jobs_listed(d, option, value);
    size_t count = json_array_size(json_object_get(all, "jobs"));
    json_decref(all);
    return count;
}

START_TEST(jobs_are_listed_newest_first)
{
    struct daemon d;
    gpud_limits_desc limits = {.size = sizeof limits};
    char session[24];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_client *other = client_open(d.url);
    gpud_buffer b = floats(c, 8);
    gpud_buffer theirs = floats(other, 8);
    uint64_t last = 0;
    for (unsigned i = 0; i < 3; i++) {
        gpud_job *job = fill(c, b);
        ck_gpud_ok(gpud_wait(job, GPUD_FOREVER));
        last = gpud_job_id(job);
        gpud_job_free(job);
    }
    gpud_job *job = fill(other, theirs);
    ck_gpud_ok(gpud_wait(job, GPUD_FOREVER));
    gpud_job_free(job);
    ck_gpud_ok(gpud_limits(c, &limits));
    (void)snprintf(session, sizeof session, "%llu", (unsigned long long)limits.session);
    ck_assert_uint_eq(count_listed(&d, "--session", session), 3);
    ck_assert_uint_eq(count_listed(&d, "--limit", "2"), 2);
    ck_assert_uint_ge(count_listed(&d, "--state", "done"), 4);
    ck_assert_uint_eq(count_listed(&d, "--state", "failed"), 0);
    ck_assert_uint_eq(count_listed(&d, "--tenant", "nobody here"), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "jobs", "--state", "finished", NULL), 1);
    ck_assert_msg(strstr(err, "queued, dispatched, running") != NULL, "%s", err);
    json_t *all = jobs_listed(&d, "--session", session);
    const json_t *first = json_array_get(json_object_get(all, "jobs"), 0);
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(first, "job")), last);
    json_decref(all);
    gpud_close(other);
    daemon_end(&d, c);
}
END_TEST

/* Unanswered requests of the only session with jobs. */
static uint64_t unanswered(gpud_client *c, uint64_t session)
{
    char text[24];
    uint64_t found = UINT64_MAX;
    gpud_table *t = NULL;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)session);
    ck_gpud_ok(gpud_query(c, "sessions", NULL, &t));
    for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
        if (gpud_table_value(t, r, (uint32_t)gpud_table_find(t, "session")) == session) {
            found = gpud_table_value(t, r, (uint32_t)gpud_table_find(t, "requests"));
        }
    }
    gpud_table_free(t);
    return found;
}

START_TEST(requests_are_the_unanswered_ones)
{
    struct daemon d;
    gpud_limits_desc limits = {.size = sizeof limits};
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    gpud_client *looks = client_open(d.url);
    ck_gpud_ok(gpud_limits(c, &limits));
    ck_assert_uint_eq(unanswered(looks, limits.session), 0);
    gpud_buffer b = floats(c, 2000);
    ck_assert_uint_eq(unanswered(looks, limits.session), 0);
    const gpud_submit_options held = {.size = sizeof held, .flags = GPUD_SUBMIT_HELD};
    gpud_arg args[] = {gpud_f32(7), gpud_out(b)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &held, &job));
    ck_until(gpud_dispatch(c) == 0 && unanswered(looks, limits.session) == 1);
    ck_gpud_ok(gpud_wait(job, GPUD_FOREVER));
    ck_assert_uint_eq(unanswered(looks, limits.session), 0);
    gpud_job_free(job);
    gpud_close(looks);
    daemon_end(&d, c);
}
END_TEST

/* Commands without a table say so in JSON, too. */
START_TEST(what_was_done_is_told_as_asked)
{
    static const char *const commands[][2] = {{"drain", NULL},
                                              {"resume", NULL},
                                              {"reload", NULL},
                                              {"log-level", "info"},
                                              {"pool", "trim"}};
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    for (unsigned i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int status = gpuctl(&d, out, err, "-o", "json", commands[i][0], commands[i][1], NULL);
        ck_assert_msg(status == 0, "%s: %d: %s", commands[i][0], status, err);
        json_t *all = json_loads(out, 0, NULL);
        ck_assert_msg(all != NULL, "%s: %s", commands[i][0], out);
        const json_t *row = json_array_get(json_object_get(all, "result"), 0);
        ck_assert(json_is_true(json_object_get(row, "ok")));
        json_decref(all);
    }
    daemon_stop(&d);
}
END_TEST

static int run_for_long(void *data)
{
    const struct daemon *d = data;
    execl(SYSTEM_BIN "/gpuctl", "gpuctl", "-u", d->url, "run", "fill", "--arg", "value=f32:1",
          "--arg", "x=out:f32:100000", (char *)NULL);
    return 1;
}

START_TEST(an_interrupted_run_cancels_its_job)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.window=1", NULL);
    gpud_job *before = fill(c, floats(c, 3000)); /* the second job waits behind it */
    job_await_dispatch(c, before);
    pid_t run = process_start(run_for_long, &d);
    ck_until(query_value(c, "status", NULL, "queued") == 1);
    ck_assert_int_eq(kill(run, SIGINT), 0);
    ck_assert_int_eq(process_wait(run), 130);
    ck_until(query_value(c, "status", NULL, "cancelled") == 1);
    gpud_job_free(before);
    daemon_end(&d, c);
}
END_TEST

/* ---- -w and wait ----------------------------------------------------------------------------- */

struct command_line {
    const struct daemon *d;
    const char *words[8];
    char file[160]; /* receives standard output */
};

static int run_words(void *data)
{
    const struct command_line *c = data;
    const char *argv[12] = {"gpuctl", "-u", c->d->url};
    for (unsigned i = 0; c->words[i] != NULL; i++) {
        argv[3 + i] = c->words[i];
    }
    int fd = open(c->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
        return 1;
    }
    execv(SYSTEM_BIN "/gpuctl", (char *const *)(uintptr_t)argv);
    return 1;
}

static unsigned lines_of(const struct command_line *c)
{
    unsigned lines = 0;
    file_read(c->file, out, sizeof out);
    for (const char *at = out; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    return lines;
}

/* Rounds follow each other, also over another daemon, until Ctrl-C. */
START_TEST(a_watched_table_goes_on)
{
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    struct command_line c = {.d = &d, .words = {"devices", "-w", "0.1", "-o", "csv"}};
    (void)snprintf(c.file, sizeof c.file, "%s/rounds", d.dir);
    pid_t pid = process_start(run_words, &c);
    ck_until(access(c.file, F_OK) == 0 && lines_of(&c) >= 4);
    daemon_hand_over(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    unsigned before = lines_of(&c);
    ck_until(lines_of(&c) >= before + 3);
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(process_wait(pid), 0);
    (void)lines_of(&c);
    const char *heads = strstr(out, "time,device,");
    ck_assert_msg(heads == out && strstr(heads + 1, "time,device,") == NULL, "%s", out);
    daemon_stop(&d);
}
END_TEST

/* `gpuctl … -w 60 | head -2` ends when head does, and without a complaint. */
START_TEST(a_watched_table_ends_with_its_reader)
{
    struct daemon d;
    char command[512];
    daemon_start(&d, "--backend", "sim", NULL);
    (void)snprintf(command, sizeof command,
                   "%s/gpuctl -u %s devices -w 600 -o csv 2>%s/err | head -1; "
                   "test ${PIPESTATUS[0]} = 0 -a ! -s %s/err",
                   SYSTEM_BIN, d.url, d.dir, d.dir);
    const char *const argv[] = {"bash", "-c", command, NULL};
    ck_assert_int_eq(run_program(argv, "/dev/null", "/dev/null"), 0);
    daemon_stop(&d);
}
END_TEST

static void job_text(const gpud_job *job, char *text, size_t size)
{
    (void)snprintf(text, size, "%llu", (unsigned long long)gpud_job_id(job));
}

START_TEST(the_end_of_a_job_is_told)
{
    struct daemon d;
    char number[32];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.window=1", NULL);
    gpud_job *first = fill(c, floats(c, 500));
    gpud_job *second = fill(c, floats(c, 60000)); /* for a minute */
    gpud_job *third = fill(c, floats(c, 10));     /* waits behind it */
    job_await_dispatch(c, first);
    ck_until(gpud_job_id(third) != 0);
    job_text(first, number, sizeof number);
    ck_assert_int_eq(gpuctl(&d, out, err, "wait", number, "-o", "json", NULL), 0);
    ck_assert_msg(strstr(out, "\"state\": \"done\"") != NULL, "%s", out);

    job_text(third, number, sizeof number);
    ck_assert_int_eq(gpuctl(&d, out, err, "wait", number, "--timeout", "50", NULL), 124);
    ck_assert_msg(strstr(err, "it goes on") != NULL, "%s", err);
    struct command_line waits = {.d = &d, .words = {"wait", number}};
    (void)snprintf(waits.file, sizeof waits.file, "%s/waited", d.dir);
    pid_t pid = process_start(run_words, &waits);
    ck_until(query_value(c, "status", NULL, "sessions") == 2);
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(process_wait(pid), 130);

    pid = process_start(run_words, &waits);
    ck_gpud_ok(gpud_cancel(third));
    ck_assert_int_eq(process_wait(pid), 1);
    ck_assert_int_eq(gpuctl(&d, out, err, "wait", "99999", NULL), 1);
    gpud_job_free(first);
    gpud_job_free(second);
    gpud_job_free(third);
    gpud_close(c);
    daemon_kill(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpuctl");
    suite_add(suite, run_with_files);
    suite_add(suite, exit_codes);
    suite_add(suite, json);
    suite_add(suite, doctor);
    suite_add(suite, bench);
    suite_add(suite, files_come_first);
    suite_add(suite, sizes_that_mean_nothing_are_refused);
    suite_add(suite, devices_are_told);
    suite_add(suite, reload_reads_again);
    suite_add(suite, detached_jobs_outlive_gpuctl);
    suite_add(suite, a_detached_job_is_told_as_asked);
    suite_add(suite, a_session_is_killed_with_its_jobs);
    suite_add_loop(suite, full_houses_can_be_looked_at, 2);
    suite_add(suite, tables_are_filtered);
    suite_add(suite, jobs_are_listed_newest_first);
    suite_add(suite, requests_are_the_unanswered_ones);
    suite_add(suite, what_was_done_is_told_as_asked);
    suite_add(suite, an_interrupted_run_cancels_its_job);
    suite_add(suite, a_watched_table_goes_on);
    suite_add(suite, a_watched_table_ends_with_its_reader);
    suite_add(suite, the_end_of_a_job_is_told);
    return system_main(suite);
}
