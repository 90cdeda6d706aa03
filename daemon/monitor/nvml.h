/*
 * NVIDIA's management library as a table of functions, opened at run time. Its prototypes are here
 * because no toolkit that gpud is built with has its header. A call never returns if the driver
 * hangs, so only gpud-monitor calls it.
 */
#ifndef MONITOR_NVML_H
#define MONITOR_NVML_H

#include "common/err.h"

typedef struct nvml_device_s *nvml_device;

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_NOT_FOUND = 6,
};

struct nvml_utilisation {
    unsigned gpu, memory; /* percent */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

struct nvml_process {
    unsigned pid;
    unsigned long long bytes; /* all ones: unknown */
    unsigned gpu_instance, compute_instance;
};

union nvml_number {
    double real;
    unsigned word;
    unsigned long long wide;
};

struct nvml_field {
    unsigned id, scope;
    long long timestamp, latency;
    int type; /* type of `value`: 1 is an unsigned int */
    int result;
    union nvml_number value;
};

#define NVML_FIELD_RECOVERY 230u /* the action that the driver asks for */

/* X(name, required, parameters); all functions return an enum nvml_result. A function that is
 * not required is NULL if the library lacks it, and its figure is then not supported. */
#define NVML_ENTRIES(X)                                                                            \
    X(Init_v2, true, (void))                                                                       \
    X(DeviceGetCount_v2, true, (unsigned *count))                                                  \
    X(DeviceGetHandleByIndex_v2, true, (unsigned index, nvml_device *device))                      \
    X(DeviceGetUUID, true, (nvml_device device, char *text, unsigned size))                        \
    X(DeviceGetTemperature, false, (nvml_device device, int sensor, unsigned *celsius))            \
    X(DeviceGetPowerUsage, false, (nvml_device device, unsigned *milliwatts))                      \
    X(DeviceGetEnforcedPowerLimit, false, (nvml_device device, unsigned *milliwatts))              \
    X(DeviceGetTotalEnergyConsumption, false,                                                      \
      (nvml_device device, unsigned long long *millijoules))                                       \
    X(DeviceGetUtilizationRates, false, (nvml_device device, struct nvml_utilisation * rates))     \
    X(DeviceGetMemoryInfo, false, (nvml_device device, struct nvml_memory * memory))               \
    X(DeviceGetTotalEccErrors, false,                                                              \
      (nvml_device device, int type, int since, unsigned long long *count))                        \
    X(DeviceGetCurrentClocksEventReasons, false, (nvml_device device, unsigned long long *bits))   \
    X(DeviceGetCurrentClocksThrottleReasons, false,                                                \
      (nvml_device device, unsigned long long *bits))                                              \
    X(DeviceGetFieldValues, false, (nvml_device device, int count, struct nvml_field *fields))     \
    X(DeviceGetComputeRunningProcesses_v3, false,                                                  \
      (nvml_device device, unsigned *count, struct nvml_process *processes))                       \
    X(DeviceGetMaxMigDeviceCount, false, (nvml_device device, unsigned *count))                    \
    X(DeviceGetMigDeviceHandleByIndex, false,                                                      \
      (nvml_device device, unsigned index, nvml_device *instance))

struct nvml {
#define X(name, required, parameters) int(*name) parameters;
    NVML_ENTRIES(X)
#undef X
    const char *(*ErrorString)(int result);
};

/* Opens libnvidia-ml.so.1 and starts it. ERR_UNSUPPORTED: it is not installed or too old;
 * ERR_NO_DEVICE: it finds no driver. Blocks. */
int nvml_load(struct nvml *ret_nvml, struct err *e);

#endif
