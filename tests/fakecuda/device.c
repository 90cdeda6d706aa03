#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

#define MIG_PER_GPU 7

/* ---- which devices there are ----------------------------------------------------------------- */

/* Made from the device's number on the host: 16 bytes as the driver prints them. */
static void uuid_make(int number, uint8_t uuid[16])
{
    static const uint8_t base[16] = {0xfa, 0x4e, 0xc0, 0xda, 0x00, 0x00, 0x40, 0x00,
                                     0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    memcpy(uuid, base, sizeof base);
    uuid[15] = (uint8_t)number;
}

static bool is_instance(int number)
{
    return fake.script.mig && number >= fake.script.whole;
}

static void uuid_text(int number, char *out, size_t size)
{
    uint8_t u[16];
    uuid_make(number, u);
    snprintf(out, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             is_instance(number) ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7],
             u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

static void lost_path(int number, char *out, size_t size)
{
    snprintf(out, size, "%s/lost-%d", setting("_STATE"), number);
}

static bool lost_before(int number)
{
    char path[4 * NAME_SIZE];
    if (!setting("_STATE")) {
        return false;
    }
    lost_path(number, path, sizeof path);
    return access(path, F_OK) == 0;
}

void device_lose(struct device *d)
{
    char path[4 * NAME_SIZE];
    d->lost = CUDA_ERROR_UNKNOWN;
    if (d->primary) {
        context_poison(d->primary, CUDA_ERROR_UNKNOWN);
    }
    pthread_cond_broadcast(&fake.changed);
    if (setting("_STATE")) {
        lost_path(d->number, path, sizeof path);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
        }
    }
}

static void device_add(int number)
{
    bool there =
        number >= 0 && number < fake.script.devices && !lost_before(number) &&
        (fake.device_count == 0 || (!is_instance(number) && !is_instance(fake.device[0].number)));
    for (int i = 0; i < fake.device_count; i++) {
        there = there && fake.device[i].number != number;
    }
    if (there) {
        fake.device[fake.device_count] =
            (struct device){.index = fake.device_count, .number = number};
        fake.device_count++;
    }
}

static bool in_bus_order(void)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    return order && strcmp(order, "PCI_BUS_ID") == 0;
}

/* The host's number of the device that comes at this place. */
static int number_at(int place)
{
    return in_bus_order() ? place : fake.script.devices - 1 - place;
}

/* One word of CUDA_VISIBLE_DEVICES; -1: there is no such device. */
static int visible_find(const char *word, size_t size)
{
    char text[64], *end = NULL;
    long index = strtol(word, &end, 10);
    if (size > 0 && end == word + size) {
        return index >= 0 && index < fake.script.devices ? number_at((int)index) : -1;
    }
    for (int n = 0; n < fake.script.devices; n++) {
        uuid_text(n, text, sizeof text);
        if (size > (is_instance(n) ? strlen(text) - 1 : 4) && strncmp(text, word, size) == 0) {
            return n;
        }
    }
    return -1;
}

static void devices_find(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible) {
        for (int i = 0; i < fake.script.devices; i++) {
            device_add(number_at(i));
        }
        return;
    }
    while (*visible) {
        size_t size = strcspn(visible, ",");
        int number = visible_find(visible, size);
        if (number < 0) {
            return; /* what follows a wrong word is not seen either */
        }
        device_add(number);
        visible += size + (visible[size] == ',');
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

static CUresult init(unsigned flags)
{
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake.script.init != 0) {
        return (CUresult)fake.script.init;
    }
    if (!fake.initialized) {
        devices_find();
    }
    if (fake.device_count == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    fake.initialized = true;
    fake.pid = fake.pid ? fake.pid : getpid();
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int Flags)
{
    CUresult r = call_enter("cuInit", NEED_NOTHING);
    return call_leave(r ? r : init(Flags));
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult r = call_enter("cuDriverGetVersion", NEED_NOTHING);
    if (r == CUDA_SUCCESS) {
        *version = fake.script.driver;
    }
    return call_leave(r);
}

/* ---- what they are --------------------------------------------------------------------------- */

CUresult cuDeviceGetCount(int *count)
{
    CUresult r = call_enter("cuDeviceGetCount", NEED_INIT);
    if (r == CUDA_SUCCESS) {
        *count = fake.device_count;
    }
    return call_leave(r);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = call_enter_device("cuDeviceGet", NEED_INIT, ordinal);
    if (r == CUDA_SUCCESS) {
        *device = ordinal;
    }
    return call_leave(r);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceGetName", NEED_INIT, dev);
    if (r == CUDA_SUCCESS && len > 0) {
        snprintf(name, (size_t)len, "%s%s", fake.script.name,
                 is_instance(device_at(dev)->number) ? " MIG 1g.18gb" : "");
    }
    return call_leave(r);
}

static CUresult uuid(CUuuid *ret, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceGetUuid", NEED_INIT, dev);
    if (r == CUDA_SUCCESS) {
        uuid_make(device_at(dev)->number, (uint8_t *)ret->bytes);
    }
    return call_leave(r);
}

CUresult cuDeviceGetUuid_v2(CUuuid *ret, CUdevice dev)
{
    return uuid(ret, dev);
}

#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice dev);
__attribute__((visibility("default"))) CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice dev)
{
    return uuid(ret, dev);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceTotalMem", NEED_INIT, dev);
    if (r == CUDA_SUCCESS) {
        *bytes = fake.script.memory;
    }
    return call_leave(r);
}

/* The MIG instances of one GPU share its place. */
static int bus_of(int number)
{
    int whole = fake.script.whole;
    return 0x10 + 8 * (is_instance(number) ? whole + (number - whole) / MIG_PER_GPU : number);
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceGetPCIBusId", NEED_INIT, dev);
    if (r == CUDA_SUCCESS && len > 0) {
        snprintf(id, (size_t)len, "0000:%02X:00.0", bus_of(device_at(dev)->number));
    }
    return call_leave(r);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
    CUresult r = call_enter("cuDeviceGetByPCIBusId", NEED_INIT);
    char own[32];
    for (int i = 0; r == CUDA_SUCCESS && i < fake.device_count; i++) {
        snprintf(own, sizeof own, "0000:%02X:00.0", bus_of(fake.device[i].number));
        if (strcmp(own, id) == 0) {
            *dev = i;
            return call_leave(CUDA_SUCCESS);
        }
    }
    return call_leave(r ? r : CUDA_ERROR_INVALID_DEVICE);
}

struct fact {
    CUdevice_attribute which;
    int value;
};

/* The answers of an H200; attributes that are not listed are 0. */
static const struct fact facts[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
};

static int fact_of(const struct device *d, CUdevice_attribute which)
{
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return fake.script.arch / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return fake.script.arch % 10;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return bus_of(d->number);
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        return fake.script.ats;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        return fake.script.host_pointers;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (facts[i].which == which) {
            return facts[i].value;
        }
    }
    return 0;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceGetAttribute", NEED_INIT, dev);
    if (r == CUDA_SUCCESS && (attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        *pi = fact_of(device_at(dev), attrib);
    }
    return call_leave(r);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
    CUresult r = call_enter_device("cuDeviceCanAccessPeer", NEED_INIT, dev);
    if (r == CUDA_SUCCESS && !device_at(peer)) {
        r = CUDA_ERROR_INVALID_DEVICE;
    }
    if (r == CUDA_SUCCESS) {
        *can = fake.script.peer && dev != peer;
    }
    return call_leave(r);
}
