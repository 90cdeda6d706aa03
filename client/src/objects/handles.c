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

static int refuse(const struct buffer *b, struct err *e)
{
    return err_set(e, ERR_BUFFER_LOST, "buffer 0x%llx %s: free it", (unsigned long long)b->id,
                   b->lost);
}

int buffer_use(struct gpud_client *c, gpud_buffer buffer, struct buffer **ret_buffer, struct err *e)
{
    struct buffer *b = NULL;
    int rc = buffer_get(c, buffer, &b, e);
    if (rc == 0 && b->lost != NULL) {
        return refuse(b, e);
    }
    *ret_buffer = rc == 0 ? b : *ret_buffer;
    return rc;
}

int buffer_explain(struct gpud_client *c, gpud_buffer buffer, struct err *e)
{
    const struct buffer *b = idmap_get(&c->buffers, buffer.id);
    bool unknown = e->code == ERR_BAD_HANDLE || e->code == ERR_STALE_HANDLE;
    return unknown && b != NULL && b->lost != NULL ? refuse(b, e) : e->code;
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

void buffer_lost(struct gpud_client *c, struct buffer *b, const char *why, const char *text)
{
    if (b->lost == NULL) {
        b->lost = why;
        c->buffers_lost++;
        client_event(c, GPUD_EVENT_BUFFER_LOST, (gpud_buffer){b->id}, text[0] != '\0' ? text : why);
    }
}

int buffer_check_daemon(const struct gpud_client *c, uint64_t daemon, struct err *e)
{
    uint32_t cursor = 0;
    const struct buffer *b = NULL;
    while (c->buffers_lost > 0 && (b = idmap_next(&c->buffers, &cursor, NULL)) != NULL) {
        if (b->lost != NULL && b->daemon == daemon) {
            return refuse(b, e);
        }
    }
    return 0;
}

void buffer_gone(struct gpud_client *c, const struct buffer *b)
{
    c->buffers_lost -= b->lost != NULL ? 1 : 0;
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
            buffer_lost(c, b, LOST_WITH_WORKER, "");
        }
    }
}
