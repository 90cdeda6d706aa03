/* Modules that load in a thread of their own, with a scripted back end. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/memory/module_cache.h"
#include "tests/unit/common/suite.h"

struct backend_module {
    int unused;
};

static struct backend_module only;

/* The thread waits until loads may go on. */
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

/* The reports about loads, in order. */
struct told {
    uint64_t id[8];
    int code[8];
    char text[8][200];
    unsigned count;
};

static void on_loaded(void *data, struct module *m, const struct err *why)
{
    struct told *t = data;
    ck_assert_ptr_nonnull(m);
    ck_assert_uint_lt(t->count, 8);
    t->id[t->count] = m->id;
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

static void add_of(struct modules *t, uint64_t tenant, uint64_t id, const char *text)
{
    static const uint8_t hash[HASH_BYTES] = {1};
    struct err e = ERR_INIT;
    ck_assert_msg(module_load(t, id, tenant, bytes_of(hash, sizeof hash), file_of(text),
                              strlen(text), &e) == 0,
                  "%s", e.text);
}

static void add(struct modules *t, uint64_t id, const char *text)
{
    add_of(t, 1, id, text);
}

static void run(struct modules *t, uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_DEFAULT);
    modules_finish(t);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(loop), 0);
}

/* The worker ends itself then. Here the load goes on, and ends after all. */
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

/* The first load is under way when the others come. Each tenant's modules are loaded in order. */
START_TEST(tenants_take_turns)
{
    static const uint64_t order[] = {1, 4, 6, 2, 5, 3};
    uv_loop_t loop;
    struct modules t;
    struct told told = {.count = 0};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    modules_init(&t, &backend, NULL, &loop, on_loaded, &told);
    gate_set(false);
    for (uint64_t id = 1; id <= 6; id++) {
        add_of(&t, id <= 3 ? 1 : id <= 5 ? 2 : 3, id, "binary");
    }
    gate_set(true);
    run(&t, &loop);
    ck_assert_uint_eq(told.count, 6);
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(told.id[i], order[i]);
    }
}
END_TEST

/* ---- unloading ---- */

static pthread_t loops_thread;
static unsigned unloads; /* the thread's, and the loop's when that has ended */

static void unload_beside(struct backend_module *m)
{
    ck_assert_ptr_eq(m, &only);
    ck_assert(!pthread_equal(pthread_self(), loops_thread));
    (void)pthread_mutex_lock(&lock);
    while (!open_) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    unloads++;
    (void)pthread_mutex_unlock(&lock);
}

static const struct backend_module_ops waiting_ops = {
    .load = load, .unload = unload_beside, .kernel_count = kernel_count};
static const struct backend waiting = {.name = "test", .module = &waiting_ops};

static bool idle(void *data)
{
    (void)data;
    return true;
}

static uint64_t since(void *data)
{
    (void)data;
    return 0;
}

/* Unloading may wait for what runs: the thread does it, also at the end. One that hangs has a
 * limit, after which the worker would end. */
START_TEST(modules_are_unloaded_in_the_thread)
{
    uv_loop_t loop;
    struct modules t;
    struct releases releases;
    struct err e = ERR_INIT;
    struct told told = {.count = 0};
    loops_thread = pthread_self();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    releases_init(&releases, idle, since, NULL);
    modules_init(&t, &waiting, NULL, &loop, on_loaded, &told);
    t.releases = &releases;
    gate_set(true);
    for (uint64_t id = 1; id <= 3; id++) {
        add(&t, id, "binary");
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(told.count == 3 && !modules_busy(&t));
    gate_set(false);
    t.limit_ms = 1;
    module_unload(&t, module_find(&t, 1, &e));
    ck_assert(modules_busy(&t));
    ck_assert_ptr_null(module_find(&t, 1, &e));
    (void)uv_run(&loop, UV_RUN_DEFAULT); /* the report opens the gate */
    ck_assert(told.count == 4 && told.id[3] == 1 && told.code[3] == ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(told.text[3], "unloading module 1"));
    ck_assert_uint_eq(unloads, 1);
    run(&t, &loop);
    ck_assert_uint_eq(unloads, 3);
}
END_TEST

/* ---- libraries that do what kernels do ------------------------------------------------------- */

static unsigned prepared; /* how often; the thread's, and the loop's when that has ended */
static bool want;

static unsigned wanted(struct backend_module *m)
{
    ck_assert_ptr_eq(m, &only);
    return want ? 1 : 0;
}

static void prepare(struct backend_device *d, unsigned wants)
{
    (void)d;
    ck_assert_uint_eq(wants, 1);
    (void)pthread_mutex_lock(&lock);
    while (!open_) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    prepared++;
    (void)pthread_mutex_unlock(&lock);
}

static int load_at_once(struct backend_device *d, struct bytes binary,
                        struct backend_module **ret_module, struct err *e)
{
    (void)d, (void)binary, (void)e;
    *ret_module = &only;
    return 0;
}

static const struct backend_module_ops quick_ops = {
    .load = load_at_once, .unload = unload, .kernel_count = kernel_count};
static unsigned due; /* libraries that may be tried again */

static unsigned again(struct backend_device *d)
{
    (void)d;
    return due;
}

static const struct backend_library_ops library = {
    .wanted = wanted, .prepare = prepare, .again = again};
static const struct backend with_libraries = {
    .name = "test", .module = &quick_ops, .library = &library};

/* The modules that were reported. */
struct ready {
    struct modules *t;
    uint64_t id[8];
    unsigned count;
    bool opens; /* the gate opens when a module is reported */
};

static void on_ready(void *data, struct module *m, const struct err *why)
{
    struct ready *r = data;
    struct err e = ERR_INIT;
    ck_assert_int_eq(why->code, 0);
    ck_assert_uint_lt(r->count, 8);
    ck_assert_ptr_eq(module_find(r->t, m->id, &e), m);
    r->id[r->count++] = m->id;
    if (r->opens) {
        gate_set(true);
    }
}

/* A module that wants none does not wait behind one that does. */
START_TEST(a_module_waits_for_its_libraries)
{
    uv_loop_t loop;
    struct modules t;
    struct ready r = {.t = &t, .opens = true};
    struct err e = ERR_INIT;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    modules_init(&t, &with_libraries, NULL, &loop, on_ready, &r);
    ck_assert_uint_eq(t.ready_ms, MODULE_READY_MS);
    gate_set(false);
    want = true;
    add(&t, 1, "binary");
    while (t.preparing == NULL) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    ck_assert_ptr_null(module_find(&t, 1, &e));
    ck_assert_int_eq(module_load(&t, 1, 1, bytes_str(""), file_of("binary"), 6, &e), ERR_EXISTS);
    want = false;
    add(&t, 3, "binary");
    run(&t, &loop);
    ck_assert_uint_eq(r.count, 2);
    ck_assert_uint_eq(r.id[0], 3);
    ck_assert_uint_eq(r.id[1], 1);
    ck_assert_uint_eq(prepared, 1);
}
END_TEST

/* The libraries never open: the module's own kernels serve, and it may be unloaded. They open after
 * all: no harm is done. */
START_TEST(a_module_does_not_wait_for_ever)
{
    uv_loop_t loop;
    struct modules t;
    struct ready r = {.t = &t};
    struct err e = ERR_INIT;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    modules_init(&t, &with_libraries, NULL, &loop, on_ready, &r);
    t.ready_ms = 1;
    gate_set(false);
    want = true;
    for (unsigned told = 0; told < 2; told++) { /* the second one comes behind the first */
        want = true;
        add(&t, 1 + told, "binary");
        while (r.count == told) {
            (void)uv_run(&loop, UV_RUN_ONCE);
        }
    }
    ck_assert_uint_eq(prepared, 0);
    struct module *first = module_find(&t, 1, &e);
    ck_assert_ptr_nonnull(first);
    module_unload(&t, first);
    ck_assert_ptr_nonnull(t.preparing);
    gate_set(true);
    run(&t, &loop);
    ck_assert_uint_eq(prepared, 2);
    ck_assert_uint_eq(r.count, 2);
}
END_TEST

/* One try at a time, and no report about it. */
START_TEST(libraries_are_tried_again)
{
    uv_loop_t loop;
    struct modules t;
    struct ready r = {.t = &t};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    modules_init(&t, &with_libraries, NULL, &loop, on_ready, &r);
    gate_set(false);
    modules_prepare_again(&t);
    ck_assert_ptr_null(t.preparing);
    due = 1;
    modules_prepare_again(&t);
    ck_assert_ptr_nonnull(t.preparing);
    modules_prepare_again(&t);
    ck_assert_ptr_null(t.preparing->next);
    due = 0;
    gate_set(true);
    run(&t, &loop);
    ck_assert_uint_eq(prepared, 1);
    ck_assert_uint_eq(r.count, 0);
}
END_TEST

SUITE_MAIN("module cache", a_load_has_a_limit, loads_end_in_order, tenants_take_turns,
           modules_are_unloaded_in_the_thread, a_module_waits_for_its_libraries,
           a_module_does_not_wait_for_ever, libraries_are_tried_again)
