/* How long calls of the driver hold up their caller while an unrelated kernel runs. gpud relies on
 * these times where it gives memory back, grows a pool or loads a module. Also for pages as a pool
 * moves them: many, at addresses behind a page that the kernel uses all the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/record.h"

#define KERNEL_NS  (100 * NS_PER_MS)
#define HOST_BYTES ((size_t)1 << 20)
#define MANY       32u /* pages */

struct beside {
    struct direct d;
    CUfunction spin, spin_at;
    CUmemAllocationProp prop;
    size_t page; /* bytes */
    CUdeviceptr range, memory;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr used; /* a page that kernels use, and addresses of MANY behind it */
    CUmemGenericAllocationHandle used_handle, many[MANY];
    double shortest; /* milliseconds from the launch of a kernel until it was over */
    void *host, *fatbin;
    CUmodule module;
    CUfunction function; /* of `module` */
    CUstream stream;
};

/* Each leaves what the next one needs. */
static void mem_create(struct beside *b)
{
    must(b->d.cu.MemCreate(&b->handle, b->page, &b->prop, 0));
}

static void mem_map(struct beside *b)
{
    must(b->d.cu.MemMap(b->range, b->page, 0, b->handle, 0));
}

static void access_set(struct beside *b, CUdeviceptr at, size_t bytes)
{
    const CUmemAccessDesc access = {.location = b->prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    must(b->d.cu.MemSetAccess(at, bytes, &access, 1));
}

static void mem_access(struct beside *b)
{
    access_set(b, b->range, b->page);
}

static void mem_unmap(struct beside *b)
{
    must(b->d.cu.MemUnmap(b->range, b->page));
}

static void mem_release(struct beside *b)
{
    must(b->d.cu.MemRelease(b->handle));
}

static CUdeviceptr many_at(const struct beside *b, unsigned i)
{
    return b->used + (1 + i) * b->page;
}

static void many_create(struct beside *b)
{
    for (unsigned i = 0; i < MANY; i++) {
        must(b->d.cu.MemCreate(&b->many[i], b->page, &b->prop, 0));
    }
}

static void many_map(struct beside *b)
{
    for (unsigned i = 0; i < MANY; i++) {
        must(b->d.cu.MemMap(many_at(b, i), b->page, 0, b->many[i], 0));
    }
}

static void many_access(struct beside *b)
{
    access_set(b, many_at(b, 0), MANY * b->page);
}

static void many_unmap(struct beside *b)
{
    for (unsigned i = 0; i < MANY; i++) {
        must(b->d.cu.MemUnmap(many_at(b, i), b->page));
    }
}

static void many_release(struct beside *b)
{
    for (unsigned i = 0; i < MANY; i++) {
        must(b->d.cu.MemRelease(b->many[i]));
    }
}

static void mem_alloc(struct beside *b)
{
    must(b->d.cu.MemAlloc(&b->memory, b->page));
}

static void mem_free(struct beside *b)
{
    must(b->d.cu.MemFree(b->memory));
}

static void host_register(struct beside *b)
{
    must(b->d.cu.MemHostRegister(b->host, HOST_BYTES, 0));
}

static void host_unregister(struct beside *b)
{
    must(b->d.cu.MemHostUnregister(b->host));
}

static void module_load(struct beside *b)
{
    must(b->d.cu.ModuleLoadDataEx(&b->module, b->fatbin, 0, NULL, NULL));
    must(b->d.ModuleGetFunction(&b->function, b->module, "nothing"));
}

static void func_load(struct beside *b)
{
    must(b->d.cu.FuncLoad(b->function));
}

static void module_unload(struct beside *b)
{
    must(b->d.cu.ModuleUnload(b->module));
}

static void stream_create(struct beside *b)
{
    must(b->d.cu.StreamCreateWithPriority(&b->stream, CU_STREAM_NON_BLOCKING, 0));
}

static void stream_destroy(struct beside *b)
{
    must(b->d.cu.StreamDestroy(b->stream));
}

static const struct {
    const char *name;
    void (*call)(struct beside *b);
    bool near; /* the kernel uses a page beside those of the call */
} calls[] = {
    {"cuMemCreate", mem_create, false},
    {"cuMemMap", mem_map, false},
    {"cuMemSetAccess", mem_access, false},
    {"cuMemUnmap", mem_unmap, false},
    {"cuMemRelease", mem_release, false},
    {"cuMemAlloc", mem_alloc, false},
    {"cuMemFree", mem_free, false},
    {"cuMemHostRegister", host_register, false},
    {"cuMemHostUnregister", host_unregister, false},
    {"cuModuleLoadDataEx", module_load, false},
    {"cuFuncLoad", func_load, false},
    {"cuModuleUnload", module_unload, false},
    {"cuStreamCreate", stream_create, false},
    {"cuStreamDestroy", stream_destroy, false},
    {"cuMemCreate x32", many_create, true},
    {"cuMemMap x32", many_map, true},
    {"cuMemSetAccess of 32", many_access, true},
    {"cuMemUnmap x32", many_unmap, true},
    {"cuMemRelease x32", many_release, true},
};
#define CALLS (sizeof calls / sizeof calls[0])

static void kernel_start(struct beside *b, bool near)
{
    uint64_t ns = KERNEL_NS;
    CUdeviceptr count = b->used;
    void *args[] = {&ns, &count};
    if (near) {
        must(b->d.cu.LaunchKernel(b->spin_at, 1, 1, 1, 1, 1, 1, 0, b->d.stream, args, NULL));
    } else {
        direct_launch(&b->d, b->spin, 0, ns);
    }
}

/* Milliseconds of one call; the kernel has begun. */
static double beside_kernel(struct beside *b, void (*call)(struct beside *b), bool near)
{
    const struct timespec begun = {0, 5 * (long)NS_PER_MS};
    uint64_t start_ns = clock_now_ns();
    kernel_start(b, near);
    (void)nanosleep(&begun, NULL);
    uint64_t begin_ns = clock_now_ns();
    call(b);
    uint64_t spent_ns = clock_now_ns() - begin_ns;
    direct_wait(&b->d);
    double ms = (double)(clock_now_ns() - start_ns) / 1e6;
    b->shortest = ms < b->shortest ? ms : b->shortest;
    return (double)spent_ns / 1e6;
}

static uint64_t used_count(struct beside *b)
{
    uint64_t count = 0;
    must(b->d.cu.MemcpyDtoHAsync(&count, b->used, sizeof count, b->d.stream));
    direct_wait(&b->d);
    return count;
}

static void pages_prepare(struct beside *b)
{
    b->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->d.device}};
    must(b->d.cu.MemGetAllocationGranularity(&b->page, &b->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    must(b->d.cu.MemAddressReserve(&b->range, b->page, 0, 0, 0));
    must(b->d.cu.MemAddressReserve(&b->used, (1 + MANY) * b->page, 0, 0, 0));
    must(b->d.cu.MemCreate(&b->used_handle, b->page, &b->prop, 0));
    must(b->d.cu.MemMap(b->used, b->page, 0, b->used_handle, 0));
    access_set(b, b->used, b->page);
    must(b->d.cu.MemsetD8Async(b->used, 0, b->page, b->d.stream));
    direct_wait(&b->d);
}

static void pages_finish(struct beside *b)
{
    must(b->d.cu.MemUnmap(b->used, b->page));
    must(b->d.cu.MemRelease(b->used_handle));
    must(b->d.cu.MemAddressFree(b->used, (1 + MANY) * b->page));
    must(b->d.cu.MemAddressFree(b->range, b->page));
}

static void measure(struct beside *b, struct record *r)
{
    double most[CALLS] = {0};
    unsigned rounds = record_effort(1, 3);
    for (unsigned i = 0; i < rounds; i++) {
        for (size_t c = 0; c < CALLS; c++) {
            double ms = beside_kernel(b, calls[c].call, calls[c].near);
            most[c] = ms > most[c] ? ms : most[c];
        }
    }
    for (size_t c = 0; c < CALLS; c++) {
        record_figure(r, calls[c].name, most[c], "ms");
    }
    /* else nothing of it counts */
    record_target(r, "the shortest kernel", b->shortest, "ms", RECORD_AT_LEAST,
                  (double)KERNEL_NS / 1e6);
    record_target(r, "uses of the neighbouring page", (double)used_count(b), "", RECORD_AT_LEAST,
                  1);
    record_note(r,
                "the longest of %u calls each while a kernel of %u ms runs in another stream; one "
                "that takes about as long waits for it",
                rounds, (unsigned)(KERNEL_NS / NS_PER_MS));
}

void item_beside(void)
{
    struct beside b = {.page = 0};
    struct record r;
    size_t size = 0;
    direct_open(&b.d);
    b.spin = direct_kernel(&b.d, "spin");
    b.spin_at = direct_kernel(&b.d, "spin_at");
    b.shortest = 1e9;
    b.fatbin = direct_fatbin(&size);
    b.host = aligned_alloc(4096, HOST_BYTES);
    if (b.host == NULL) {
        perror("memory to register");
        exit(EXIT_FAILURE);
    }
    memset(b.host, 1, HOST_BYTES);
    record_begin(&r, "calls beside a kernel");
    pages_prepare(&b);
    measure(&b, &r);
    pages_finish(&b);
    (void)record_end(&r);
    free(b.host);
    free(b.fatbin);
    direct_close(&b.d);
}
