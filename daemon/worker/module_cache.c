#include "daemon/worker/module_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void modules_init(struct modules *t, const struct backend *b, struct backend_device *d)
{
    *t = (struct modules){.b = b, .d = d};
}

static void destroy(struct modules *t, struct module *m)
{
    if (m->m != NULL) {
        t->b->module->unload(m->m);
    }
    free(m->kernels);
    free(m);
}

void modules_finish(struct modules *t)
{
    struct module *m = t->by_id;
    HASH_CLEAR(hh, t->by_id); /* the links from one to the next stay */
    while (m != NULL) {
        struct module *next = m->hh.next;
        destroy(t, m);
        m = next;
    }
}

static int kernels_list(struct modules *t, struct module *m, struct err *e)
{
    unsigned count = t->b->module->kernel_count(m->m);
    if (count > PROTO_KERNELS_MAX) {
        return err_set(e, ERR_LIMIT, "%u kernels in a module, at most %u", count,
                       PROTO_KERNELS_MAX);
    }
    m->kernels = calloc(count > 0 ? count : 1, sizeof *m->kernels);
    if (m->kernels == NULL) {
        return err_set(e, ERR_NOMEM, "%u kernels", count);
    }
    for (unsigned i = 0; i < count; i++) {
        int rc = t->b->module->kernel(m->m, i, &m->kernels[i], e);
        if (rc != 0) {
            return err_wrap(e, "kernel %u", i);
        }
    }
    m->kernel_count = count;
    return 0;
}

int module_load(struct modules *t, uint64_t id, struct bytes hash, struct bytes binary,
                struct module **ret_module, struct err *e)
{
    struct module *m = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, m);
    if (m != NULL) {
        return err_set(e, ERR_EXISTS, "module %" PRIu64, id);
    }
    if (HASH_COUNT(t->by_id) >= MODULES_MAX || hash.size > HASH_BYTES) {
        return err_set(e, ERR_LIMIT, "a worker holds at most %u modules", MODULES_MAX);
    }
    m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "module %" PRIu64, id);
    }
    m->id = id;
    m->hash_size = hash.size;
    if (hash.size > 0) {
        memcpy(m->hash, hash.data, hash.size);
    }
    int rc = t->b->module->load(t->d, binary, &m->m, e);
    rc = rc == 0 ? kernels_list(t, m, e) : rc;
    if (rc != 0) {
        destroy(t, m);
        return err_wrap(e, "loading a module of %zu bytes", binary.size);
    }
    HASH_ADD(hh, t->by_id, id, sizeof m->id, m);
    *ret_module = m;
    return 0;
}

struct module *module_find(const struct modules *t, uint64_t id, struct err *e)
{
    struct module *m = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, m);
    if (m == NULL) {
        (void)err_set(e, ERR_BAD_HANDLE, "worker holds no module %" PRIu64, id);
    }
    return m;
}

const struct backend_kernel *module_kernel(const struct module *m, const char *entry, struct err *e)
{
    for (unsigned i = 0; i < m->kernel_count; i++) {
        if (strcmp(m->kernels[i].entry, entry) == 0) {
            return &m->kernels[i];
        }
    }
    (void)err_set(e, ERR_NOT_FOUND, "module %" PRIu64 " has no kernel %s", m->id, entry);
    return NULL;
}

int module_variable(const struct modules *t, const struct module *m, struct bytes name,
                    uint64_t size, struct backend_block **ret_block, struct err *e)
{
    char text[PROTO_NAME_MAX + 1];
    struct backend_block *block = NULL;
    uint64_t bytes = 0;
    if (t->b->module->variable == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "variables of modules cannot be reached with %s",
                       t->b->name);
    }
    if (!bytes_to_str(name, text, sizeof text)) {
        return err_set(e, ERR_NOT_FOUND, "name of a variable is not a text");
    }
    int rc = t->b->module->variable(m->m, text, &block, &bytes, e);
    if (rc == 0 && bytes != size) {
        rc = err_set(e, ERR_ARG_SHAPE, "variable %s has %" PRIu64 " bytes, not %" PRIu64, text,
                     bytes, size);
    }
    if (rc == 0) {
        *ret_block = block;
    }
    return rc;
}

void module_unload(struct modules *t, struct module *m)
{
    HASH_DEL(t->by_id, m);
    m->unloaded = true;
    if (m->uses == 0) {
        destroy(t, m);
    }
}

void module_use(struct module *m)
{
    m->uses++;
}

void module_unuse(struct modules *t, struct module *m)
{
    m->uses--;
    if (m->uses == 0 && m->unloaded) {
        destroy(t, m);
    }
}
