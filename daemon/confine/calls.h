/*
 * The system calls that the filter lets pass whatever their arguments are, and the names of some
 * that it refuses, for the log. Measured with strace on the tests of the simulated back end, of
 * PoCL and of the double of CUDA's driver; what drivers of GPUs do beside that is memory, threads
 * and ioctl.
 */
#ifndef CONFINE_CALLS_H
#define CONFINE_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* *ret_count calls that pass; static. */
const int *calls_passing(size_t *ret_count);
/* The same for a process that starts programs: these, too. */
const int *calls_of_programs(size_t *ret_count);
/* "socket"; NULL for a call that is not in the list. Safe in a signal handler. */
const char *call_name(int number);

#endif
