/*
 * Registers host memory with the device, and ends registrations, in a thread of libuv's: a driver
 * pins about a MiB in a millisecond, and may wait for what the device runs. The thread has one
 * slice at a time, and tenants take turns, so a tenant's gigabytes delay the kilobytes of another
 * by a slice.
 *
 * Thread: the loop's. Nothing here blocks. The thread uses the memory of the slice, and calls
 * register_host and unregister_host of the back end.
 */
#ifndef WORKER_MEMORY_REGISTRAR_H
#define WORKER_MEMORY_REGISTRAR_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/worker/memory/turns.h"

#define REGISTRAR_SLICE (UINT64_C(16) << 20) /* bytes, where the back end has no slices */

enum registrar_kind {
    /* Registers all slices. Where the back end registers nothing, the pages are only populated. */
    REGISTRAR_ADD,
    /* Ends the registration of one slice, where there is one, and unmaps it. */
    REGISTRAR_REMOVE,
};

struct registration;

/* Called once for each entry that was queued. ADD: it is registered, or x->e says why nothing of it
 * is. REMOVE: the slice is over. */
typedef void (*registration_done_fn)(struct registration *x);

/* Memory that is registered, or was. A member of what owns the memory. */
struct registration {
    struct turn turn; /* first */
    enum registrar_kind kind;
    uint8_t *data;
    uint64_t size;  /* bytes, of whole pages */
    uint64_t at;    /* ADD: bytes that are registered; REMOVE: bytes that are gone */
    uint64_t known; /* bytes that are registered, from the beginning on, or were before REMOVE */
    bool stopped;   /* no slice follows */
    struct err e;
    registration_done_fn done;
    void *owner;
};

struct registrar {
    const struct backend *b;
    struct backend_device *d; /* not owned */
    uv_loop_t *loop;
    uv_work_t work;
    struct turns turns;        /* entries that wait or have a slice under way */
    struct registration *busy; /* the entry whose slice is under way; NULL: none */
};

void registrar_init(struct registrar *r, const struct backend *b, struct backend_device *d,
                    uv_loop_t *loop);
bool registrar_busy(const struct registrar *r);
/* data, size, done and owner are set. */
void registrar_add(struct registrar *r, struct registration *x, uint64_t tenant);
/* ADD that is queued: it ends before its next slice, with ERR_CANCELLED, at once (within the call)
 * or when its slice is over. What was registered remains. */
void registrar_stop(struct registrar *r, struct registration *x);
/* One slice goes, the first of what is left. No command may use it. After ADD, or for memory that
 * is mapped and was never registered; data, size, done and owner are set. */
void registrar_remove(struct registrar *r, struct registration *x, uint64_t tenant);
/* Is memory left that registrar_remove has to unmap, and is it registered? */
bool registration_left(const struct registration *x);
bool registration_known(const struct registration *x);

#endif
