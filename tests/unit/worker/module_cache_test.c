/* Modules that load in a thread of their own, with a back end that does as it is told. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/module_cache.h"
#include "tests/unit/common/suite.h"

struct backend_module {
    int unused;
};

static struct backend_module only;

/* Whether loads may go on; the thread waits for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool open_;

static void gate_set(bool open)
{
    (void)pthread_mutex_lock(&lock);
    open_ = open;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static int load(struct backend_device *d, struct bytes binary, struct backend_module **ret_module,
                struct err *e)
{
    (void)d;
    (void)pthread_mutex_lock(&lock);
    while (!open_) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
    if (binary.size == 1) {
        return err_set(e, ERR_INVALID, "one byte");
    }
    *ret_module = &only;
    return 0;
}

static void unload(struct backend_module *m)
{
    ck_assert_ptr_eq(m, &only);
}

static unsigned kernel_count(struct backend_module *m)
{
    (void)m;
    return 0;
}

static const struct backend_module_ops ops = {
    .load = load, .unload = unload, .kernel_count = kernel_count};
static const struct backend backend = {.name = "test", .module = &ops};

/* What was told of loads, in order. */
struct told {
    int code[8];
    char text[8][200];
    unsigned count;
};

static void on_loaded(void *data, struct module *m, const struct err *why)
{
    struct told *t = data;
    ck_assert_ptr_nonnull(m);
    ck_assert_uint_lt(t->count, 8);
    t->code[t->count] = why->code;
    (void)snprintf(t->text[t->count++], sizeof t->text[0], "%s", why->text);
    gate_set(true); /* what did not end may do so now */
}

static int file_of(const char *text)
{
    char path[] = "/tmp/gpud-module-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq((int)write(fd, text, strlen(text)), (int)strlen(text));
    return fd;
}

static void add(struct modules *t, uint64_t id, const char *text)
{
    static const uint8_t hash[HASH_BYTES] = {1};
    struct err e = ERR_INIT;
    ck_assert_msg(
        module_load(t, id, bytes_of(hash, sizeof hash), file_of(text), strlen(text), &e) == 0, "%s",
        e.text);
}

static void run(struct modules *t, uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_DEFAULT);
    modules_finish(t);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(loop), 0);
}

/* The worker ends itself then; here the load is let go on, and ends after all. */
START_TEST(a_load_has_a_limit)
{
    uv_loop_t loop;
    struct modules t;
    struct told told = {.count = 0};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    modules_init(&t, &backend, NULL, &loop, on_loaded, &told);
    ck_assert_uint_eq(t.limit_ms, MODULE_LOAD_MS);
    t.limit_ms = 1;
    gate_set(false);
    add(&t, 1, "binary");
    run(&t, &loop);
    ck_assert_uint_eq(told.count, 2);
    ck_assert_int_eq(told.code[0], ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(told.text[0], "6 bytes did not end within 1 ms"));
    ck_assert_int_eq(told.code[1], 0);
}
END_TEST

START_TEST(loads_end_in_order)
{
    uv_loop_t loop;
    struct modules t;
    struct err e = ERR_INIT;
    struct told told = {.count = 0};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    modules_init(&t, &backend, NULL, &loop, on_loaded, &told);
    gate_set(true);
    add(&t, 1, "binary");
    add(&t, 2, "x");
    add(&t, 3, "binary");
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(told.count, 3);
    ck_assert_int_eq(told.code[0], 0);
    ck_assert_int_eq(told.code[1], ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(told.text[1], "one byte"));
    ck_assert_int_eq(told.code[2], 0);
    ck_assert_ptr_nonnull(module_find(&t, 1, &e));
    ck_assert_ptr_null(module_find(&t, 2, &e));
    run(&t, &loop);
}
END_TEST

SUITE_MAIN("module cache", a_load_has_a_limit, loads_end_in_order)
