/*
 * Files of drivers below the home of workers, a folder of its own in the installed unit. PoCL keeps
 * every compiled kernel for ever. Blocks on files.
 */
#ifndef LAUNCHER_DRIVER_CACHE_H
#define LAUNCHER_DRIVER_CACHE_H

#include <stdint.h>

#define DRIVER_CACHE_BYTES (UINT64_C(1024) * 1024 * 1024)

/* Removes PoCL's programs, least recently used first, until the rest has at most bytes_max. Called
 * while no worker and no compiler runs, since they read these files again. Returns the bytes
 * removed. */
uint64_t driver_cache_trim(const char *cache_dir, uint64_t bytes_max);

#endif
