/*
 * Reads recordings of the stream of jobs (docs/recording.md) line by line. A recording comes from
 * outside: each line is checked before it is handed on, and an error names the line. The members
 * that steps and arguments have are those of a dumped job, and are checked where they are used
 * (run/dumped.h). Thread: one. Blocks on the file.
 */
#ifndef GPUCTL_RUN_RECORDING_H
#define GPUCTL_RUN_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/sheet/json_value.h"

#define RECORDING_LINE_MAX ((size_t)64 * 1024 * 1024) /* bytes */

enum recording_line {
    LINE_NONE, /* the file has no more */
    LINE_MODULE,
    LINE_PROGRAM,
    LINE_BUFFER,
    LINE_FREE,
    LINE_JOB,
    LINE_END,
    LINE_GAP,
    LINE_STOP,
    LINE_OTHER, /* of a newer daemon; it may be passed over */
};

struct recording {
    FILE *in;         /* owned */
    const char *path; /* not owned; for messages */
    uint64_t line;    /* number of the line before; the first is 1 */
    char *text;       /* owned */
    size_t room;
    json_t *head; /* owned: the first line */
    bool cut;     /* the last line is not whole, or there is no line `stop` */
    bool stopped;
};

/* Opens the file and reads its first line. */
int recording_open(const char *path, struct recording *ret_recording, struct ctl_err *e);
/* The same for a stream, which the recording takes over, also on failure. */
int recording_begin(FILE *in, const char *path, struct recording *ret_recording, struct ctl_err *e);
/* The next line and what it is; the caller owns the root, which is NULL after the last line. A last
 * line that is not whole is left out. */
int recording_next(struct recording *r, enum recording_line *ret_line, json_t **ret_root,
                   struct ctl_err *e);
/* Back to the line behind the first. */
int recording_rewind(struct recording *r, struct ctl_err *e);
void recording_close(struct recording *r); /* accepts a zeroed one */
/* Puts the file and the line in front of the error. */
int recording_wrap(const struct recording *r, struct ctl_err *e);

#endif
