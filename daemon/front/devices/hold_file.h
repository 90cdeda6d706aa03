/*
 * The hold file in the runtime folder lists the devices that get no new jobs: because their driver
 * wants a recovery, or because an operator drains them. The next front gives the first ones no jobs
 * either until its own monitor has asked the driver, and does not open those that are drained. If
 * the folder cannot be written, both end with the front. Blocks on a small file. Thread: the
 * loop's.
 *
 * A line is one of
 *
 *     PIN RECOVERY
 *     drained BACKEND NUMBER SIBLINGS WISH SINCE BY UUID-PIN
 *     known BACKEND NUMBER UUID-PIN
 *
 * A device is found by its UUID, if it has one, and else by back end and number: a device that is
 * not opened does not tell its UUID. WISH is 1 or 2 (enum drain_state), SINCE a calendar time in s,
 * SIBLINGS the number of devices of the back end, for a front that opens no other of them. While
 * devices are drained, a line known is for each device that has a UUID: the next front cannot ask
 * the management library for them. Fronts of earlier versions skip such lines.
 */
#ifndef FRONT_DEVICES_HOLD_FILE_H
#define FRONT_DEVICES_HOLD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/limits.h"

#define HOLDS_MAX 64u

struct hold {
    char pin[65];      /* as in struct device */
    uint32_t recovery; /* enum health_recovery */
};

/* A device that an operator drains. */
struct hold_drain {
    char backend[16]; /* as in struct device, as the next three */
    unsigned number;
    unsigned siblings;
    char pin[65];     /* that has a UUID; "": it has none, or that is not known */
    unsigned wish;    /* DRAIN_HOLDS or DRAIN_FINISHES */
    uint64_t since_s; /* of the calendar */
    char by[PROTO_NAME_MAX + 1];
};

/* A device that the next front knows without the management library. */
struct hold_known {
    char backend[16]; /* as in struct device, as the next two */
    unsigned number;
    char pin[65];
};

struct hold_file {
    struct hold item[HOLDS_MAX];
    unsigned count;
    struct hold_drain drained[HOLDS_MAX];
    unsigned drained_count;
    struct hold_known known[HOLDS_MAX];
    unsigned known_count;
    bool read; /* the file has been read */
};

/* Reads nothing yet. ERR_NOMEM. */
int hold_file_create(struct hold_file **ret_file, struct err *e);
void hold_file_destroy(struct hold_file *h); /* NULL is accepted; the file stays */

/* The recovery that the device waits for; HEALTH_RECOVERY_NONE: it is not on hold. The first call
 * reads the file. */
uint32_t hold_file_find(struct hold_file *h, const char *runtime_dir, const char *pin);
/* Sets or lifts (HEALTH_RECOVERY_NONE) a hold, also in the file. */
void hold_file_set(struct hold_file *h, const char *runtime_dir, const char *pin,
                   uint32_t recovery);

/* The entry of a drained device; NULL: there is none. pin: "" or one that has a UUID. */
const struct hold_drain *hold_file_drained(struct hold_file *h, const char *runtime_dir,
                                           const char *backend, unsigned number, const char *pin);
/* The device at this place of the list of known ones. NULL: behind its end, or no device is
 * drained. */
const struct hold_known *hold_file_known(struct hold_file *h, const char *runtime_dir, unsigned at);
/* Replaces that list; the next two functions write it. Devices beyond HOLDS_MAX are left out. */
void hold_file_know(struct hold_file *h, const char *runtime_dir, const struct hold_known *known,
                    unsigned count);
/* Adds the device's entry, or replaces it. Beyond HOLDS_MAX: there is none. */
void hold_file_drain(struct hold_file *h, const char *runtime_dir, const struct hold_drain *entry);
/* Removes the entry. No such entry: nothing happens. */
void hold_file_resume(struct hold_file *h, const char *runtime_dir, const char *backend,
                      unsigned number, const char *pin);

#endif
