/*
 * What a tenant has used, in counters that never fall. An account is plain data without pointers,
 * because it lies in a file that outlives the front (tenants/accounts.h). Each counter changes in
 * one function. Thread: the loop's.
 */
#ifndef FRONT_MODEL_ACCOUNT_H
#define FRONT_MODEL_ACCOUNT_H

#include <stdint.h>

#include "proto/limits.h"

/* How a job of the tenant ended. DEADLINE: it failed because its deadline passed. REFUSED: its
 * submission was answered with an error, so there was no job. */
#define ACCOUNT_RESULTS_LIST(X)                                                                    \
    X(DONE, done)                                                                                  \
    X(FAILED, failed)                                                                              \
    X(CANCELLED, cancelled)                                                                        \
    X(LOST, lost)                                                                                  \
    X(DEADLINE, deadline)                                                                          \
    X(REFUSED, refused)

enum account_result {
#define X(NAME, name) ACCOUNT_##NAME,
    ACCOUNT_RESULTS_LIST(X)
#undef X
        ACCOUNT_RESULTS
};

struct account {
    char name[PROTO_NAME_MAX + 8]; /* of the tenant; "": none; no gap follows */
    uint64_t since_ns;             /* wall clock: when counting began */
    uint64_t device_ns;            /* its parts of devices' time (sched/shares.h) */
    uint64_t to_device;            /* bytes that its jobs copied there, and back */
    uint64_t from_device;
    uint64_t held_bytes; /* of its buffers now, as they were asked for */
    uint64_t held_ns;    /* until when `byte_ns` counts them; monotonic clock */
    uint64_t byte_ns[2]; /* bytes x ns, 128 bits: the lower half first */
    uint64_t peak_bytes;
    uint64_t jobs[ACCOUNT_RESULTS];
    uint64_t energy_uj; /* its shares of devices' energy (devices/energy.h) */
};

void account_time(struct account *a, uint64_t ns);
void account_moved(struct account *a, uint64_t to_device, uint64_t from_device);
void account_job(struct account *a, enum account_result result);
void account_energy(struct account *a, uint64_t uj);
/* Its buffers have so many bytes from now on. What they had until now is counted. */
void account_held(struct account *a, uint64_t bytes, uint64_t now_ns);
/* Adds the counters of another account, whose buffers are gone. The greater peak remains. */
void account_add(struct account *a, const struct account *other);

/* MiB x seconds of its buffers until now. */
uint64_t account_mib_s(const struct account *a, uint64_t now_ns);

#endif
