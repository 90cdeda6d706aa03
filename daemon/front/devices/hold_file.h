/*
 * The hold file in the runtime folder lists the devices that get no new jobs because their driver
 * wants a recovery. The next front gives them no jobs either until its own monitor has asked the
 * driver. If the folder cannot be written, holds end with the front. Blocks on a small file.
 * Thread: the loop's.
 */
#ifndef FRONT_DEVICES_HOLD_FILE_H
#define FRONT_DEVICES_HOLD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define HOLDS_MAX 64u

struct hold {
    char pin[65];      /* as in struct device */
    uint32_t recovery; /* enum health_recovery */
};

struct hold_file {
    struct hold item[HOLDS_MAX];
    unsigned count;
    bool read; /* the file has been read */
};

/* The recovery that the device waits for; HEALTH_RECOVERY_NONE: it is not on hold. The first call
 * reads the file. */
uint32_t hold_file_find(struct hold_file *h, const char *runtime_dir, const char *pin);
/* Sets or lifts (HEALTH_RECOVERY_NONE) a hold, also in the file. */
void hold_file_set(struct hold_file *h, const char *runtime_dir, const char *pin,
                   uint32_t recovery);

#endif
