/*
 * Makes room on a full device: buffers that no job on the device uses are evicted to host memory,
 * the least recently used first. They return when a job needs them: buffers of whole pages to their
 * former addresses (pool's place.h), others to any address, because no pointer holds the old one.
 *
 * Tenants above their soft limit give first. No tenant gives what is guaranteed to it, and a tenant
 * at its own hard limit gives its own buffers. A sealed buffer has its host copy already, and a
 * buffer that was never written is not copied.
 *
 * Copies run on the service stream. Others use the memory of an evicted buffer at once, ordered
 * behind the copy by their streams; nothing here waits for it. If that is not enough, memory comes
 * free when copies under way or jobs end: the request gets ERR_DEVICE_MEMORY and is retried then
 * (waiting.h).
 *
 * The host copy of a sealed buffer returns through a copy queue (copies.h), once the service stream
 * has passed all earlier commands. Until it has arrived jobs wait, and the buffer is not evicted.
 * Zeros come in pieces, like those of a new buffer (transfer.h).
 *
 * This module is the pool's mover as well. Where free memory is fragmented, buffers that no job on
 * the device uses are moved together by copies on the service stream. Buffers that other processes
 * map, and variables of modules, do not move.
 *
 * Host memory is an arena that grows in chunks, which are registered with the device where the back
 * end does that. A registrar makes chunks beside the loop. Until one has come, no buffer that needs
 * it is evicted, and jobs that need the room wait (spill_grows).
 *
 * Thread: the loop's.
 */
#ifndef WORKER_SPILL_SPILL_H
#define WORKER_SPILL_SPILL_H

#include "daemon/worker/run/job.h"
#include "daemon/worker/spill/spill_state.h"

struct msg_w_pool;

/* Also installs itself in `buffers` and as the pool's mover. limit: bytes of host memory; 0: no
 * buffer is copied to the host. registrar (NULL: chunks are made within the calls): makes chunks,
 * except for the first one. Blocks for some milliseconds (the first chunk). */
int spill_init(struct spill *s, struct device *device, struct buffers *buffers,
               struct copies *copies, struct transfers *transfers, struct registrar *registrar,
               uint64_t limit, struct err *e);
/* `grown` is called when host memory has come that was lacking, or cannot come: jobs that wait may
 * be tried again. */
void spill_on_growth(struct spill *s, void (*grown)(void *data), void *data);
/* Is host memory on its way, so that buffers can be evicted then? */
bool spill_grows(const struct spill *s);
/* Sets the limit in bytes of host memory. While more is in use, no further buffer is copied
 * there. */
void spill_set_limit(struct spill *s, uint64_t limit);
void spill_finish(struct spill *s); /* idle, after buffers_finish; not initialised is allowed */

/* Gets device memory for all buffers of a job, which keep it until the job's end (job_release),
 * and for its temporaries. On failure the job has no memory. If spill_short(code), a later try
 * may succeed; e says how much was wanted, how much there is and what helps. SPILL_NEVER: no end
 * of jobs or copies helps, only other limits or guarantees. */
#define SPILL_NEVER 1
int spill_acquire(struct spill *s, struct job *j, struct err *e);
/* What became of the memory of a job that has acquired it. POOL_WAITS: it is still being mapped, or
 * the content of a buffer is being brought in or zeroed.
 * POOL_FAILED: give it up and try again. */
enum pool_late spill_late_memory(struct spill *s, struct job *j);
/* Takes all memory back from a job that has not begun. e: why it could not be mapped. */
void spill_give_up(struct spill *s, struct job *j, struct err *e);
/* The job begins: its memory is ready, and it may write its buffers. */
void spill_begin(struct job *j);
/* Would a waiting job get its memory from running jobs that have already run for long? Other
 * jobs may pass it then. */
bool spill_late(const struct spill *s, const struct job *j);
/* After a refused spill_acquire: buffers are being moved together, a part in each try. Try again in
 * the next turn of the loop. */
bool spill_moves(const struct spill *s);
/* May the front raise the limit of the device's pool? Then it is asked before buffers go. */
bool spill_rises(const struct spill *s);
/* Bytes by which that limit would have to grow for a job that was refused; at least 1. */
uint64_t spill_lacks(const struct spill *s, const struct job *j);
/* A counter of events that may help a refused job. */
uint64_t spill_changes(const struct spill *s);
/* A counter of buffers evicted to the host and brought back. */
uint64_t spill_moved(const struct spill *s);
/* Sets e: why a job without memory cannot have it now. */
void spill_explain(struct spill *s, const struct job *j, struct err *e);
/* True for ERR_DEVICE_MEMORY, and for ERR_LIMIT, where only the job's own tenant can make room. */
bool spill_short(int code);
/* Would the job's tenant stay within its guarantee if the job got its memory? */
bool spill_assured(const struct spill *s, const struct job *j);
/* Evicts unused buffers of a tenant that has more than its hard limit, which may have been
 * lowered. < 0: the device is lost. */
int spill_shed(struct spill *s, uint64_t tenant, struct err *e);
/* Evicts unused buffers so that the device gets memory back: tenants above their soft limit first,
 * and no tenant below its guarantee. Returns bytes on their way; 0 with e->code ERR_DEVICE_LOST:
 * the device is lost. */
uint64_t spill_give(struct spill *s, uint64_t bytes, struct err *e);
void spill_budget(struct spill *s); /* the limit of the device's pool has changed */
/* Gets device memory for one buffer that the caller has pinned. */
int spill_return(struct spill *s, struct buffer *b, struct err *e);

void spill_stats(const struct spill *s, struct msg_w_pool *stats); /* fills in its own fields */

#endif
