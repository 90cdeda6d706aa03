#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/front/settings/config.h"
#include "tests/unit/front/scratch.h"

static char dir[SCRATCH_PATH];

static void setup(void)
{
    scratch_make(dir);
}

static void teardown(void)
{
    scratch_remove(dir);
}

static int load(struct config *config, const char *text, struct err *e)
{
    const char *path = scratch_path(dir, "gpud.conf");
    scratch_write(path, text, strlen(text));
    config_defaults(config);
    return config_load(config, path, e);
}

START_TEST(defaults_are_within_their_own_ranges)
{
    struct config config;
    struct config again;
    const char *section;
    const char *key;
    char value[512];
    char name[128];
    unsigned count = 0;
    config_defaults(&config);
    config_defaults(&again);
    for (unsigned i = 0; config_at(&config, i, &section, &key, value, sizeof value); i++) {
        struct err e = ERR_INIT;
        (void)snprintf(name, sizeof name, "%s.%s", section, key);
        ck_assert_msg(config_set(&again, name, value, &e) == 0, "%s: %s", name, e.text);
        count++;
    }
    ck_assert_uint_eq(count, 64);
    ck_assert_mem_eq(&config, &again, sizeof config);
    ck_assert_str_eq(config.backend, "auto");
    ck_assert_str_eq(config.runtime_dir, "/run/gpud");
    ck_assert_uint_eq(config.staging_input_bytes, 256u << 20);
    ck_assert_uint_eq(config.time_limit_ms, 30000);
    ck_assert_int_eq(config.log_level, LOG_LEVEL_INFO);
}
END_TEST

START_TEST(a_whole_file)
{
    struct config config;
    struct err e = ERR_INIT;
    int rc = load(&config,
                  "# about\n"
                  "[daemon]\n"
                  "listen = ipc:///a.sock, tcp://127.0.0.1:7000\n"
                  "listen = tcp://[::1]:7000\n"
                  "runtime_dir = /tmp/x # here\n"
                  "backend = sim\n"
                  "backend_options = devices=2,scale=10\n"
                  "devices = 0,2\n"
                  "log_level = debug\n"
                  "[jobs]\n"
                  "window = 3\n"
                  "keep_results_bytes = 2M\n"
                  "[staging]\n"
                  "input_bytes = 1048576\n"
                  "[compile]\n"
                  "memory_bytes = 1G\n",
                  &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_uint_eq(config.listen_count, 3);
    ck_assert_str_eq(config.listen[0], "ipc:///a.sock");
    ck_assert_str_eq(config.listen[1], "tcp://127.0.0.1:7000");
    ck_assert_str_eq(config.listen[2], "tcp://[::1]:7000");
    ck_assert_str_eq(config.runtime_dir, "/tmp/x");
    ck_assert_str_eq(config.backend_options, "devices=2,scale=10");
    ck_assert_str_eq(config.devices, "0,2");
    ck_assert_int_eq(config.log_level, LOG_LEVEL_DEBUG);
    ck_assert_uint_eq(config.window, 3);
    ck_assert_uint_eq(config.keep_results_bytes, 2u << 20);
    ck_assert_uint_eq(config.staging_input_bytes, 1u << 20);
    ck_assert_uint_eq(config.compile_memory_bytes, 1u << 30);
    ck_assert_uint_eq(config.queue_max, 4096);
    ck_assert_str_eq(config.file, scratch_path(dir, "gpud.conf"));
}
END_TEST

struct bad {
    const char *text;
    int code;
    const char *says; /* behind the file's name */
};

static const struct bad bad_files[] = {
    {"[daemon]\n\nbackends = sim\n", ERR_NOT_FOUND, ":3: unknown setting daemon.backends"},
    {"[demon]\nbackend = sim\n", ERR_NOT_FOUND, ":1: unknown section [demon]"},
    {"[daemon]\nbackend = rocm\n", ERR_INVALID, ":2: backend = rocm: not one of"},
    {"[jobs]\n# x\nwindow = 257\n", ERR_RANGE, ":3: window = 257: not within 0 and 256"},
    {"[jobs]\nwindow = -1\n", ERR_INVALID, ":2: window = -1: not a number"},
    {"[jobs]\nwindow = 8 jobs\n", ERR_INVALID, ":2: window = 8 jobs: not a number"},
    {"[jobs]\nwindow =\n", ERR_INVALID, ":2: window = : not a number"},
    {"[jobs]\nwindow = 99999999999999999999999\n", ERR_INVALID, ":2: window"},
    {"[staging]\ninput_bytes = 99999999T\n", ERR_RANGE, ":2: input_bytes"},
    {"[staging]\ninput_bytes = 18446744073709551615T\n", ERR_RANGE, ":2: input_bytes"},
    {"[staging]\ninput_bytes = 2X\n", ERR_INVALID, ":2: input_bytes = 2X: not a number with"},
    {"[jobs]\nwindow = 1\nwindow = 2\n", ERR_INVALID, ":2: window: set twice"},
    {"[daemon]\nruntime_dir = run\n", ERR_INVALID, ":2: runtime_dir = run: not an absolute"},
    {"[daemon]\nlisten = http://x\n", ERR_INVALID, ":2: listen: http://x: neither"},
    {"[daemon]\nlisten = tcp://0.0.0.0:7\n", ERR_PERMISSION, ":2: listen: tcp://0.0.0.0:7: only"},
    {"[daemon]\nlisten = tcp://127.0.0.1\n", ERR_INVALID, ":2: listen: tcp://127.0.0.1: a port"},
    {"[daemon]\n\nlisten = ipc://x\n", ERR_INVALID, ":3: listen: ipc://x: an absolute path"},
    {"[jobs]\nwindow = 2\n[demon]\n", ERR_NOT_FOUND, ":3: unknown section [demon]"},
    {"[daemon]\nlook = some\n", ERR_INVALID, ":2: look = some: not one of own, all"},
    {"[daemon]\nlook = ow\n", ERR_INVALID, ":2: look = ow: not one of own, all"},
    {"[daemon]\nadmin_group = no-such-group\n", ERR_NOT_FOUND, ":2: admin_group = no-such"},
    {"[tenants]\nload_group = no-such-group\n", ERR_NOT_FOUND, ":2: load_group = no-such"},
    {"[daemon]\nlog_level = loud\n", ERR_INVALID, ":2: log_level = loud"},
    {"[daemon]\ndevices = 0,,1\n", ERR_INVALID, ":2: devices = 0,,1"},
    {"[daemon]\ndevices = 0,\n", ERR_INVALID, ":2: devices = 0,"},
    {"[daemon]\ndevices = 64\n", ERR_INVALID, ":2: devices = 64"},
    {"[metrics]\nlisten = 0.0.0.0:9464\n", ERR_PERMISSION,
     ":2: listen = 0.0.0.0:9464: metrics are served on loopback only, as 127.0.0.1:9464"},
    {"[metrics]\nlisten = 127.0.0.1:9464,10.1.2.3:9464\n", ERR_PERMISSION, ":2: listen = 10.1.2.3"},
    {"[metrics]\nlisten = [::]:9464\n", ERR_PERMISSION, ":2: listen = ::"},
    {"[metrics]\nlisten = host:9464\n", ERR_PERMISSION, ":2: listen = host"},
    {"[metrics]\nlisten = 127.0.0.1\n", ERR_INVALID, ":2: listen = 127.0.0.1: neither"},
    {"[metrics]\nlisten = 127.0.0.1:0\n", ERR_INVALID, ":2: listen = 127.0.0.1:0: neither"},
    {"[metrics]\nlisten = 127.0.0.1:65536\n", ERR_INVALID, ":2: listen = 127.0.0.1:65536: nei"},
    {"[metrics]\nlisten = unix:m.sock\n", ERR_INVALID, ":2: listen = unix:m.sock: an absolute"},
    {"[metrics]\nlisten = 127.1:1 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3 127.0.0.1:4 127.0.0.1:5\n",
     ERR_PERMISSION, ":2: listen = 127.1:1"},
    {"[metrics]\nlisten = 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3 127.0.0.1:4 127.0.0.1:5\n", ERR_LIMIT,
     ":2: listen: over 4 addresses"},
    {"window = 1\n[jobs]\n", ERR_INVALID, ": window is in no section"},
    {"[jobs\nwindow = 1\n", ERR_INVALID, ":1: "},
    {"[jobs]\nwindow = 1\n[daemon]\nwindow = 1\n", ERR_NOT_FOUND, ":4: unknown setting daemon.w"},
    {"[jobs]\nwindow = 1\n\n# about\n[jobs]\nwindow = x\n", ERR_INVALID, ":6: window = x: not"},
    {"[jobs]\nwindow\n", ERR_INVALID, ":2: "},
};

START_TEST(a_bad_file_names_its_line_and_changes_nothing)
{
    const struct bad *bad = &bad_files[_i];
    struct config config;
    struct config before;
    struct err e = ERR_INIT;
    config_defaults(&before);
    int rc = load(&config, bad->text, &e);
    const char *path = scratch_path(dir, "gpud.conf");
    ck_assert_msg(rc == bad->code, "%s gave %s: %s", bad->text, err_name(rc), e.text);
    ck_assert_int_eq(e.code, rc);
    ck_assert_msg(strncmp(e.text, path, strlen(path)) == 0, "%s", e.text);
    ck_assert_msg(strncmp(e.text + strlen(path), bad->says, strlen(bad->says)) == 0, "%s", e.text);
    ck_assert_mem_eq(&config, &before, sizeof config);
}
END_TEST

START_TEST(a_file_that_is_none)
{
    struct config config;
    struct err e = ERR_INIT;
    config_defaults(&config);
    ck_assert_int_eq(config_load(&config, scratch_path(dir, "absent"), &e), ERR_NOT_FOUND);
    ck_assert_int_eq(config_load(&config, dir, &e), ERR_INVALID);
    char path[400];
    (void)snprintf(path, sizeof path, "%0*d", 399, 0);
    memset(path, '/', 399 - strlen("dev/null"));
    (void)strcpy(path + 399 - strlen("dev/null"), "dev/null");
    ck_assert_int_eq(config_load(&config, path, &e), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(e.text, "over 255 bytes"));
    ck_assert_str_eq(config.file, "");
    ck_assert_int_eq(config_load(&config, "/dev/zero", &e), ERR_INVALID);
}
END_TEST

START_TEST(bytes_of_any_kind_are_refused_or_read)
{
    unsigned seed = (unsigned)_i;
    char text[400];
    static const char alphabet[] = "[]=#\n\t \"'\\,.ab0:\x01\xff/";
    for (unsigned i = 0; i < sizeof text - 1; i++) {
        seed = seed * 1103515245u + 12345u;
        text[i] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
    }
    text[sizeof text - 1] = '\0';
    struct config config;
    struct err e = ERR_INIT;
    int rc = load(&config, text, &e);
    ck_assert(rc == 0 || (rc < 0 && e.text[0] == '/'));
}
END_TEST

START_TEST(too_many_addresses)
{
    struct config config;
    struct err e = ERR_INIT;
    char list[512] = "";
    for (unsigned i = 0; i < CONFIG_LISTEN_MAX; i++) {
        (void)strcat(list, "ipc:///s ");
    }
    config_defaults(&config);
    ck_assert_int_eq(config_set(&config, "daemon.listen", list, &e), 0);
    ck_assert_uint_eq(config.listen_count, CONFIG_LISTEN_MAX);
    (void)strcat(list, "ipc:///s");
    ck_assert_int_eq(config_set(&config, "daemon.listen", list, &e), ERR_LIMIT);
    ck_assert_uint_eq(config.listen_count, CONFIG_LISTEN_MAX);
    ck_assert_int_eq(config_set(&config, "daemon.listen", "ipc:///b", &e), 0);
    ck_assert_uint_eq(config.listen_count, 1);
}
END_TEST

START_TEST(listens_in_the_runtime_folder_unless_told)
{
    struct config config;
    struct err e = ERR_INIT;
    config_defaults(&config);
    ck_assert_int_eq(config_set(&config, "daemon.runtime_dir", "/tmp/r", &e), 0);
    ck_assert_int_eq(config_complete(&config, &e), 0);
    ck_assert_uint_eq(config.listen_count, 1);
    ck_assert_str_eq(config.listen[0], "ipc:///tmp/r/gpud.sock");
    ck_assert_int_eq(config_set(&config, "daemon.listen", "ipc:///b", &e), 0);
    ck_assert_int_eq(config_complete(&config, &e), 0);
    ck_assert_uint_eq(config.listen_count, 1);
    ck_assert_str_eq(config.listen[0], "ipc:///b");
}
END_TEST

/* The same one twice is one. */
START_TEST(as_many_devices_as_are_named)
{
    struct config config;
    struct err e = ERR_INIT;
    config_defaults(&config);
    ck_assert_int_eq(config_set(&config, "daemon.min_devices", "64", &e), 0);
    ck_assert_int_eq(config_complete(&config, &e), 0); /* it is not known how many there are */
    ck_assert_int_eq(config_set(&config, "daemon.devices", "0,63,0", &e), 0);
    ck_assert_int_eq(config_complete(&config, &e), ERR_RANGE);
    ck_assert_msg(
        strncmp(e.text, "min_devices = 64: more than the devices in devices = 0,63,0", 59) == 0,
        "%s", e.text);
    ck_assert_int_eq(config_set(&config, "daemon.min_devices", "3", &e), 0);
    ck_assert_int_eq(config_complete(&config, &e), ERR_RANGE);
    ck_assert_int_eq(config_set(&config, "daemon.min_devices", "2", &e), 0);
    ck_assert_int_eq(config_complete(&config, &e), 0);
}
END_TEST

START_TEST(metrics_are_served_on_loopback_and_unix_sockets)
{
    struct config config;
    struct metrics_addresses a;
    struct err e = ERR_INIT;
    config_defaults(&config);
    ck_assert_int_eq(metrics_addresses_parse(config.metrics_listen, &a, &e), 0);
    ck_assert_uint_eq(a.count, 0);
    ck_assert_int_eq(config_set(&config, "metrics.listen",
                                "127.9.9.9:9464, [::1]:65535 unix:/run/m.sock,localhost:1", &e),
                     0);
    ck_assert_int_eq(metrics_addresses_parse(config.metrics_listen, &a, &e), 0);
    ck_assert_uint_eq(a.count, 4);
    ck_assert_int_eq(a.address[0].at.any.sa_family, AF_INET);
    ck_assert_int_eq(a.address[1].at.any.sa_family, AF_INET6);
    ck_assert_ptr_null(metrics_address_path(&a.address[0]));
    ck_assert_str_eq(metrics_address_path(&a.address[2]), "/run/m.sock");
    ck_assert_int_eq(a.address[3].at.any.sa_family, AF_INET);
}
END_TEST

START_TEST(what_may_change_is_taken_and_the_rest_is_named)
{
    struct config config;
    struct config fresh;
    struct err e = ERR_INIT;
    char waiting[256];
    config_defaults(&config);
    config_defaults(&fresh);
    config_take_live(&config, &fresh, waiting, sizeof waiting);
    ck_assert_str_eq(waiting, "");
    ck_assert_int_eq(config_set(&fresh, "jobs.window", "3", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "jobs.coalesce_window_us", "200", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "daemon.log_level", "debug", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "daemon.look", "all", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "tenants.load_group", "root", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "memory.spill_limit", "3G", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "daemon.backend", "sim", &e), 0);
    ck_assert_int_eq(config_set(&fresh, "staging.input_bytes", "2M", &e), 0);
    config_take_live(&config, &fresh, waiting, sizeof waiting);
    ck_assert_str_eq(waiting, "daemon.backend staging.input_bytes");
    ck_assert_uint_eq(config.window, 3);
    ck_assert_uint_eq(config.coalesce_window_us, 200);
    ck_assert_int_eq(config.log_level, LOG_LEVEL_DEBUG);
    ck_assert_str_eq(config.look, "all");
    ck_assert_uint_eq(config.spill_limit, UINT64_C(3) << 30);
    ck_assert_str_eq(config.load_group, "root");
    ck_assert_str_eq(config.backend, "auto");
    ck_assert_uint_eq(config.staging_input_bytes, 256u << 20);
    config_take_live(&config, &fresh, waiting, 12); /* cut, never more than it may be */
    ck_assert_str_eq(waiting, "daemon.back");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tc = tcase_create("config");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, defaults_are_within_their_own_ranges);
    tcase_add_test(tc, a_whole_file);
    tcase_add_loop_test(tc, a_bad_file_names_its_line_and_changes_nothing, 0,
                        (int)(sizeof bad_files / sizeof bad_files[0]));
    tcase_add_test(tc, a_file_that_is_none);
    tcase_add_loop_test(tc, bytes_of_any_kind_are_refused_or_read, 0, 200);
    tcase_add_test(tc, too_many_addresses);
    tcase_add_test(tc, listens_in_the_runtime_folder_unless_told);
    tcase_add_test(tc, as_many_devices_as_are_named);
    tcase_add_test(tc, metrics_are_served_on_loopback_and_unix_sockets);
    tcase_add_test(tc, what_may_change_is_taken_and_the_rest_is_named);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
