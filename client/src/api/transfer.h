/* Large writes and reads go in parts; each part is a job of one step. Thread: under the client's
 * lock. */
#ifndef CLIENT_API_TRANSFER_H
#define CLIENT_API_TRANSFER_H

#include "client/src/objects/job.h"

/* Elements [first, first + count) of a buffer, and the host memory that they go to or come from. */
struct part {
    uint64_t daemon; /* the buffer's handle */
    uint32_t dtype;
    bool write;
    void *host; /* the caller's; lives until the job has ended */
    uint64_t first;
    uint64_t count;
};

/* Sends the job. Blocks while too many jobs are in flight. The caller releases the job. */
int part_start(struct gpud_client *c, const struct part *part, struct gpud_job **ret_job,
               struct err *e);

#endif
