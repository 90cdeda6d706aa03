#include "daemon/monitor/sample.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

#define PPM_OF_PERCENT  10000u
#define SINCE_LOADED    0 /* NVML's volatile counters */
#define ECC_CORRECTED   0
#define ECC_UNCORRECTED 1
#define PROCESSES_ASKED 256u

static struct health_value value_of(int result, uint64_t value)
{
    static const struct {
        int result;
        enum health_state state;
    } states[] = {{NVML_SUCCESS, HEALTH_KNOWN},
                  {NVML_NOT_SUPPORTED, HEALTH_UNSUPPORTED},
                  {NVML_NO_PERMISSION, HEALTH_DENIED}};
    struct health_value v = {.state = HEALTH_FAILED, .code = result};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (states[i].result == result) {
            v.state = (uint32_t)states[i].state;
        }
    }
    v.value = v.state == HEALTH_KNOWN ? value : 0;
    return v;
}

/* Calls a function that the library may lack. */
#define ASK(n, name, ...) ((n)->name != NULL ? (n)->name(__VA_ARGS__) : (int)NVML_NOT_SUPPORTED)

static void sample_gpu(const struct nvml *n, nvml_device gpu, struct health_value v[HEALTH_KINDS])
{
    unsigned word = 0;
    unsigned long long wide = 0;
    struct nvml_utilisation rates = {0};
    int rc = ASK(n, DeviceGetTemperature, gpu, 0, &word);
    v[HEALTH_temperature] = value_of(rc, word);
    rc = ASK(n, DeviceGetPowerUsage, gpu, &word);
    v[HEALTH_power] = value_of(rc, word);
    rc = ASK(n, DeviceGetEnforcedPowerLimit, gpu, &word);
    v[HEALTH_power_limit] = value_of(rc, word);
    rc = ASK(n, DeviceGetTotalEnergyConsumption, gpu, &wide);
    v[HEALTH_energy] = value_of(rc, wide);
    rc = ASK(n, DeviceGetUtilizationRates, gpu, &rates);
    v[HEALTH_busy] = value_of(rc, (uint64_t)rates.gpu * PPM_OF_PERCENT);
    rc = ASK(n, DeviceGetTotalEccErrors, gpu, ECC_CORRECTED, SINCE_LOADED, &wide);
    v[HEALTH_ecc_corrected] = value_of(rc, wide);
    rc = ASK(n, DeviceGetTotalEccErrors, gpu, ECC_UNCORRECTED, SINCE_LOADED, &wide);
    v[HEALTH_ecc_uncorrected] = value_of(rc, wide);
    rc = n->DeviceGetCurrentClocksEventReasons != NULL
             ? n->DeviceGetCurrentClocksEventReasons(gpu, &wide)
             : ASK(n, DeviceGetCurrentClocksThrottleReasons, gpu, &wide);
    v[HEALTH_throttling] = value_of(rc, wide);
    struct nvml_field field = {.id = NVML_FIELD_RECOVERY};
    rc = ASK(n, DeviceGetFieldValues, gpu, 1, &field);
    rc = rc == NVML_SUCCESS ? field.result : rc;
    v[HEALTH_recovery] = value_of(rc, field.value.word);
}

static void sample_memory(const struct nvml *n, nvml_device device, struct health_device *d)
{
    static struct nvml_process process[PROCESSES_ASKED];
    struct nvml_memory memory = {0};
    unsigned count = PROCESSES_ASKED;
    int rc = ASK(n, DeviceGetMemoryInfo, device, &memory);
    d->value[HEALTH_memory_used] = value_of(rc, memory.used);
    rc = ASK(n, DeviceGetComputeRunningProcesses_v3, device, &count, process);
    if (rc == NVML_INSUFFICIENT_SIZE) { /* returns the number of processes without the processes */
        d->value[HEALTH_processes] = value_of(NVML_SUCCESS, count);
        return;
    }
    d->value[HEALTH_processes] = value_of(rc, count);
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count && i < HEALTH_PROCESSES; i++) {
        d->process[i] = (struct health_process){process[i].pid, process[i].bytes};
    }
}

static void unreachable(int result, struct health_device *d)
{
    for (unsigned k = 0; k < HEALTH_KINDS; k++) {
        d->value[k] = value_of(result, 0);
    }
}

struct round {
    const struct nvml *n;
    struct health_report *report;
    const struct health_report *last; /* the report of the round before */
};

/* The next free entry of the report; NULL: the report is full. */
static struct health_device *next_device(struct round *r)
{
    struct health_report *to = r->report;
    if (to->device_count == HEALTH_DEVICES) {
        return NULL;
    }
    struct health_device *d = &to->device[to->device_count++];
    *d = (struct health_device){0};
    return d;
}

/* Adds a device or a MIG instance. NULL: the report is full. */
static struct health_device *add_device(struct round *r, nvml_device device,
                                        const struct health_value *shared)
{
    struct health_device *d = next_device(r);
    if (d == NULL) {
        return NULL;
    }
    int rc = r->n->DeviceGetUUID(device, d->uuid, sizeof d->uuid);
    if (rc != NVML_SUCCESS) {
        unreachable(rc, d);
        return d;
    }
    memcpy(d->value, shared, sizeof d->value);
    sample_memory(r->n, device, d);
    return d;
}

static void add_gpu(struct round *r, unsigned index)
{
    struct health_value shared[HEALTH_KINDS] = {{0}};
    nvml_device gpu = NULL;
    unsigned instances = 0;
    int rc = r->n->DeviceGetHandleByIndex_v2(index, &gpu);
    if (rc != NVML_SUCCESS) {
        /* entries keep their index while the number of devices is the same */
        uint32_t place = r->report->device_count;
        struct health_device *d = next_device(r);
        if (d != NULL) {
            memcpy(d->uuid, r->last->device[place].uuid, sizeof d->uuid);
            d->divided = r->last->device[place].divided;
            unreachable(rc, d);
        }
        return;
    }
    sample_gpu(r->n, gpu, shared);
    struct health_device *whole = add_device(r, gpu, shared);
    if (ASK(r->n, DeviceGetMaxMigDeviceCount, gpu, &instances) != NVML_SUCCESS || instances == 0) {
        return;
    }
    if (whole != NULL) {
        whole->divided = 1;
    }
    for (unsigned i = 0; i < instances; i++) {
        nvml_device instance = NULL;
        if (ASK(r->n, DeviceGetMigDeviceHandleByIndex, gpu, i, &instance) == NVML_SUCCESS) {
            (void)add_device(r, instance, shared);
        }
    }
}

void sample_take(const struct nvml *n, _Atomic uint64_t *asking_ns, struct health_report *report)
{
    static struct health_report last;
    unsigned count = 0;
    last = *report;
    *report = (struct health_report){0};
    struct round r = {.n = n, .report = report, .last = &last};
    int rc = n->DeviceGetCount_v2(&count);
    if (rc != NVML_SUCCESS) {
        (void)snprintf(report->error, sizeof report->error, "nvmlDeviceGetCount: %s (%d)",
                       n->ErrorString != NULL ? n->ErrorString(rc) : "failed", rc);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        atomic_store(asking_ns, clock_now_ns());
        add_gpu(&r, i);
    }
}
