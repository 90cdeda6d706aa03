/*
 * A double of NVIDIA's management library: as many GPUs as it is told, with the UUIDs of the
 * driver's double (tests/fakecuda), and calls that fail or never return.
 *
 * CUDA_FAKE_NVML = item[;item]…
 *   devices=N  mig=N         GPUs (1), instances on each (0)
 *   whole=N                  the first N of them are not divided (0)
 *   temperature=N  power=MW  energy=MJ  busy=PERCENT  ecc=N  throttle=BITS  recovery=ACTION
 *   CALL=CODE                the call gives it ("DeviceGetTemperature", without what follows "_")
 *   CALL=hang                it never returns
 *   CALL=hang-later          a process's first one does, the next does not (one such item)
 *   CALL=hang1               the first one among all processes that share CUDA_FAKE_STATE does not
 *   CALL=wait                it makes the file nvml-CALL in CUDA_FAKE_STATE, and returns when that
 *                            is gone
 *   CALL=exit                the process ends there
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/monitor/nvml.h"

#define EXPORT            __attribute__((visibility("default")))
#define UNINITIALISED     1
#define INVALID           2
#define FIELD_UNSUPPORTED 3
#define MIB               (UINT64_C(1) << 20)

/* A device is a pointer into this. */
static struct nvml_device_s {
    char uuid[48];
} gpus[64], instances[64][7];

static bool started;

/* The text behind KEY=, "" if it is not there. Static. */
static const char *item(const char *key)
{
    static char value[64];
    const char *at = getenv("CUDA_FAKE_NVML");
    size_t length = strlen(key);
    while (at != NULL && *at != '\0') {
        size_t size = strcspn(at, ";");
        if (size > length && strncmp(at, key, length) == 0 && at[length] == '=') {
            (void)snprintf(value, sizeof value, "%.*s", (int)(size - length - 1), at + length + 1);
            return value;
        }
        at += size + (at[size] == ';');
    }
    return "";
}

static unsigned long long number(const char *key, unsigned long long usual)
{
    const char *text = item(key);
    return text[0] != '\0' ? strtoull(text, NULL, 0) : usual;
}

static void mark(const char *call, char *ret_path, size_t size)
{
    const char *dir = getenv("CUDA_FAKE_STATE");
    (void)snprintf(ret_path, size, "%s/nvml-%s", dir != NULL ? dir : "/nowhere", call);
}

static bool first(const char *call)
{
    char path[512];
    mark(call, path, sizeof path);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static void wait_for_leave(const char *call)
{
    char path[512];
    struct timespec pause = {.tv_nsec = 5000000};
    mark(call, path, sizeof path);
    (void)first(call);
    while (access(path, F_OK) == 0) {
        (void)nanosleep(&pause, NULL);
    }
}

static int enter(const char *call)
{
    static unsigned later;
    const char *act = item(call);
    if (strcmp(act, "wait") == 0) {
        wait_for_leave(call);
    }
    if (strcmp(act, "hang") == 0 || (strcmp(act, "hang1") == 0 && first(call)) ||
        (strcmp(act, "hang-later") == 0 && later++ > 0)) {
        for (;;) {
            (void)pause();
        }
    }
    if (strcmp(act, "exit") == 0) {
        _exit(3);
    }
    int code = act[0] >= '0' && act[0] <= '9' ? atoi(act) : NVML_SUCCESS;
    return code == NVML_SUCCESS && !started && strcmp(call, "Init") != 0 ? UNINITIALISED : code;
}

static unsigned device_count(void)
{
    return (unsigned)number("devices", 1);
}

/* Instances on it. */
static unsigned divided(unsigned gpu)
{
    return gpu < number("whole", 0) ? 0 : (unsigned)number("mig", 0);
}

static void name(struct nvml_device_s *d, const char *kind, unsigned n)
{
    (void)snprintf(d->uuid, sizeof d->uuid, "%s-fa4ec0da-0000-4000-8000-0000000000%02x", kind, n);
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    int rc = enter("Init");
    started = rc == NVML_SUCCESS;
    return rc;
}

EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
    return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = device_count();
    return enter("DeviceGetCount");
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
    if (index >= device_count()) {
        return INVALID;
    }
    name(&gpus[index], "GPU", divided(index) > 0 ? 0x80 + index : index);
    *device = &gpus[index];
    return enter("DeviceGetHandleByIndex");
}

EXPORT int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned size);
int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned size)
{
    (void)snprintf(text, size, "%s", device->uuid);
    return enter("DeviceGetUUID");
}

EXPORT int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *celsius)
{
    (void)device;
    *celsius = (unsigned)number("temperature", 41);
    return sensor == 0 ? enter("DeviceGetTemperature") : INVALID;
}

EXPORT int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = (unsigned)number("power", 312500);
    return enter("DeviceGetPowerUsage");
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 700000;
    return enter("DeviceGetEnforcedPowerLimit");
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *millijoules)
{
    (void)device;
    *millijoules = number("energy", 5000000000);
    return enter("DeviceGetTotalEnergyConsumption");
}

EXPORT int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilisation *rates);
int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilisation *rates)
{
    (void)device;
    *rates = (struct nvml_utilisation){(unsigned)number("busy", 37), 5};
    return enter("DeviceGetUtilizationRates");
}

EXPORT int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    (void)device;
    *memory = (struct nvml_memory){8192 * MIB, 7168 * MIB, 1024 * MIB};
    return enter("DeviceGetMemoryInfo");
}

EXPORT int nvmlDeviceGetTotalEccErrors(nvml_device device, int type, int since,
                                       unsigned long long *count);
int nvmlDeviceGetTotalEccErrors(nvml_device device, int type, int since, unsigned long long *count)
{
    (void)device;
    *count = type == 1 ? number("ecc", 0) : 2;
    return since == 0 ? enter("DeviceGetTotalEccErrors") : INVALID;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *bits)
{
    (void)device;
    *bits = number("throttle", 0x1);
    return enter("DeviceGetCurrentClocksThrottleReasons");
}

/* As the file `recovery` in the folder of CUDA_FAKE_STATE says, so that it can change. */
static unsigned recovery(void)
{
    char path[512];
    unsigned action = (unsigned)number("recovery", 0);
    const char *dir = getenv("CUDA_FAKE_STATE");
    (void)snprintf(path, sizeof path, "%s/recovery", dir != NULL ? dir : "/nowhere");
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        int c = fgetc(file);
        action = c >= '0' && c <= '9' ? (unsigned)(c - '0') : action;
        (void)fclose(file);
    }
    return action;
}

EXPORT int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *fields);
int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *fields)
{
    (void)device;
    for (int i = 0; i < count; i++) {
        bool known = fields[i].id == NVML_FIELD_RECOVERY;
        fields[i].result = known ? NVML_SUCCESS : FIELD_UNSUPPORTED;
        fields[i].value.word = known ? recovery() : 0;
    }
    return enter("DeviceGetFieldValues");
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                                   struct nvml_process *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            struct nvml_process *processes)
{
    (void)device;
    if (*count < 2) {
        *count = 2;
        return NVML_INSUFFICIENT_SIZE;
    }
    processes[0] = (struct nvml_process){1234, 512 * MIB, ~0U, ~0U};
    processes[1] = (struct nvml_process){5678, ~0ULL, ~0U, ~0U};
    *count = 2;
    return enter("DeviceGetComputeRunningProcesses");
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count);
int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count)
{
    *count = divided((unsigned)(device - gpus));
    return enter("DeviceGetMaxMigDeviceCount");
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index,
                                               nvml_device *instance);
int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *instance)
{
    unsigned gpu = (unsigned)(device - gpus);
    unsigned count = divided(gpu);
    unsigned whole = (unsigned)number("whole", 0);
    if (index >= count || index >= 7) {
        return NVML_NOT_FOUND;
    }
    name(&instances[gpu][index], "MIG", whole + (gpu - whole) * count + index);
    *instance = &instances[gpu][index];
    return enter("DeviceGetMigDeviceHandleByIndex");
}
