/*
 * The modules that this worker has loaded, by the front's ids. A module that is unloaded while jobs
 * use it is freed when the last of them ends.
 *
 * Loading reads, links and may compile, which takes long. One thread loads or unloads a module at a
 * time, while the loop serves jobs that need none of the modules being loaded. Tenants take turns,
 * so a tenant with many modules delays the module of another by one. The thread has nothing else to
 * do: a driver may compile for seconds, and registering memory (registrar.h) goes on meanwhile.
 *
 * Another thread opens the vendor's libraries that can run in place of a module's kernels. The
 * module is reported as loaded only when these are open, so that its results are the same from the
 * first job on. After MODULE_READY_MS it is reported without them. Thread: the loop's.
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
#include "daemon/worker/memory/turns.h"
#include "proto/limits.h"

#define MODULES_MAX      4096u
#define MODULE_LOAD_MS   (120u * 1000u) /* a load that takes longer has failed */
#define MODULE_BYTES_MAX (64u * 1024u * 1024u)
#define MODULE_READY_MS  (10u * 1000u) /* the longest that a loaded module waits for libraries */

/* What the thread does with a module. */
struct module_work {
    struct turn turn; /* first */
    bool unloads;
};

struct module {
    struct module_work work; /* first; it is unloaded */
    uint64_t id;
    uint64_t tenant; /* the front's key, for turns */
    uint8_t hash[HASH_BYTES];
    size_t hash_size;
    struct backend_module *m;       /* owned */
    struct backend_kernel *kernels; /* owned */
    /* owned: one for each kernel, then one for each kernel's time when a library runs in its
     * place */
    struct pace *paces;
    unsigned kernel_count;
    unsigned uses;
    bool unloaded;         /* no longer in the table; freed at the last unuse */
    struct modules *table; /* set when its release is queued */
    struct release release;
    UT_hash_handle hh;
};

struct modules;

/* A module to load, or a module that wants libraries. `busy` and the first of `preparing` belong
 * to the threads that work on them. A thread uses nothing else. */
struct module_load {
    struct module_work load; /* first; of a module to load */
    uv_work_t work;          /* in `preparing` */
    struct modules *table;
    struct module *m; /* owned; NULL: it was reported, or the entry only opens libraries */
    int fd;           /* owned: descriptor of the binary; -1: none */
    uint64_t size;    /* bytes */
    struct err e;     /* why the load failed; code 0: it did not */
    unsigned wanted;  /* set of libraries, see backend_library_ops */
    struct module_load *next;
};

/* A load is over: m is in the table, or `why` says what failed and m is freed after the call.
 * ERR_TIMEOUT: the load, or an unload, hangs, and the process has to end within the call. */
typedef void (*module_loaded_fn)(void *data, struct module *m, const struct err *why);

struct modules {
    struct module *by_id;
    struct module_load *loads;     /* owned: modules to load, oldest first */
    struct turns turns;            /* the same, and modules to unload, by tenant */
    struct module_work *busy;      /* what the thread does; NULL: nothing */
    uv_work_t work;                /* of `busy` */
    struct module_load *preparing; /* owned: modules that want libraries, oldest first */
    const struct backend *b;
    struct backend_device *d; /* not owned */
    uv_loop_t *loop;
    uv_timer_t limit;  /* limits the time of `busy` */
    uint64_t limit_ms; /* MODULE_LOAD_MS */
    uv_timer_t ready;  /* when it fires, modules are reported without libraries */
    uint64_t ready_ms; /* MODULE_READY_MS */
    module_loaded_fn loaded;
    void *data;
    struct releases *releases; /* not owned; NULL: modules are unloaded at once */
};

void modules_init(struct modules *t, const struct backend *b, struct backend_device *d,
                  uv_loop_t *loop, module_loaded_fn loaded, void *data);
/* Requires that nothing is being loaded or in use. The loop has to turn afterwards until nothing is
 * left to do. */
void modules_finish(struct modules *t);
/* Is a thread at work? */
bool modules_busy(const struct modules *t);
/* Loads a module of a tenant. Takes over fd, a file of `size` bytes, even on failure. After success
 * `loaded` is called once, later. */
int module_load(struct modules *t, uint64_t id, uint64_t tenant, struct bytes hash, int fd,
                uint64_t size, struct err *e);
/* Retries, in the thread, libraries that could not be opened, when their retry time has come.
 * Cheap, so it may be called on every event. */
void modules_prepare_again(struct modules *t);
struct module *module_find(const struct modules *t, uint64_t id, struct err *e);
const struct backend_kernel *module_kernel(const struct module *m, const char *entry,
                                           struct err *e);
/* The memory of a module's variable, which lives as long as the module. ERR_NOT_FOUND;
 * ERR_ARG_SHAPE if the variable's size is not `size` bytes; ERR_UNSUPPORTED by this back end. */
int module_variable(const struct modules *t, const struct module *m, struct bytes name,
                    uint64_t size, struct backend_block **ret_block, struct err *e);
void module_unload(struct modules *t, struct module *m);
void module_use(struct module *m);
void module_unuse(struct modules *t, struct module *m);

#endif
