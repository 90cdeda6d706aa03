/*
 * The health of GPUs in a page of shared memory. Only gpud-monitor writes it. The front reads it at
 * any time, without a request, because the monitor may hang in the driver. Both are of one build,
 * so the layout has no version. The reader takes a copy and checks its counts and texts.
 */
#ifndef PROTO_HEALTH_H
#define PROTO_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HEALTH_DEVICES   64u
#define HEALTH_PROCESSES 16u
#define HEALTH_UUID      96u
#define HEALTH_UNKNOWN   UINT64_MAX /* bytes of a process */

/* X(name). Units, in this order: °C, mW, mW, mJ since the driver was loaded, parts of a million,
 * bytes, two counts since the driver was loaded, the driver's bits, enum health_recovery, a count.
 */
#define HEALTH_VALUES(X)                                                                           \
    X(temperature)                                                                                 \
    X(power)                                                                                       \
    X(power_limit)                                                                                 \
    X(energy)                                                                                      \
    X(busy)                                                                                        \
    X(memory_used)                                                                                 \
    X(ecc_corrected)                                                                               \
    X(ecc_uncorrected)                                                                             \
    X(throttling)                                                                                  \
    X(recovery)                                                                                    \
    X(processes)

enum health_kind {
#define X(name) HEALTH_##name,
    HEALTH_VALUES(X)
#undef X
        HEALTH_KINDS
};

enum health_state {
    HEALTH_UNASKED = 0,
    HEALTH_KNOWN,
    HEALTH_UNSUPPORTED, /* by this device, or by the library */
    HEALTH_DENIED,
    HEALTH_FAILED, /* see `code` */
};

/* The recovery that the driver requests; the values are NVML's. */
enum health_recovery {
    HEALTH_RECOVERY_NONE = 0,
    HEALTH_RECOVERY_RESET = 1,
    HEALTH_RECOVERY_REBOOT = 2,
    HEALTH_RECOVERY_DRAIN_P2P = 3,
    HEALTH_RECOVERY_DRAIN_AND_RESET = 4,
};

/* A reason why clocks are lower than they could be. Idleness is none. */
struct health_throttle {
    uint64_t bit; /* of value[HEALTH_throttling]; NVML's */
    const char *name;
};
#define HEALTH_THROTTLES 7u
extern const struct health_throttle health_throttles[HEALTH_THROTTLES];

struct health_value {
    uint32_t state; /* enum health_state */
    int32_t code;   /* FAILED: the library's error */
    uint64_t value; /* KNOWN */
};

struct health_process {
    uint64_t pid;
    uint64_t bytes; /* of device memory, or HEALTH_UNKNOWN */
};

struct health_device {
    char uuid[HEALTH_UUID]; /* with its prefix, as the library writes it */
    uint32_t divided;       /* 1: a GPU in MIG mode: its instances are the devices */
    struct health_value value[HEALTH_KINDS];
    /* the first processes; value[HEALTH_processes] has the number of all */
    struct health_process process[HEALTH_PROCESSES];
};

struct health_report {
    uint64_t taken_ns; /* host clock; 0: not yet */
    char error[240];   /* the reason if there are no devices; "": there are */
    uint32_t device_count;
    struct health_device device[HEALTH_DEVICES];
};

struct health_page {
    _Atomic uint32_t sequence;  /* odd while the report is written */
    _Atomic uint64_t asking_ns; /* when the current call of the library began (start, or queries of
                                   one GPU); 0: none */
    struct health_report report;
};

void health_write(struct health_page *page, const struct health_report *report);
/* Copies the report and mends its counts and texts. false: the report is being written, or the
 * writer ended while writing. */
bool health_read(struct health_page *page, struct health_report *ret_report);
/* The device of this UUID, compared without "GPU-" or "MIG-"; NULL if it is not in the report. */
const struct health_device *health_find(const struct health_report *report, const char *uuid);
/* "temperature"; static */
const char *health_name(enum health_kind kind);

#endif
