/*
 * The start of workers, and of prepared ones. A process that opens a device spends most of its
 * start on loading the driver: 110 of 125 ms of processor time with PoCL, of which the dynamic
 * linker has the largest part. So a worker that the front has asked for so gets a successor soon
 * after its start: a process with the same arguments that has loaded the driver, counted the
 * devices and then waits, without an open device, for the channel to bring its memory. It has the
 * user and the folder of a worker of its owner, and has never run a job. The next worker of the
 * same device and arguments is that process. One that has no worker beside it ends after a while,
 * because other arguments may be in force, and at once if an operator drains the device: its driver
 * is to be reset or exchanged.
 * Thread: one.
 */
#ifndef LAUNCHER_WORKERS_H
#define LAUNCHER_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/seqpacket.h"
#include "daemon/launcher/children.h"
#include "daemon/launcher/slots.h"
#include "proto/frames.h"

struct workers {
    struct children *children; /* not owned */
    struct slots slots;
    int program; /* descriptor of the executable; not owned */
    /* socket of the journal, for children's output; NULL: children use this process's stderr */
    const char *journal;
};

/* Starts the worker that `frame`, decoded as `msg`, asks for, in an entry that is new. Takes the
 * descriptors if the worker runs. A failed start is noted in the entry (launch.h). LIMIT: no user
 * is free. NOMEM. Blocks as slots_take, spawn_process and workers_yield do. */
int workers_start(struct workers *w, struct child *child, const struct msg_l_worker *msg,
                  struct bytes frame, struct frame_fds *fds, struct err *e);
/* Ends a prepared worker, which makes room for another process. false: there is none, or it does
 * not end within 100 ms. Blocks so long. */
bool workers_yield(struct workers *w);
/* Ends the prepared workers of this device, whatever their arguments. Returns how many have yet to
 * end. Blocks for 100 ms at most for each that does not end; a further call does not wait for it.
 */
unsigned workers_vacate(struct workers *w, struct bytes device);
/* Prepares successors that are due and ends those without a worker. Returns when to call again, in
 * ns. may: false: prepares none. Blocks as workers_start does. */
uint64_t workers_tend(struct workers *w, uint64_t now, bool may);

#endif
