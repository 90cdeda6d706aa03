/* What the double does when it is used rightly: order, events, copies, memory, modules, kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakecuda/bench.h"

#define COUNT 1024u
#define BYTES (COUNT * sizeof(int))

static void *params2(void **out, void *a, void *b)
{
    out[0] = a;
    out[1] = b;
    return out;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void stream_in_order(void)
{
    start();
    CUstream s = stream_new();
    CUmodule m = module_new(test_ptx);
    CUdeviceptr d = memory_new(BYTES);
    int *h = host_new(BYTES);
    uint64_t n = COUNT;
    void *params[2];
    ok(cuMemsetD32Async(d, 5, COUNT, s));
    ok(launch(function_of(m, "fake_increment"), s, params2(params, &d, &n)));
    n = 0; /* parameters are read when the kernel is launched */
    ok(cuMemcpyDtoHAsync(h, d, BYTES, s));
    ok(cuStreamSynchronize(s));
    for (unsigned i = 0; i < COUNT; i++) {
        must(h[i] == 6);
    }
    ok(cuMemFreeHost(h));
    ok(cuMemFree(d));
    ok(cuModuleUnload(m));
    ok(cuStreamDestroy(s));
    stop();
}

/* Longer than the calls beside it take, however busy the host is. */
#define LONG_MS 3000

static void is_asynchronous(void)
{
    start();
    CUstream s = stream_new();
    CUmodule m = module_new(test_ptx);
    CUdeviceptr d = memory_new(BYTES);
    int *h = host_new(BYTES);
    int ms = LONG_MS;
    void *params[1] = {&ms};
    h[0] = 1;
    ok(cuMemsetD32Async(d, 2, COUNT, s));
    ok(launch(function_of(m, "fake_sleep"), s, params));
    ok(cuMemcpyDtoHAsync(h, d, BYTES, s));
    ck_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    must(h[0] == 1);
    ok(cuStreamSynchronize(s));
    ok(cuStreamQuery(s));
    must(h[0] == 2);
    ok(cuMemFreeHost(h));
    ok(cuMemFree(d));
    ok(cuModuleUnload(m));
    ok(cuStreamDestroy(s));
    stop();
}

/* The second stream reads what the first writes late. */
static void events_order_streams(void)
{
    start();
    CUstream a = stream_new(), b = stream_new();
    CUmodule m = module_new(test_ptx);
    CUdeviceptr d = memory_new(BYTES);
    int *h = host_new(BYTES);
    CUevent e = NULL, begin = NULL;
    int ms = LONG_MS;
    float took = 0;
    void *params[1] = {&ms};
    ok(cuEventCreate(&e, CU_EVENT_DEFAULT));
    ok(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    ok(cuEventQuery(e)); /* never recorded: passed */
    ok(cuEventRecord(begin, a));
    ok(launch(function_of(m, "fake_sleep"), a, params));
    ok(cuMemsetD32Async(d, 7, COUNT, a));
    ok(cuEventRecord(e, a));
    ck_cu(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    ck_cu(cuEventElapsedTime(&took, begin, e), CUDA_ERROR_NOT_READY);
    ok(cuStreamWaitEvent(b, e, 0));
    ok(cuMemcpyDtoHAsync(h, d, BYTES, b));
    ok(cuStreamSynchronize(b));
    must(h[COUNT - 1] == 7);
    ok(cuEventSynchronize(e));
    ok(cuEventElapsedTime(&took, begin, e));
    must(took >= LONG_MS);
    ok(cuEventDestroy(e));
    ok(cuEventDestroy(begin));
    ok(cuMemFreeHost(h));
    ok(cuMemFree(d));
    ok(cuModuleUnload(m));
    ok(cuStreamDestroy(a));
    ok(cuStreamDestroy(b));
    stop();
}

/* Of an event that was recorded again, wherever the earlier one stands. */
static void the_last_record_counts(void)
{
    start();
    CUstream a = stream_new(), b = stream_new();
    CUmodule m = module_new(test_ptx);
    CUevent e = NULL;
    int ms = LONG_MS;
    void *params[1] = {&ms};
    ok(cuEventCreate(&e, CU_EVENT_DEFAULT));
    ok(launch(function_of(m, "fake_sleep"), a, params));
    ok(cuEventRecord(e, a));
    ok(cuEventRecord(e, b));
    ok(cuStreamSynchronize(b));
    ok(cuEventQuery(e));
    ok(cuStreamSynchronize(a));
    ok(cuEventQuery(e));
    ok(cuEventDestroy(e));
    ok(cuModuleUnload(m));
    ok(cuStreamDestroy(a));
    ok(cuStreamDestroy(b));
    stop();
}

/* Work without an order overlaps: a stalled stream does not hold up the other one. */
static void streams_are_independent(void)
{
    start();
    CUstream a = stream_new(), b = stream_new();
    CUdeviceptr d = memory_new(BYTES);
    ok(cuMemsetD8Async(d, 0, 1, a)); /* stalls */
    ok(cuMemsetD32Async(d + 256, 1, 16, b));
    ok(cuStreamSynchronize(b));
    ck_cu(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    _exit(0);
}

static void legacy_stream_orders(void)
{
    start();
    CUstream s = NULL;
    CUmodule m = module_new(test_ptx);
    CUdeviceptr d = memory_new(BYTES);
    int h[COUNT], ms = 50;
    void *params[1] = {&ms};
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(launch(function_of(m, "fake_sleep"), s, params));
    ok(cuMemsetD32Async(d, 9, COUNT, s));
    ok(cuMemcpyDtoH(h, d, BYTES));
    must(h[3] == 9);
    ok(cuMemFree(d));
    ok(cuModuleUnload(m));
    ok(cuStreamDestroy(s));
    stop();
}

static void note_call(void *data)
{
    *(int *)data = cuCtxSynchronize() == CUDA_ERROR_NOT_PERMITTED ? 2 : 1;
}

static void callbacks_run(void)
{
    start();
    CUstream s = stream_new();
    int seen = 0;
    ok(cuLaunchHostFunc(s, note_call, &seen));
    ok(cuStreamSynchronize(s));
    must(seen == 2);
    ok(cuStreamDestroy(s));
    stop();
}

/* ---- memory ---------------------------------------------------------------------------------- */

static CUmemAllocationProp prop_of(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static void virtual_memory(void)
{
    start();
    const CUmemAllocationProp prop = prop_of(0);
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h[2] = {0, 0}, other = 0;
    CUdeviceptr va = 0, again = 0;
    size_t unit = 0;
    int fd = -1, value = 0;
    ok(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemAddressReserve(&va, 4 * unit, 0, 0, 0));
    ok(cuMemAddressReserve(&again, unit, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        ok(cuMemCreate(&h[i], unit, &prop, 0));
        ok(cuMemMap(va + (size_t)i * unit, unit, 0, h[i], 0));
    }
    ok(cuMemSetAccess(va, 2 * unit, &access, 1));
    ok(cuMemsetD32(va, 11, 2 * unit / 4)); /* over both */
    ok(cuMemExportToShareableHandle(&fd, h[1], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    ok(cuMemMap(again, unit, 0, other, 0));
    ok(cuMemSetAccess(again, unit, &access, 1));
    ok(cuMemcpyDtoH(&value, again + unit - 4, 4));
    must(value == 11);
    ok(cuMemRelease(other));
    ok(cuMemRelease(h[0])); /* the mapping keeps it */
    ok(cuMemcpyDtoH(&value, va, 4));
    must(value == 11);
    ok(cuMemUnmap(va, 2 * unit));
    ok(cuMemUnmap(again, unit));
    ok(cuMemRelease(h[1]));
    ok(cuMemAddressFree(va, 4 * unit));
    ok(cuMemAddressFree(again, unit));
    stop();
}

static void memory_is_counted(void)
{
    start();
    size_t free_before = 0, free_after = 0, total = 0;
    CUdeviceptr p = 0, q = 0;
    ok(cuMemGetInfo(&free_before, &total));
    must(total == 64u << 20 && free_before == 48u << 20);
    p = memory_new(40u << 20);
    ck_cu(cuMemAlloc(&q, 9u << 20), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuMemGetInfo(&free_after, &total));
    must(free_after == 8u << 20);
    ok(cuMemFree(p));
    ok(cuMemAlloc(&q, 48u << 20));
    ok(cuMemFree(q));
    stop();
}

static void pools_are_in_order(void)
{
    start();
    CUstream s = stream_new();
    CUmemoryPool pool = NULL, mine = NULL;
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUdeviceptr p = 0, q = 0;
    cuuint64_t used = 0;
    int h = 0;
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemPoolCreate(&mine, &props));
    ok(cuMemAllocAsync(&p, BYTES, s));
    ok(cuMemAllocFromPoolAsync(&q, BYTES, mine, s));
    ok(cuMemsetD32Async(p, 3, COUNT, s));
    ok(cuMemcpyDtoDAsync(q, p, BYTES, s));
    ok(cuMemcpyDtoHAsync(&h, q, 4, s));
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    must(h == 3 && used == BYTES);
    ok(cuMemFreeAsync(p, s));
    ok(cuMemFreeAsync(q, s));
    ok(cuStreamSynchronize(s));
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    must(used == 0);
    ok(cuMemPoolDestroy(mine));
    ok(cuStreamDestroy(s));
    stop();
}

static void registered_and_managed(void)
{
    start();
    CUstream s = stream_new();
    CUdeviceptr d = memory_new(BYTES), mapped = 0, managed = 0;
    int *own = aligned_alloc(4096, 4096);
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    must(own != NULL);
    ok(cuMemHostRegister(own, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&mapped, own, 0));
    ok(cuMemsetD32Async(d, 4, COUNT, s));
    ok(cuMemcpyDtoHAsync(own, d, BYTES, s));
    ok(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
    ok(cuMemPrefetchAsync_v2(managed, BYTES, here, 0, s));
    ok(cuMemcpyDtoDAsync(managed, mapped, BYTES, s));
    ok(cuStreamSynchronize(s));
    must(*(int *)(uintptr_t)managed == 4);
    ok(cuMemHostUnregister(own));
    free(own);
    ok(cuMemFree(managed));
    ok(cuMemFree(d));
    ok(cuStreamDestroy(s));
    stop();
}

/* The driver has read a pageable source before the call returns. */
static void pageable_is_staged(void)
{
    start();
    CUstream s = stream_new();
    CUdeviceptr d = memory_new(BYTES);
    int *own = malloc(BYTES), back = 0;
    must(own != NULL);
    own[5] = 77;
    ok(cuMemcpyHtoDAsync(d, own, BYTES, s));
    own[5] = 0;
    free(own);
    ok(cuStreamSynchronize(s));
    ok(cuMemcpyDtoH(&back, d + 20, 4));
    must(back == 77);
    ok(cuMemFree(d));
    ok(cuStreamDestroy(s));
    stop();
}

/* And of a large one not before all that came before it in the stream. */
static void large_pageable_waits(void)
{
    start();
    enum { LARGE = 128 << 10 };
    CUstream s = stream_new();
    CUdeviceptr d = memory_new(LARGE);
    CUevent before;
    char *own = calloc(1, LARGE);
    must(own != NULL);
    ok(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
    ok(cuMemsetD8Async(d, 1, LARGE, s));
    ok(cuEventRecord(before, s));
    ok(cuMemcpyHtoDAsync(d, own, LARGE, s));
    ok(cuEventQuery(before));
    free(own);
    ok(cuStreamSynchronize(s));
    ok(cuEventDestroy(before));
    ok(cuMemFree(d));
    ok(cuStreamDestroy(s));
    stop();
}

static void batches_copy(void)
{
#if CUDA_VERSION >= 13000
    start();
    CUstream s = stream_new();
    CUdeviceptr d = memory_new(BYTES);
    int *h = host_new(BYTES);
    CUdeviceptr dsts[2] = {d, d + 512};
    CUdeviceptr srcs[2] = {(CUdeviceptr)(uintptr_t)h, (CUdeviceptr)(uintptr_t)(h + 100)};
    size_t sizes[2] = {4, 8}, first = 0;
    CUmemcpyAttributes attrs = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    int back = 0;
    h[0] = 1;
    h[100] = 2;
    ok(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attrs, &first, 1, s));
    ok(cuStreamSynchronize(s));
    ok(cuMemcpyDtoH(&back, d + 512, 4));
    must(back == 2);
    ok(cuMemFreeHost(h));
    ok(cuMemFree(d));
    ok(cuStreamDestroy(s));
    stop();
#endif
}

/* ---- modules and kernels --------------------------------------------------------------------- */

static void ptx_is_read(void)
{
    static const size_t want[][2] = {{0, 8}, {8, 4}, {16, 32}, {48, 1}};
    start();
    CUmodule m = module_new(test_ptx);
    CUfunction f = function_of(m, "shaped");
    CUdeviceptr v = 0;
    size_t offset = 0, size = 0;
    unsigned count = 0;
    int value = 0;
    for (size_t i = 0; i < 4; i++) {
        ok(cuFuncGetParamInfo(f, i, &offset, &size));
        must(offset == want[i][0] && size == want[i][1]);
    }
    ck_cu(cuFuncGetParamInfo(f, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    must(value == 256);
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    must(value == 128);
    ok(cuModuleGetFunctionCount(&count, m));
    must(count == 9);
    ok(cuModuleGetGlobal(&v, &size, m, "counter"));
    ok(cuMemcpyDtoH(&value, v, 4));
    must(size == 4 && value == 7);
    ok(cuModuleGetGlobal(&v, &size, m, "table"));
    ok(cuMemcpyDtoH(&value, v + 4, 4));
    must(size == 8 && value == 0x08070605);
    ck_cu(cuModuleGetGlobal(&v, &size, m, "absent"), CUDA_ERROR_NOT_FOUND);
    ck_cu(cuModuleGetFunction(&f, m, "absent"), CUDA_ERROR_NOT_FOUND);
    ok(cuModuleUnload(m));
    stop();
}

static void builtins_compute(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    CUdeviceptr x = memory_new(BYTES), y = memory_new(BYTES);
    uint64_t n = COUNT;
    float a = 2.0f, h[COUNT];
    void *params[4] = {&a, &x, &y, &n};
    for (unsigned i = 0; i < COUNT; i++) {
        h[i] = (float)i;
    }
    ok(cuMemcpyHtoD(x, h, BYTES));
    ok(cuMemcpyHtoD(y, h, BYTES));
    ok(cuLaunchKernel(function_of(m, "axpy_f32"), 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(h, y, BYTES));
    for (unsigned i = 0; i < COUNT; i++) {
        must(h[i] == 3.0f * (float)i);
    }
    ok(cuMemFree(x));
    ok(cuMemFree(y));
    ok(cuModuleUnload(m));
    stop();
}

static void unknown_is_refused(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    ck_cu(launch(function_of(m, "unknown_to_the_double"), NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
    ok(cuModuleUnload(m));
    stop();
}

static void bad_images(void)
{
    static const char newer[] = ".version 99.0\n.target sm_80\n";
    static const char other[] = ".version 8.0\n.target sm_120\n";
    static const char cut[] = ".version 8.0\n.target sm_80\n.visible .entry f(.param .u64 p)\n{\n";
    char log[256] = "";
    CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[2] = {log, (void *)sizeof log};
    CUmodule m = NULL;
    static const uint8_t elf[4096] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    start();
    ck_cu(cuModuleLoadData(&m, newer), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    ck_cu(cuModuleLoadData(&m, other), CUDA_ERROR_NO_BINARY_FOR_GPU);
    ck_cu(cuModuleLoadDataEx(&m, cut, 2, options, values), CUDA_ERROR_INVALID_PTX);
    must(strstr(log, "fatal") != NULL);
    ck_cu(cuModuleLoadData(&m, elf), CUDA_ERROR_INVALID_IMAGE);
    stop();
}

static void launches_are_checked(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    CUfunction f = function_of(m, "fake_nothing"), g = function_of(m, "shaped");
    const CUresult bad = CUDA_ERROR_INVALID_VALUE;
    ck_cu(cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), bad);
    ck_cu(cuLaunchKernel(f, 1, 65536, 1, 32, 1, 1, 0, NULL, NULL, NULL), bad);
    ck_cu(cuLaunchKernel(f, 1, 1, 1, 1024, 2, 1, 0, NULL, NULL, NULL), bad);
    ck_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), bad);
    ck_cu(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 49153, NULL, NULL, NULL), bad);
    ck_cu(cuLaunchKernel(g, 1, 1, 1, 512, 1, 1, 0, NULL, NULL, NULL), bad);
    ck_cu(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 240000), bad);
    ok(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
    ok(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 200000, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(m));
    stop();
}

/* ---- devices --------------------------------------------------------------------------------- */

static void eight_devices(void)
{
    int count = 0, bus[8];
    CUuuid uuid[8];
    ok(cuInit(0));
    ok(cuDeviceGetCount(&count));
    must(count == 8);
    for (int i = 0; i < 8; i++) {
        ok(cuDeviceGetAttribute(&bus[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
        ok(cuDeviceGetUuid(&uuid[i], i));
        must(i == 0 || bus[i] > bus[i - 1]);
        must(i == 0 || memcmp(&uuid[i], &uuid[0], sizeof uuid[0]) != 0);
    }
    ck_cu(cuDeviceGet(&count, 8), CUDA_ERROR_INVALID_DEVICE);
}

static void order_is_not_the_bus(void)
{
    int first = 0, second = 0;
    ok(cuInit(0));
    ok(cuDeviceGetAttribute(&first, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
    ok(cuDeviceGetAttribute(&second, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1));
    must(first > second);
}

static void one_is_visible(void)
{
    int count = 0, bus = 0;
    ok(cuInit(0));
    ok(cuDeviceGetCount(&count));
    ok(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
    must(count == 1 && bus == 0x10 + 8 * 3);
}

static void peers_copy(void)
{
    CUcontext c[2] = {NULL, NULL};
    CUdeviceptr p[2] = {0, 0};
    int can = 0, value = 0;
    ok(cuInit(0));
    for (int i = 0; i < 2; i++) {
        ok(cuDevicePrimaryCtxRetain(&c[i], i));
        ok(cuCtxSetCurrent(c[i]));
        ok(cuMemAlloc(&p[i], 64));
        ok(cuMemsetD32(p[i], (unsigned)i + 20, 16));
        ok(cuCtxSynchronize());
    }
    ok(cuDeviceCanAccessPeer(&can, 0, 1));
    must(can == 1);
    ok(cuMemcpyPeer(p[1], c[1], p[0], c[0], 64));
    ok(cuMemcpyDtoH(&value, p[1], 4));
    must(value == 20);
    for (int i = 0; i < 2; i++) {
        ok(cuMemFree(p[i]));
        ok(cuDevicePrimaryCtxRelease(i));
    }
}

static void versions_of_calls(void)
{
    CUdriverProcAddressQueryResult q;
    void *fn = NULL;
    ok(cuInit(0));
    ok(cuGetProcAddress("cuMemAlloc", &fn, 12000, 0, &q));
    must(fn == (void *)cuMemAlloc && q == CU_GET_PROC_ADDRESS_SUCCESS);
    ok(cuGetProcAddress("cuMemAlloc", &fn, 2000, 0, &q));
    must(!fn && q == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ok(cuGetProcAddress("cuMemcpyBatchAsync", &fn, 12000, 0, &q));
    must(!fn && q == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND); /* the driver is older */
    ok(cuGetProcAddress("cuNothing", &fn, 12000, 0, &q));
    must(!fn && q == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_cu(cuGetProcAddress("cuMemAlloc", &fn, 13000, 0, &q), CUDA_ERROR_INVALID_VALUE);
}

/* What runs is over when the call returns, so the unmapping disturbs none of it. */
static void remapping_waits(void)
{
    start();
    const CUmemAllocationProp prop = prop_of(0);
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr va = 0;
    CUstream s = stream_new();
    size_t unit = 0;
    ok(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemAddressReserve(&va, unit, 0, 0, 0));
    ok(cuMemCreate(&h, unit, &prop, 0));
    ok(cuMemMap(va, unit, 0, h, 0));
    ok(cuMemSetAccess(va, unit, &access, 1));
    ok(cuMemsetD8Async(va, 1, unit, s));
    ok(cuMemSetAccess(va, unit, &access, 1));
    must(cuStreamQuery(s) == CUDA_SUCCESS);
    ok(cuMemsetD8Async(va, 2, unit, s));
    ok(cuMemUnmap(va, unit));
    must(cuStreamQuery(s) == CUDA_SUCCESS);
    ok(cuMemRelease(h));
    ok(cuMemAddressFree(va, unit));
    ok(cuStreamDestroy(s));
    stop();
}

static const struct {
    const char *name;
    void (*work)(void);
    const char *script;
} clean[] = {
    {"stream_in_order", stream_in_order, ""},
    {"is_asynchronous", is_asynchronous, ""},
    {"events_order_streams", events_order_streams, ""},
    {"the_last_record_counts", the_last_record_counts, ""},
    {"legacy_stream_orders", legacy_stream_orders, ""},
    {"virtual_memory", virtual_memory, ""},
    {"remapping_waits", remapping_waits, "remap_waits=1;delay_us=20000"},
    {"memory_is_counted", memory_is_counted, "memory=64M;context=16M"},
    {"pools_are_in_order", pools_are_in_order, ""},
    {"registered_and_managed", registered_and_managed, ""},
    {"pageable_is_staged", pageable_is_staged, ""},
    {"large_pageable_waits", large_pageable_waits, "delay_us=20000"},
    {"batches_copy", batches_copy, ""},
    {"ptx_is_read", ptx_is_read, ""},
    {"builtins_compute", builtins_compute, ""},
    {"unknown_is_refused", unknown_is_refused, ""},
    {"bad_images", bad_images, ""},
    {"launches_are_checked", launches_are_checked, ""},
    {"order_is_not_the_bus", order_is_not_the_bus, "devices=2"},
    {"peers_copy", peers_copy, "devices=2"},
    {"versions_of_calls", versions_of_calls, "driver=12040"},
};

START_TEST(works)
{
    scenario_clean(clean[_i].work, clean[_i].script);
}
END_TEST

START_TEST(works_apart)
{
    struct outcome o = scenario(streams_are_independent, "cuMemsetD8Async@1=stall", false, NULL);
    ck_assert_int_eq(o.status, 0);
}
END_TEST

START_TEST(forbids_calls_in_callbacks)
{
    scenario_reports(callbacks_run, "", "cuCtxSynchronize: called from a host callback");
}
END_TEST

START_TEST(counts_devices)
{
    struct outcome o = scenario(eight_devices, "devices=8", true, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    ck_assert_int_eq(o.status, 0);
}
END_TEST

START_TEST(hides_devices)
{
    static const char *const visible[] = {
        "CUDA_VISIBLE_DEVICES=4", "CUDA_VISIBLE_DEVICES=GPU-fa4ec0da-0000-4000-8000-000000000003"};
    struct outcome o = scenario(one_is_visible, "devices=8", true, visible[_i]);
    ck_assert_int_eq(o.status, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fakecuda_work");
    TCase *tcase = tcase_create("work");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, works, 0, (int)(sizeof clean / sizeof clean[0]));
    tcase_add_test(tcase, works_apart);
    tcase_add_test(tcase, forbids_calls_in_callbacks);
    tcase_add_test(tcase, counts_devices);
    tcase_add_loop_test(tcase, hides_devices, 0, 2);
    suite_add_tcase(suite, tcase);
    return bench_main(suite);
}
