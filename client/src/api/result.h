/* Texts made from the results of jobs. Thread: any, no lock needed. */
#ifndef CLIENT_API_RESULT_H
#define CLIENT_API_RESULT_H

#include "proto/codec.h"

/* Writes the implementations that a job's TIMING records name: gpud_job_times.implementation. */
void timings_served_by(struct proto_list timings, char *out, size_t size);

#endif
