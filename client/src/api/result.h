/* What results of jobs tell. Thread: any, no lock needed. */
#ifndef CLIENT_API_RESULT_H
#define CLIENT_API_RESULT_H

#include "proto/codec.h"

/* What served a job's operations, of its TIMING records; see gpud_job_times. */
void timings_served_by(struct proto_list timings, char *out, size_t size);

#endif
