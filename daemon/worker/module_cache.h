/* The loaded modules by the front's ids. One that is unloaded while jobs use it goes when the last
 * of them ends. Thread: the loop's; module_load blocks (linking). */
#ifndef WORKER_MODULE_CACHE_H
#define WORKER_MODULE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/hash.h"
#include "daemon/backend/backend.h"
#include "proto/limits.h"

#define MODULES_MAX      4096u
#define MODULE_BYTES_MAX (64u * 1024u * 1024u)

struct module {
    uint64_t id;
    uint8_t hash[HASH_BYTES];
    size_t hash_size;
    struct backend_module *m;       /* owned */
    struct backend_kernel *kernels; /* owned */
    unsigned kernel_count;
    unsigned uses;
    bool unloaded; /* no longer in the table */
    UT_hash_handle hh;
};

struct modules {
    struct module *by_id;
    const struct backend *b;
    struct backend_device *d; /* not owned */
};

void modules_init(struct modules *t, const struct backend *b, struct backend_device *d);
void modules_finish(struct modules *t); /* idle */
/* The binary lies in private memory, so that nobody changes it while it is read. */
int module_load(struct modules *t, uint64_t id, struct bytes hash, struct bytes binary,
                struct module **ret_module, struct err *e);
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
