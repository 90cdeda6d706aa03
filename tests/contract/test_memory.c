#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"

#define BLOCKS_MAX 4096

START_TEST(refuses_nothing_and_too_much)
{
    struct backend_block *b = NULL;
    fails(ERR_INVALID, bench.b->memory->alloc(bench.device, 0, &b, e));
    fails(ERR_DEVICE_MEMORY, bench.b->memory->alloc(bench.device, bench.info.max_alloc + 1, &b, e));
    fails(ERR_DEVICE_MEMORY, bench.b->memory->alloc(bench.device, UINT64_MAX, &b, e));
    ck_assert_ptr_null(b);
}
END_TEST

/* Blocks of a quarter of the device or the largest that there are, until none is left. */
START_TEST(runs_out_and_recovers)
{
    static struct backend_block *blocks[BLOCKS_MAX];
    uint64_t size = bench.info.memory / 4;
    size = size < bench.info.max_alloc ? size : bench.info.max_alloc;
    struct err why = ERR_INIT;
    unsigned count = 0;
    int rc = 0;
    while (rc == 0 && count < BLOCKS_MAX) {
        rc = bench.b->memory->alloc(bench.device, size, &blocks[count], &why);
        count += rc == 0;
    }
    ck_assert_int_eq(rc, ERR_DEVICE_MEMORY);
    ck_assert_uint_ge(count, 1);
    ck_assert_uint_le(count * size, bench.info.memory);
    block_free(blocks[--count]);
    struct backend_block *again = block_new(size);
    block_free(again);
    while (count > 0) {
        block_free(blocks[--count]);
    }
}
END_TEST

START_TEST(blocks_are_apart)
{
    uint8_t a[1000];
    uint8_t b[1000];
    uint8_t back[1000];
    memset(a, 0x11, sizeof a);
    memset(b, 0x22, sizeof b);
    struct backend_block *x = block_new(sizeof a);
    struct backend_block *y = block_new(sizeof b);
    put(at(x, 0), a, sizeof a);
    put(at(y, 0), b, sizeof b);
    get(back, at(x, 0), sizeof back);
    ck_assert_mem_eq(back, a, sizeof a);
    get(back, at(y, 0), sizeof back);
    ck_assert_mem_eq(back, b, sizeof b);
    block_free(x);
    block_free(y);
}
END_TEST

/* Others may use the device as well, so only what this process takes is known. */
START_TEST(the_room_of_a_device_is_told)
{
    const struct backend_memory_ops *m = bench.b->memory;
    uint64_t before = 0, after = 0;
    if (m->room == NULL) {
        return;
    }
    ok(m->room(bench.device, &before, e));
    ck_assert_uint_gt(before, 0);
    struct backend_block *b = block_new(1u << 26);
    ok(m->room(bench.device, &after, e));
    ck_assert_uint_gt(after, 0);
    ck_assert_uint_ne(after, before);
    block_free(b);
    ck_assert_int_eq(m->room(bench.device, &after, NULL), 0);
}
END_TEST

START_TEST(registered_host_memory_works)
{
    const struct backend_memory_ops *m = bench.b->memory;
    size_t size = 1u << 16;
    uint8_t *host = aligned_alloc(4096, size);
    uint8_t *back = malloc(size);
    ck_assert(host && back);
    for (size_t i = 0; i < size; i++) {
        host[i] = (uint8_t)(i * 7);
    }
    if (m->register_host) {
        ok(m->register_host(bench.device, host, size, true, e));
    }
    struct backend_block *b = block_new(size);
    put(at(b, 0), host, size);
    get(back, at(b, 0), size);
    ck_assert_mem_eq(back, host, size);
    if (m->register_host) {
        m->unregister_host(bench.device, host, size);
    }
    block_free(b);
    free(host);
    free(back);
}
END_TEST

/* A block as any other for commands, whose descriptor is that of all of it. */
START_TEST(shared_memory_is_memory)
{
    const struct backend_memory_ops *m = bench.b->memory;
    struct backend_block *b = NULL;
    struct err why = ERR_INIT;
    uint8_t data[] = {1, 2, 3, 4, 5};
    uint8_t back[sizeof data];
    uint64_t bytes = 0;
    int fd = -1;
    int again = -1;
    int rc =
        m->alloc_shared == NULL ? ERR_UNSUPPORTED : m->alloc_shared(bench.device, 100001, &b, &why);
    if (rc == ERR_UNSUPPORTED) {
        return;
    }
    ck_assert_msg(rc == 0, "%s", why.text);
    put(at(b, 99996), data, sizeof data);
    get(back, at(b, 99996), sizeof data);
    ck_assert_mem_eq(back, data, sizeof data);
    ok(m->share(bench.device, b, &fd, &bytes, e));
    ok(m->share(bench.device, b, &again, &bytes, e));
    ck_assert_uint_ge(bytes, 100001);
    ck_assert(fd >= 0 && again >= 0 && fd != again);
    m->free_shared(bench.device, b);
    ck_assert(close(fd) == 0 && close(again) == 0);
    fails(ERR_DEVICE_MEMORY, m->alloc_shared(bench.device, UINT64_C(1) << 50, &b, e));
}
END_TEST

START_TEST(managed_memory_is_memory)
{
    const struct backend_memory_ops *m = bench.b->memory;
    struct backend_block *b = NULL;
    struct err why = ERR_INIT;
    uint8_t data[] = {1, 2, 3, 4, 5};
    uint8_t back[sizeof data];
    int rc = m->alloc_managed == NULL ? ERR_UNSUPPORTED
                                      : m->alloc_managed(bench.device, 100001, &b, &why);
    if (rc == ERR_UNSUPPORTED) {
        return;
    }
    ck_assert_msg(rc == 0, "%s", why.text);
    ok(bench.b->stream->prefetch(bench.stream, at(b, 0), 100001, e));
    put(at(b, 99996), data, sizeof data);
    ok(bench.b->stream->prefetch(bench.stream, at(b, 99996), sizeof data, e));
    get(back, at(b, 99996), sizeof data);
    ck_assert_mem_eq(back, data, sizeof data);
    fails(ERR_RANGE, bench.b->stream->prefetch(bench.stream, at(b, 99996), 6, e));
    m->free(bench.device, b);
}
END_TEST

/* Registers the memory slice by slice, where the back end registers, and makes it a block. */
static int host_in(void *host, uint64_t size, struct backend_block **ret_block, uint64_t *ret_align,
                   struct err *e_)
{
    const struct backend_memory_ops *m = bench.b->memory;
    for (uint64_t at = 0, n; m->import_host && m->register_host && at < size; at += n) {
        n = m->host_slice ? m->host_slice(bench.device, host, size, at) : size;
        ck_assert(n > 0 && n <= size - at);
        ok(m->register_host(bench.device, (uint8_t *)host + at, n, true, e));
    }
    return m->import_host ? m->import_host(bench.device, host, size, ret_block, ret_align, e_)
                          : ERR_UNSUPPORTED;
}

/* As a whole or slice by slice. */
static void host_out(void *host, uint64_t size, bool slices, struct backend_block *block)
{
    const struct backend_memory_ops *m = bench.b->memory;
    m->release_host(bench.device, block);
    for (uint64_t at = 0, n; m->register_host && at < size; at += n) {
        n = slices && m->host_slice ? m->host_slice(bench.device, host, size, at) : size;
        m->unregister_host(bench.device, (uint8_t *)host + at, n);
    }
}

/* FAULT other: a kernel of Linux that pins no 2 GiB at once (6.11 to 6.13), or a driver that
 *   registers no 512 GiB
 * required: no effect: memory of more than 16 MiB is registered in pieces, all or none, and
 *   copies are cut where pieces meet. If registration still fails, copies go through registered
 *   memory, and the log says so
 * defence: `backend/cuda/run/memory.c`: register_all; `backend/cuda/run/commands.c`:
 *   stream_write, stream_read, piece_of
 * also: `contract_cuda`: slices_are_one_memory; `test_cuda`: large_memory_is_registered_in_pieces
 * mutants: host-pieces, slice-borders */
/* Memory of several slices is one piece of memory for copies, also across borders. */
START_TEST(slices_are_one_memory)
{
    const size_t size = (size_t)40 << 20;
    struct backend_block *own = NULL;
    uint64_t align = 0;
    uint8_t *host = aligned_alloc(4096, size);
    ck_assert_ptr_nonnull(host);
    memset(host, 1, size);
    for (int slices = 0; slices < 2 && host_in(host, size, &own, &align, NULL) == 0; slices++) {
        struct backend_block *b = block_new(size);
        put(at(b, 0), host, size);
        ok(bench.b->stream->fill(bench.stream, at(own, 0), "\x5a", 1, size, e));
        ok(bench.b->stream->copy(bench.stream, at(b, 0), at(own, 0), size, e));
        ok(bench.b->stream->fill(bench.stream, at(own, 0), "\xa5", 1, size, e));
        ok(bench.b->stream->copy(bench.stream, at(own, 0), at(b, 0), size, e));
        drain(bench.stream);
        ck_assert(host[0] == 0x5a && memcmp(host, host + 1, size - 1) == 0);
        memset(host, 7 + slices, size);
        put(at(b, 0), host, size);
        memset(host, 0, size);
        get(host, at(b, 0), size);
        ck_assert(host[0] == 7 + slices && memcmp(host, host + 1, size - 1) == 0);
        block_free(b);
        host_out(host, size, slices != 0, own);
    }
    free(host);
}
END_TEST

/* Host memory as a block: commands and kernels see what the host writes, and the other way round.
 */
START_TEST(imported_host_memory_is_worked_on)
{
    size_t size = 1u << 16;
    uint64_t align = 0;
    uint8_t *host = aligned_alloc(4096, size);
    uint8_t *back = malloc(size);
    struct backend_block *own = NULL;
    struct err why = ERR_INIT;
    ck_assert(host && back);
    for (size_t i = 0; i < size; i++) {
        host[i] = (uint8_t)(i * 7);
    }
    int rc = host_in(host, size, &own, &align, &why);
    if (rc == 0) {
        ck_assert(align > 0 && (align & (align - 1)) == 0 && align <= 4096);
        get(back, at(own, 0), size);
        ck_assert_mem_eq(back, host, size);
        struct backend_block *other = block_new(size);
        ok(bench.b->stream->copy(bench.stream, at(other, 100), at(own, 0), 1000, e));
        ok(bench.b->stream->copy(bench.stream, at(own, 5000), at(other, 100), 1000, e));
        ok(bench.b->stream->fill(bench.stream, at(own, 8192), "\x5a", 1, 100, e));
        drain(bench.stream);
        ck_assert_mem_eq(host + 5000, host, 1000);
        ck_assert_uint_eq(host[8192 + 99], 0x5a);
        host[0] = 99;
        get(back, at(own, 0), 1);
        ck_assert_uint_eq(back[0], 99);
        block_free(other);
        host_out(host, size, false, own);
        host[1] = 1; /* it is still the host's */
    } else {
        ck_assert_int_eq(rc, ERR_UNSUPPORTED);
    }
    free(host);
    free(back);
}
END_TEST

START_TEST(kernels_write_into_imported_memory)
{
    const struct signature *sig = NULL;
    size_t size = 1u << 14;
    uint64_t align = 0;
    struct backend_block *own = NULL;
    float *host = aligned_alloc(4096, size);
    ck_assert_ptr_nonnull(host);
    if (host_in(host, size, &own, &align, NULL) != 0) {
        free(host);
        return;
    }
    uint64_t n = 500;
    float two = 2;
    struct backend_module *module = module_of("scale", &sig);
    struct call c = {.count = 0};
    for (unsigned i = 0; i < n; i++) {
        host[i] = (float)i;
    }
    call_value(&c, &two, sizeof two);
    call_memory(&c, at(own, 0));
    call_memory(&c, at(own, 8192));
    call_value(&c, &n, sizeof n);
    c.arg[1].size = c.arg[2].size = n * sizeof *host;
    struct backend_launch l = launch_of(&c, n, 0);
    ok(bench.b->stream->launch(bench.stream, module, "scale_f32", &l, e));
    drain(bench.stream);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_float_eq(host[8192 / sizeof *host + i], 2 * (float)i);
    }
    bench.b->module->unload(module);
    host_out(host, size, false, own);
    free(host);
}
END_TEST

void contract_memory(Suite *suite)
{
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, bench_open, bench_close);
    tcase_add_test(t, refuses_nothing_and_too_much);
    tcase_add_test(t, runs_out_and_recovers);
    tcase_add_test(t, blocks_are_apart);
    tcase_add_test(t, the_room_of_a_device_is_told);
    tcase_add_test(t, registered_host_memory_works);
    tcase_add_test(t, shared_memory_is_memory);
    tcase_add_test(t, managed_memory_is_memory);
    tcase_add_test(t, slices_are_one_memory);
    tcase_add_test(t, imported_host_memory_is_worked_on);
    tcase_add_test(t, kernels_write_into_imported_memory);
    suite_add_tcase(suite, t);
}
