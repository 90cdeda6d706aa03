/*
 * Limits the files of drivers below the home of workers, which is a folder of its own in the
 * installed unit: PoCL never removes a compiled kernel. Blocks on files.
 */
#ifndef LAUNCHER_DRIVER_CACHE_H
#define LAUNCHER_DRIVER_CACHE_H

#include <stdint.h>

#define DRIVER_CACHE_BYTES (UINT64_C(1024) * 1024 * 1024)

/* Removes PoCL's programs, least recently used first, until at most bytes_max are left. To be
 * called while no worker and no compiler runs, because they read these files. Returns the bytes
 * removed. */
uint64_t driver_cache_trim(const char *cache_dir, uint64_t bytes_max);
/* Removes a folder with all that is in it, as far as this user may. Follows no links. */
void driver_cache_remove(const char *folder);

#endif
