/* Recordings of jobs: what a session may see, in order, and as a file for Perfetto. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define COUNT 256u

static struct daemon daemon_of_test;
static char settings[DAEMON_PATH + 16];
static char ipc_url[DAEMON_PATH];
static char far_url[64];

static gpud_client *begin(void)
{
    struct daemon *d = &daemon_of_test;
    char text[160];
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(d, "--backend", "sim", "--backend-options", "speed=0,devices=2", "--config",
                   settings, "--listen", ipc_url, "--listen", far_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d->url);
    (void)snprintf(settings, sizeof settings, "%s/tenants.conf", d->dir);
    int n = snprintf(text, sizeof text, "[tenant near]\nusers = %u\n[tenant far]\ntcp = yes\n",
                     (unsigned)getuid());
    file_write(settings, text, (size_t)n);
    daemon_spawn(d);
    daemon_wait_ready(d);
    return client_open(d->url);
}

static gpud_buffer make(gpud_client *c)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, COUNT), GPUD_BUFFER_ZERO, NULL, &b));
    return b;
}

/* Two jobs, of which the second reads what the first writes; sent together. */
static void pair(gpud_client *c, gpud_buffer a, gpud_buffer b)
{
    gpud_arg fill[] = {gpud_f32(1), gpud_arg_with(gpud_slice(a, 0, COUNT), GPUD_OUT)};
    gpud_arg axpy[] = {gpud_f32(2), gpud_arg_with(gpud_slice(a, 0, COUNT), GPUD_IN),
                       gpud_arg_with(gpud_slice(b, 0, COUNT), GPUD_INOUT)};
    const gpud_submit_options first = {.size = sizeof first, .label = "first"};
    const gpud_submit_options second = {.size = sizeof second, .label = "second"};
    gpud_job *job[2] = {NULL, NULL};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), fill, 2, NULL, &first, &job[0]));
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), axpy, 3, NULL, &second, &job[1]));
    for (unsigned i = 0; i < 2; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        gpud_job_free(job[i]);
    }
}

static unsigned rows_with(const gpud_table *t, const char *column, const char *text)
{
    unsigned count = 0;
    int at = gpud_table_find(t, column);
    ck_assert_int_ge(at, 0);
    for (uint32_t i = 0; i < gpud_table_rows(t); i++) {
        count += strcmp(gpud_table_text(t, i, (uint32_t)at), text) == 0;
    }
    return count;
}

static gpud_table *part(gpud_client *c)
{
    gpud_table *t = NULL;
    ck_gpud_ok(gpud_query(c, "trace", NULL, &t));
    ck_assert_uint_eq(rows_with(t, "event", "clock"), 1);
    return t;
}

/* A recording has the jobs from its begin on, each once, and of the tenant's own only. */
START_TEST(a_session_records_what_it_may_see)
{
    gpud_client *c = begin();
    gpud_client *far = client_open(far_url);
    gpud_buffer b[] = {make(c), make(c), make(far), make(far)};
    pair(c, b[0], b[1]); /* before */
    gpud_table *t = part(far);
    ck_assert_uint_eq(gpud_table_rows(t), 1);
    gpud_table_free(t);
    pair(c, b[0], b[1]);
    pair(far, b[2], b[3]);
    t = part(far);
    ck_assert_uint_eq(rows_with(t, "event", "job"), 2);
    ck_assert_uint_eq(rows_with(t, "name", "first"), 1);
    ck_assert_uint_eq(rows_with(t, "name", "second"), 1);
    ck_assert_uint_eq(rows_with(t, "by", "far"), 2);
    ck_assert_uint_eq(rows_with(t, "by", "near"), 0);
    ck_assert_uint_ge(rows_with(t, "event", "step"), 2);
    gpud_table_free(t);
    t = part(far); /* each record once */
    ck_assert_uint_eq(gpud_table_rows(t), 1);
    gpud_table_free(t);
    gpud_client *more[3];
    for (unsigned i = 0; i < 3; i++) { /* and a tenant has a few recordings at once */
        more[i] = client_open(far_url);
        int rc = gpud_query(more[i], "trace", NULL, &t);
        ck_assert_int_eq(rc, i == 0 ? 0 : GPUD_ERR_BUSY);
        if (rc == 0) {
            gpud_table_free(t);
        }
    }
    gpud_close(more[0]); /* a session that ends makes room */
    ck_until(gpud_query(more[1], "trace", NULL, &t) == 0);
    gpud_table_free(t);
    gpud_close(more[1]);
    gpud_close(more[2]);
    gpud_close(far);
    daemon_end(&daemon_of_test, c);
}
END_TEST

static int record(void *data)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    int rc = gpuctl(&daemon_of_test, out, err, "trace", "-f", data, "--jobs", "400", NULL);
    (void)fputs(err, stderr);
    return rc;
}

START_TEST(a_file_for_perfetto)
{
    static char file[DAEMON_PATH + 16];
    static char script[512];
    static char out[DAEMON_PATH + 16];
    gpud_client *c = begin();
    gpud_buffer b[] = {make(c), make(c)};
    (void)snprintf(file, sizeof file, "%s/t.json", daemon_of_test.dir);
    (void)snprintf(out, sizeof out, "%s/rules", daemon_of_test.dir);
    pid_t pid = process_start(record, file);
    while (access(file, F_OK) != 0) { /* until gpuctl has seen enough and writes it */
        pair(c, b[0], b[1]);
    }
    ck_assert_int_eq(process_wait(pid), 0);
    (void)snprintf(script, sizeof script, "%s/trace_rules.py", SYSTEM_SOURCE);
    const char *const argv[] = {"/usr/bin/env", "python3", script, file, "1", NULL};
    if (run_program(argv, out, out) != 0) {
        static char text[4096];
        file_read(out, text, sizeof text);
        ck_abort_msg("%s", text);
    }
    ck_assert_int_eq(unlink(file) | unlink(out), 0);
    daemon_end(&daemon_of_test, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    suite_add(suite, a_session_records_what_it_may_see);
    suite_add(suite, a_file_for_perfetto);
    return system_main(suite);
}
