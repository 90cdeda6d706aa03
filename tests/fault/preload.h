/*
 * The library fault-preload, loaded into gpud by LD_PRELOAD: it moves the wall clock of all its
 * processes, and lets allocations of the front fail. A file that the processes share says what.
 */
#ifndef FAULT_PRELOAD_H
#define FAULT_PRELOAD_H

#include <stdatomic.h>
#include <stdint.h>

#define PRELOAD_CONTROL "FAULT_CONTROL" /* the file's path, in the environment */

struct preload {
    _Atomic int64_t wall_ns; /* added to CLOCK_REALTIME */
    _Atomic uint64_t asked;  /* how often a wall clock was read */
    _Atomic int64_t
        fail_at; /* the allocation of gpud's own code that fails, from now on; 0: none */
};

#endif
