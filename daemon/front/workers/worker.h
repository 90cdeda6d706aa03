/*
 * A device's worker process from start to end: started by the launcher, watched by its heartbeat,
 * ended when it is silent, overdue or wrong, started again after a pause that grows with failures.
 * What it says is checked and handed on through hooks. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_WORKER_H
#define FRONT_WORKERS_WORKER_H

#include "daemon/front/model/front.h"
#include "daemon/front/workers/launcher_link.h"

void worker_start(struct front *f, struct device *d);
/* Asks the launcher to end it; what it had in flight is dealt with when its end is reported. */
void worker_end(struct front *f, struct device *d, struct job *culprit, const char *why);
void worker_detach(struct device *d); /* drops the link; the process goes on */
/* Frees what the front keeps of its worker: staging memory and record. A process goes on. */
void worker_forget(struct device *d);

/* What the launcher says. false: the id is no worker's. */
bool worker_started(struct front *f, uint64_t id, pid_t pid, int fd, int code, const char *text);
bool worker_ended(struct front *f, uint64_t id, int status);
void worker_orphaned(struct front *f, struct device *d); /* its launcher ended */
/* A worker that runs already is taken over. The descriptors are taken in any case. */
void worker_held(struct front *f, struct device *d, const struct launcher_held *held);

/* Looks after silence, time limits and pauses; says when the next is due. away: this process itself
 * stood still, so that silence says nothing. */
void worker_watch(struct front *f, uint64_t now_ns, bool away);

#endif
