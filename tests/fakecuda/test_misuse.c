/* Each wrong use gives the driver's error and is found in the report. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakecuda/bench.h"

#define UNIT (2u << 20)

static const CUresult bad = CUDA_ERROR_INVALID_VALUE;
static const CUresult handle = CUDA_ERROR_INVALID_HANDLE;

static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const CUmemAccessDesc access_all = {{.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* ---- memory ---------------------------------------------------------------------------------- */

static void freed_twice(void)
{
    start();
    CUdeviceptr p = memory_new(64);
    ok(cuMemFree(p));
    ck_cu(cuMemFree(p), bad);
}

static void freed_inside(void)
{
    start();
    ck_cu(cuMemFree(memory_new(1024) + 256), bad);
}

static void freed_as_another_kind(void)
{
    start();
    ck_cu(cuMemFree((CUdeviceptr)(uintptr_t)host_new(64)), bad);
}

static void freed_under_work(void)
{
    start();
    CUdeviceptr p = memory_new(64);
    ok(cuMemsetD8Async(p, 0, 64, stream_new()));
    ok(cuMemFree(p));
}

static void freed_under_kernel(void)
{
    start();
    CUdeviceptr p = memory_new(64);
    uint64_t n = 16;
    void *params[2] = {&p, &n};
    ok(launch(function_of(module_new(test_ptx), "fake_increment"), stream_new(), params));
    ok(cuMemFree(p));
}

static void pool_freed_twice(void)
{
    start();
    CUstream s = stream_new();
    CUdeviceptr p = 0;
    ok(cuMemAllocAsync(&p, 64, s));
    ok(cuMemFreeAsync(p, s));
    ck_cu(cuMemFreeAsync(p, s), bad);
}

static void pool_freed_under_another_stream(void)
{
    start();
    CUstream a = stream_new(), b = stream_new();
    CUdeviceptr p = 0;
    ok(cuMemAllocAsync(&p, 64, a));
    ok(cuStreamSynchronize(a));
    ok(cuMemsetD8Async(p, 0, 64, b)); /* stalls */
    ok(cuMemFreeAsync(p, a));
    ok(cuStreamSynchronize(a));
    _exit(0);
}

static void copied_beyond_the_end(void)
{
    start();
    char h[128] = "";
    ck_cu(cuMemcpyHtoD(memory_new(64), h, 128), bad);
}

static void copied_from_freed_memory(void)
{
    start();
    CUdeviceptr p = memory_new(64);
    char h[64] = "";
    ok(cuMemFree(p));
    ck_cu(cuMemcpyDtoH(h, p, 64), bad);
}

static void filled_unaligned(void)
{
    start();
    ck_cu(cuMemsetD32Async(memory_new(64) + 2, 0, 4, stream_new()), bad);
}

/* Pages of our own; reachable to the end, so that no leak of ours hides the one that is looked for.
 */
static char *pages(size_t size)
{
    static char *volatile kept;
    kept = aligned_alloc(4096, size);
    must(kept != NULL);
    return kept;
}

/* ---- host memory ----------------------------------------------------------------------------- */

static void registered_twice(void)
{
    start();
    void *p = pages(4096);
    ok(cuMemHostRegister(p, 4096, 0));
    ck_cu(cuMemHostRegister(p, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

static void unregistered_twice(void)
{
    start();
    void *p = pages(4096);
    ok(cuMemHostRegister(p, 4096, 0));
    ok(cuMemHostUnregister(p));
    ck_cu(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static void unregistered_under_work(void)
{
    start();
    void *p = pages(4096);
    ok(cuMemHostRegister(p, 4096, 0));
    ok(cuMemcpyDtoHAsync(p, memory_new(4096), 4096, stream_new()));
    ok(cuMemHostUnregister(p));
}

static void registered_nothing(void)
{
    start();
    ck_cu(cuMemHostRegister((void *)4096, 4096, 0), bad);
}

static void registered_read_only(void)
{
    start();
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_cu(cuMemHostRegister(p, 4096, 0), bad);
    ok(cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
}

static void written_read_only(void)
{
    start();
    void *p = pages(4096);
    ok(cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
    ck_cu(cuMemcpyDtoH(p, memory_new(64), 64), bad);
}

static void half_registered(void)
{
    start();
    char *p = pages(8192);
    ok(cuMemHostRegister(p, 4096, 0));
    ck_cu(cuMemcpyHtoD(memory_new(8192), p, 8192), bad);
}

/* As drivers do, even though all of it is registered. */
static void registered_in_pieces(void)
{
    start();
    char *p = pages(8192);
    ok(cuMemHostRegister(p, 4096, 0));
    ok(cuMemHostRegister(p + 4096, 4096, 0));
    ck_cu(cuMemcpyHtoD(memory_new(8192), p, 8192), bad);
}

/* ---- virtual memory -------------------------------------------------------------------------- */

static CUdeviceptr mapped(unsigned units)
{
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr va = 0;
    start();
    ok(cuMemAddressReserve(&va, 8 * UNIT, 0, 0, 0));
    ok(cuMemCreate(&h, units * UNIT, &prop, 0));
    ok(cuMemMap(va, units * UNIT, 0, h, 0));
    ok(cuMemRelease(h));
    return va;
}

static void unmapped_in_part(void)
{
    ck_cu(cuMemUnmap(mapped(2), UNIT), bad);
}

static void mapped_with_an_offset(void)
{
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr va = mapped(1);
    ok(cuMemCreate(&h, 2 * UNIT, &prop, 0));
    ck_cu(cuMemMap(va + UNIT, UNIT, UNIT, h, 0), bad);
}

static void mapped_over_another(void)
{
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr va = mapped(1);
    ok(cuMemCreate(&h, UNIT, &prop, 0));
    ck_cu(cuMemMap(va, UNIT, 0, h, 0), bad);
}

static void mapped_without_addresses(void)
{
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr va = mapped(1);
    ok(cuMemCreate(&h, UNIT, &prop, 0));
    ck_cu(cuMemMap(va + 8 * UNIT, UNIT, 0, h, 0), bad);
}

static void used_without_access(void)
{
    ck_cu(cuMemsetD8(mapped(1), 0, 64), bad);
}

static void used_after_unmap(void)
{
    CUdeviceptr va = mapped(1);
    ok(cuMemSetAccess(va, UNIT, &access_all, 1));
    ok(cuMemUnmap(va, UNIT));
    ck_cu(cuMemsetD8(va, 0, 64), bad);
}

static void unmapped_under_work(void)
{
    CUdeviceptr va = mapped(1);
    CUstream s = stream_new();
    int ms = 2000; /* it is unmapped before that, however busy the host is */
    void *params[1] = {&ms};
    ok(cuMemSetAccess(va, UNIT, &access_all, 1));
    ok(launch(function_of(module_new(test_ptx), "fake_sleep"), s, params));
    ok(cuMemsetD8Async(va, 0, 64, s));
    ok(cuMemUnmap(va, UNIT));
    ck_cu(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void access_of_a_part(void)
{
    ck_cu(cuMemSetAccess(mapped(2), UNIT, &access_all, 1), bad);
}

static void released_twice(void)
{
    CUmemGenericAllocationHandle h = 0;
    start();
    ok(cuMemCreate(&h, UNIT, &prop, 0));
    ok(cuMemRelease(h));
    ck_cu(cuMemRelease(h), bad);
}

static void exported_unasked(void)
{
    CUmemGenericAllocationHandle h = 0;
    int fd = -1;
    start();
    ok(cuMemCreate(&h, UNIT, &prop, 0));
    ck_cu(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), bad);
}

static void addresses_freed_while_mapped(void)
{
    ck_cu(cuMemAddressFree(mapped(1), 8 * UNIT), bad);
}

static void addresses_freed_in_part(void)
{
    CUdeviceptr va = 0;
    start();
    ok(cuMemAddressReserve(&va, 2 * UNIT, 0, 0, 0));
    ck_cu(cuMemAddressFree(va, UNIT), bad);
}

/* ---- handles --------------------------------------------------------------------------------- */

static void stream_used_after_destroy(void)
{
    start();
    CUstream s = stream_new();
    ok(cuStreamDestroy(s));
    ck_cu(cuStreamSynchronize(s), handle);
}

static void event_used_after_destroy(void)
{
    start();
    CUevent e = NULL;
    ok(cuEventCreate(&e, 0));
    ok(cuEventDestroy(e));
    ck_cu(cuEventRecord(e, NULL), handle);
}

static void event_destroyed_twice(void)
{
    start();
    CUevent e = NULL;
    ok(cuEventCreate(&e, 0));
    ok(cuEventDestroy(e));
    ck_cu(cuEventDestroy(e), handle);
}

static void event_for_stream(void)
{
    start();
    CUevent e = NULL;
    ok(cuEventCreate(&e, 0));
    ck_cu(cuStreamQuery((CUstream)e), handle);
}

static void function_after_unload(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    CUfunction f = function_of(m, "fake_nothing");
    ok(cuModuleUnload(m));
    ck_cu(launch(f, NULL, NULL), handle);
}

static void unloaded_under_kernel(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    ok(launch(function_of(m, "fake_nothing"), stream_new(), NULL));
    ok(cuModuleUnload(m));
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void without_init(void)
{
    int count = 0;
    ck_cu(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

static void without_context(void)
{
    CUdeviceptr p = 0;
    ok(cuInit(0));
    ck_cu(cuMemAlloc(&p, 64), CUDA_ERROR_INVALID_CONTEXT);
}

static void context_released_twice(void)
{
    start();
    stop();
    ck_cu(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void stream_of_another_context(void)
{
    CUcontext other = NULL;
    start();
    CUstream s = stream_new();
    ok(cuDevicePrimaryCtxRetain(&other, 1));
    ok(cuCtxSetCurrent(other));
    ck_cu(cuMemsetD8Async(memory_new(64), 0, 64, s), handle);
}

static void event_of_another_context(void)
{
    CUcontext other = NULL;
    CUevent e = NULL;
    start();
    ok(cuEventCreate(&e, 0));
    ok(cuDevicePrimaryCtxRetain(&other, 1));
    ok(cuCtxSetCurrent(other));
    ck_cu(cuEventRecord(e, stream_new()), handle);
}

static void after_fork(void)
{
    int status = 0, count = 0;
    start();
    pid_t pid = fork();
    if (pid == 0) {
        ck_cu(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
        _exit(0);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static void leaks_memory(void)
{
    start();
    (void)memory_new(64);
}

static void leaks_in_context(void)
{
    start();
    (void)memory_new(64);
    stop();
}

static void stream_made_beside_a_kernel(void)
{
    start();
    CUdeviceptr p = memory_new(64);
    uint64_t n = 16;
    void *params[2] = {&p, &n};
    ok(launch(function_of(module_new(test_ptx), "fake_increment"), stream_new(), params));
    (void)stream_new();
}

static void leaks_handle(void)
{
    CUmemGenericAllocationHandle h = 0;
    start();
    ok(cuMemCreate(&h, UNIT, &prop, 0));
}

static void leaks_addresses(void)
{
    CUdeviceptr va = 0;
    start();
    ok(cuMemAddressReserve(&va, UNIT, 0, 0, 0));
}

static void leaks_stream(void)
{
    start();
    (void)stream_new();
}

static void leaks_event(void)
{
    CUevent e = NULL;
    start();
    ok(cuEventCreate(&e, 0));
}

static void leaks_module(void)
{
    start();
    (void)module_new(test_ptx);
}

static void leaks_pool(void)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool p = NULL;
    start();
    ok(cuMemPoolCreate(&p, &props));
}

static void leaks_registration(void)
{
    start();
    ok(cuMemHostRegister(pages(4096), 4096, 0));
}

#if CUDA_VERSION >= 13000
/* The device reaches for it when the stream comes there. */
static void batch_of_pageable(void)
{
    start();
    CUstream s = stream_new();
    CUdeviceptr dst = memory_new(4096);
    int own[2] = {1, 2};
    CUdeviceptr src = (CUdeviceptr)(uintptr_t)own;
    size_t size = sizeof own, first = 0;
    CUmemcpyAttributes attrs = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY};
    ok(cuMemcpyBatchAsync_v2(&dst, &src, &size, 1, &attrs, &first, 1, s));
    ok(cuStreamSynchronize(s));
    attrs.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    ok(cuMemcpyBatchAsync_v2(&dst, &src, &size, 1, &attrs, &first, 1, s));
    ck_cu(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}
#endif

static const struct {
    void (*work)(void);
    const char *text;
    const char *script;
} wrong[] = {
#if CUDA_VERSION >= 13000
    {batch_of_pageable, "is pageable and to be read in the stream's order", ""},
#endif
    {freed_twice, "misuse: cuMemFree: ", ""},
    {freed_inside, "misuse: cuMemFree: ", ""},
    {freed_as_another_kind, "is host memory", ""},
    {freed_under_work, "is used by pending work (cuMemsetD8Async)", "delay_us=50000"},
    {freed_under_kernel, "is used by pending work (cuLaunchKernel)", "delay_us=50000"},
    {pool_freed_twice, "misuse: cuMemFreeAsync: ", ""},
    {pool_freed_under_another_stream, "pending work of another stream", "cuMemsetD8Async@1=stall"},
    {copied_beyond_the_end, "misuse: cuMemcpyHtoD: 128 bytes", ""},
    {copied_from_freed_memory, "is no device memory", ""},
    {filled_unaligned, "is not aligned to 4", ""},
    {registered_twice, "is known to the driver already", ""},
    {unregistered_twice, "misuse: cuMemHostUnregister: ", ""},
    {unregistered_under_work, "is used by pending work (cuMemcpyDtoHAsync)", "delay_us=50000"},
    {registered_nothing, "note: cuMemHostRegister: 0x1000 is not mapped", ""},
    {registered_read_only, "or only to be read", ""},
    {written_read_only, "are not all memory that may be written", ""},
    {half_registered, "reach over the end of a registration", ""},
    {registered_in_pieces, "reach over the end of a registration", ""},
    {unmapped_in_part, "misuse: cuMemUnmap: ", ""},
    {mapped_with_an_offset, "an offset into the handle", ""},
    {mapped_over_another, "something is mapped there", ""},
    {mapped_without_addresses, "the addresses are not reserved", ""},
    {used_without_access, "are not all memory that may be written", ""},
    {used_after_unmap, "is no device memory", ""},
    {unmapped_under_work, "misuse: cuMemUnmap: ", "delay_us=50000"},
    {access_of_a_part, "misuse: cuMemSetAccess: ", ""},
    {released_twice, "memory handle", ""},
    {exported_unasked, "was not created exportable", ""},
    {addresses_freed_while_mapped, "something is mapped in", ""},
    {addresses_freed_in_part, "is no reservation", ""},
    {stream_used_after_destroy, "was destroyed before", ""},
    {stream_made_beside_a_kernel, "a kernel is pending, which it may wait for", "delay_us=50000"},
    {event_used_after_destroy, "was destroyed before", ""},
    {event_destroyed_twice, "was destroyed before", ""},
    {event_for_stream, "is another handle (event), no stream", ""},
    {function_after_unload, "was destroyed before", ""},
    {unloaded_under_kernel, "launches of its kernels are pending", "delay_us=50000"},
    {without_context, "misuse: cuMemAlloc: no current context", ""},
    {context_released_twice, "is not retained", ""},
    {stream_of_another_context, "is of another context than the current one", "devices=2"},
    {event_of_another_context, "is of another context than the stream", "devices=2"},
    {after_fork, "in a child of the process that called cuInit", ""},
    {without_init, "called before cuInit", ""},
    {leaks_memory, "leak: device memory", ""},
    {leaks_in_context, "left in a context that was destroyed", ""},
    {leaks_handle, "leak: memory handle", ""},
    {leaks_addresses, "leak: reserved addresses", ""},
    {leaks_stream, "leak: stream", ""},
    {leaks_event, "leak: event", ""},
    {leaks_module, "leak: module", ""},
    {leaks_pool, "leak: memory pool", ""},
    {leaks_registration, "leak: registered memory", ""},
    {leaks_memory, "leak: primary context of device 0, retained 1 times", ""},
};

START_TEST(is_reported)
{
    scenario_reports(wrong[_i].work, wrong[_i].script, wrong[_i].text);
}
END_TEST

START_TEST(strict_ends_with_an_error)
{
    struct outcome o = scenario(leaks_memory, "", true, NULL);
    ck_assert_int_eq(o.status, 66);
    o = scenario(freed_twice, "", true, NULL);
    ck_assert_int_eq(o.status, 66);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fakecuda_misuse");
    TCase *tcase = tcase_create("misuse");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, is_reported, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(tcase, strict_ends_with_an_error);
    suite_add_tcase(suite, tcase);
    return bench_main(suite);
}
