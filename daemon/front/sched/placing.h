/*
 * The device of a job that names buffers. Each buffer will be somewhere when the job's turn comes:
 * where the last job before it needs it, or where it is now. Where all are on one device, the job
 * goes there. Else it goes to the device that will have most of their bytes, of those that the
 * tenant may use and that take new jobs, and the other buffers move there (memory/moves.h). A job
 * that names a device goes there, and so do its buffers; a tenant that is apart and has no worker
 * there gets one (sched/admission.c). A job that only copies moves nothing: gpud_copy goes another
 * way then.
 *
 * A job that names no device, and whose buffers nothing else uses, goes to another device of the
 * same kind if it begins there earlier by more than its buffers take for the way there and back.
 * What all jobs before it take has to be known at both. One job at a time moves buffers so: until
 * these are there, the other device looks as if it had no work.
 *
 * A job that strays, that is, whose device was chosen though its buffers are on another one, goes
 * back if they cannot come (placing_back).
 *
 * Thread: the loop's; nothing blocks. A job whose buffers are on one device: O(its buffers), and if
 * that device is busy O(devices).
 */
#ifndef FRONT_SCHED_PLACING_H
#define FRONT_SCHED_PLACING_H

#include "daemon/front/model/front.h"

/* *ret_place: in front->device; of a tenant that is apart also the base of a domain that it is to
 * get; -1: the job has no buffers. Sets j->strays. wish: as in requests, number + 1; 0: any device.
 * The job is new, and has its tenant. ERR_STATE: its buffers are on several devices, and cannot
 * move to one of them. ERR_DEVICE_MEMORY: such a domain may never have room for them. */
int placing_of(struct front *f, struct job *j, uint64_t wish, int *ret_place, struct err *e);
/* One of the buffers of the queued job cannot move to its device: the job goes where that buffer
 * is, if it strays, once. false: it stays, and so fails. */
bool placing_back(struct front *f, struct job *j, const struct buffer *b);

#endif
