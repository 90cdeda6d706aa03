/*
 * What drivers keep below the home of workers, a folder of its own in the installed unit.
 * PoCL keeps every kernel that it ever made, and never removes one. Blocks on files.
 */
#ifndef LAUNCHER_DRIVER_CACHE_H
#define LAUNCHER_DRIVER_CACHE_H

#include <stdint.h>

#define DRIVER_CACHE_BYTES (UINT64_C(1024) * 1024 * 1024)

/* Removes PoCL's programs that were not used for the longest time until the rest takes at most
 * bytes_max. Only while no worker and no compiler runs: they go back to these files. How many bytes
 * went. */
uint64_t driver_cache_trim(const char *cache_dir, uint64_t bytes_max);

#endif
