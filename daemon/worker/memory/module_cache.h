/*
 * The loaded modules by the front's ids. A module that is unloaded while jobs use it is freed at
 * the end of the last one. Loading reads, links and may compile, which takes long: one thread does
 * it, a module at a time, while the loop serves jobs that need none of them.
 *
 * Another thread opens the vendor's libraries that can run in place of a module's kernels. A module
 * is reported as loaded when they are open, so that results are the same from its first job on, or
 * after MODULE_READY_MS without them. Thread: the loop's.
 */
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
#define MODULE_LOAD_MS   (120u * 1000u) /* time until a load is given up */
#define MODULE_BYTES_MAX (64u * 1024u * 1024u)
#define MODULE_READY_MS  (10u * 1000u) /* time that a module waits for libraries */

struct module {
    uint64_t id;
    uint8_t hash[HASH_BYTES];
    size_t hash_size;
    struct backend_module *m;       /* owned */
    struct backend_kernel *kernels; /* owned */
    struct pace *paces; /* owned: one for each kernel, then one for each kernel when a library ran
                           in its place */
    unsigned kernel_count;
    unsigned uses;
    bool unloaded;         /* it is no longer in the table, and freed at the last unuse */
    struct modules *table; /* set when it is to be released */
    struct release release;
    UT_hash_handle hh;
};

struct modules;

/* A module that is to be loaded, or that wants libraries. The first one of its list is the
 * thread's, which uses nothing else. */
struct module_load {
    uv_work_t work;
    struct modules *table;
    struct module *m; /* owned; NULL: it was reported, or the entry is for libraries alone */
    int fd;           /* owned: descriptor of the binary; -1: none */
    uint64_t size;    /* bytes */
    struct err e;     /* how the load failed; code 0: it did not */
    unsigned wanted;  /* set of libraries, see backend_library_ops */
    struct module_load *next;
};

/* A load is over: m is in the table, or `why` says what failed and m is freed after the call.
 * ERR_TIMEOUT: the load does not end, and the process has to end within the call. */
typedef void (*module_loaded_fn)(void *data, struct module *m, const struct err *why);

struct modules {
    struct module *by_id;
    struct module_load *loads;     /* owned: modules to be loaded, oldest first */
    struct module_load *preparing; /* owned: modules that want libraries, oldest first */
    const struct backend *b;
    struct backend_device *d; /* not owned */
    uv_loop_t *loop;
    uv_timer_t limit;  /* for the load that is under way */
    uint64_t limit_ms; /* MODULE_LOAD_MS */
    uv_timer_t ready;  /* until modules are reported without libraries */
    uint64_t ready_ms; /* MODULE_READY_MS */
    module_loaded_fn loaded;
    void *data;
    struct releases *releases; /* not owned; NULL: modules are released at once */
};

void modules_init(struct modules *t, const struct backend *b, struct backend_device *d,
                  uv_loop_t *loop, module_loaded_fn loaded, void *data);
/* idle, nothing is being loaded; the loop has to run once more */
void modules_finish(struct modules *t);
/* fd: a file of `size` bytes, taken over even on failure. After success `loaded` is called once,
 * later. */
int module_load(struct modules *t, uint64_t id, struct bytes hash, int fd, uint64_t size,
                struct err *e);
/* Tries again, in the thread, to open libraries that could not be opened, when their time has come.
 * Cheap: to be called on every event. */
void modules_prepare_again(struct modules *t);
struct module *module_find(const struct modules *t, uint64_t id, struct err *e);
const struct backend_kernel *module_kernel(const struct module *m, const char *entry,
                                           struct err *e);
/* A variable's memory, which lives as long as the module. ERR_NOT_FOUND; ERR_ARG_SHAPE if its size
 * is not `size` bytes; ERR_UNSUPPORTED by this back end. */
int module_variable(const struct modules *t, const struct module *m, struct bytes name,
                    uint64_t size, struct backend_block **ret_block, struct err *e);
void module_unload(struct modules *t, struct module *m);
void module_use(struct module *m);
void module_unuse(struct modules *t, struct module *m);

#endif
