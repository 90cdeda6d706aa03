/* How long calls of the driver's hold up their caller while a kernel runs that has nothing to do
 * with them: what gpud assumes of them where it gives memory back, grows a pool or loads a module.
 */
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

struct beside {
    struct direct d;
    CUfunction spin;
    CUmemAllocationProp prop;
    size_t page; /* bytes */
    CUdeviceptr range, memory;
    CUmemGenericAllocationHandle handle;
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

static void mem_access(struct beside *b)
{
    const CUmemAccessDesc access = {.location = b->prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    must(b->d.cu.MemSetAccess(b->range, b->page, &access, 1));
}

static void mem_unmap(struct beside *b)
{
    must(b->d.cu.MemUnmap(b->range, b->page));
}

static void mem_release(struct beside *b)
{
    must(b->d.cu.MemRelease(b->handle));
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
} calls[] = {
    {"cuMemCreate", mem_create},
    {"cuMemMap", mem_map},
    {"cuMemSetAccess", mem_access},
    {"cuMemUnmap", mem_unmap},
    {"cuMemRelease", mem_release},
    {"cuMemAlloc", mem_alloc},
    {"cuMemFree", mem_free},
    {"cuMemHostRegister", host_register},
    {"cuMemHostUnregister", host_unregister},
    {"cuModuleLoadDataEx", module_load},
    {"cuFuncLoad", func_load},
    {"cuModuleUnload", module_unload},
    {"cuStreamCreate", stream_create},
    {"cuStreamDestroy", stream_destroy},
};
#define CALLS (sizeof calls / sizeof calls[0])

/* Milliseconds of one call; the kernel has begun. */
static double beside_kernel(struct beside *b, void (*call)(struct beside *b))
{
    const struct timespec begun = {0, 5 * (long)NS_PER_MS};
    direct_launch(&b->d, b->spin, 0, KERNEL_NS);
    (void)nanosleep(&begun, NULL);
    uint64_t begin_ns = clock_now_ns();
    call(b);
    uint64_t spent_ns = clock_now_ns() - begin_ns;
    direct_wait(&b->d);
    return (double)spent_ns / 1e6;
}

static void pages_prepare(struct beside *b)
{
    b->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->d.device}};
    must(b->d.cu.MemGetAllocationGranularity(&b->page, &b->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    must(b->d.cu.MemAddressReserve(&b->range, b->page, 0, 0, 0));
}

static void measure(struct beside *b, struct record *r)
{
    double most[CALLS] = {0};
    unsigned rounds = record_effort(1, 3);
    for (unsigned i = 0; i < rounds; i++) {
        for (size_t c = 0; c < CALLS; c++) {
            double ms = beside_kernel(b, calls[c].call);
            most[c] = ms > most[c] ? ms : most[c];
        }
    }
    for (size_t c = 0; c < CALLS; c++) {
        record_figure(r, calls[c].name, most[c], "ms");
    }
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
    must(b.d.cu.MemAddressFree(b.range, b.page));
    (void)record_end(&r);
    free(b.host);
    free(b.fatbin);
    direct_close(&b.d);
}
