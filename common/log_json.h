/* A line of the log as JSON (log.h). Pure, and safe in signal handlers. */
#ifndef COMMON_LOG_JSON_H
#define COMMON_LOG_JSON_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/log_about.h"

#define LOG_JSON_BYTES   4096u /* what a pipe takes as one */
#define LOG_TRACE_FORMAT "%016" PRIx64

struct log_json_head { /* all of it text without quotes */
    const char *program;
    const char *level;
    const char *kind;
    const char *id;
    uint64_t wall_ns; /* since the epoch */
    pid_t pid;
};

/* Writes one line with its newline and returns its length in bytes. Bytes that are not text become
 * '?'; control characters \u escapes. A message that does not fit is cut. */
size_t log_json(const struct log_json_head *head, const struct log_about *about,
                const char *message, char out[LOG_JSON_BYTES]);

#endif
