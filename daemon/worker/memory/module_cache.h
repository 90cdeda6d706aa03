/* The loaded modules by the front's ids. One that is unloaded while jobs use it goes when the last
 * of them ends. Loading reads, links and may compile, which takes long: a thread of its own does
 * it, one module at a time, while the loop serves what needs none of them. Another one makes ready
 * the vendor's libraries that do what a module's kernels do: the module is told of when they are,
 * as results are then the same from its first job on, or after a while without them, for good if
 * they never are. Thread: the loop's. */
#ifndef WORKER_MEMORY_MODULE_CACHE_H
#define WORKER_MEMORY_MODULE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/hash.h"
#include "daemon/backend/backend.h"
#include "daemon/worker/memory/pace.h"
#include "daemon/worker/memory/releases.h"
#include "proto/limits.h"

#define MODULES_MAX      4096u
#define MODULE_LOAD_MS   (120u * 1000u) /* until a load is given up */
#define MODULE_BYTES_MAX (64u * 1024u * 1024u)
#define MODULE_READY_MS  (10u * 1000u) /* that a module waits for libraries */

struct module {
    uint64_t id;
    uint8_t hash[HASH_BYTES];
    size_t hash_size;
    struct backend_module *m;       /* owned */
    struct backend_kernel *kernels; /* owned */
    struct pace *paces; /* owned: of each kernel, then of each when a library ran in its place */
    unsigned kernel_count;
    unsigned uses;
    bool unloaded;         /* no longer in the table */
    struct modules *table; /* when it is to go */
    struct release release;
    UT_hash_handle hh;
};

struct modules;

/* One that is to be loaded, or that is and wants libraries. The first in the list is in the hands
 * of the thread, which touches nothing else. */
struct module_load {
    uv_work_t work;
    struct modules *table;
    struct module *m; /* owned; NULL: it was told of, or this is for libraries alone */
    int fd;           /* owned: the binary; -1: none */
    uint64_t size;    /* bytes */
    struct err e;     /* what came of it */
    unsigned wanted;  /* libraries, see backend_library_ops */
    struct module_load *next;
};

/* A load is over: m is in the table, or `why` says what went wrong and m goes after the call. Of
 * one that does not end ERR_TIMEOUT tells: then the process is to be ended in the call. */
typedef void (*module_loaded_fn)(void *data, struct module *m, const struct err *why);

struct modules {
    struct module *by_id;
    struct module_load *loads;     /* owned, in order */
    struct module_load *preparing; /* the same, of those that want libraries */
    const struct backend *b;
    struct backend_device *d; /* not owned */
    uv_loop_t *loop;
    uv_timer_t limit;  /* of the load that is under way */
    uint64_t limit_ms; /* MODULE_LOAD_MS */
    uv_timer_t ready;  /* until modules are told of without libraries */
    uint64_t ready_ms; /* MODULE_READY_MS */
    module_loaded_fn loaded;
    void *data;
    struct releases *releases; /* not owned; NULL: what goes does so at once */
};

void modules_init(struct modules *t, const struct backend *b, struct backend_device *d,
                  uv_loop_t *loop, module_loaded_fn loaded, void *data);
void modules_finish(struct modules *t); /* idle, nothing is being loaded; the loop runs once more */
/* fd: of a file that holds `size` bytes; taken over, also on failure. After success `loaded` is
 * called once, later. */
int module_load(struct modules *t, uint64_t id, struct bytes hash, int fd, uint64_t size,
                struct err *e);
/* Libraries that could not be made ready are tried again where it is time to, in the thread. Cheap:
 * to be called whenever something happens. */
void modules_prepare_again(struct modules *t);
struct module *module_find(const struct modules *t, uint64_t id, struct err *e);
const struct backend_kernel *module_kernel(const struct module *m, const char *entry,
                                           struct err *e);
/* The variable's memory, which is there as long as the module. ERR_NOT_FOUND, ERR_ARG_SHAPE if it
 * is not of `size` bytes, ERR_UNSUPPORTED by this back end. */
int module_variable(const struct modules *t, const struct module *m, struct bytes name,
                    uint64_t size, struct backend_block **ret_block, struct err *e);
void module_unload(struct modules *t, struct module *m);
void module_use(struct module *m);
void module_unuse(struct modules *t, struct module *m);

#endif
