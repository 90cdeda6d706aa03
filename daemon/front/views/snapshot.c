#include "daemon/front/views/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/views/snapshot_set.h"

#define TIMEOUT_NS     (2 * NS_PER_S) /* the default */
#define TIMEOUT_MAX_NS (30 * NS_PER_S)
#define KEPT_NS        (60 * NS_PER_S) /* after it was last read */
#define MEMORY_MAX     snapshot_bytes(SNAPSHOT_METERS_MAX, SNAPSHOT_EVENTS_MAX, SNAPSHOT_PIECES_MAX)

/* ---- sets --------------------------------------------------------------------------------- */

static void set_destroy(struct front *f, struct snapshot_set *set)
{
    struct snapshot_set **at = &f->snapshots;
    while (*at != set) {
        at = &(*at)->next;
    }
    *at = set->next;
    f->snapshot_count--;
    set->tenant->snapshots--;
    if (set->request != NULL && set->request->slot != NULL) {
        f->io.drop(f->listener, set->request->slot);
    }
    request_destroy(set->request);
    for (unsigned i = 0; i < set->count; i++) {
        memfd_finish(&set->snapshot[i].memory);
    }
    free(set);
}

static const struct session *session_of(const struct front *f, const struct snapshot_set *set)
{
    const struct session *s = f->sessions;
    while (s != NULL && s->id != set->session) {
        s = s->hh.next;
    }
    return s;
}

/* Makes room for another set. At a limit it drops the tenant's oldest answered set. A tenant that
 * has none, and is below its own limit, displaces the oldest answered set of all tenants. */
static int make_room(struct front *f, const struct tenant *t, struct err *e)
{
    struct snapshot_set *oldest = NULL;
    struct snapshot_set *oldest_of_all = NULL;
    for (struct snapshot_set *set = f->snapshots; set != NULL; set = set->next) {
        oldest_of_all = set->request == NULL ? set : oldest_of_all;
        if (set->tenant == t) {
            oldest = set->request == NULL ? set : oldest;
        }
    }
    if (t->snapshots < SNAPSHOTS_TENANT_MAX && f->snapshot_count < SNAPSHOTS_MAX) {
        return 0;
    }
    if (oldest == NULL && t->snapshots < SNAPSHOTS_TENANT_MAX) {
        oldest = oldest_of_all;
    }
    if (oldest == NULL) {
        return err_set(e, ERR_BUSY,
                       "%u snapshots of pools are under way: try again after one of them",
                       t->snapshots < SNAPSHOTS_TENANT_MAX ? f->snapshot_count : t->snapshots);
    }
    set_destroy(f, oldest);
    return 0;
}

/* ---- the answer --------------------------------------------------------------------------- */

static bool complete(const struct snapshot_set *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->snapshot[i].state == SNAPSHOT_ASKED) {
            return false;
        }
    }
    return true;
}

static void answered(struct snapshot_set *set)
{
    request_destroy(set->request);
    set->request = NULL;
}

static void answer(struct front *f, struct snapshot_set *set)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    if (session_of(f, set) == NULL) { /* the session ended */
        set_destroy(f, set);
        return;
    }
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    if (snapshot_table_numbers(set, &out, &e) != 0) {
        struct msg_error m;
        proto_error_from(&e, &m);
        capbuf_reset(&out);
        (void)proto_encode(&schema_msg_error, &m, &out, NULL);
        reply_plain(f, set->request, capbuf_view(&out));
        answered(set);
        set_destroy(f, set);
    } else {
        reply_plain(f, set->request, capbuf_view(&out));
        answered(set);
        set->until_ns = ns_add(front_now(f), KEPT_NS);
        wake_at(f, set->until_ns);
    }
    capbuf_finish(&out);
}

static void missing(struct snapshot *p, const char *why)
{
    p->state = SNAPSHOT_MISSING;
    (void)snprintf(p->note, sizeof p->note, "%s", why);
}

void snapshot_watch(struct front *f, uint64_t now)
{
    struct snapshot_set *next = NULL;
    for (struct snapshot_set *set = f->snapshots; set != NULL; set = next) {
        next = set->next;
        if (now < set->until_ns) {
            wake_at(f, set->until_ns);
            continue;
        }
        for (unsigned i = 0; i < set->count; i++) {
            struct snapshot *p = &set->snapshot[i];
            char why[96];
            (void)snprintf(why, sizeof why, "its worker did not answer within %" PRIu64 " ms",
                           set->timeout_ns / NS_PER_MS);
            if (p->state == SNAPSHOT_ASKED) {
                missing(p, why);
            }
        }
        if (set->request != NULL) {
            answer(f, set);
        } else {
            set_destroy(f, set);
        }
    }
}

/* ---- asking ------------------------------------------------------------------------------- */

static void ask(struct snapshot *p, struct device *d, uint64_t nonce, bool detail)
{
    const struct msg_f_pool numbers = {.trim = 0}; /* the worker sends them before the snapshot */
    struct msg_f_snapshot m = {.nonce = nonce, .detail = detail};
    struct err e = ERR_INIT;
    char why[200];
    p->device = d;
    if (d->link == NULL || d->progress < WORKER_UP) {
        (void)snprintf(why, sizeof why, "it is %s%s%s", device_state_name(d),
                       d->reason[0] != '\0' ? ": " : "", d->reason);
        missing(p, why);
    } else if (d->snapshots_asked >= SNAPSHOT_ASKED_MAX) {
        (void)snprintf(why, sizeof why, "its worker has %u unanswered requests for snapshots",
                       d->snapshots_asked);
        missing(p, why);
    } else if (d->front->io.send(d->link, &schema_msg_f_pool, &numbers, NULL, &e) != 0 ||
               d->front->io.send(d->link, &schema_msg_f_snapshot, &m, NULL, &e) != 0) {
        missing(p, e.text);
    } else {
        p->state = SNAPSHOT_ASKED;
        d->snapshots_asked++;
    }
}

static int take(struct front *f, struct session *s, const struct msg_pool_take *m,
                struct snapshot_set **ret_set, struct err *e)
{
    if (m->device > f->device_count) {
        return err_set(e, ERR_NOT_FOUND, "there is no device %" PRIu64 ": the daemon has %u",
                       m->device - 1, f->device_count);
    }
    int rc = make_room(f, s->tenant, e);
    if (rc != 0) {
        return rc;
    }
    unsigned count = m->device == 0 ? f->device_count : 1;
    struct snapshot_set *set = calloc(1, sizeof *set + count * sizeof set->snapshot[0]);
    if (set == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a snapshot of %u pools", count);
    }
    set->number = ++f->next_snapshot;
    set->session = s->id;
    set->tenant = s->tenant;
    set->count = count;
    for (unsigned i = 0; i < count; i++) {
        set->snapshot[i].memory = MEMFD_NONE;
        struct device *base = f->device[m->device == 0 ? i : m->device - 1];
        struct device *own = domain_of(s->tenant, base);
        ask(&set->snapshot[i], own != NULL ? own : base, set->number, m->detail != 0);
    }
    set->next = f->snapshots;
    f->snapshots = set;
    f->snapshot_count++;
    set->tenant->snapshots++;
    *ret_set = set;
    return 0;
}

void snapshot_take(struct front *f, struct session *s, struct request *r)
{
    const struct msg_pool_take *m = &r->msg.pool_take;
    struct err e = ERR_INIT;
    struct snapshot_set *set = NULL;
    if (take(f, s, m, &set, &e) != 0) {
        reply_error(f, r, &e);
        return;
    }
    uint64_t timeout = m->timeout_ns != 0 ? m->timeout_ns : TIMEOUT_NS;
    set->request = r;
    set->timeout_ns = timeout < TIMEOUT_MAX_NS ? timeout : TIMEOUT_MAX_NS;
    set->until_ns = ns_add(front_now(f), set->timeout_ns);
    if (complete(set)) {
        answer(f, set);
    } else {
        wake_at(f, set->until_ns);
    }
}

/* ---- answers of workers ------------------------------------------------------------------- */

static struct snapshot *waiting_for(const struct snapshot_set *set, const struct device *d)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->snapshot[i].device == d && set->snapshot[i].state == SNAPSHOT_ASKED) {
            return (struct snapshot *)&set->snapshot[i];
        }
    }
    return NULL;
}

static int adopt(struct snapshot *p, int *fd, struct err *e)
{
    struct memfd memory = MEMFD_NONE;
    int rc = memfd_adopt(*fd, sizeof(struct snapshot_head), false, &memory, e);
    if (rc != 0) {
        return rc;
    }
    *fd = -1;
    rc = memory.size > MEMORY_MAX ? err_set(e, ERR_PROTOCOL, "a snapshot of %zu bytes", memory.size)
                                  : snapshot_open(memory.data, memory.size, &p->view, e);
    if (rc != 0) {
        memfd_finish(&memory);
        return rc;
    }
    p->memory = memory;
    p->state = SNAPSHOT_TAKEN;
    return 0;
}

static void receive(struct snapshot *p, const struct msg_w_snapshot *m, int *fd)
{
    struct err e = ERR_INIT;
    if (m->code != 0) {
        (void)err_set(&e, ERR_INTERNAL, "its worker: %.*s", (int)m->text.size,
                      (const char *)m->text.data);
        missing(p, e.text);
    } else if (*fd < 0) {
        missing(p, "its worker sent no snapshot");
    } else if (adopt(p, fd, &e) != 0) {
        missing(p, e.text);
    }
}

void snapshot_received(struct front *f, struct device *d, const struct msg_w_snapshot *m, int fd)
{
    struct snapshot_set *set = f->snapshots;
    while (set != NULL && set->number != m->nonce) {
        set = set->next;
    }
    d->snapshots_asked -= d->snapshots_asked > 0;
    struct snapshot *p = set != NULL ? waiting_for(set, d) : NULL;
    if (p != NULL) { /* NULL: the answer came too late */
        receive(p, m, &fd);
        if (set->request != NULL && complete(set)) {
            answer(f, set);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void snapshot_device_removed(struct front *f, struct device *d)
{
    for (struct snapshot_set *set = f->snapshots; set != NULL; set = set->next) {
        for (unsigned i = 0; i < set->count; i++) {
            struct snapshot *p = &set->snapshot[i];
            p->device = p->device == d ? d->base : p->device;
        }
    }
}

void snapshot_device_lost(struct front *f, struct device *d)
{
    struct snapshot_set *next = NULL;
    d->snapshots_asked = 0;
    for (struct snapshot_set *set = f->snapshots; set != NULL; set = next) {
        next = set->next;
        struct snapshot *p = waiting_for(set, d);
        if (p == NULL) {
            continue;
        }
        missing(p, "its worker ended");
        if (set->request != NULL && complete(set)) {
            answer(f, set);
        }
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

int request_pool_read(struct request_context *c, struct err *e)
{
    const struct msg_pool_read *m = &c->r->msg.pool_read;
    struct snapshot_set *set = c->f->snapshots;
    while (set != NULL && (set->number != m->picture || set->session != c->s->id)) {
        set = set->next;
    }
    if (set == NULL || set->request != NULL) {
        return err_set(e, ERR_NOT_FOUND,
                       "this session has no snapshot %" PRIu64 " (it is kept for a minute)",
                       m->picture);
    }
    set->until_ns = ns_add(front_now(c->f), KEPT_NS);
    for (unsigned i = 0; i < set->count; i++) {
        const struct snapshot *p = &set->snapshot[i];
        if (device_shown(p->device) == m->device && p->state == SNAPSHOT_TAKEN) {
            return snapshot_table_part(c->f, c->s, p, m, c->out, e);
        }
    }
    return err_set(e, ERR_NOT_FOUND, "device %" PRIu64 " is not in snapshot %" PRIu64, m->device,
                   m->picture);
}

void snapshot_finish_all(struct front *f)
{
    while (f->snapshots != NULL) {
        if (f->snapshots->request != NULL) {
            f->snapshots->request->slot = NULL; /* the listener is closed already */
        }
        set_destroy(f, f->snapshots);
    }
}
