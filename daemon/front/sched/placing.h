/*
 * The device of a job that names buffers. Each buffer will be somewhere when the job's turn comes:
 * where the last job before it needs it, or where it is now. Where all are on one device, the job
 * goes there. Else it goes to the device that will have most of their bytes, of those that the
 * tenant may use and that take new jobs, and the other buffers move there (memory/moves.h). A job
 * that names a device goes there, and so do its buffers; a tenant that is apart and has no worker
 * there gets one (sched/admission.c). A job that only copies moves nothing:
 * gpud_copy goes another way then. Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_SCHED_PLACING_H
#define FRONT_SCHED_PLACING_H

#include "daemon/front/model/front.h"

/* *ret_place: in front->device; of a tenant that is apart also the base of a domain that it is to
 * get; -1: the job has no buffers. wish: as in requests, number + 1; 0:
 * any device. ERR_STATE: its buffers are on several devices, and cannot move to one of them.
 * ERR_DEVICE_MEMORY: such a domain may never have room for them. */
int placing_of(const struct front *f, const struct tenant *t, const struct job *j, uint64_t wish,
               int *ret_place, struct err *e);

#endif
