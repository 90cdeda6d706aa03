/*
 * What is written down of buffers and jobs that a worker has (record.h), so that another front can
 * go on with them. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_META_H
#define FRONT_WORKERS_META_H

#include "daemon/front/model/front.h"
#include "proto/codec.h"

int meta_of_buffer(const struct buffer *b, struct capbuf *out, struct err *e);
int meta_of_job(const struct job *j, struct capbuf *out, struct err *e);

#endif
