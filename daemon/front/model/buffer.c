#include "daemon/front/model/buffer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/hash.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "proto/codec.h"

uint64_t buffer_charged(const struct buffer *b)
{
    return (b->flags & BUFFER_FLAG_VARIABLE) != 0 ? 0 : b->bytes;
}

bool buffer_charge(const struct buffer *b, struct device *d, uint64_t now_ns)
{
    uint64_t bytes = buffer_charged(b);
    if (bytes > UINT64_MAX - d->buffer_bytes ||
        !tenant_charge(b->tenant, d->index, bytes, now_ns)) {
        return false;
    }
    d->buffer_bytes += bytes;
    if (b->owner != NULL) {
        b->owner->near[d->index]++;
    }
    return true;
}

void buffer_discharge(const struct buffer *b, struct device *d, uint64_t now_ns)
{
    uint64_t bytes = buffer_charged(b);
    d->buffer_bytes -= bytes;
    tenant_discharge(b->tenant, d->index, bytes, now_ns);
    if (b->owner != NULL) {
        b->owner->near[d->index]--;
    }
    for (const struct buffer_opener *o = b->opener; o != NULL; o = o->next) {
        o->session->near[d->index]--;
    }
}

bool buffer_may_move(const struct buffer *b)
{
    bool own = (b->flags & (BUFFER_FLAG_EXPORT | BUFFER_FLAG_VARIABLE)) == 0;
    return own && b->name[0] == '\0' && b->openers == 0;
}

void buffer_move_to(struct buffer *b, struct device *from, struct device *to, uint64_t now_ns)
{
    if (!b->freed) { /* else it counts no more */
        buffer_discharge(b, from, now_ns);
    }
    b->device = to->index;
    b->shown = device_shown(to);
    b->losses = &to->losses;
    if (!b->freed) {
        (void)buffer_charge(b, to, now_ns); /* the sum over all devices is as before */
        for (const struct buffer_opener *o = b->opener; o != NULL; o = o->next) {
            o->session->near[to->index]++;
        }
    }
}

void buffer_own(struct buffer *b, struct session *s)
{
    b->owner = s;
    DL_APPEND2(s->owned, b, owned_prev, owned_next);
}

void buffer_unown(struct buffer *b)
{
    if (b->owner != NULL && b->owned_prev != NULL) {
        DL_DELETE2(b->owner->owned, b, owned_prev, owned_next);
        b->owned_prev = b->owned_next = NULL;
    }
    b->owner = NULL;
}

void buffer_disown(struct buffer *b)
{
    if (b->owner == NULL) {
        return;
    }
    b->owner->buffers--;
    b->owner->near[b->device] -= b->state != BUFFER_LOST ? 1 : 0;
    buffer_unown(b);
}

void buffer_set_state(struct buffer *b, enum buffer_state state)
{
    b->state = state;
    b->lives = b->losses != NULL ? *b->losses : 0;
}

bool buffer_outlived(const struct buffer *b)
{
    return b->losses != NULL && b->lives != *b->losses;
}

bool buffer_restorable(const struct buffer *b)
{
    bool sealed = b->copy == COPY_NONE && b->sealed && !b->sealing;
    return b->host_fd >= 0 && (sealed || b->copy == COPY_KEPT);
}

enum buffer_state buffer_state(const struct buffer *b)
{
    if (b->state != BUFFER_LIVE || !buffer_outlived(b)) {
        return b->state;
    }
    return buffer_restorable(b) ? BUFFER_RESTORING : BUFFER_LOST;
}

const char *buffer_state_name(const struct buffer *b)
{
    switch (buffer_state(b)) {
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

const char *buffer_title(const struct buffer *b, char out[BUFFER_TITLE])
{
    bool named = b->label[0] != '\0';
    (void)snprintf(out, BUFFER_TITLE, "buffer %#llx%s%s%s", (unsigned long long)b->handle,
                   named ? " (" : "", b->label, named ? ")" : "");
    return out;
}

unsigned buffer_wire_state(const struct buffer *b)
{
    if (buffer_state(b) == BUFFER_LOST) {
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
                           .device = b->shown + 1,
                           .name = bytes_str(b->name),
                           .generation = idmap_generation(b->handle)};
    return proto_encode(&schema_msg_buffer, &m, out, e);
}

/* The refusal of a handle that names no buffer. */
static int buffer_gone(const struct idmap *buffers, uint64_t handle, struct err *e)
{
    if (idmap_left_behind(buffers, handle)) {
        return err_set(e, ERR_BUFFER_LOST,
                       "buffer %#llx was lost when gpud and its workers were started anew: free it",
                       (unsigned long long)handle);
    }
    return idmap_state(buffers, handle) == IDMAP_UNKNOWN
               ? err_set(e, ERR_BAD_HANDLE, "there is no buffer %#llx", (unsigned long long)handle)
               : err_set(e, ERR_STALE_HANDLE, "buffer %#llx was freed", (unsigned long long)handle);
}

static struct buffer_opening *opening_of(const struct session *s, const struct buffer *b)
{
    struct buffer_opening *x = NULL;
    HASH_FIND_PTR(s->openings, &b, x);
    return x;
}

int buffer_find(const struct idmap *buffers, uint64_t handle, const struct tenant *tenant,
                struct buffer **ret_buffer, struct err *e)
{
    struct buffer *b = idmap_get(buffers, handle);
    if (b == NULL || b->freed) {
        return buffer_gone(buffers, handle, e);
    }
    if (b->tenant != tenant) {
        return err_set(e, ERR_BAD_HANDLE, "there is no buffer %#llx", (unsigned long long)handle);
    }
    *ret_buffer = b;
    return 0;
}

int buffer_find_for(const struct idmap *buffers, uint64_t handle, const struct session *s,
                    struct buffer **ret_buffer, struct err *e)
{
    struct buffer *b = NULL;
    int rc = buffer_find(buffers, handle, s->tenant, &b, e);
    if (rc == 0 && b->owner != NULL && b->owner != s && b->name[0] == '\0' &&
        opening_of(s, b) == NULL) {
        rc = err_set(e, ERR_BAD_HANDLE, "there is no buffer %#llx", (unsigned long long)handle);
    }
    if (rc == ERR_STALE_HANDLE && !idmap_freed_of(buffers, handle, s->id)) {
        rc = err_set(e, ERR_BAD_HANDLE, "there is no buffer %#llx", (unsigned long long)handle);
    }
    *ret_buffer = rc == 0 ? b : *ret_buffer;
    return rc;
}

struct buffer *buffer_named(const struct tenant *tenant, const char *name)
{
    struct buffer *b = NULL;
    HASH_FIND_BYHASHVALUE(hh_name, tenant->published, name, strlen(name), tenant_hash(tenant, name),
                          b);
    return b;
}

int buffer_check_grants(struct bytes grants, struct err *e)
{
    size_t word = 0;
    for (size_t i = 0; i <= grants.size && grants.size > 0; i++) {
        unsigned char c = i < grants.size ? grants.data[i] : ' ';
        bool good = isalnum(c) || (c != '\0' && strchr("-_.:", c) != NULL);
        word = c == ' ' && word > 0 ? 0 : good && word < PROTO_NAME_MAX ? word + 1 : SIZE_MAX;
        if (word == SIZE_MAX) {
            return err_set(e, ERR_INVALID,
                           "grants: not the names of tenants with a space between them: %.*s",
                           (int)grants.size, (const char *)grants.data);
        }
    }
    return 0;
}

bool buffer_set_grants(struct buffer *b, struct bytes grants)
{
    char *text = NULL;
    if (grants.size > 0) {
        text = strndup((const char *)grants.data, grants.size);
        if (text == NULL) {
            return false;
        }
    }
    free(b->grants);
    b->grants = text;
    return true;
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *c = words; *c != '\0';) {
        size_t n = strcspn(c, " ");
        if (n == length && memcmp(c, word, n) == 0) {
            return true;
        }
        c += n + (c[n] != '\0');
    }
    return false;
}

struct buffer *buffer_granted(const struct tenant *owner, const char *name,
                              const struct tenant *tenant)
{
    struct buffer *b = owner != NULL ? buffer_named(owner, name) : NULL;
    return b != NULL && b->grants != NULL && has_word(b->grants, tenant->name) ? b : NULL;
}

bool buffer_rename(struct buffer *b, const char *name)
{
    if (b->name[0] != '\0') {
        HASH_DELETE(hh_name, b->tenant->published, b);
    }
    (void)snprintf(b->name, sizeof b->name, "%s", name);
    if (b->name[0] != '\0') {
        HASH_ADD_BYHASHVALUE(hh_name, b->tenant->published, name, strlen(b->name),
                             tenant_hash(b->tenant, b->name), b);
    }
    if (b->name[0] != '\0' && !HASH_ENTERED(b->hh_name)) {
        b->name[0] = '\0';
        return false;
    }
    return true;
}

static struct buffer_opening *opening_obtain(struct session *s, struct buffer *b)
{
    struct buffer_opening *x = opening_of(s, b);
    if (x == NULL) {
        x = calloc(1, sizeof *x);
        if (x != NULL) {
            x->buffer = b;
            HASH_ADD_PTR(s->openings, buffer, x);
        }
        if (x != NULL && !HASH_ENTERED(x->hh)) {
            free(x);
            x = NULL;
        }
    }
    return x;
}

bool buffer_opener_add(struct buffer *b, struct session *s, uint64_t seq)
{
    struct buffer_opener *o = malloc(sizeof *o);
    struct buffer_opening *x = o != NULL ? opening_obtain(s, b) : NULL;
    if (x == NULL) {
        free(o);
        return false;
    }
    *o = (struct buffer_opener){.older = x->newest, .session = s, .seq = seq};
    x->newest = o;
    DL_PREPEND(b->opener, o);
    b->openers++;
    s->opens++;
    s->tenant->held[TENANT_OPENS]++;
    s->near[b->device] += b->state != BUFFER_LOST ? 1 : 0;
    return true;
}

/* Removes the newest opening; the last one removes the entry, too. */
static void opener_drop(struct buffer *b, struct buffer_opening *x)
{
    struct buffer_opener *o = x->newest;
    struct session *s = o->session;
    x->newest = o->older;
    if (x->newest == NULL) {
        HASH_DEL(s->openings, x);
        free(x);
    }
    DL_DELETE(b->opener, o);
    free(o);
    b->openers--;
    s->opens--;
    s->tenant->held[TENANT_OPENS]--;
    s->near[b->device] -= b->state != BUFFER_LOST ? 1 : 0;
}

bool buffer_opener_remove(struct buffer *b, struct session *s)
{
    struct buffer_opening *x = opening_of(s, b);
    if (x == NULL) {
        return false;
    }
    opener_drop(b, x);
    return true;
}

bool buffer_opener_newest(struct buffer *b, const struct buffer_opener *o)
{
    const struct buffer_opening *x = opening_of(o->session, b);
    return x != NULL && x->newest == o;
}

void buffer_destroy(struct buffer *b)
{
    if (b == NULL) {
        return;
    }
    while (b->opener != NULL) {
        struct buffer_opening *x = opening_of(b->opener->session, b);
        if (x == NULL) {
            break;
        }
        opener_drop(b, x);
    }
    buffer_unown(b);
    (void)buffer_rename(b, "");
    if (b->host_fd >= 0) {
        (void)close(b->host_fd);
    }
    if (b->export_fd >= 0) {
        (void)close(b->export_fd);
    }
    free(b->variable);
    free(b->grants);
    free(b->copy_of);
    free(b);
}
