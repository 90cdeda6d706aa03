/*
 * Encodes the entries of the adoption record (record.h): all that another front needs to go on with
 * a buffer or a job. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_RECORD_ENCODE_H
#define FRONT_WORKERS_RECORD_ENCODE_H

#include "daemon/front/model/front.h"
#include "proto/codec.h"

/* What RECORD_BUFFER says of a copy that the launcher keeps. */
enum record_kept { RECORD_NOT_KEPT, RECORD_MOVED, RECORD_SEALED };

int record_encode_buffer(const struct buffer *b, struct capbuf *out, struct err *e);
int record_encode_job(const struct job *j, struct capbuf *out, struct err *e);

#endif
