#include "daemon/front/views/picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/model/due.h"
#include "daemon/front/views/picture_set.h"
#include "daemon/front/workers/link.h"

#define TIMEOUT_NS     (2 * NS_PER_S) /* unless another is asked for */
#define TIMEOUT_MAX_NS (30 * NS_PER_S)
#define KEPT_NS        (60 * NS_PER_S) /* after it was last read */
#define MEMORY_MAX     picture_bytes(PICTURE_METERS_MAX, PICTURE_EVENTS_MAX, PICTURE_PIECES_MAX)

/* ---- sets --------------------------------------------------------------------------------- */

static void set_destroy(struct front *f, struct picture_set *set)
{
    struct picture_set **at = &f->pictures;
    while (*at != set) {
        at = &(*at)->next;
    }
    *at = set->next;
    f->picture_count--;
    set->tenant->pictures--;
    if (set->request != NULL && set->request->slot != NULL) {
        listener_drop(f->listener, set->request->slot);
    }
    request_destroy(set->request);
    for (unsigned i = 0; i < set->count; i++) {
        memfd_finish(&set->picture[i].memory);
    }
    free(set);
}

static const struct session *session_of(const struct front *f, const struct picture_set *set)
{
    const struct session *s = f->sessions;
    while (s != NULL && s->id != set->session) {
        s = s->hh.next;
    }
    return s;
}

/* One more fits, if need be for the tenant's oldest that was answered, or, where the tenant has
 * few, anybody's. */
static int make_room(struct front *f, const struct tenant *t, struct err *e)
{
    struct picture_set *oldest = NULL;
    struct picture_set *oldest_of_all = NULL;
    for (struct picture_set *set = f->pictures; set != NULL; set = set->next) {
        oldest_of_all = set->request == NULL ? set : oldest_of_all;
        if (set->tenant == t) {
            oldest = set->request == NULL ? set : oldest;
        }
    }
    if (t->pictures < PICTURES_TENANT_MAX && f->picture_count < PICTURES_MAX) {
        return 0;
    }
    if (oldest == NULL && t->pictures < PICTURES_TENANT_MAX) {
        oldest = oldest_of_all;
    }
    if (oldest == NULL) {
        return err_set(e, ERR_BUSY, "%u pictures of the pools are being taken",
                       t->pictures < PICTURES_TENANT_MAX ? f->picture_count : t->pictures);
    }
    set_destroy(f, oldest);
    return 0;
}

/* ---- the answer --------------------------------------------------------------------------- */

static bool complete(const struct picture_set *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->picture[i].state == PICTURE_ASKED) {
            return false;
        }
    }
    return true;
}

static void answered(struct picture_set *set)
{
    request_destroy(set->request);
    set->request = NULL;
}

static void answer(struct front *f, struct picture_set *set)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    if (session_of(f, set) == NULL) { /* its session ended */
        set_destroy(f, set);
        return;
    }
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    if (picture_table_numbers(f, set, &out, &e) != 0) {
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
        set->until_ns = ns_add(clock_now_ns(), KEPT_NS);
        due_at(f, set->until_ns);
    }
    capbuf_finish(&out);
}

static void missing(struct picture *p, const char *why)
{
    p->state = PICTURE_MISSING;
    (void)snprintf(p->note, sizeof p->note, "%s", why);
}

void picture_watch(struct front *f, uint64_t now)
{
    struct picture_set *next = NULL;
    for (struct picture_set *set = f->pictures; set != NULL; set = next) {
        next = set->next;
        if (now < set->until_ns) {
            due_at(f, set->until_ns);
            continue;
        }
        for (unsigned i = 0; i < set->count; i++) {
            struct picture *p = &set->picture[i];
            char why[96];
            (void)snprintf(why, sizeof why, "its worker did not answer within %" PRIu64 " ms",
                           set->timeout_ns / NS_PER_MS);
            if (p->state == PICTURE_ASKED) {
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

static void ask(struct picture *p, struct device *d, uint64_t nonce, bool detail)
{
    const struct msg_f_pool numbers = {.trim = 0}; /* are told before the picture */
    struct msg_f_picture m = {.nonce = nonce, .detail = detail};
    struct err e = ERR_INIT;
    char why[200];
    p->device = d;
    if (d->link == NULL || !d->up) {
        (void)snprintf(why, sizeof why, "it is %s%s%s", device_state_name(d),
                       d->reason[0] != '\0' ? ": " : "", d->reason);
        missing(p, why);
    } else if (d->pictures_asked >= PICTURE_ASKED_MAX) {
        (void)snprintf(why, sizeof why, "its worker has not answered %u asks before this one",
                       d->pictures_asked);
        missing(p, why);
    } else if (link_send(d->link, &schema_msg_f_pool, &numbers, NULL, &e) != 0 ||
               link_send(d->link, &schema_msg_f_picture, &m, NULL, &e) != 0) {
        missing(p, e.text);
    } else {
        p->state = PICTURE_ASKED;
        d->pictures_asked++;
    }
}

static int take(struct front *f, struct session *s, const struct msg_pool_take *m,
                struct picture_set **ret_set, struct err *e)
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
    struct picture_set *set = calloc(1, sizeof *set + count * sizeof set->picture[0]);
    if (set == NULL) {
        return err_set(e, ERR_NOMEM, "a picture of %u pools", count);
    }
    set->number = ++f->next_picture;
    set->session = s->id;
    set->tenant = s->tenant;
    set->count = count;
    for (unsigned i = 0; i < count; i++) {
        set->picture[i].memory = MEMFD_NONE;
        ask(&set->picture[i], f->device[m->device == 0 ? i : m->device - 1], set->number,
            m->detail != 0);
    }
    set->next = f->pictures;
    f->pictures = set;
    f->picture_count++;
    set->tenant->pictures++;
    *ret_set = set;
    return 0;
}

void picture_take(struct front *f, struct session *s, struct request *r)
{
    const struct msg_pool_take *m = &r->msg.pool_take;
    struct err e = ERR_INIT;
    struct picture_set *set = NULL;
    if (take(f, s, m, &set, &e) != 0) {
        reply_error(f, r, &e);
        return;
    }
    uint64_t timeout = m->timeout_ns != 0 ? m->timeout_ns : TIMEOUT_NS;
    set->request = r;
    set->timeout_ns = timeout < TIMEOUT_MAX_NS ? timeout : TIMEOUT_MAX_NS;
    set->until_ns = ns_add(clock_now_ns(), set->timeout_ns);
    if (complete(set)) {
        answer(f, set);
    } else {
        due_at(f, set->until_ns);
    }
}

/* ---- what workers tell -------------------------------------------------------------------- */

static struct picture *waiting_for(const struct picture_set *set, const struct device *d)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->picture[i].device == d && set->picture[i].state == PICTURE_ASKED) {
            return (struct picture *)&set->picture[i];
        }
    }
    return NULL;
}

static int adopt(struct picture *p, int *fd, struct err *e)
{
    struct memfd memory = MEMFD_NONE;
    int rc = memfd_adopt(*fd, sizeof(struct picture_head), false, &memory, e);
    if (rc != 0) {
        return rc;
    }
    *fd = -1;
    rc = memory.size > MEMORY_MAX ? err_set(e, ERR_PROTOCOL, "a picture of %zu bytes", memory.size)
                                  : picture_open(memory.data, memory.size, &p->view, e);
    if (rc != 0) {
        memfd_finish(&memory);
        return rc;
    }
    p->memory = memory;
    p->state = PICTURE_TAKEN;
    return 0;
}

static void told(struct picture *p, const struct msg_w_picture *m, int *fd)
{
    struct err e = ERR_INIT;
    if (m->code != 0) {
        (void)err_set(&e, ERR_INTERNAL, "its worker: %.*s", (int)m->text.size,
                      (const char *)m->text.data);
        missing(p, e.text);
    } else if (*fd < 0) {
        missing(p, "its worker sent no picture");
    } else if (adopt(p, fd, &e) != 0) {
        missing(p, e.text);
    }
}

void picture_told(struct front *f, struct device *d, const struct msg_w_picture *m, int fd)
{
    struct picture_set *set = f->pictures;
    while (set != NULL && set->number != m->nonce) {
        set = set->next;
    }
    d->pictures_asked -= d->pictures_asked > 0;
    struct picture *p = set != NULL ? waiting_for(set, d) : NULL;
    if (p != NULL) { /* nobody waits for one that comes late */
        told(p, m, &fd);
        if (set->request != NULL && complete(set)) {
            answer(f, set);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void picture_device_lost(struct front *f, struct device *d)
{
    struct picture_set *next = NULL;
    d->pictures_asked = 0;
    for (struct picture_set *set = f->pictures; set != NULL; set = next) {
        next = set->next;
        struct picture *p = waiting_for(set, d);
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
    struct picture_set *set = c->f->pictures;
    while (set != NULL && (set->number != m->picture || set->session != c->s->id)) {
        set = set->next;
    }
    if (set == NULL || set->request != NULL) {
        return err_set(e, ERR_NOT_FOUND,
                       "this session has no picture %" PRIu64 " (it is kept for a minute)",
                       m->picture);
    }
    set->until_ns = ns_add(clock_now_ns(), KEPT_NS);
    for (unsigned i = 0; i < set->count; i++) {
        const struct picture *p = &set->picture[i];
        if (p->device->index == m->device && p->state == PICTURE_TAKEN) {
            return picture_table_part(c->f, c->s, p, m, c->out, e);
        }
    }
    return err_set(e, ERR_NOT_FOUND, "device %" PRIu64 " is not in picture %" PRIu64, m->device,
                   m->picture);
}

void picture_finish_all(struct front *f)
{
    while (f->pictures != NULL) {
        if (f->pictures->request != NULL) {
            f->pictures->request->slot = NULL; /* went with the listener */
        }
        set_destroy(f, f->pictures);
    }
}
