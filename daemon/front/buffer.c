#include "daemon/front/buffer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/device.h"
#include "daemon/front/session.h"
#include "daemon/front/tenant.h"
#include "proto/codec.h"

uint64_t buffer_charged(const struct buffer *b)
{
    return (b->flags & BUFFER_FLAG_VARIABLE) != 0 ? 0 : b->bytes;
}

bool buffer_charge(const struct buffer *b, struct device *d)
{
    uint64_t bytes = buffer_charged(b);
    if (bytes > UINT64_MAX - d->buffer_bytes || !tenant_charge(b->tenant, d->index, bytes)) {
        return false;
    }
    d->buffer_bytes += bytes;
    if (b->owner != NULL) {
        b->owner->near[d->index]++;
    }
    return true;
}

void buffer_discharge(const struct buffer *b, struct device *d)
{
    uint64_t bytes = buffer_charged(b);
    d->buffer_bytes -= bytes;
    tenant_discharge(b->tenant, d->index, bytes);
    if (b->owner != NULL) {
        b->owner->near[d->index]--;
    }
    for (const struct buffer_opener *o = b->opener; o != NULL; o = o->next) {
        o->session->near[d->index]--;
    }
}

void buffer_disown(struct buffer *b)
{
    if (b->owner == NULL) {
        return;
    }
    b->owner->buffers--;
    b->owner->near[b->device] -= b->state != BUFFER_LOST ? 1 : 0;
    b->owner = NULL;
}

void buffer_set_state(struct buffer *b, enum buffer_state state)
{
    b->state = state;
}

const char *buffer_state_name(const struct buffer *b)
{
    switch (b->state) {
    case BUFFER_CREATING:
        return "creating";
    case BUFFER_RESTORING:
        return "restoring";
    case BUFFER_LOST:
        return "lost";
    case BUFFER_LIVE:
        break;
    }
    if (b->sealed) {
        return "sealed";
    }
    return spans_cover(&b->defined, 0, b->bytes) ? "defined" : "undefined";
}

unsigned buffer_wire_state(const struct buffer *b)
{
    if (b->state == BUFFER_LOST) {
        return 4;
    }
    if (b->sealed) {
        return 3;
    }
    return spans_cover(&b->defined, 0, b->bytes) ? 1 : 2;
}

int buffer_encode(const struct buffer *b, struct capbuf *out, struct err *e)
{
    const uint64_t *d = b->shape.dim;
    struct msg_buffer m = {.handle = b->handle,
                           .dtype = b->shape.dtype,
                           .ndim = b->shape.ndim,
                           .d0 = d[0],
                           .d1 = d[1],
                           .d2 = d[2],
                           .d3 = d[3],
                           .flags = b->flags,
                           .label = bytes_str(b->label),
                           .state = buffer_wire_state(b),
                           .device = b->device + 1,
                           .name = bytes_str(b->name),
                           .generation = idmap_generation(b->handle)};
    return proto_encode(&schema_msg_buffer, &m, out, e);
}

int buffer_find(const struct idmap *buffers, uint64_t handle, const struct tenant *tenant,
                struct buffer **ret_buffer, struct err *e)
{
    struct buffer *b = idmap_get(buffers, handle);
    if (b == NULL || b->freed) {
        return b != NULL || idmap_state(buffers, handle) == IDMAP_STALE
                   ? err_set(e, ERR_STALE_HANDLE, "buffer %#llx was freed",
                             (unsigned long long)handle)
                   : err_set(e, ERR_BAD_HANDLE, "there is no buffer %#llx",
                             (unsigned long long)handle);
    }
    if (b->tenant != tenant) {
        return err_set(e, ERR_PERMISSION, "buffer %#llx belongs to another tenant",
                       (unsigned long long)handle);
    }
    *ret_buffer = b;
    return 0;
}

struct buffer *buffer_named(const struct idmap *buffers, const struct tenant *tenant,
                            const char *name)
{
    uint32_t cursor = 0;
    struct buffer *b;
    while ((b = idmap_next(buffers, &cursor, NULL)) != NULL) {
        if (b->tenant == tenant && b->name[0] != '\0' && strcmp(b->name, name) == 0) {
            return b;
        }
    }
    return NULL;
}

bool buffer_opener_add(struct buffer *b, struct session *s, uint64_t seq)
{
    struct buffer_opener *o = malloc(sizeof *o);
    if (o == NULL) {
        return false;
    }
    *o = (struct buffer_opener){.next = b->opener, .session = s, .seq = seq};
    b->opener = o;
    b->openers++;
    s->opens++;
    s->near[b->device] += b->state != BUFFER_LOST ? 1 : 0;
    return true;
}

bool buffer_opener_remove(struct buffer *b, struct session *s)
{
    for (struct buffer_opener **at = &b->opener; *at != NULL; at = &(*at)->next) {
        if ((*at)->session == s) {
            struct buffer_opener *o = *at;
            *at = o->next;
            free(o);
            b->openers--;
            s->opens--;
            s->near[b->device] -= b->state != BUFFER_LOST ? 1 : 0;
            return true;
        }
    }
    return false;
}

void buffer_destroy(struct buffer *b)
{
    if (b == NULL) {
        return;
    }
    while (b->opener != NULL) {
        struct buffer_opener *o = b->opener;
        b->opener = o->next;
        free(o);
    }
    if (b->host_fd >= 0) {
        (void)close(b->host_fd);
    }
    if (b->export_fd >= 0) {
        (void)close(b->export_fd);
    }
    free(b->variable);
    free(b);
}
