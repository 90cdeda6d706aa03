/* The device's properties and the cost of opening it: attributes that gpud relies on,
 * granularities, and the time to open split into its parts. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "daemon/backend/cuda/driver/device.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

static const struct {
    const char *name;
    CUdevice_attribute attribute;
} asked[] = {
    {"virtual memory", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"pages as descriptors", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
    {"host memory registered", CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"registered read-only", CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED},
    {"registered at its own address", CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {"unified addresses", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {"pageable memory", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {"managed memory at once", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {"kernels at once", CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {"copy engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {"stream priorities", CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {"memory pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {"compute mode", CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
    {"kernel time-out", CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT},
    {"ECC", CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
};

static void granularities(struct direct *d, struct record *r)
{
    static const struct {
        const char *name;
        CUmemAllocationGranularity_flags flag;
    } kinds[] = {{"granularity, least", CU_MEM_ALLOC_GRANULARITY_MINIMUM},
                 {"granularity, recommended", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}};
    const CUmemAllocationProp p = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device}};
    for (unsigned i = 0; i < 2; i++) {
        size_t bytes = 0;
        if (d->cu.MemGetAllocationGranularity(&bytes, &p, kinds[i].flag) == CUDA_SUCCESS) {
            record_figure(r, kinds[i].name, (double)bytes / 1024, "KiB");
        }
    }
}

void item_attributes(void)
{
    struct direct d;
    struct record r;
    int least = 0;
    int greatest = 0;
    direct_open(&d);
    record_begin(&r, "attributes");
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int value = 0;
        if (d.cu.DeviceGetAttribute(&value, asked[i].attribute, d.device) == CUDA_SUCCESS) {
            record_figure(&r, asked[i].name, value, "");
        }
    }
    granularities(&d, &r);
    must(d.cu.CtxGetStreamPriorityRange(&least, &greatest));
    record_figure(&r, "priorities", least - greatest + 1, "");
    record_note(&r, "as the driver tells; what is missing in the list, it does not know");
    (void)record_end(&r);
    direct_close(&d);
}

static double since_ms(uint64_t *begin_ns)
{
    uint64_t now_ns = clock_now_ns();
    double ms = (double)(now_ns - *begin_ns) / 1e6;
    *begin_ns = now_ns;
    return ms;
}

/* 256 MiB as an arena has them: brought, then registered, each with its time. */
static void pinned(struct direct *d, uint64_t *at_ns, struct record *r)
{
    size_t size = (size_t)256 << 20;
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED || madvise(data, size, MADV_POPULATE_WRITE) != 0) {
        perror("memory to pin");
        exit(EXIT_FAILURE);
    }
    record_figure(r, "256 MiB brought", since_ms(at_ns), "ms");
    must(d->cu.MemHostRegister(data, size, 0));
    record_figure(r, "256 MiB registered", since_ms(at_ns), "ms");
    must(d->cu.MemHostUnregister(data));
    record_figure(r, "256 MiB let go", since_ms(at_ns), "ms");
    (void)munmap(data, size);
}

void item_opening(void)
{
    struct direct d = {.module = NULL};
    struct record r;
    struct err e = ERR_INIT;
    CUdevice devices[CUDA_DEVICES_MAX];
    unsigned count = 0;
    CUresult (*init)(unsigned) = NULL;
    uint64_t at_ns = clock_now_ns();
    record_begin(&r, "opening");
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        *(void **)&init = dlsym(library, "cuInit");
    }
    record_figure(&r, "library loaded", since_ms(&at_ns), "ms");
    if (init == NULL || init(0) != CUDA_SUCCESS) {
        record_failed(&r, "cuInit failed");
        return;
    }
    record_figure(&r, "cuInit", since_ms(&at_ns), "ms");
    if (cuda_driver_load(&d.cu, &e) != 0 || cuda_devices(&d.cu, "", devices, &count, &e) != 0) {
        record_failed(&r, e.text);
        return;
    }
    record_figure(&r, "entries, devices", since_ms(&at_ns), "ms");
    must(d.cu.DevicePrimaryCtxRetain(&d.context, devices[0]));
    must(d.cu.CtxSetCurrent(d.context));
    record_figure(&r, "context", since_ms(&at_ns), "ms");
    must(d.cu.StreamCreateWithPriority(&d.stream, CU_STREAM_NON_BLOCKING, 0));
    record_figure(&r, "a stream", since_ms(&at_ns), "ms");
    pinned(&d, &at_ns, &r);
    must(d.cu.StreamDestroy(d.stream));
    at_ns = clock_now_ns();
    must(d.cu.DevicePrimaryCtxRelease(devices[0]));
    record_figure(&r, "context let go", since_ms(&at_ns), "ms");
    record_note(&r, "in a process of its own, once; no target: what a worker's start is made of");
    (void)record_end(&r);
}
