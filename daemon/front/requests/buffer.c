/* Requests for buffers: create, free, info, seal, publish, open. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/memfd.h"
#include "common/saturate.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/memory/variable.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/record/record.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/places.h"

/* Limit of linger_ns, so that an unused name does not keep device memory for ever. */
#define LINGER_MAX_NS (24 * 3600 * NS_PER_S)

/* ---- create ---------------------------------------------------------------------------------- */

/* The largest buffer that the device can give, in bytes: a buffer has to fit on it as a whole.
 * room: what the tenant may add. */
static uint64_t largest(const struct device *d, uint64_t room)
{
    uint64_t most = device_pool_most(d);
    most = d->max_alloc > 0 && d->max_alloc < most ? d->max_alloc : most;
    return most < room ? most : room;
}

static int no_device(const struct front *f, const struct tenant *t, uint64_t wish, struct err *e)
{
    struct err why = ERR_INIT;
    const struct device *drained = domain_drained(f, t, wish);
    if (drained != NULL) {
        return device_refuse_drained(drained, e);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        bool may = tenant_may_use(t, i) && device_hopeful(f->device[i]);
        why.retry_after_ns = may ? 100 * NS_PER_MS : why.retry_after_ns;
    }
    uint64_t retry = why.retry_after_ns;
    if (wish > f->device_count) {
        (void)err_set(&why, ERR_RANGE, "there is no device %llu", (unsigned long long)(wish - 1));
    } else if (wish > 0 && !tenant_may_use(t, (unsigned)(wish - 1))) {
        (void)tenant_refuse_device(t, (unsigned)(wish - 1), &why);
        retry = 0;
    } else if (wish > 0) {
        (void)err_set(&why, ERR_NO_DEVICE, "device %llu does not serve: see gpuctl devices",
                      (unsigned long long)(wish - 1));
    } else {
        (void)tenant_no_device(t, &why);
    }
    why.retry_after_ns = why.code == ERR_RANGE ? 0 : retry;
    if (e != NULL) {
        *e = why;
    }
    return why.code;
}

/* The devices for a new buffer, among those considered so far. */
struct choice {
    struct device *best;
    struct device *over;   /* a device on which the tenant is over its limit; NULL: none */
    struct device *unseen; /* the first device whose memory is unknown yet; NULL: none */
    uint64_t room;         /* what the tenant may add on `best`, bytes */
    uint32_t near;         /* buffers of the session on `best`; 0 if its own memory lacks room */
};

static void consider(const struct front *f, const struct session *s, struct device *d,
                     uint64_t bytes, struct choice *c)
{
    if (bytes > tenant_room(s->tenant, d->index, device_extent(d))) {
        c->over = c->over == NULL ? d : c->over;
        return;
    }
    if (d->memory == 0) {
        c->unseen = c->unseen == NULL ? d : c->unseen;
        return;
    }
    uint64_t room = quota_room(f, d, s->tenant);
    uint64_t own = sat_sub(room, d->spill_limit); /* without memory of the host */
    uint32_t near = bytes <= largest(d, own) ? s->near[d->index] : 0;
    if (c->best == NULL || near > c->near || (near == c->near && room > c->room)) {
        c->best = d;
        c->room = room;
        c->near = near;
    }
}

/* The text says what helps. To free buffers does not raise what the device gives in one piece. */
static int refuse_size(const struct session *s, const struct choice *c, uint64_t bytes,
                       struct err *e)
{
    const struct device *d = c->best;
    unsigned long long pool = device_pool_most(d), once = largest(d, UINT64_MAX);
    if (bytes > once) {
        return err_set(e, ERR_DEVICE_MEMORY,
                       "%llu bytes wanted by tenant %s; device %u gives at most %llu bytes to one "
                       "buffer%s: split it",
                       (unsigned long long)bytes, s->tenant->name, device_shown(d), once,
                       once < pool ? " (its limit for one allocation)" : "");
    }
    return err_set(e, ERR_DEVICE_MEMORY,
                   "%llu bytes wanted by tenant %s; device %u of %llu bytes and the host have %llu "
                   "free for it, at most %llu at once: free buffers",
                   (unsigned long long)bytes, s->tenant->name, device_shown(d), pool,
                   (unsigned long long)c->room, (unsigned long long)largest(d, c->room));
}

/* Whether the device may serve soon. New buffers wait for such a device as jobs do, and its worker
 * is asked for them when it is open. */
static bool comes(const struct device *d)
{
    return device_admits(d) && d->recovery == 0 && d->state != DEVICE_ADOPTING;
}

static void consider_all(const struct front *f, const struct session *s, uint64_t wish,
                         uint64_t bytes, bool serving, struct choice *c)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = domain_of(s->tenant, f->device[i]);
        if (!tenant_may_use(s->tenant, i) || (wish != 0 && wish != i + 1) || d == NULL ||
            !(serving ? device_serves(d) : comes(d))) {
            continue;
        }
        consider(f, s, d, bytes, c);
    }
}

/* Chooses the wished device. Without a wish it chooses among devices that serve and on which the
 * tenant may have so much. It prefers the device with the most buffers of the session, because all
 * buffers of a job share a device; devices without room in their own memory do not count for this.
 * Otherwise it takes the device with the most room, including host memory to spill to. If no device
 * serves, it chooses one that may serve soon. */
static int choose_device(struct front *f, const struct session *s, uint64_t wish, uint64_t bytes,
                         struct device **ret_device, struct err *e)
{
    struct choice c = {.best = NULL};
    consider_all(f, s, wish, bytes, true, &c);
    if (c.best == NULL && c.over == NULL) {
        consider_all(f, s, wish, bytes, false, &c);
    }
    if (c.best == NULL && c.unseen != NULL) {
        *ret_device = c.unseen;
        return 0;
    }
    if (c.best == NULL && c.over != NULL) {
        return tenant_refuse(s->tenant, c.over, bytes, e);
    }
    if (c.best == NULL) {
        return no_device(f, s->tenant, wish, e);
    }
    if (bytes > largest(c.best, c.room)) {
        return refuse_size(s, &c, bytes, e);
    }
    *ret_device = c.best;
    return 0;
}

/* Would a new domain do better on the first device? There it finds a place, or more memory. */
static bool suits(const struct front *f, const struct device *a, const struct device *b)
{
    bool full_a = places_used(a) >= f->config.domains_max;
    bool full_b = places_used(b) >= f->config.domains_max;
    return full_a != full_b ? full_b : a->granted < b->granted;
}

/* The same for a tenant that is apart. A domain that has room is preferred; else one is made. */
static int choose_domain(struct front *f, const struct session *s, uint64_t wish, uint64_t bytes,
                         struct device **ret_device, struct err *e)
{
    struct device *base = NULL;
    struct err full = ERR_INIT;
    if (choose_device(f, s, wish, bytes, ret_device, &full) == 0) {
        return domain_want(f, *ret_device, e);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        bool may = (wish == 0 || wish == i + 1) && comes(d) && domain_of(s->tenant, d) == NULL;
        if (may && (base == NULL || suits(f, d, base))) {
            base = d;
        }
    }
    if (base == NULL) {
        *e = full;
        return full.code;
    }
    uint64_t most = base->memory > 0 ? domain_most(f, s->tenant, base) : UINT64_MAX;
    if (bytes > most && most > 0) {
        return err_set(e, ERR_DEVICE_MEMORY,
                       "%llu bytes wanted by tenant %s, whose worker on device %u gets %llu at "
                       "most: split it",
                       (unsigned long long)bytes, s->tenant->name, base->index,
                       (unsigned long long)most);
    }
    return domain_obtain(f, s->tenant, base, ret_device, e);
}

static int choose(struct front *f, const struct session *s, uint64_t wish, uint64_t bytes,
                  struct device **ret_device, struct err *e)
{
    struct err ignored = ERR_INIT;
    return s->tenant->apart ? choose_domain(f, s, wish, bytes, ret_device, e != NULL ? e : &ignored)
                            : choose_device(f, s, wish, bytes, ret_device, e);
}

/* What the session asks for. */
struct wanted {
    struct shape shape;
    uint64_t flags;
    struct bytes label;
    uint64_t seq; /* number of its request */
};

static int make(struct request_context *c, const struct wanted *w, struct device *d,
                struct buffer **ret_buffer, struct err *e)
{
    struct buffer *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a buffer");
    }
    b->host_fd = -1;
    b->export_fd = -1;
    b->shape = w->shape;
    b->bytes = shape_bytes(&w->shape);
    b->flags = w->flags;
    b->tenant = c->s->tenant;
    buffer_own(b, c->s);
    b->user = session_user(&c->s->key);
    b->seq = w->seq;
    b->device = d->index;
    b->shown = device_shown(d);
    b->losses = &d->losses;
    b->linger_until_ns = NS_NEVER;
    memcpy(b->client_id, c->s->key.client_id, sizeof b->client_id);
    if (!bytes_to_str(w->label, b->label, sizeof b->label)) {
        buffer_destroy(b);
        return err_set(e, ERR_INVALID, "label of %zu bytes: too long, or it contains a NUL",
                       w->label.size);
    }
    int rc = idmap_enter(&c->f->buffers, b, "buffers", "free some", &b->handle, e);
    if (rc != 0) {
        buffer_destroy(b);
        return rc;
    }
    b->tenant->held[TENANT_BUFFERS]++;
    *ret_buffer = b;
    return 0;
}

/* Takes back what make() did. */
static void unmake(struct request_context *c, struct buffer *b)
{
    (void)idmap_remove(&c->f->buffers, b->handle);
    b->tenant->held[TENANT_BUFFERS]--;
    buffer_destroy(b);
}

static int charge(struct request_context *c, struct buffer *b, struct device *d, struct err *e)
{
    return buffer_charge(b, d, turn_now(c->f))
               ? 0
               : err_set(e, ERR_DEVICE_MEMORY,
                         "a buffer of %llu bytes: the sum of all buffers would overflow",
                         (unsigned long long)b->bytes);
}

static int place(struct request_context *c, const struct wanted *w, struct device **ret_device,
                 struct buffer **ret_buffer, struct err *e)
{
    uint64_t wish = c->r->msg.buffer_create.device;
    struct module *m = NULL;
    struct buffer *b = NULL;
    int rc = variable_module(c, wish, &m, &wish, e);
    uint64_t bytes = m != NULL ? 0 : shape_bytes(&w->shape);
    rc = rc == 0 ? choose(c->f, c->s, wish, bytes, ret_device, e) : rc;
    rc = rc == 0 ? make(c, w, *ret_device, &b, e) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = m != NULL ? variable_attach(c, m, b, e) : 0;
    rc = rc == 0 ? charge(c, b, *ret_device, e) : rc;
    if (rc != 0) {
        unmake(c, b);
        return rc;
    }
    *ret_buffer = b;
    return 0;
}

/* May the session have one more buffer? */
static int check_count(const struct request_context *c, struct err *e)
{
    const struct config *config = &c->f->config;
    int rc = tenant_check(c->s->tenant, TENANT_BUFFERS, config->tenant_buffers_max, e);
    if (rc == 0 && c->s->buffers >= config->buffers_max) {
        rc = err_set(e, ERR_LIMIT, "this session has %u buffers, at most %llu", c->s->buffers,
                     (unsigned long long)config->buffers_max);
    }
    return rc;
}

/* The worker is asked for it, now or when its device is ready (buffer_device_ready). */
static void begin(struct request_context *c, struct buffer *b)
{
    b->pending = c->o;
    c->s->buffers++;
    buffer_ask(c->f, b);
}

int request_buffer_create(struct request_context *c, struct err *e)
{
    const struct msg_buffer_create *m = &c->r->msg.buffer_create;
    uint64_t dims[] = {m->d0, m->d1, m->d2, m->d3};
    struct wanted w = {.flags = m->flags, .label = m->label, .seq = m->seq};
    int rc = shape_make((int)m->dtype, (unsigned)m->ndim, dims, &w.shape, e);
    if (rc != 0) {
        return rc;
    }
    const uint64_t kinds = BUFFER_FLAG_EXPORT | BUFFER_FLAG_MANAGED | BUFFER_FLAG_STAY;
    uint64_t kind = m->flags & kinds; /* at most one */
    if ((m->flags & ~(kinds | BUFFER_FLAG_ZERO)) != 0 || (kind & (kind - 1)) != 0) {
        return err_set(e, ERR_INVALID, "flags %#llx of a buffer are unknown or exclude each other",
                       (unsigned long long)m->flags);
    }
    struct device *d = NULL;
    struct buffer *b = NULL;
    rc = check_count(c, e);
    rc = rc == 0 ? place(c, &w, &d, &b, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if ((b->flags & BUFFER_FLAG_ZERO) != 0) {
        spans_add(&b->defined, 0, b->bytes);
    }
    if (c->f->watchers > 0 && b->variable == NULL) {
        record_buffer_made(c->f, b);
    }
    begin(c, b);
    return 0;
}

/* ---- free, info, seal, publish, open ------------------------------------------------------ */

static int find(struct request_context *c, uint64_t handle, struct buffer **ret_buffer,
                struct err *e)
{
    return buffer_find_for(&c->f->buffers, handle, c->s, ret_buffer, e);
}

/* Only its maker may seal or publish a buffer. */
static int find_own(struct request_context *c, uint64_t handle, struct buffer **ret_buffer,
                    struct err *e)
{
    int rc = find(c, handle, ret_buffer, e);
    if (rc == 0 && (*ret_buffer)->owner != c->s) {
        return err_set(e, ERR_PERMISSION, "buffer %#llx was made by another session",
                       (unsigned long long)handle);
    }
    return rc;
}

static int reply_done(struct request_context *c, uint64_t value, struct err *e)
{
    struct msg_done m = {.value = value};
    return proto_encode(&schema_msg_done, &m, c->out, e);
}

/* Whether an earlier daemon made the handle. This daemon does not know whether the buffer was freed
 * there, or which sessions had opened it. So freeing it is no error, and a repeated BUFFER_FREE
 * gets its answer. */
static bool from_before(const struct front *f, uint64_t handle)
{
    uint64_t generation = idmap_generation(handle);
    return generation != 0 && generation < f->buffers.first_generation;
}

int request_buffer_free(struct request_context *c, struct err *e)
{
    struct buffer *b = NULL;
    uint64_t handle = c->r->msg.buffer_free.handle;
    int rc = find(c, handle, &b, e);
    if ((rc == ERR_STALE_HANDLE || rc == ERR_BUFFER_LOST) && from_before(c->f, handle)) {
        return reply_done(c, 0, e);
    }
    if (rc != 0) {
        return rc;
    }
    if (b->owner != c->s) {
        if (!buffer_opener_remove(b, c->s)) {
            if (from_before(c->f, handle)) {
                return reply_done(c, 0, e);
            }
            return err_set(e, ERR_PERMISSION, "buffer %#llx was made by another session",
                           (unsigned long long)handle);
        }
        buffer_let_linger(c->f, b);
        command_buffer_record(c->f, b);
        return reply_done(c, 0, e);
    }
    if (b->state == BUFFER_CREATING || b->pending != NULL || b->sealing) {
        return err_set(e, ERR_STATE, "buffer %#llx is being made or sealed: wait for that answer",
                       (unsigned long long)handle);
    }
    b->freed_by = c->r->msg.buffer_free.seq;
    if (b->name[0] != '\0' && b->openers > 0) {
        buffer_disown(b); /* other sessions have it open: it lives on by its name */
        command_buffer_record(c->f, b);
        return reply_done(c, 0, e);
    }
    rc = reply_done(c, 0, e);
    buffer_drop(c->f, b);
    return rc;
}

int request_buffer_info(struct request_context *c, struct err *e)
{
    struct buffer *b = NULL;
    int rc = find(c, c->r->msg.buffer_info.handle, &b, e);
    return rc != 0 ? rc : buffer_encode(b, c->out, e);
}

int request_buffer_seal(struct request_context *c, struct err *e)
{
    struct buffer *b = NULL;
    int rc = find_own(c, c->r->msg.buffer_seal.handle, &b, e);
    rc = rc == 0 ? variable_refuse(b, "sealed", e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (buffer_state(b) == BUFFER_LOST) {
        return err_set(e, ERR_BUFFER_LOST, "buffer %#llx is lost", (unsigned long long)b->handle);
    }
    if (b->pending != NULL || b->sealing || b->state == BUFFER_CREATING) {
        return err_set(e, ERR_STATE, "buffer %#llx is being %s: wait for that answer",
                       (unsigned long long)b->handle, b->sealed ? "sealed" : "made");
    }
    if (b->sealed) {
        return buffer_encode(b, c->out, e);
    }
    if (!descriptors_spare()) {
        return err_set(e, ERR_LIMIT,
                       "no descriptor is left for the buffer's copy: free sealed buffers, or raise "
                       "LimitNOFILE= of the unit");
    }
    rc = domain_want(c->f, c->f->device[b->device], e);
    if (rc != 0) {
        return rc;
    }
    b->sealed = true; /* no writer is admitted from here on */
    b->seal_wanted = true;
    b->pending = c->o;
    buffer_seal_next(c->f, b);
    return 0;
}

/* Its content goes to other tenants by its copy on the host, so that has to be there, and no
 * process may be able to write it any more. The worker has seen to that: the front only looks,
 * because the system walks over the memory, and waits for pages that are in use, to make it so. */
static int check_grant(const struct buffer *b, struct bytes grants, struct err *e)
{
    unsigned long long handle = b->handle;
    int rc = buffer_check_grants(grants, e);
    if (rc != 0 || grants.size == 0) {
        return rc;
    }
    if (buffer_state(b) == BUFFER_LOST) {
        return err_set(e, ERR_BUFFER_LOST, "buffer %#llx is lost", handle);
    }
    if (!b->sealed || !buffer_restorable(b)) {
        return err_set(
            e, ERR_STATE,
            "buffer %#llx is not sealed: others get copies of what cannot change, so seal "
            "it first",
            handle);
    }
    if (!memfd_frozen(b->host_fd)) {
        return err_set(e, ERR_BUSY,
                       "buffer %#llx cannot be granted: its copy can still be written, so seal "
                       "another one",
                       handle);
    }
    return 0;
}

int request_buffer_publish(struct request_context *c, struct err *e)
{
    const struct msg_buffer_publish *m = &c->r->msg.buffer_publish;
    char name[PROTO_NAME_MAX + 1];
    struct buffer *b = NULL;
    int rc = find_own(c, m->handle, &b, e);
    rc = rc == 0 ? variable_refuse(b, "published", e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (m->name.size == 0 || !bytes_to_str(m->name, name, sizeof name)) {
        return err_set(e, ERR_INVALID, "a published buffer needs a name of 1 to %u bytes",
                       PROTO_NAME_MAX);
    }
    struct buffer *other = buffer_named(c->s->tenant, name);
    if (other != NULL && other != b) {
        return err_set(e, ERR_EXISTS, "a buffer is published as %s already", name);
    }
    rc = check_grant(b, m->grants, e);
    if (rc != 0) {
        return rc;
    }
    if (!buffer_set_grants(b, m->grants) || !buffer_rename(b, name)) {
        return err_set(e, ERR_NOMEM, "no memory for the name of a buffer");
    }
    b->rights = m->rights != 0 ? (unsigned)m->rights : ACCESS_IN;
    b->linger_ns = m->linger_ns < LINGER_MAX_NS ? m->linger_ns : LINGER_MAX_NS;
    command_buffer_record(c->f, b);
    return buffer_encode(b, c->out, e);
}

/* A copy of the session's own: sealed, with the content that its worker restores from the copy on
 * the host, which the two buffers share. */
static int make_copy(struct request_context *c, const struct buffer *source, struct device *d,
                     struct buffer **ret_buffer, struct err *e)
{
    const struct wanted w = {.shape = source->shape,
                             .label = bytes_str(source->label),
                             .seq = c->r->msg.buffer_open.seq};
    struct buffer *b = NULL;
    int rc = make(c, &w, d, &b, e);
    if (rc != 0) {
        return rc;
    }
    if (asprintf(&b->copy_of, "%s/%s", source->tenant->name, source->name) < 0) {
        b->copy_of = NULL; /* glibc leaves it undefined */
        rc = err_set(e, ERR_NOMEM, "no memory for the copy of a buffer");
    }
    b->host_fd = fcntl(source->host_fd, F_DUPFD_CLOEXEC, 0);
    rc = rc == 0 && b->host_fd < 0
             ? err_errno(e, ERR_LIMIT, "a descriptor for the copy of a buffer")
             : rc;
    rc = rc == 0 ? charge(c, b, d, e) : rc;
    if (rc != 0) {
        unmake(c, b);
        return rc;
    }
    b->sealed = true;
    spans_add(&b->defined, 0, b->bytes);
    *ret_buffer = b;
    return 0;
}

/* A tenant without the right learns nothing: not whether owner, name or grant exist. */
static int open_granted(struct request_context *c, const char *owner, const char *name,
                        struct err *e)
{
    const struct tenant *t = tenant_find(c->f->tenants, tenant_key_of(owner));
    const struct buffer *source = buffer_granted(t, name, c->s->tenant);
    struct device *d = NULL;
    struct buffer *b = NULL;
    if (source == NULL) {
        return err_set(e, ERR_NOT_FOUND, "tenant %s grants no buffer %s to tenant %s", owner, name,
                       c->s->tenant->name);
    }
    if (buffer_state(source) == BUFFER_LOST || !source->sealed || !buffer_restorable(source) ||
        !memfd_frozen(source->host_fd)) { /* what an adopted worker reports is not believed */
        return err_set(e, ERR_BUFFER_LOST, "buffer %s of tenant %s was lost", name, owner);
    }
    if (!descriptors_spare()) {
        return err_set(e, ERR_LIMIT, "no descriptor is left for the copy of %s", name);
    }
    int rc = check_count(c, e);
    rc = rc == 0 ? choose(c->f, c->s, 0, source->bytes, &d, e) : rc;
    rc = rc == 0 ? make_copy(c, source, d, &b, e) : rc;
    if (rc == 0) {
        begin(c, b);
    }
    return rc;
}

/* Are both of one user of this host? Several may be in one tenant. */
static bool same_user(const struct session *a, const struct session *b)
{
    return a->client.local && b->client.local && a->key.uid == b->key.uid &&
           a->key.listener == b->key.listener;
}

/* "#0x100000001": a buffer of another session of the user, which may read it (gpuctl job dump
 * --with-data). NULL: there is none. */
static struct buffer *by_handle(const struct request_context *c, const char *name)
{
    struct buffer *b = NULL;
    char *end = NULL;
    uint64_t handle = name[0] == '#' ? strtoull(name + 1, &end, 16) : 0;
    bool good = handle != 0 && *end == '\0' &&
                buffer_find(&c->f->buffers, handle, c->s->tenant, &b, NULL) == 0 &&
                b->owner != NULL && same_user(b->owner, c->s);
    return good && b->variable == NULL ? b : NULL;
}

int request_buffer_open(struct request_context *c, struct err *e)
{
    char name[PROTO_NAME_MAX + 1];
    char owner[PROTO_NAME_MAX + 1];
    const struct bytes given = c->r->msg.buffer_open.name;
    struct buffer *b = NULL;
    if (!bytes_to_str(c->r->msg.buffer_open.owner, owner, sizeof owner)) {
        return err_set(e, ERR_INVALID, "the name of a tenant contains a NUL");
    }
    if (bytes_to_str(given, name, sizeof name)) {
        if (owner[0] != '\0' && strcmp(owner, c->s->tenant->name) != 0) {
            return open_granted(c, owner, name, e);
        }
        b = buffer_named(c->s->tenant, name);
        b = b != NULL ? b : by_handle(c, name);
    }
    if (b == NULL) {
        return err_set(e, ERR_NOT_FOUND, "no buffer is published as %.*s", (int)given.size,
                       (const char *)given.data);
    }
    if (buffer_state(b) == BUFFER_LOST) {
        return err_set(e, ERR_BUFFER_LOST, "published buffer %s was lost with its worker", name);
    }
    unsigned shown = device_shown(c->f->device[b->device]);
    if (!tenant_may_use(c->s->tenant, shown)) {
        return tenant_refuse_device(c->s->tenant, shown, e);
    }
    if (c->s->opens >= c->f->config.buffers_max) {
        return err_set(e, ERR_LIMIT,
                       "this session has %u published buffers open, at most %llu: free some",
                       c->s->opens, (unsigned long long)c->f->config.buffers_max);
    }
    int rc = tenant_check(c->s->tenant, TENANT_OPENS, c->f->config.tenant_opens_max, e);
    if (rc != 0) {
        return rc;
    }
    if (!buffer_opener_add(b, c->s, c->r->msg.buffer_open.seq)) {
        return err_set(e, ERR_NOMEM, "no memory to open %s", name);
    }
    command_buffer_record(c->f, b);
    b->linger_until_ns = NS_NEVER;
    agenda_drop(&c->f->lingering, &b->linger);
    return buffer_encode(b, c->out, e);
}
