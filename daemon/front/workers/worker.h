/*
 * A device's worker process from start to end. The launcher starts it. The front watches its
 * heartbeat and ends it when it is silent, overdue or breaks the protocol. The next worker starts
 * after a pause that grows with failures. Frames of the worker are checked and reach other rooms
 * through hooks. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_WORKER_H
#define FRONT_WORKERS_WORKER_H

#include "daemon/front/model/front.h"
#include "daemon/front/workers/launcher_link.h"

void worker_start(struct front *f, struct device *d);
/* Its worker has another owner now: tells the launcher, for the next front. */
int worker_name(struct front *f, const struct device *d, struct err *e);
/* Has the launcher end processes that wait to replace the device's worker; draining_vacated gets
 * the answer. */
int worker_vacate(struct front *f, const struct device *d, struct err *e);
void worker_detach(struct device *d); /* drops the link; the process keeps running */
/* Frees the front's part of staging memory, and its record. The process keeps running. */
void worker_forget(struct device *d);

/* Another back end opens the device from now on. A worker that is there has yet to end; the next
 * one gets another record, because the launcher keeps a record by the name of its device: the next
 * front would take what is in one twice. */
void worker_backend(struct device *d, const char *backend);

/* Reports of the launcher. false: the id is not a worker's. */
bool worker_started(struct front *f, uint64_t id, pid_t pid, int fd, int code, const char *text);
bool worker_ended(struct front *f, uint64_t id, int status);
/* the launcher ended, and the worker with it */
void worker_orphaned(struct front *f, struct device *d);
/* Takes over a worker that ran before this front, and its descriptors, also on failure. */
void worker_adopt(struct front *f, struct device *d, const struct launcher_inventory *inventory);

/* What became of a worker whose turn is over for turn_overrun_ms. UNSEEN: no job is seen to run,
 * its end is under way, or the host gives it too little to be heard. UNHEARD: it may stand still
 * itself.
 */
enum overrun { OVERRUN_ENDED, OVERRUN_UNSEEN, OVERRUN_UNHEARD };

/* No job of the device's worker has ended since then. Ends the worker, if it is seen to run a job:
 * the one that began first gets a strike, or several run again, each alone. */
enum overrun worker_overran(struct front *f, struct device *d, uint64_t since_ns);

/* Checks silence, time limits and pauses, and sets the timer for the next one. away_ns: how long
 * this process itself stood still; 0: it did not. Then silence of a worker means nothing, and the
 * time does not count for jobs. */
void worker_watch(struct front *f, uint64_t now_ns, uint64_t away_ns);

#endif
