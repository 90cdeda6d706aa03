#include "client/src/objects/handles.h"

#include <stdlib.h>

#include "client/src/base/events.h"
#include "client/src/objects/objects.h"

#define HANDLES_MAX IDMAP_MAX

void handles_init(struct gpud_client *c, uint64_t first_generation)
{
    idmap_init(&c->buffers, HANDLES_MAX, first_generation);
    idmap_init(&c->kernels, HANDLES_MAX, first_generation);
    idmap_init(&c->modules, HANDLES_MAX, first_generation);
}

void handles_finish(struct gpud_client *c)
{
    uint32_t cursor = 0;
    void *buffer;
    while ((buffer = idmap_next(&c->buffers, &cursor, NULL)) != NULL) {
        free(buffer);
    }
    idmap_finish(&c->buffers);
    idmap_finish(&c->kernels);
    idmap_finish(&c->modules);
    while (c->objects != NULL) {
        struct object *o = c->objects;
        object_unlink(c, o);
        o->destroy(o);
    }
}

static int get(const struct idmap *map, uint64_t id, const char *what, void **ret_value,
               struct err *e)
{
    void *value = idmap_get(map, id);
    if (value != NULL) {
        *ret_value = value;
        return 0;
    }
    /* a handle below this client's first generation is another client's */
    bool stale = idmap_state(map, id) == IDMAP_STALE && !idmap_left_behind(map, id);
    return err_set(e, stale ? ERR_STALE_HANDLE : ERR_BAD_HANDLE,
                   stale ? "%s 0x%llx was freed" : "%s 0x%llx: no such handle", what,
                   (unsigned long long)id);
}

int buffer_get(struct gpud_client *c, gpud_buffer buffer, struct buffer **ret_buffer, struct err *e)
{
    void *value = NULL;
    int rc = get(&c->buffers, buffer.id, "buffer", &value, e);
    if (rc == 0) {
        *ret_buffer = value;
    }
    return rc;
}

int kernel_get(struct gpud_client *c, gpud_kernel kernel, struct kernel **ret_kernel, struct err *e)
{
    void *value = NULL;
    int rc = get(&c->kernels, kernel.id, "kernel", &value, e);
    if (rc == 0) {
        *ret_kernel = value;
    }
    return rc;
}

int module_get(struct gpud_client *c, gpud_module module, struct module **ret_module, struct err *e)
{
    void *value = NULL;
    int rc = get(&c->modules, module.id, "module", &value, e);
    if (rc == 0) {
        *ret_module = value;
    }
    return rc;
}

gpud_buffer buffer_by_daemon(struct gpud_client *c, uint64_t daemon)
{
    uint32_t cursor = 0;
    uint64_t id = 0;
    struct buffer *buffer;
    while ((buffer = idmap_next(&c->buffers, &cursor, &id)) != NULL) {
        if (buffer->daemon == daemon) {
            return (gpud_buffer){id};
        }
    }
    return (gpud_buffer){0};
}

void buffer_lost(struct gpud_client *c, struct buffer *b, const char *text)
{
    if (!b->lost) {
        b->lost = true;
        client_event(c, GPUD_EVENT_BUFFER_LOST, (gpud_buffer){b->id}, text);
    }
}

void buffer_coming(struct gpud_client *c)
{
    c->buffers_coming++;
}

void buffer_came(struct gpud_client *c)
{
    if (--c->buffers_coming == 0) {
        c->losts_early = 0;
    }
}

void buffer_lost_early(struct gpud_client *c, uint64_t daemon)
{
    if (c->buffers_coming > 0) {
        c->lost_early[c->losts_early++ % LOST_EARLY_MAX] = daemon;
    }
}

void buffer_check_early(struct gpud_client *c, struct buffer *b)
{
    for (unsigned i = 0; i < c->losts_early && i < LOST_EARLY_MAX; i++) {
        if (c->lost_early[i] == b->daemon) {
            buffer_lost(c, b, "");
        }
    }
}
