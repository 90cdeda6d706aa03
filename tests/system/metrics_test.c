/* Metrics through the daemon: their numbers are those of tables, of what jobs did and of what went
 * wrong; the daemon's health and readiness are the truth. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/harness/harness.h"
#include "tests/system/http.h"

#define COUNT    1024u
#define BYTES    (COUNT * 4.0)
#define PLAIN    "text/plain"
#define SCRAPERS 100u

static struct daemon daemon_of_test;
static char settings[DAEMON_PATH + 16];
static unsigned port;
static char text[HTTP_ROOM];

static unsigned free_port(void)
{
    char url[64];
    tcp_url(url, sizeof url);
    return (unsigned)strtoul(strrchr(url, ':') + 1, NULL, 10);
}

static void write_settings(const char *listen, const char *more)
{
    char all[512];
    int n = snprintf(all, sizeof all, "[metrics]\nlisten = %s\n%s", listen, more);
    file_write(settings, all, (size_t)n);
}

static void begin(const char *options, const char *more)
{
    struct daemon *d = &daemon_of_test;
    char listen[64];
    daemon_prepare(d, "--backend", "sim", "--backend-options", options, "--config", settings, NULL);
    (void)snprintf(settings, sizeof settings, "%s/gpud.conf", d->dir);
    port = free_port();
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
    write_settings(listen, more);
    daemon_spawn(d);
}

static double value(const char *sample)
{
    ck_assert_int_eq(http_get(port, "/metrics", PLAIN, text), 200);
    return http_value(text, sample);
}

static void run_job(gpud_client *c, uint64_t trace)
{
    static float in[COUNT];
    static float out[COUNT];
    gpud_buffer b = {0};
    gpud_job *job = NULL;
    const gpud_submit_options options = {.size = sizeof options, .trace_id = trace};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, COUNT), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, in, NULL));
    gpud_arg fill[] = {gpud_f32(1), gpud_arg_with(gpud_slice(b, 0, COUNT), GPUD_OUT)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), fill, 2, NULL, &options, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, out, NULL));
}

START_TEST(numbers_are_those_of_tables_and_jobs)
{
    char more[128];
    (void)snprintf(more, sizeof more, "[tenant near]\nusers = %u\n", (unsigned)getuid());
    begin("speed=0", more);
    daemon_wait_ready(&daemon_of_test);
    gpud_client *c = client_open(daemon_of_test.url);
    for (unsigned i = 0; i < 3; i++) {
        run_job(c, 0xfeed);
    }
    double jobs = value("gpud_jobs_submitted_total");
    ck_assert_double_ge(jobs, 3);
    ck_assert_double_eq(jobs, value("gpud_job_duration_seconds_count{device=\"0\"}"));
    ck_assert_double_eq(jobs, value("gpud_job_queue_seconds_count{device=\"0\"}"));
    ck_assert_double_eq(jobs, value("gpud_job_execution_seconds_count{device=\"0\"}"));
    ck_assert_double_eq(jobs,
                        value("gpud_tenant_jobs_completed_total{tenant=\"near\",result=\"done\"}"));
    ck_assert_double_eq(value("gpud_copy_bytes_total{direction=\"to_device\"}"), 3 * BYTES);
    ck_assert_double_eq(
        value("gpud_tenant_copy_bytes_total{tenant=\"near\",direction=\"from_device\"}"),
        3 * BYTES);
    ck_assert_double_eq(value("gpud_buffer_bytes{device=\"0\",tenant=\"near\"}"), 3 * BYTES);
    ck_assert_double_gt(value("gpud_busy_seconds_total{device=\"0\",tenant=\"near\"}"), 0);
    ck_assert_double_eq(value("gpud_sessions"), 1);
    ck_assert_double_eq(value("gpud_ready"), 1);
    ck_assert_double_eq(value("gpud_jobs_completed_total{result=\"done\"}"),
                        (double)query_value(c, "status", NULL, "done"));
    ck_assert_double_eq(value("gpud_device_memory_bytes{device=\"0\"}"),
                        (double)query_value(c, "devices", "0", "memory"));
    ck_assert_ptr_nonnull(strstr(text,
                                 "gpud_device_info{device=\"0\",backend=\"sim\",kind=\"simulat"
                                 "ed\""));
    ck_assert_int_eq(http_get(port, "/metrics", "application/openmetrics-text", text), 200);
    ck_assert_ptr_nonnull(strstr(text, "# {trace_id=\"000000000000feed\"} "));
    daemon_end(&daemon_of_test, c);
}
END_TEST

/* A worker that is killed, and a kernel that ends the next one with its second launch: the driver
 * aborts, or the kernel does not end. */
START_TEST(what_goes_wrong_is_counted_with_its_reason)
{
    static const struct {
        const char *options, *reason, *error;
        int code;
    } cases[] = {{"speed=0,script=launch:2=crash", "crashed", "worker_lost", GPUD_ERR_WORKER_LOST},
                 {"speed=0,script=launch:2=hang", "job", "time_limit", GPUD_ERR_TIME_LIMIT}};
    char sample[128];
    begin(cases[_i].options, "[jobs]\ntime_limit_ms = 300\n");
    daemon_wait_ready(&daemon_of_test);
    gpud_client *c = client_open(daemon_of_test.url);
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_worker(&daemon_of_test, 0, worker);
    run_job(c, 0);
    ck_assert_double_eq(value("gpud_worker_restarts_total{device=\"0\",reason=\"killed\"}"), 1);
    gpud_buffer b = {0};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, COUNT), 0, NULL, &b));
    gpud_arg fill[] = {gpud_f32(1), gpud_arg_with(gpud_slice(b, 0, COUNT), GPUD_OUT)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), fill, 2, NULL, NULL, &job));
    ck_gpud_err(gpud_wait(job, PATIENCE), cases[_i].code);
    gpud_job_free(job);
    (void)snprintf(sample, sizeof sample, "gpud_worker_restarts_total{device=\"0\",reason=\"%s\"}",
                   cases[_i].reason);
    ck_until(value(sample) > 0);
    ck_assert_double_eq(value(sample), 1);
    (void)snprintf(sample, sizeof sample, "gpud_device_errors_total{device=\"0\",error=\"%s\"}",
                   cases[_i].error);
    ck_assert_double_eq(value(sample), 1);
    ck_assert_double_eq(value("gpud_worker_restarts_total{device=\"0\",reason=\"killed\"}"), 1);
    ck_assert_double_eq(value("gpud_worker_restarts_total{device=\"0\",reason=\"ended\"}"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 2);
    daemon_end(&daemon_of_test, c);
}
END_TEST

/* `gpuctl status` and /readyz say the same, also while the daemon does not serve. */
START_TEST(readiness_is_that_of_gpuctl_status)
{
    struct daemon *d = &daemon_of_test;
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    begin("speed=0,devices=1", "[daemon]\nmin_devices = 2\n");
    ck_until(http_get(port, "/healthz", PLAIN, text) == 200);
    ck_assert_str_eq(text, "ok\n");
    ck_until(http_get(port, "/readyz", PLAIN, text) == 503 &&
             strstr(text, "1 of 2 required devices serve") != NULL);
    ck_assert_double_eq(value("gpud_ready"), 0);
    gpud_client *c = client_open(d->url);
    query_text(c, "status", NULL, "state", out, sizeof out);
    ck_assert_str_eq(out, "not ready");
    char listen[64];
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
    write_settings(listen, "");
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    ck_until(http_get(port, "/readyz", PLAIN, text) == 200);
    ck_assert_str_eq(text, "ready\n");
    ck_assert_int_eq(gpuctl(d, out, err, "drain", NULL), 0);
    ck_assert_int_eq(http_get(port, "/readyz", PLAIN, text), 503);
    ck_assert_str_eq(text, "not ready: draining: no new jobs are taken, until gpuctl resume\n");
    ck_assert_int_eq(http_get(port, "/healthz", PLAIN, text), 200);
    ck_assert_int_eq(gpuctl(d, out, err, "resume", NULL), 0);
    ck_assert_int_eq(http_get(port, "/readyz", PLAIN, text), 200);
    daemon_end(d, c);
}
END_TEST

/* One drained device of two, then both: header in front_diagnosis_test. */
START_TEST(readiness_with_drained_devices)
{
    static char out[DAEMON_OUTPUT];
    begin("speed=0,devices=2", "[daemon]\nmin_devices = 2\n");
    daemon_wait_ready(&daemon_of_test);
    gpud_client *c = client_open(daemon_of_test.url);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    ck_gpud_ok(gpud_control(c, "drain-device", "0"));
    ck_assert_int_eq(http_get(port, "/readyz", PLAIN, text), 200);
    query_text(c, "status", NULL, "state", out, sizeof out);
    ck_assert_str_eq(out, "degraded");
    ck_assert_double_eq(value("gpud_ready"), 1);
    ck_gpud_ok(gpud_control(c, "drain-device", "1"));
    ck_until(http_get(port, "/readyz", PLAIN, text) == 503 &&
             strstr(text, "0 of 1 required devices serve: device 0 is drained: released: gpuctl "
                          "resume --device 0 opens it again") != NULL);
    query_text(c, "status", NULL, "state", out, sizeof out);
    ck_assert_str_eq(out, "not ready");
    ck_assert_double_eq(value("gpud_ready"), 0);
    ck_assert_int_eq(http_get(port, "/healthz", PLAIN, text), 200);
    ck_gpud_ok(gpud_control(c, "resume-device", "1"));
    ck_until(http_get(port, "/readyz", PLAIN, text) == 200);
    query_text(c, "status", NULL, "problem", out, sizeof out);
    ck_assert_ptr_nonnull(strstr(out, "device 0 is drained"));
    daemon_end(&daemon_of_test, c);
}
END_TEST

START_TEST(a_reload_moves_the_address)
{
    struct daemon *d = &daemon_of_test;
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    char listen[64];
    begin("speed=0", "");
    daemon_wait_ready(d);
    gpud_client *c = client_open(d->url);
    unsigned first = port;
    port = free_port();
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
    write_settings(listen, "");
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    ck_assert_double_eq(value("gpud_ready"), 1);
    ck_assert_int_eq(http_get(first, "/metrics", PLAIN, text), 0);
    write_settings("0.0.0.0:1234", ""); /* bad: what was there goes on */
    ck_assert_int_ne(gpuctl(d, out, err, "reload", NULL), 0);
    ck_assert_msg(
        strstr(err, "gpud.conf:2: listen = 0.0.0.0:1234: metrics are served on loopback") != NULL,
        "%s", err);
    ck_assert_double_eq(value("gpud_config_last_reload_successful"), 0);
    write_settings("unix:/dev/null/m", ""); /* good, but it cannot be served */
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    query_text(c, "status", NULL, "problem", out, sizeof out);
    ck_assert_msg(strstr(out, "metrics are not served: [metrics] listen = unix:/dev/null/m: ") !=
                      NULL,
                  "%s", out);
    ck_assert_int_eq(http_get(port, "/metrics", PLAIN, text), 0);
    ck_assert_int_eq(gpuctl(d, out, err, "metrics", NULL), 3);
    ck_assert_msg(strstr(err, "unix:/dev/null/m: ") != NULL &&
                      strstr(err, "gpuctl status has the problem") != NULL,
                  "%s", err);
    write_settings(listen, "");
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    ck_assert_double_eq(value("gpud_config_last_reload_successful"), 1);
    daemon_end(d, c);
}
END_TEST

/* FAULT other: a hundred scrapers ask and read nothing, and others send what is not HTTP
 * required: jobs go on, other scrapers are answered, and the daemon ends at once
 * defence: `front/metrics/server.c`: limits of connections, their memory and their time;
 *   `front/metrics/page.c`: metrics_page_response
 * also: `front_metrics_server_test`: scrapers_that_do_not_read_hold_few_texts,
 *   bad_requests_are_refused_and_the_server_goes_on, a_hundred_scrapers_share_collections,
 *   a_request_that_comes_byte_by_byte_is_ended, an_answer_that_is_read_byte_by_byte_is_ended
 * mutants: metrics-texts, metrics-life */
START_TEST(scrapers_that_do_not_read_cost_nothing)
{
    int fd[SCRAPERS];
    begin("speed=0", "");
    daemon_wait_ready(&daemon_of_test);
    gpud_client *c = client_open(daemon_of_test.url);
    for (unsigned i = 0; i < SCRAPERS; i++) {
        fd[i] = http_say(port, i % 4 == 0 ? "\x16\x03 this is not HTTP\r\n\r\n"
                                          : "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (unsigned i = 0; i < 10; i++) {
        run_job(c, 0);
        ck_assert_int_eq(http_get(port, "/readyz", PLAIN, text), 200);
    }
    ck_until(http_get(port, "/metrics", PLAIN, text) == 200);
    ck_assert_double_eq(http_value(text, "gpud_copy_bytes_total{direction=\"to_device\"}"),
                        10 * BYTES);
    daemon_end(&daemon_of_test, c); /* while they are connected */
    for (unsigned i = 0; i < SCRAPERS; i++) {
        (void)close(fd[i]);
    }
}
END_TEST

START_TEST(gpuctl_prints_them)
{
    struct daemon *d = &daemon_of_test;
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    char listen[2 * DAEMON_PATH];
    begin("speed=0", "");
    daemon_wait_ready(d);
    gpud_client *c = client_open(d->url);
    ck_assert_int_eq(gpuctl(d, out, err, "metrics", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "\ngpud_ready 1\n"));
    ck_assert_ptr_null(strstr(out, "HTTP"));
    (void)snprintf(listen, sizeof listen, "unix:%s/m.sock", d->dir);
    write_settings(listen, "");
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    ck_assert_int_eq(gpuctl(d, out, err, "metrics", "--openmetrics", NULL), 0);
    ck_assert_msg(strlen(out) > 6 && strcmp(out + strlen(out) - 6, "# EOF\n") == 0, "%s", out);
    ck_assert_int_eq(gpuctl(d, out, err, "-o", "json", "metrics", NULL), 2);
    ck_assert_int_eq(gpuctl(d, out, err, "-u", "tls+tcp://127.0.0.1:1", "metrics", NULL), 2);
    ck_assert_msg(strstr(err, "on the daemon's own host only") != NULL, "%s", err);
    write_settings("", "");
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    ck_assert_int_eq(gpuctl(d, out, err, "metrics", NULL), 1);
    ck_assert_msg(strstr(err, "the daemon serves no metrics: set listen") != NULL, "%s", err);
    daemon_end(d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    suite_add(suite, numbers_are_those_of_tables_and_jobs);
    suite_add_loop(suite, what_goes_wrong_is_counted_with_its_reason, 2);
    suite_add(suite, readiness_is_that_of_gpuctl_status);
    suite_add(suite, readiness_with_drained_devices);
    suite_add(suite, a_reload_moves_the_address);
    suite_add(suite, scrapers_that_do_not_read_cost_nothing);
    suite_add(suite, gpuctl_prints_them);
    return system_main(suite);
}
