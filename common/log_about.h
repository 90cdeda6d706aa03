/* What a line of the log is about (log.h). */
#ifndef COMMON_LOG_ABOUT_H
#define COMMON_LOG_ABOUT_H

#include <stdint.h>

/* 0 and NULL: nothing of the sort. The journal has it as GPUD_JOB, GPUD_TENANT, GPUD_DEVICE and
 * GPUD_TRACE. */
struct log_about {
    uint64_t job;
    uint64_t trace;     /* the client's trace id */
    const char *tenant; /* need not be text */
    unsigned device;    /* LOG_ON(index) */
};

#define LOG_ON(index) ((index) + 1u)

#endif
