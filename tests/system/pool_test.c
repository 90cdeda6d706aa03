/* The use of device memory as `gpuctl pool` shows it. */
#include <jansson.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

static char out[DAEMON_OUTPUT];
static char err[DAEMON_OUTPUT];

static const char *const BACKEND[] = {"sim", "opencl"};

static json_t *parse(void)
{
    json_error_t why;
    json_t *value = json_loads(out, 0, &why);
    ck_assert_msg(value != NULL, "%s: %s", why.text, out);
    return value;
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s", key);
    return (uint64_t)json_integer_value(value);
}

static void buffers_make(gpud_client *c, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char label[32];
        gpud_buffer b = {0};
        (void)snprintf(label, sizeof label, "layer %u", i);
        ck_gpud_ok(
            gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 100 + (300u << i % 12)), 0, label, &b));
    }
}

/* The sums of the meters equal the pool's totals. */
START_TEST(numbers_add_up)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", BACKEND[_i], NULL);
    void *arena = NULL;
    buffers_make(c, 40);
    ck_gpud_ok(gpud_host_alloc(c, 3u << 20, &arena)); /* its worker has it from the first use on */
    gpud_buffer from = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 3u << 20), 0, "from", &from));
    ck_gpud_ok(gpud_write(c, from, GPUD_U8, 0, 3u << 20, arena, NULL));
    ck_gpud_ok(gpud_buffer_free(c, from));
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "stats", "-o", "json", NULL), 0);
    json_t *root = parse();
    const json_t *pool = json_array_get(json_object_get(root, "pool"), 0);
    ck_assert_uint_eq(number(pool, "live"), 40);
    ck_assert_uint_eq(number(pool, "internal"), number(pool, "used") - number(pool, "asked"));
    ck_assert_uint_ge(number(pool, "size"), number(pool, "used") + number(pool, "pending"));
    ck_assert_uint_gt(number(pool, "driver_calls"), 0);
    ck_assert_uint_le(number(pool, "hit_rate"), 1000000);
    ck_assert_uint_eq(number(pool, "exported"), 0);
    ck_assert_uint_ge(number(pool, "arenas"), 3u << 20);
    uint64_t used[2] = {0};
    uint64_t classes = 0;
    size_t i;
    const json_t *meter;
    json_array_foreach(json_object_get(root, "meters"), i, meter)
    {
        const char *scope = json_string_value(json_object_get(meter, "scope"));
        ck_assert_uint_le(number(meter, "asked"), number(meter, "used"));
        ck_assert_uint_le(number(meter, "used"), number(meter, "peak"));
        ck_assert_uint_le(number(meter, "used"), number(meter, "total"));
        used[0] += strcmp(scope, "tier") == 0 ? number(meter, "used") : 0;
        used[1] += strcmp(scope, "tenant") == 0 ? number(meter, "used") : 0;
        classes += strcmp(scope, "class") == 0;
    }
    ck_assert_uint_eq(used[0], number(pool, "used"));
    ck_assert_uint_eq(used[1], number(pool, "used"));
    ck_assert_uint_gt(classes, 3);
    json_decref(root);
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", NULL), 0);
    ck_assert_msg(strstr(out, "LARGEST FREE") != NULL && strstr(out, "slab") != NULL, "%s", out);
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "--meters", "-o", "csv", NULL), 0);
    ck_assert_msg(strstr(out, "0,class,64 KiB,") != NULL, "%s", out);
    daemon_end(&d, c);
}
END_TEST

START_TEST(the_library_checks_what_it_is_asked)
{
    struct daemon d;
    gpud_table *t = NULL;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_client *other = client_open(d.url);
    const gpud_pool_options bad[] = {{.size = 0},
                                     {.size = sizeof(gpud_pool_options), .flags = 64},
                                     {.size = sizeof(gpud_pool_options), .device = 2}};
    ck_gpud_err(gpud_pool_take(c, &bad[0], &t), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_pool_take(c, &bad[1], &t), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_pool_take(c, &bad[2], &t), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_pool_take(c, NULL, NULL), GPUD_ERR_INVALID);
    const gpud_pool_options good = {.size = sizeof good, .flags = GPUD_POOL_DETAIL};
    ck_gpud_ok(gpud_pool_take(c, &good, &t));
    gpud_table_free(t);
    const gpud_pool_options older = {.size = offsetof(gpud_pool_options, timeout_ns),
                                     .device = GPUD_ON(1)};
    ck_gpud_err(gpud_pool_take(c, &older, &t), GPUD_ERR_NOT_FOUND);
    const gpud_pool_options newer = {.size = sizeof newer + 8, .flags = GPUD_POOL_DETAIL};
    ck_gpud_ok(gpud_pool_take(c, &newer, &t));
    uint64_t picture = gpud_table_value(t, 0, (uint32_t)gpud_table_find(t, "picture"));
    gpud_table_free(t);
    ck_gpud_err(gpud_pool_read(c, picture, 0, 0, 0, 1, &t), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_pool_read(c, picture, 0, 4, 0, 1, &t), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_pool_read(c, picture, 1, GPUD_POOL_PIECES, 0, 1, &t), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_pool_read(c, picture + 1, 0, GPUD_POOL_PIECES, 0, 1, &t), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_pool_read(other, picture, 0, GPUD_POOL_PIECES, 0, 1, &t), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_pool_read(c, picture, 0, GPUD_POOL_PIECES, 0, 1, &t));
    ck_assert_uint_eq(gpud_table_rows(t), 1);
    gpud_table_free(t);
    gpud_close(other);
    daemon_end(&d, c);
}
END_TEST

/* Whether the snapshot names the device whose worker is stopped, and has the other device. Not so
 * if that worker is too slow, too, or if the stopped one was ended before it was asked. */
static bool names_the_stopped(const struct daemon *d, pid_t worker)
{
    if (worker <= 0) {
        return false; /* there is none at the moment */
    }
    (void)kill(worker, SIGSTOP);
    int status = gpuctl(d, out, err, "pool", "--timeout", "1000", "-o", "json", NULL);
    bool named = strstr(err, "device 1 is not in it: its worker did not answer within 1000 ms");
    if (status == 0 && named) {
        json_t *root = parse();
        const json_t *pool = json_object_get(root, "pool");
        ck_assert_uint_eq(json_array_size(pool), 2);
        ck_assert(json_is_null(json_object_get(json_array_get(pool, 1), "size")));
        named = json_is_integer(json_object_get(json_array_get(pool, 0), "size"));
        json_decref(root);
    }
    status = gpuctl(d, out, err, "pool", "--device", "1", "--timeout", "200", NULL);
    named = named && status == 1 && strstr(err, "device 1 did not answer: ") != NULL;
    (void)kill(worker, SIGCONT);
    return named;
}

/* The worker of one device is stopped: the snapshot has the other device, and the daemon serves
 * meanwhile. */
START_TEST(a_stopped_worker_is_named)
{
    struct daemon d;
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "devices=2,speed=0", NULL);
    ck_until(query_value(c, "status", NULL, "serving") == 2 &&
             names_the_stopped(&d, daemon_worker(&d, 1)));
    daemon_end(&d, c);
}
END_TEST

START_TEST(bad_input)
{
    static const char *const bad[][3] = {{"--device", "1", "there is no device 1"},
                                         {"--device", "x", "--device"},
                                         {"--device", "-1", "--device"},
                                         {"--timeout", "0", "--timeout"},
                                         {"--timeout", "99999999", "--timeout"},
                                         {"--nonsense", "1", "--nonsense"}};
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int status = gpuctl(&d, out, err, "pool", bad[i][0], bad[i][1], NULL);
        ck_assert_msg(status == (i == 0 ? 1 : 2), "%u: %d %s", i, status, err);
        ck_assert_msg(strstr(err, bad[i][2]) != NULL, "%s", err);
        ck_assert_str_eq(out, "");
    }
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "what", NULL), 2);
    daemon_stop(&d);
}
END_TEST

/* The three files of one snapshot agree. */
static void files_agree(const struct daemon *d)
{
    char path[4][160];
    char script[256];
    static const char *const names[] = {"p.json", "p.csv", "p.pickle", "p.log"};
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(path[i], sizeof path[i], "%s/%s", d->dir, names[i]);
    }
    (void)snprintf(script, sizeof script, "%s/pool_files.py", SYSTEM_SOURCE);
    int status = gpuctl(d, out, err, "pool", "snapshot", "-f", path[0], "--csv", path[1],
                        "--pytorch", path[2], NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    ck_assert_str_eq(out, "");
    const char *const argv[] = {"/usr/bin/env", "python3", script, path[0], path[1], path[2], NULL};
    status = run_program(argv, "/dev/null", path[3]);
    file_read(path[3], err, sizeof err);
    ck_assert_msg(status == 0, "%d: %s", status, err);
}

/* More than goes into one answer, and into the pool's log. */
START_TEST(a_snapshot_of_many)
{
    const unsigned many = 9000;
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0", NULL);
    gpud_buffer *buffers = calloc(many, sizeof *buffers);
    ck_assert_ptr_nonnull(buffers);
    for (unsigned i = 0; i < many; i++) {
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 200 + i % 700), 0, "one of many",
                                      &buffers[i]));
    }
    for (unsigned i = 0; i < many; i += 3) {
        ck_gpud_ok(gpud_buffer_free(c, buffers[i]));
    }
    gpud_buffer last = {0}; /* the worker handles requests in order: earlier ones are done when this
                               buffer is made */
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 1), 0, NULL, &last));
    files_agree(&d);
    json_error_t why;
    char path[160];
    (void)snprintf(path, sizeof path, "%s/p.json", d.dir);
    json_t *root = json_load_file(path, 0, &why);
    ck_assert_msg(root != NULL, "%s", why.text);
    const json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    const json_t *piece;
    unsigned named = 0;
    size_t i;
    json_array_foreach(json_object_get(device, "pieces"), i, piece)
    {
        const char *label = json_string_value(json_object_get(piece, "label"));
        named += label != NULL && strcmp(label, "one of many") == 0;
        ck_assert(label == NULL || json_is_string(json_object_get(piece, "id")));
    }
    ck_assert_uint_eq(named, many - (many + 2) / 3);
    ck_assert_uint_gt(json_array_size(json_object_get(device, "events")), 4096);
    json_decref(root);
    free(buffers);
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "snapshot", NULL), 0);
    ck_assert_msg(strstr(err, "these are the largest of") != NULL, "%s", err);
    daemon_end(&d, c);
}
END_TEST

START_TEST(files_of_real_work)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", BACKEND[_i], NULL);
    buffers_make(c, 30);
    char image[160];
    (void)snprintf(image, sizeof image, "%s/demo.png", d.dir);
    if (_i == 1) { /* simulated devices run no kernels from source */
        ck_assert_int_eq(gpuctl(&d, out, err, "demo", "-f", image, NULL), 0);
    }
    files_agree(&d);
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "snapshot", "-o", "csv", NULL), 0);
    ck_assert_msg(strstr(out, ",buffer,layer 29") != NULL, "%s", out);
    daemon_end(&d, c);
}
END_TEST

/* A file that cannot be written is reported before the snapshot is taken; without a snapshot no
 * file is left. */
START_TEST(files_that_cannot_be)
{
    static const char *const bad[] = {"/nowhere/p", "/proc/p", "/dev/null", "/"};
    static const char *const options[] = {"--html", "--csv", "--pytorch", "--file"};
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    for (unsigned i = 0; i < 4; i++) {
        int status = gpuctl(&d, out, err, "pool", "snapshot", options[i], bad[i], NULL);
        ck_assert_msg(status == 1, "%s %s: %d", options[i], bad[i], status);
        ck_assert_msg(strstr(err, bad[i]) != NULL, "%s", err);
    }
    char path[160];
    (void)snprintf(path, sizeof path, "%s/p.html", d.dir);
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    ck_assert_int_eq(
        gpuctl(&d, out, err, "pool", "snapshot", "--html", path, "--timeout", "200", NULL), 1);
    ck_assert_msg(strstr(err, "did not answer within 200 ms") != NULL, "%s", err);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    daemon_stop(&d);
}
END_TEST

static void to_a_full_device(const struct daemon *d, const char *const *words)
{
    const char *argv[12] = {SYSTEM_BIN "/gpuctl", "-u", d->url};
    char path[160];
    (void)snprintf(path, sizeof path, "%s/full", d->dir);
    for (unsigned i = 0; i < 4; i++) {
        argv[3 + i] = words[i];
    }
    ck_assert_int_eq(run_program(argv, "/dev/full", path), 1);
    file_read(path, err, sizeof err);
    ck_assert_msg(strstr(err, "No space left on device") != NULL, "%s %s: %s", words[0], words[1],
                  err);
}

/* "-" is standard output, for one of the files; a full output is reported with the reason. */
START_TEST(standard_output)
{
    static const char *const words[][4] = {
        {"pool", "snapshot", "-f", "-"},
        {"pool", "snapshot", "-o", "json"},
        {"pool", "snapshot", "--html", "-"},
        {"kernels", "-o", "json", NULL},
    };
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "snapshot", "-f", "-", NULL), 0);
    json_error_t why;
    json_t *root = json_loads(out, 0, &why);
    ck_assert_msg(root != NULL, "%s", why.text);
    json_decref(root);
    ck_assert_int_ne(access("-", F_OK), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "pool", "snapshot", "-f", "-", "--csv", "-", NULL), 2);
    ck_assert_msg(strstr(err, "one of the files only") != NULL, "%s", err);
    for (unsigned i = 0; i < 4; i++) {
        to_a_full_device(&d, words[i]);
    }
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    suite_add(suite, standard_output);
    suite_add_loop(suite, numbers_add_up, 2);
    suite_add(suite, the_library_checks_what_it_is_asked);
    suite_add(suite, a_stopped_worker_is_named);
    suite_add(suite, bad_input);
    suite_add(suite, a_snapshot_of_many);
    suite_add_loop(suite, files_of_real_work, 2);
    suite_add(suite, files_that_cannot_be);
    return system_main(suite);
}
