/* Accounts of tenants through the daemon: what gpuctl shows is what jobs did, and goes on after a
 * restart, a crash and a reboot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define WORDS 1024u
#define BYTES ((uint64_t)WORDS * 4)

static struct daemon daemon_of_test;
static char settings[DAEMON_PATH + 16];

static uint64_t has(gpud_client *c, const char *column)
{
    return query_value(c, "accounts", "near", column);
}

static gpud_client *begin(void)
{
    struct daemon *d = &daemon_of_test;
    char text[128];
    daemon_prepare(d, "--backend", "sim", "--backend-options", "speed=0", "--config", settings,
                   NULL);
    (void)snprintf(settings, sizeof settings, "%s/tenants.conf", d->dir);
    int n = snprintf(text, sizeof text, "[tenant near]\nusers = %u\n", (unsigned)getuid());
    file_write(settings, text, (size_t)n);
    daemon_spawn(d);
    daemon_wait_ready(d);
    return client_open(d->url);
}

/* A write and a read: two jobs, or what the library makes of them. */
static void use(gpud_client *c, gpud_buffer b)
{
    static uint32_t words[WORDS];
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
}

static void expect_moved(gpud_client *c, unsigned times)
{
    ck_assert_uint_eq(has(c, "to_device"), times * BYTES);
    ck_assert_uint_eq(has(c, "from_device"), times * BYTES);
}

static gpud_client *again(gpud_client *c)
{
    gpud_close(c);
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    return client_open(daemon_of_test.url);
}

/* FAULT other: the front ends, or the host, and with it what tenants used is forgotten
 * required: accounts have the same numbers after a restart and a SIGKILL of the front, and after a
 *   reboot those of the last copy; a damaged file is set aside and does not keep gpud from starting
 * defence: `front/tenants/account_file.c`: account_file_open; `front/sched/charge.c`: charge_end
 * also: `front_accounts_test`; `front_charge_test`; `front_sim`
 * mutants: accounts-anew, accounts-twice */
START_TEST(accounts_outlive_the_front)
{
    struct daemon *d = &daemon_of_test;
    gpud_client *c = begin();
    gpud_buffer b = {0};
    gpud_buffer none = {0};
    char since[64];
    char later[64];
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), 0, "test", &b));
    use(c, b);
    expect_moved(c, 1);
    uint64_t done = has(c, "done");
    uint64_t device_ns = has(c, "device_time");
    ck_assert_uint_ge(done, 2);
    ck_assert_uint_gt(device_ns, 0);
    ck_assert_uint_eq(device_ns, query_value(c, "tenants", "near", "device_time"));
    ck_assert_uint_eq(has(c, "peak"), BYTES);
    ck_assert_uint_eq(has(c, "joules"), 0); /* the device tells no energy */
    ck_assert_int_ne(gpud_write(c, none, GPUD_U32, 0, GPUD_REST, &done, NULL), 0);
    query_text(c, "accounts", "near", "since", since, sizeof since);
    for (unsigned round = 0; round < 2; round++) {
        if (round == 0) {
            daemon_kill(d);
        } else {
            daemon_hand_over(d);
        }
        daemon_spawn(d);
        daemon_wait_ready(d);
        expect_moved(c, 1 + round);
        ck_until(has(c, "done") == done); /* the session and its answers are there again */
        ck_assert_uint_eq(has(c, "device_time"), device_ns);
        use(c, b);
        expect_moved(c, 2 + round);
        ck_assert_uint_gt(has(c, "done"), done);
        done = has(c, "done");
        device_ns = has(c, "device_time");
    }
    query_text(c, "accounts", "near", "since", later, sizeof later);
    ck_assert_str_eq(since, later);
    daemon_end(d, c);
}
END_TEST

START_TEST(accounts_outlive_the_host)
{
    static char state[DAEMON_PATH + 16];
    static char path[DAEMON_PATH + 32];
    struct daemon *d = &daemon_of_test;
    char folder[] = "/tmp/gpud-accounts-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(state, sizeof state, "%s", folder);
    ck_assert_int_eq(setenv("STATE_DIRECTORY", state, 1), 0);
    gpud_client *c = begin();
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), 0, "test", &b));
    use(c, b);
    for (unsigned round = 1; round < 3; round++) {
        daemon_stop(d);
        (void)snprintf(path, sizeof path, "%s/accounts", d->dir);
        ck_assert_int_eq(unlink(path), 0);
        if (round == 2) { /* and the copy is damaged */
            (void)snprintf(path, sizeof path, "%s/accounts", state);
            file_write(path, "gpud", 4);
        }
        c = again(c);
        expect_moved(c, round == 1);
    }
    (void)snprintf(path, sizeof path, "%s/accounts.bad", state);
    ck_assert_int_eq(unlink(path), 0);
    daemon_end(d, c);
    (void)snprintf(path, sizeof path, "rm -rf %s", state);
    ck_assert_int_eq(system(path), 0);
}
END_TEST

START_TEST(an_operator_begins_anew)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct daemon *d = &daemon_of_test;
    gpud_client *c = begin();
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), 0, "test", &b));
    use(c, b);
    ck_assert_int_eq(gpuctl(d, out, err, "accounts", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "near"));
    ck_assert_ptr_nonnull(strstr(out, "(others)"));
    ck_assert_int_eq(gpuctl(d, out, err, "accounts", "reset", NULL), 0);
    expect_moved(c, 0);
    ck_assert_uint_eq(has(c, "peak"), BYTES); /* it is there still */
    use(c, b);
    expect_moved(c, 1);
    daemon_end(d, c);
}
END_TEST

static void settings_with(const char *access)
{
    char text[256];
    int n = snprintf(text, sizeof text, "[tenant near]\nusers = %u\n[log]\naccess = %s\n",
                     (unsigned)getuid(), access);
    file_write(settings, text, (size_t)n);
}

static unsigned lines_with(const char *path, const char *what)
{
    static char text[DAEMON_OUTPUT];
    unsigned count = 0;
    file_read(path, text, sizeof text);
    for (const char *c = text; (c = strstr(c, what)) != NULL; c++) {
        count++;
    }
    return count;
}

/* FAULT other: the disk of the access log is full
 * required: jobs go on; lines are missing and counted, the next line that can be written says how
 *   many, and the daemon's log names the file and the reason
 * defence: `front/views/access_log.c`: write_lines
 * also: `front_access_log_test`: a_full_disk_costs_lines, room_has_an_end
 * mutants: access-missing */
START_TEST(a_line_for_each_job)
{
    static char path[DAEMON_PATH + 16];
    static char older[DAEMON_PATH + 16];
    struct daemon *d = &daemon_of_test;
    gpud_client *c = begin();
    gpud_buffer b = {0};
    (void)snprintf(path, sizeof path, "%s/access", d->dir);
    (void)snprintf(older, sizeof older, "%s/older", d->dir);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), 0, "test", &b));
    settings_with(path);
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    uint64_t done = has(c, "done");
    use(c, b);
    unsigned jobs = (unsigned)(has(c, "done") - done);
    ck_until(access(path, F_OK) == 0 && lines_with(path, " tenant=near ") == jobs);
    ck_assert_uint_eq(lines_with(path, " result=done error=-\n"), jobs);
    ck_assert_uint_eq(lines_with(path, "to_device=4096 "), 1);
    ck_assert_int_eq(rename(path, older), 0); /* as logrotate does */
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    use(c, b);
    ck_until(access(path, F_OK) == 0 &&
             lines_with(path, "\n") + lines_with(older, "\n") == 2 * jobs);
    settings_with("/dev/full");
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    use(c, b);
    ck_until(query_value(c, "status", NULL, "access_lost") == jobs);
    ck_until(daemon_logged(d, "access log /dev/full: No space left on device"));
    settings_with(path);
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    do {
        use(c, b);
    } while (lines_with(path, " missing=") == 0);
    daemon_end(d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accounts");
    suite_add(suite, accounts_outlive_the_front);
    suite_add(suite, accounts_outlive_the_host);
    suite_add(suite, an_operator_begins_anew);
    suite_add(suite, a_line_for_each_job);
    return system_main(suite);
}
