/*
 * Host memory is registered beside the loop, in slices: the registrar and the arenas above it, over
 * a back end that notes its calls and whose calls wait for a gate.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memfd.h"
#include "daemon/worker/memory/arenas.h"
#include "tests/unit/common/suite.h"

#define SLICE ((size_t)64 << 10)
#define CALLS 256u

struct backend_block {
    const uint8_t *data;
};

static uv_loop_t loop;
static struct registrar registrar;
static pthread_t loops_thread;

/* What the back end has: the registrar's thread's while the loop does not turn. */
static struct {
    const uint8_t *in[CALLS]; /* registered slices; NULL: a free entry */
    const uint8_t *call[CALLS];
    unsigned calls; /* of register_host */
    unsigned live;
    unsigned fail_at; /* this call fails; 0: none */
    atomic_uint on_loop;
    unsigned blocks;
} device;

static sem_t gate; /* each call takes one */
static atomic_bool gated;
static sem_t arrived;

static void enter(void)
{
    if (pthread_equal(pthread_self(), loops_thread)) {
        atomic_fetch_add(&device.on_loop, 1);
    }
    (void)sem_post(&arrived);
    while (atomic_load(&gated) && sem_wait(&gate) != 0) {
    }
}

static int in(struct backend_device *d, void *data, size_t size, bool writes, struct err *e)
{
    unsigned i = 0;
    (void)d;
    enter();
    ck_assert(writes && size <= SLICE && device.calls < CALLS);
    device.call[device.calls++] = data;
    if (device.calls == device.fail_at) {
        return err_set(e, ERR_NOMEM, "the call is to fail");
    }
    while (device.in[i] != NULL) {
        ck_assert_ptr_ne(device.in[i++], data);
    }
    device.in[i] = data;
    device.live++;
    return 0;
}

static void out(struct backend_device *d, void *data, size_t size)
{
    unsigned i = 0;
    (void)d;
    enter();
    ck_assert_uint_le(size, SLICE);
    while (device.in[i] != data) {
        ck_assert_uint_lt(++i, CALLS);
    }
    device.in[i] = NULL;
    device.live--;
}

static uint64_t slice(const struct backend_device *d, const void *data, uint64_t size, uint64_t at)
{
    (void)d;
    (void)data;
    return size - at < SLICE ? size - at : SLICE;
}

static int import(struct backend_device *d, void *data, size_t size,
                  struct backend_block **ret_block, uint64_t *ret_align, struct err *e)
{
    static struct backend_block block;
    (void)d;
    (void)size;
    (void)e;
    block.data = data;
    *ret_block = &block;
    *ret_align = 16;
    device.blocks++;
    return 0;
}

static void release(struct backend_device *d, struct backend_block *block)
{
    (void)d;
    (void)block;
    device.blocks--;
}

static const struct backend_memory_ops OPS = {.register_host = in,
                                              .unregister_host = out,
                                              .host_slice = slice,
                                              .import_host = import,
                                              .release_host = release};
static const struct backend_memory_ops PLAIN = {.import_host = import, .release_host = release};
static struct backend backend = {.name = "test", .memory = &OPS};

static void start(const struct backend_memory_ops *ops)
{
    memset(&device, 0, sizeof device);
    backend.memory = ops;
    loops_thread = pthread_self();
    atomic_store(&gated, false);
    ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
    ck_assert_int_eq(sem_init(&arrived, 0, 0), 0);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    registrar_init(&registrar, &backend, NULL, &loop);
}

static void stop(void)
{
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(!registrar_busy(&registrar));
    ck_assert_uint_eq(device.live, 0);
    ck_assert_uint_eq(device.blocks, 0);
    ck_assert_uint_eq(atomic_load(&device.on_loop), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(sem_destroy(&gate), 0);
    ck_assert_int_eq(sem_destroy(&arrived), 0);
}

static void gate_set(bool open)
{
    atomic_store(&gated, !open);
    if (open) {
        (void)sem_post(&gate);
    }
}

/* Waits until the thread is in a call. */
static void await_call(void)
{
    while (sem_wait(&arrived) != 0) {
    }
}

/* ---- the registrar ---- */

struct piece {
    struct registration x;
    unsigned ends;
};

static void on_end(struct registration *x)
{
    struct piece *p = x->owner;
    p->ends++;
}

static void make(struct piece *p, size_t size)
{
    uint8_t *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(data != MAP_FAILED);
    *p = (struct piece){.x = {.data = data, .size = size, .done = on_end, .owner = p}};
}

static bool is_mapped(const uint8_t *data)
{
    unsigned char there;
    return mincore((void *)(uintptr_t)data, 4096, &there) == 0;
}

/* Slice by slice; each is unmapped with its registration. */
static void take(struct piece *p)
{
    for (uint64_t at = 0; registration_left(&p->x); at = p->x.at) {
        unsigned ends = p->ends;
        ck_assert(is_mapped(p->x.data + at));
        registrar_remove(&registrar, &p->x, 1);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_uint_eq(p->ends, ends + 1);
        ck_assert(!is_mapped(p->x.data + at));
    }
}

/* FAULT 47: a tenant brings gigabytes of host memory, or many modules, and the driver takes
 *   long to register or load them
 * required: no job waits that needs none of it; another tenant's memory waits for a slice, its
 *   module for one module
 * defence: `worker/memory/registrar.c`; `worker/memory/module_cache.c`; `worker/memory/turns.c`
 * also: `worker_module_cache_test`: tenants_take_turns; `worker_beside_test`:
 *   modules_and_arenas_are_known_beside_the_loop, what_is_under_way_holds_up_no_job
 * mutants: register-turns, load-turns */
/* A tenant with five slices delays the one slice of another by one. */
START_TEST(tenants_take_turns)
{
    struct piece large, small, other;
    start(&OPS);
    make(&large, 5 * SLICE);
    make(&small, 4096);
    make(&other, SLICE + 4096);
    gate_set(false);
    registrar_add(&registrar, &large.x, 1);
    registrar_add(&registrar, &small.x, 2);
    registrar_add(&registrar, &other.x, 3);
    gate_set(true);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    const uint8_t *const order[] = {large.x.data,
                                    small.x.data,
                                    other.x.data,
                                    large.x.data + SLICE,
                                    other.x.data + SLICE,
                                    large.x.data + 2 * SLICE,
                                    large.x.data + 3 * SLICE,
                                    large.x.data + 4 * SLICE};
    ck_assert_uint_eq(device.calls, 8);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_ptr_eq(device.call[i], order[i]);
    }
    ck_assert(large.ends == 1 && small.ends == 1 && other.ends == 1 && large.x.e.code == 0);
    ck_assert(registration_known(&large.x) && large.x.known == 5 * SLICE);
    take(&large);
    take(&small);
    take(&other);
    stop();
}
END_TEST

/* What was registered before is not any more. */
START_TEST(a_slice_that_fails_undoes_the_others)
{
    start(&OPS);
    for (unsigned n = 1; n <= 4; n++) {
        struct piece p;
        make(&p, 3 * SLICE + 4096);
        device.calls = 0;
        device.fail_at = n;
        registrar_add(&registrar, &p.x, 1);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert(p.ends == 1 && p.x.e.code == ERR_NOMEM && device.live == 0);
        ck_assert(!registration_known(&p.x) && registration_left(&p.x));
        take(&p);
    }
    stop();
}
END_TEST

/* One that waits ends at once, one that is under way after its slice. */
START_TEST(registering_can_be_stopped)
{
    struct piece first, second;
    start(&OPS);
    make(&first, 4 * SLICE);
    make(&second, 2 * SLICE);
    gate_set(false);
    registrar_add(&registrar, &first.x, 1);
    registrar_add(&registrar, &second.x, 1);
    await_call();
    registrar_stop(&registrar, &second.x);
    ck_assert(second.ends == 1 && second.x.e.code == ERR_CANCELLED);
    registrar_stop(&registrar, &first.x);
    ck_assert_uint_eq(first.ends, 0);
    gate_set(true);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(first.ends == 1 && first.x.e.code == ERR_CANCELLED && first.x.known == SLICE);
    ck_assert_uint_eq(device.calls, 1);
    take(&first);
    take(&second);
    stop();
}
END_TEST

/* Where nothing is registered, pages come all the same. */
START_TEST(memory_is_populated)
{
    struct piece p;
    unsigned char there = 0;
    start(&PLAIN);
    make(&p, REGISTRAR_SLICE + 4096);
    registrar_add(&registrar, &p.x, 1);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(p.ends == 1 && p.x.e.code == 0 && !registration_known(&p.x));
    ck_assert_int_eq(mincore(p.x.data + REGISTRAR_SLICE, 4096, &there), 0);
    ck_assert_uint_eq(there & 1u, 1);
    take(&p);
    stop();
}
END_TEST

/* ---- arenas ---- */

static struct device worker_device;
static struct arenas arenas;
static struct releases releases;
static unsigned readies;
static bool idle;

static void on_ready(void *data, const struct arena *a)
{
    (void)data;
    ck_assert_int_eq(a->e.code, 0);
    ck_assert_ptr_nonnull(a->block);
    readies++;
}

static bool is_idle(void *data)
{
    (void)data;
    return idle;
}

static uint64_t since(void *data)
{
    (void)data;
    return idle ? 0 : 1;
}

static void arenas_start(const struct backend_memory_ops *ops)
{
    start(ops);
    worker_device.b = &backend;
    readies = 0;
    idle = true;
    releases_init(&releases, is_idle, since, NULL);
    arenas_init(&arenas, &worker_device, &registrar, on_ready, NULL);
    arenas.releases = &releases;
}

static void arenas_stop(void)
{
    arenas_finish(&arenas);
    releases_finish(&releases);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(arenas.bytes, 0);
    stop();
}

static void add(uint64_t id, uint64_t tenant, size_t size)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    ck_assert_int_eq(memfd_create_sealed("arena", size, &m, &e), 0);
    int fd = dup(m.fd);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(arena_add(&arenas, id, size, tenant, fd, &e), 0);
    memfd_finish(&m);
}

START_TEST(arenas_become_known)
{
    struct err e = ERR_INIT;
    arenas_start(&OPS);
    add(1, 1, 5 * SLICE);
    add(2, 2, 4096);
    ck_assert_ptr_null(arena_find(&arenas, 1, &e)->block);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(readies == 2 && arenas.bytes == 5 * SLICE + 4096);
    ck_assert_uint_eq(device.live, 6);
    arenas_stop();
    ck_assert_uint_eq(readies, 2);
}
END_TEST

/* A front that connects does not know the arenas of the former one, which are under way or wait. */
START_TEST(arenas_go_while_they_are_registered)
{
    arenas_start(&OPS);
    gate_set(false);
    add(1, 1, 5 * SLICE);
    add(2, 2, SLICE);
    await_call();
    arenas_forget(&arenas);
    add(1, 1, SLICE); /* the new front's */
    gate_set(true);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(readies, 1);
    ck_assert(device.live == 1 && arenas.bytes == SLICE);
    arenas_stop();
}
END_TEST

/* The driver may wait for what runs when a registration ends: each slice begins when nothing
 * runs. */
START_TEST(registrations_end_while_nothing_runs)
{
    struct err e = ERR_INIT;
    arenas_start(&OPS);
    add(1, 1, 3 * SLICE);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    idle = false;
    arena_free(&arenas, arena_find(&arenas, 1, &e));
    releases_turn(&releases);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(device.live == 3 && releases.bytes == 3 * SLICE);
    idle = true;
    gate_set(false);
    while (sem_trywait(&arrived) == 0) {
    }
    releases_turn(&releases);
    await_call();
    idle = false; /* a job came */
    gate_set(true);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(device.live == 2 && releases.bytes == 2 * SLICE);
    idle = true;
    releases_turn(&releases);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(device.live == 0 && arenas.bytes == 0 && releases.bytes == 0);
    arenas_stop();
}
END_TEST

/* An arena that cannot be registered serves all the same; and where none is registered, kernels
 * work on it at once. */
START_TEST(arenas_that_are_not_registered_serve)
{
    struct err e = ERR_INIT;
    arenas_start(&OPS);
    device.fail_at = 2;
    add(1, 1, 2 * SLICE);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(readies == 0 && device.live == 0);
    ck_assert_ptr_nonnull(arena_find(&arenas, 1, &e));
    ck_assert_ptr_null(arena_find(&arenas, 1, &e)->block);
    arenas_stop();
    arenas_start(&PLAIN);
    add(1, 1, 2 * SLICE);
    ck_assert_uint_eq(readies, 1);
    arenas_stop();
}
END_TEST

SUITE_MAIN("registrar", tenants_take_turns, a_slice_that_fails_undoes_the_others,
           registering_can_be_stopped, memory_is_populated, arenas_become_known,
           arenas_go_while_they_are_registered, registrations_end_while_nothing_runs,
           arenas_that_are_not_registered_serve)
