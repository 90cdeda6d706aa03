/*
 * Recordings of the stream of jobs (`gpuctl record`, `gpud --record`), which `gpuctl replay` runs
 * again: docs/recording.md. There is at most one. What jobs use, modules, programs and buffers, is
 * recorded at the first job that uses it.
 *
 * Nothing is done while no recording runs: callers look at front->watchers, or at
 * front->recording. While one runs, the loop copies requests into the recorder's queue, or refers
 * to them where they are large; it computes no hashes and makes no call of the file system. With
 * data it also copies parts of arenas, RECORD_DATA_MAX of a job.
 *
 * Thread: the loop's; nothing blocks but record_finish.
 */
#ifndef FRONT_RECORD_RECORD_H
#define FRONT_RECORD_RECORD_H

#include "daemon/front/model/front.h"
#include "daemon/front/record/recorder.h"

#define RECORD_RESULTS_MAX 16384u         /* bytes of a job's results that get hashes */
#define RECORD_DATA_MAX    (256u * 1024u) /* the same, and of its inputs in arenas, with data */

/* Each does nothing unless front->recording is set. */
void record_job(struct front *f, struct job *j);             /* it is admitted */
void record_job_ended(struct front *f, const struct job *j); /* before its steps are freed */
void record_buffer_made(struct front *f, struct buffer *b);
void record_buffer_freed(struct front *f, const struct buffer *b); /* its handle is freed */

/* The value of the control: "NAME [data] [bytes=N]". The file is NAME.jsonl in the daemon's folder.
 * That it can be made shows record_status. ERR_INVALID, ERR_BUSY, ERR_NOMEM. */
int record_start(struct front *f, const char *value, struct err *e);
/* --record: the same for a path of the operator. */
int record_start_file(struct front *f, const char *path, bool data, struct err *e);
/* ERR_STATE: none runs. */
int record_stop(struct front *f, struct err *e);
/* false: there was none since the start. */
bool record_status(const struct front *f, struct recorder_status *ret_status);
void record_finish(struct front *f);

#endif
