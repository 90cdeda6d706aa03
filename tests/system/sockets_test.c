/* Tenants with sockets of their own: containers whose users have equal uids, here the test's own.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define PATHS 160
#define COUNT 1000u

static struct daemon d;
static char settings[PATHS];
static char paths[3][PATHS]; /* DIR/a/gpud.sock, … */
static char urls[3][PATHS + 8];

static void settings_write(const char *text)
{
    char all[1024];
    int n = snprintf(all, sizeof all, "%s", text);
    file_write(settings, all, (size_t)n);
}

/* Sections a, b, … with the sockets of these numbers; -1: none. */
static void sections_write(int a, int b, const char *more)
{
    char text[1024] = "[tenant a]\nload_kernels = no\n";
    size_t used = strlen(text);
    if (a >= 0) {
        used += (size_t)snprintf(text + used, sizeof text - used, "listen = %s\n", urls[a]);
    }
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "[tenant b]\nload_kernels = no\nbuffers_max = 2\n");
    if (b >= 0) {
        used += (size_t)snprintf(text + used, sizeof text - used, "listen = %s\n", paths[b]);
    }
    (void)snprintf(text + used, sizeof text - used, "%s", more);
    settings_write(text);
}

static void prepare(void)
{
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "speed=0", "--config", settings,
                   NULL);
    (void)snprintf(settings, sizeof settings, "%s/sockets.conf", d.dir);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/%c/gpud.sock", d.dir, (char)('a' + i));
        (void)snprintf(urls[i], sizeof urls[i], "ipc://%s", paths[i]);
    }
    sections_write(0, 1, "");
}

static void begin(void)
{
    prepare();
    daemon_spawn(&d);
    daemon_wait_ready(&d);
}

static int reload(void)
{
    gpud_client *c = client_open(d.url);
    int rc = gpud_control(c, "reload", NULL);
    gpud_close(c);
    return rc;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_mode & 0777u : 0;
}

static int try_open(const char *url)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 200 * MS, .timeout_ns = 2 * SECOND};
    int rc = gpud_open(url, &o, &c);
    gpud_close(c);
    return rc;
}

static void ck_tenant(gpud_client *c, const char *name)
{
    gpud_limits_desc limits = {.size = sizeof limits};
    ck_gpud_ok(gpud_limits(c, &limits));
    ck_assert_str_eq(limits.tenant, name);
}

/* Through memory that the client shares with the daemon, and the ring if this build has it. */
static void ck_shares(gpud_client *c)
{
    void *memory = NULL;
    float *x;
    ck_gpud_ok(gpud_host_alloc(c, 2 * COUNT * sizeof *x, &memory));
    x = memory;
    for (unsigned i = 0; i < 2 * COUNT; i++) {
        x[i] = (float)i;
    }
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, COUNT, GPUD_F32),
                       gpud_host(x + COUNT, COUNT, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
    for (unsigned i = 0; i < COUNT; i++) {
        ck_assert_float_eq(x[COUNT + i], 2 * (float)i + (float)(COUNT + i));
    }
    ck_gpud_ok(gpud_host_free(c, memory));
}

static gpud_buffer make(gpud_client *c, float value)
{
    float words[16];
    gpud_buffer b = {0};
    for (unsigned i = 0; i < 16; i++) {
        words[i] = value;
    }
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 16), 0, "of one", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, 16, words, NULL));
    return b;
}

static void ck_holds(gpud_client *c, gpud_buffer b, float value)
{
    float words[16] = {0};
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 16, words, NULL));
    ck_assert_float_eq(words[0], value);
    ck_assert_float_eq(words[15], value);
}

/* Containers whose users have equal uids; the daemon's own user has no rights there. */
START_TEST(who_connects_to_a_socket_belongs_to_its_tenant)
{
    char text[64];
    begin();
    gpud_client *a = client_open(urls[0]);
    gpud_client *b = client_open(urls[1]);
    gpud_client *own = client_open(d.url);
    ck_tenant(a, "a");
    ck_tenant(b, "b");
    ck_shares(a);
    ck_shares(b);
    gpud_buffer of_a = make(a, 1);
    gpud_buffer of_b = make(b, 2);
    float words[16];
    ck_gpud_err(gpud_read(b, of_a, GPUD_F32, 0, 16, words, NULL), GPUD_ERR_BAD_HANDLE);
    ck_gpud_err(gpud_buffer_free(b, of_a), GPUD_ERR_BAD_HANDLE);
    ck_gpud_ok(gpud_buffer_publish(a, of_a, "weights", GPUD_INOUT, 0));
    ck_gpud_err(gpud_buffer_open(b, "weights", &of_a), GPUD_ERR_NOT_FOUND);
    ck_holds(b, of_b, 2);
    gpud_buffer more = make(b, 3);
    gpud_buffer none = {0};
    ck_gpud_err(gpud_buffer_create(b, gpud_shape_1d(GPUD_F32, 16), 0, "", &none), GPUD_ERR_LIMIT);
    (void)more;
    ck_gpud_err(gpud_control(a, "reload", NULL), GPUD_ERR_PERMISSION);
    ck_gpud_err(gpud_control(b, "drain", NULL), GPUD_ERR_PERMISSION);
    ck_gpud_ok(gpud_control(own, "reload", NULL));
    query_text(own, "tenants", "a", "socket", text, sizeof text);
    ck_assert_str_eq(text, paths[0]);
    ck_assert_uint_eq(query_value(own, "status", NULL, "tenant_sockets"), 2);
    ck_assert_uint_eq(mode_of(paths[0]), 0660);
    gpud_close(a);
    gpud_close(b);
    daemon_end(&d, own);
    ck_assert_uint_eq(mode_of(paths[0]), 0);
}
END_TEST

/* A setting refuses it, and no group would help. */
START_TEST(a_tenant_that_may_not_connect_is_told_why)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    begin();
    sections_write(0, 1, "connect = no\n"); /* b's */
    ck_gpud_ok(reload());
    ck_assert_int_ne(gpuctl(&d, out, err, "-u", urls[1], "status", NULL), 0);
    ck_assert_msg(strstr(err, "section [tenant b] has connect = no") != NULL, "%s", err);
    ck_assert_msg(strstr(err, "adduser") == NULL, "%s", err);
    daemon_end(&d, NULL);
}
END_TEST

/* What it has goes on, and the log says so. */
START_TEST(a_tenant_that_a_reload_removes_is_logged)
{
    begin();
    gpud_client *b = client_open(urls[1]);
    settings_write("[tenant a]\nload_kernels = no\n");
    ck_gpud_ok(reload());
    ck_until(daemon_logged(&d, "tenant b has no section any more: its sessions (1) and"));
    ck_assert(!daemon_logged(&d, "tenant a has no section"));
    gpud_close(b);
    daemon_end(&d, NULL);
}
END_TEST

/* As in a container: the path that the daemon has leads nowhere there. */
START_TEST(a_folder_mounted_elsewhere_serves)
{
    char moved[PATHS];
    char url[2 * PATHS];
    begin();
    (void)snprintf(moved, sizeof moved, "%s/elsewhere", d.dir);
    (void)snprintf(url, sizeof url, "%s/a", d.dir);
    ck_assert_int_eq(rename(url, moved), 0);
    (void)snprintf(url, sizeof url, "ipc://%s/elsewhere/gpud.sock", d.dir);
    gpud_client *a = client_open(url);
    ck_tenant(a, "a");
    ck_shares(a);
    gpud_limits_desc limits = {.size = sizeof limits};
    ck_gpud_ok(gpud_limits(a, &limits));
    gpud_close(a);
    daemon_end(&d, NULL);
}
END_TEST

START_TEST(a_reload_adds_changes_and_removes_sockets)
{
    char shm[PATHS + 8];
    begin();
    gpud_client *a = client_open(urls[0]);
    gpud_client *b = client_open(urls[1]);
    gpud_buffer of_a = make(a, 1);
    (void)snprintf(shm, sizeof shm, "%s.shm", paths[2]);
    sections_write(2, -1, "");
    ck_assert_int_eq(reload(), 0);
    ck_assert_uint_eq(mode_of(paths[0]) + mode_of(paths[1]), 0);
    ck_assert_uint_eq(mode_of(paths[2]), 0660);
    ck_assert_uint_eq(mode_of(shm), 0660);
    ck_holds(a, of_a, 1); /* its tenant has a socket still */
    ck_gpud_err(try_open(urls[0]), GPUD_ERR_CONNECT);
    gpud_client *again = client_open(urls[2]);
    ck_tenant(again, "a");
    ck_shares(again);
    gpud_client *own = client_open(d.url);
    ck_until(query_value(own, "tenants", "b", "sessions") == 0 ||
             query_value(own, "status", NULL, "connections") == 3);
    sections_write(2, 1, "[tenant a]\nlisten_mode = 0666\n");
    ck_assert_int_eq(reload(), 0);
    ck_assert_uint_eq(mode_of(paths[2]), 0666);
    ck_assert_uint_eq(mode_of(shm), 0666);
    (void)make(b, 2); /* the client came back by itself */
    /* what is wrong changes nothing */
    sections_write(2, 2, "");
    ck_assert_int_eq(reload(), GPUD_ERR_EXISTS);
    ck_assert_uint_eq(mode_of(paths[2]), 0666);
    gpud_close(own);
    gpud_close(again);
    gpud_close(b);
    gpud_close(a);
    daemon_end(&d, NULL);
}
END_TEST

/* FAULT other: the front is killed, and the sockets of tenants stay behind
 * required: the next front replaces them, and knows whose sessions and buffers there are
 * defence: `front/settings/listener_url.c`: listen_take_over; `front/workers/record_encode.c` */
START_TEST(a_front_takes_over_the_sockets_of_the_one_before)
{
    begin();
    gpud_client *a = client_open(urls[0]);
    gpud_client *b = client_open(urls[1]);
    gpud_buffer of_a = make(a, 1);
    gpud_buffer of_b = make(b, 2);
    daemon_kill(&d);
    ck_assert_uint_eq(mode_of(paths[0]), 0660);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_holds(a, of_a, 1);
    ck_holds(b, of_b, 2);
    ck_tenant(b, "b");
    ck_shares(b);
    gpud_close(a);
    gpud_close(b);
    daemon_end(&d, NULL);
}
END_TEST

static int check_config(char *out, size_t size)
{
    static char err[PATHS];
    const char *const argv[] = {
        SYSTEM_BIN "/gpud", "--check-config", "--runtime-dir", d.dir, "--config", settings, NULL};
    (void)snprintf(err, sizeof err, "%s/check.err", d.dir);
    int rc = run_program(argv, "/dev/null", err);
    file_read(err, out, size);
    return rc;
}

/* FAULT other: the socket of a tenant cannot be opened
 * required: the others are served; status, log and the check of the settings say why
 * defence: `front/clients/sockets.c`: sockets_apply */
START_TEST(a_socket_that_fails_leaves_the_others)
{
    char text[1024];
    char problem[512];
    prepare();
    (void)snprintf(text, sizeof text, "%s/a", d.dir);
    ck_assert_int_eq(mkdir(text, 0700), 0);
    file_write(paths[0], "x", 1);
    daemon_spawn(&d);
    gpud_client *own = NULL;
    ck_until(gpud_open(d.url, NULL, &own) == 0);
    ck_until(query_value(own, "status", NULL, "serving") == 1);
    query_text(own, "status", NULL, "problem", problem, sizeof problem);
    ck_assert_msg(strstr(problem, "tenant a: ") != NULL &&
                      strstr(problem, "is not a socket") != NULL,
                  "%s", problem);
    gpud_client *b = client_open(urls[1]);
    ck_tenant(b, "b");
    ck_assert_int_eq(unlink(paths[0]), 0);
    ck_assert_int_eq(reload(), 0);
    gpud_client *a = client_open(urls[0]);
    ck_tenant(a, "a");
    query_text(own, "status", NULL, "problem", problem, sizeof problem);
    ck_assert_str_eq(problem, "");
    ck_assert_int_eq(check_config(text, sizeof text), 0);
    sections_write(0, 1, "[tenant c]\nlisten = /nowhere/at/all/gpud.sock\n");
    ck_assert_int_eq(check_config(text, sizeof text), 2);
    ck_assert_msg(strstr(text, "there is no folder /nowhere/at/all") != NULL, "%s", text);
    ck_assert_int_eq(reload(), GPUD_ERR_NOT_FOUND);
    gpud_close(a);
    gpud_close(b);
    daemon_end(&d, own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sockets");
    suite_add(suite, who_connects_to_a_socket_belongs_to_its_tenant);
    suite_add(suite, a_tenant_that_may_not_connect_is_told_why);
    suite_add(suite, a_tenant_that_a_reload_removes_is_logged);
    suite_add(suite, a_folder_mounted_elsewhere_serves);
    suite_add(suite, a_reload_adds_changes_and_removes_sockets);
    suite_add(suite, a_front_takes_over_the_sockets_of_the_one_before);
    suite_add(suite, a_socket_that_fails_leaves_the_others);
    return system_main(suite);
}
