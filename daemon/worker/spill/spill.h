/*
 * Room on a device that is full. Buffers that no job on the device uses move to host memory, the
 * one not used for longest first. They come back when a job needs them: buffers of whole pages to
 * their former addresses (pool's place.h), others to any address, as no holder of the addresses is
 * left.
 *
 * Tenants above their soft limit give first. No tenant gives what is guaranteed to it, and a tenant
 * at its own hard limit gives its own buffers. A sealed buffer has its host copy already, and a
 * buffer that was never written is not copied.
 *
 * Copies run on the service stream. Memory that a buffer leaves is used by others at once, behind
 * the copy in the order of streams; nothing here waits. If that is not enough, memory comes when
 * copies under way, or jobs, end: the request gets ERR_DEVICE_MEMORY, and is tried again then
 * (waiting.h). The host copy of a sealed buffer comes back through a copy queue (copies.h), once
 * all that was on the service stream before is over. Until it has arrived jobs wait, and the buffer
 * keeps its place. Zeros come in pieces, as those of a new buffer (transfer.h).
 *
 * It is the pool's mover as well: where free memory lies in small parts, buffers that no job on the
 * device uses are put together by copies on the same stream. Buffers that other processes map, and
 * variables of modules, do not move.
 *
 * Host memory is an arena that grows in chunks, which it keeps. The chunks are registered with
 * the device where the back end does that. Thread: the loop's.
 */
#ifndef WORKER_SPILL_SPILL_H
#define WORKER_SPILL_SPILL_H

#include "daemon/worker/run/job.h"
#include "daemon/worker/spill/spill_state.h"

struct msg_w_pool;

/* Sets up `buffers` and the pool's mover, too. limit 0: no buffer moves to the host. Blocks for
 * some milliseconds (the first chunk). */
int spill_init(struct spill *s, struct device *device, struct buffers *buffers,
               struct copies *copies, struct transfers *transfers, uint64_t limit, struct err *e);
/* The limit from now on, in bytes of host memory. While more is in use no further buffer goes
 * there. Blocks for some milliseconds if the limit was 0 or becomes lower. */
void spill_set_limit(struct spill *s, uint64_t limit);
void spill_finish(struct spill *s); /* idle, after the buffers; not initialised is allowed */

/* Gets device memory for all buffers of a job, which keep it until the job's end (job_release), and
 * for its temporaries. If spill_short(): the job has nothing, and may have it later; e says what
 * was wanted, what there is and what helps. SPILL_NEVER: the job has nothing, and no end of jobs or
 * copies helps, only other limits or guarantees. */
#define SPILL_NEVER 1
int spill_acquire(struct spill *s, struct job *j, struct err *e);
/* Would a waiting job have its memory as soon as running jobs end, which run for long already?
 * Others pass it then. */
bool spill_late(const struct spill *s, const struct job *j);
/* A number that changes when something happened that may help a refused job. */
uint64_t spill_changes(const struct spill *s);
/* Sets e: why a job that has nothing cannot have its memory now. */
void spill_explain(struct spill *s, const struct job *j, struct err *e);
/* True for ERR_DEVICE_MEMORY, and for ERR_LIMIT: only its own tenant can make room. */
bool spill_short(int code);
/* Would the job's tenant stay within its guarantee if the job got its memory? */
bool spill_assured(const struct spill *s, const struct job *j);
/* The tenant's hard limit may have become less than it has: its buffers that are not in use go. <
 * 0: the device is lost. */
int spill_shed(struct spill *s, uint64_t tenant, struct err *e);
/* Gets device memory for one buffer, which the caller has pinned. */
int spill_return(struct spill *s, struct buffer *b, struct err *e);

void spill_stats(const struct spill *s, struct msg_w_pool *stats); /* fills in its own fields */

#endif
