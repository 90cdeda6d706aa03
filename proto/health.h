/*
 * The health of GPUs in a page of shared memory. gpud-monitor alone writes it; the front reads it
 * at any time without asking, because a monitor may hang in the driver. The layout is fixed: both
 * are of one build. The reader takes a copy and checks its counts and texts.
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

/* X(name): units: °C, mW, mW, parts of a million, bytes, counts since the driver was loaded, bits
 * as the driver has them, enum health_recovery. */
#define HEALTH_VALUES(X)                                                                           \
    X(temperature)                                                                                 \
    X(power)                                                                                       \
    X(power_limit)                                                                                 \
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
    HEALTH_UNSUPPORTED, /* by this device, or the library has no such call */
    HEALTH_DENIED,
    HEALTH_FAILED, /* `code` says why, as the library does */
};

/* The recovery that the driver asks for; the values are NVML's. */
enum health_recovery {
    HEALTH_RECOVERY_NONE = 0,
    HEALTH_RECOVERY_RESET = 1,
    HEALTH_RECOVERY_REBOOT = 2,
    HEALTH_RECOVERY_DRAIN_P2P = 3,
    HEALTH_RECOVERY_DRAIN_AND_RESET = 4,
};

struct health_value {
    uint32_t state; /* enum health_state */
    int32_t code;
    uint64_t value; /* where KNOWN */
};

struct health_process {
    uint64_t pid;
    uint64_t bytes; /* of device memory, or HEALTH_UNKNOWN */
};

struct health_device {
    char uuid[HEALTH_UUID]; /* with its prefix, as the library writes it */
    uint32_t divided;       /* 1: a GPU in MIG mode, which is no device but by its instances */
    struct health_value value[HEALTH_KINDS];
    /* the first processes; `processes` is their number */
    struct health_process process[HEALTH_PROCESSES];
};

struct health_report {
    uint64_t taken_ns; /* host clock; 0: not yet */
    char error[240];   /* why there are no devices, "" if there are */
    uint32_t device_count;
    struct health_device device[HEALTH_DEVICES];
};

struct health_page {
    _Atomic uint32_t sequence;  /* odd while the report is written */
    _Atomic uint64_t asking_ns; /* since when the library starts, or one GPU is asked; 0: neither */
    struct health_report report;
};

void health_write(struct health_page *page, const struct health_report *report);
/* A copy with sane counts and texts. false: it is being written, or its writer ended in it. */
bool health_read(struct health_page *page, struct health_report *ret_report);
/* The device of this UUID, compared without "GPU-" or "MIG-"; NULL if it is not there. */
const struct health_device *health_find(const struct health_report *report, const char *uuid);
/* "temperature"; static */
const char *health_name(enum health_kind kind);

#endif
