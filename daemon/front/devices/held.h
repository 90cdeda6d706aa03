/*
 * Devices that get no new jobs because their driver wants them recovered, in a file of the runtime
 * folder: the next front holds them back from the first moment on, and not only once its own
 * monitor has asked. Without a folder that can be written it is done without. Blocks on a small
 * file. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_HELD_H
#define FRONT_DEVICES_HELD_H

#include <stdbool.h>
#include <stdint.h>

#define HELD_MAX 64u

struct held_device {
    char pin[65];      /* as in struct device */
    uint32_t recovery; /* enum health_recovery */
};

struct held {
    struct held_device item[HELD_MAX];
    unsigned count;
    bool read; /* the file was read */
};

/* What the device was held for, HEALTH_RECOVERY_NONE: nothing. The file is read at the first call.
 */
uint32_t held_of(struct held *h, const char *runtime_dir, const char *pin);
/* From now on, and after this process. */
void held_set(struct held *h, const char *runtime_dir, const char *pin, uint32_t recovery);

#endif
