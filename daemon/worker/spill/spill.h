/*
 * Room on a device that is full: buffers that no job on the device uses, the one not used for
 * longest first, move to host memory, and come back when a job needs them: those of whole pages to
 * where they were (pool's place.h), others wherever there is room then, for nobody holds their
 * addresses. Tenants above their soft limit give first, nobody gives what
 * is guaranteed to it, and who is at its own hard limit gives of its own. Of a sealed buffer the
 * host copy is there already, and what was never written is not copied.
 *
 * Copies run on the service stream. What a buffer leaves is used by others at once, after the copy,
 * in the order of streams; nothing here waits. Where that is not enough, memory comes when copies
 * that are under way, or jobs, end: ERR_DEVICE_MEMORY now, and another try then (waiting.h). What a
 * sealed buffer's host copy has comes by the queue of copies (copies.h), once all that was on the
 * service stream before is over: until it is there jobs wait, and the buffer stays. Zeros come in
 * pieces, as those of a new buffer (transfer.h).
 *
 * It is the pool's mover, too: where what is free lies in small parts, buffers that no job on the
 * device uses are put together by copies on the same stream. Those that are shared with other
 * processes, and modules' variables, stay.
 *
 * Host memory is an arena that grows in chunks, registered with the device where the back end does
 * that, and stays. Thread: the loop's.
 */
#ifndef WORKER_SPILL_SPILL_H
#define WORKER_SPILL_SPILL_H

#include "daemon/worker/run/job.h"
#include "daemon/worker/spill/spill_state.h"

struct msg_w_pool;

/* Sets up `buffers` and the pool's mover, too. limit 0: nothing is spilled. Some milliseconds (the
 * first chunk). */
int spill_init(struct spill *s, struct device *device, struct buffers *buffers,
               struct copies *copies, struct transfers *transfers, uint64_t limit, struct err *e);
/* Bytes of host memory from now on. With less than is there nothing more goes, and what comes back
 * makes no room for others. Some milliseconds if it was 0 or gets less. */
void spill_set_limit(struct spill *s, uint64_t limit);
void spill_finish(struct spill *s); /* idle, after the buffers; one that was not made is allowed */

/* Device memory for all that a job names, and its temporaries; its buffers stay until its end
 * (job_release). spill_short(): it has nothing, and may have it later; e says what was wanted, what
 * there is and what helps. SPILL_NEVER: so, and whatever ends or moves it will not have it, unless
 * limits change or what is kept for others does. */
#define SPILL_NEVER 1
int spill_acquire(struct spill *s, struct job *j, struct err *e);
/* Would one that waits have what it lacks as soon as what runs has ended, which runs for long
 * already? Others pass it then. */
bool spill_late(const struct spill *s, const struct job *j);
/* Another number: since the last try something has changed that may help who was refused. */
uint64_t spill_changes(const struct spill *s);
/* Why a job that has nothing could not have what it needs now. */
void spill_explain(struct spill *s, const struct job *j, struct err *e);
/* ERR_DEVICE_MEMORY, and ERR_LIMIT: room that only its own tenant can make. */
bool spill_short(int code);
/* Would all that it lacks be within what is guaranteed to its tenant? */
bool spill_assured(const struct spill *s, const struct job *j);
/* Its hard limit may be less than it has: what is not in use goes. < 0: the device is lost. */
int spill_shed(struct spill *s, uint64_t tenant, struct err *e);
/* Device memory for one buffer, which the caller has pinned. */
int spill_return(struct spill *s, struct buffer *b, struct err *e);

void spill_stats(const struct spill *s, struct msg_w_pool *stats); /* fills in its part */

#endif
