#include "daemon/front/model/session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/hash.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/spare.h"
#include "daemon/front/model/tenant.h"

#define NOTICES_MAX 4096u

_Static_assert(sizeof(struct session_key) == PROTO_CLIENT_ID_BYTES + sizeof(uint32_t),
               "padding would take part in the hash");

struct session_key session_key(const uint8_t *client_id, uint32_t uid)
{
    struct session_key key = {.uid = uid};
    memcpy(key.client_id, client_id, sizeof key.client_id);
    return key;
}

struct session *session_find(struct session *all, const struct session_key *key)
{
    struct session *s = NULL;
    HASH_FIND(hh, all, key, sizeof *key, s);
    return s;
}

struct session *session_create(const struct session_key *key, struct tenant *tenant, uint64_t id)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->key = *key;
    s->tenant = tenant;
    s->id = id;
    s->pidfd = -1;
    s->expect = 1;
    s->fresh = true;
    s->lingers_until_ns = NS_NEVER;
    return s;
}

void session_keep(struct session *s, uint64_t *part, uint64_t bytes)
{
    *part += bytes;
    s->tenant->message_bytes += bytes;
}

void session_let_go(struct session *s, uint64_t *part, uint64_t bytes)
{
    *part -= bytes;
    s->tenant->message_bytes -= bytes;
}

static void results_destroy(struct async_result **list)
{
    while (*list != NULL) {
        struct async_result *r = *list;
        *list = r->next;
        free(r);
    }
}

static void notices_destroy(struct session *s)
{
    results_destroy(&s->results);
    results_destroy(&s->told);
    while (s->notices != NULL) {
        session_notice_drop(s);
    }
}

void session_destroy(struct session *s)
{
    if (s == NULL) {
        return;
    }
    struct op *o;
    struct op *next;
    HASH_ITER(hh, s->ops, o, next)
    {
        op_destroy(o);
    }
    for (struct request *r; (r = session_early_drop(s)) != NULL;) {
        request_destroy(r);
    }
    notices_destroy(s);
    s->tenant->message_bytes -= s->kept_bytes + s->early_bytes + s->result_bytes + s->program_bytes;
    if (s->pidfd >= 0) {
        (void)close(s->pidfd);
    }
    taken_finish(&s->taken);
    taken_finish(&s->known);
    taken_finish(&s->sweep.taken);
    request_destroy(s->sweep.request);
    free(s->event.data);
    free(s);
}

struct op *op_find(struct session *s, uint64_t seq)
{
    struct op *o = NULL;
    if (seq > s->op_last) { /* the usual case: it is the next one */
        return NULL;
    }
    HASH_FIND_BYHASHVALUE(hh, s->ops, &seq, sizeof seq, hash_number(seq), o);
    bool gone = o != NULL && ((o->answered && op_passed(o)) || op_left(o));
    return gone ? NULL : o;
}

struct op *op_create(struct session *s, uint64_t seq, struct listener_slot *slot)
{
    struct op *o = spare_take(s->spare_ops, sizeof *o);
    if (o == NULL) {
        return NULL;
    }
    o->seq = seq;
    o->session = s;
    o->slot = slot;
    HASH_ADD_BYHASHVALUE(hh, s->ops, seq, sizeof o->seq, hash_number(seq), o);
    s->op_count++;
    s->unanswered++;
    DL_APPEND2(s->open, o, open_prev, open_next);
    s->op_last = seq > s->op_last ? seq : s->op_last;
    return o;
}

struct op *op_create_loose(struct session *s, struct listener_slot *slot)
{
    struct op *o = spare_take(s->spare_ops, sizeof *o);
    if (o != NULL) {
        o->session = s;
        o->slot = slot;
        o->loose = true;
    }
    return o;
}

bool op_passed(const struct op *o)
{
    return !o->loose && o->seq <= o->session->acked;
}

bool op_left(const struct op *o)
{
    return o->seq < o->session->resumed || session_took(o->session, o->seq);
}

static void leave_open(struct op *o)
{
    if (!o->loose && !o->answered) {
        o->session->unanswered--;
        DL_DELETE2(o->session->open, o, open_prev, open_next);
    }
}

bool op_answer(struct op *o, struct bytes reply)
{
    leave_open(o);
    o->answered = true;
    o->reply = reply.size <= sizeof o->small ? o->small : malloc(reply.size);
    if (o->reply == NULL) {
        return false;
    }
    if (reply.size > 0) {
        memcpy(o->reply, reply.data, reply.size);
    }
    o->reply_size = reply.size;
    session_keep(o->session, &o->session->kept_bytes, reply.size);
    return true;
}

void op_leave_ring(struct op *o)
{
    if (o->in_ring) {
        o->in_ring = false;
        DL_DELETE2(o->session->in_ring, o, ring_prev, ring_next);
    }
}

void session_lane_gone(struct session *s)
{
    s->lane = NULL;
    while (s->in_ring != NULL) {
        op_leave_ring(s->in_ring);
    }
    for (struct op *o = s->open; o != NULL; o = o->open_next) {
        o->ring_id = 0;
    }
    for (struct request *r = s->early; r != NULL; r = r->next) {
        r->ring_id = 0; /* their answers are kept until they are asked for */
    }
}

void op_destroy(struct op *o)
{
    struct session *s = o->session;
    op_leave_ring(o);
    leave_open(o);
    if (!o->loose) {
        s->sweep.at = s->sweep.at == o ? o->hh.next : s->sweep.at;
        HASH_DEL(s->ops, o);
        s->op_count--;
        session_let_go(s, &s->kept_bytes, o->reply_size);
    }
    if (o->reply != o->small) {
        free(o->reply);
    }
    spare_give(s->spare_ops, o);
}

bool session_took(const struct session *s, uint64_t seq)
{
    return taken_end(&s->taken, seq) != 0;
}

static int by_number(const struct op *a, const struct op *b)
{
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void session_know(struct session *s)
{
    taken_finish(&s->known);
    s->known.ranges = malloc((s->op_count + 1) * sizeof *s->known.ranges);
    if (s->known.ranges == NULL) {
        return; /* one by one, then */
    }
    HASH_SORT(s->ops, by_number);
    for (const struct op *o = s->ops; o != NULL; o = o->hh.next) {
        if (o->answered) {
            taken_add(&s->known, o->seq);
        }
    }
}

static uint64_t range_end(const struct session *s, uint64_t number)
{
    uint64_t taken = taken_end(&s->taken, number);
    uint64_t known = taken_end(&s->known, number);
    return taken > known ? taken : known;
}

/* HELLO may be said again until something was asked, and the sweep reads `taken`. */
static void forget_ranges(struct session *s)
{
    if (s->fresh || s->sweep.on) {
        return;
    }
    if (s->taken.count > 0 && s->expect >= taken_last(&s->taken)) {
        taken_finish(&s->taken);
    }
    if (s->known.ranges != NULL && s->expect >= taken_last(&s->known)) {
        taken_finish(&s->known);
    }
}

uint64_t session_skip(struct session *s, bool answered)
{
    uint64_t looks = 1;
    for (;; looks++) {
        uint64_t end = range_end(s, s->expect);
        const struct op *o = end == 0 ? op_find(s, s->expect) : NULL;
        if (end == 0 && (o == NULL || (answered && !o->answered))) {
            break;
        }
        s->expect = end > 0 ? end : s->expect + 1;
    }
    forget_ranges(s);
    return looks;
}

int session_early_put(struct session *s, struct request *r, uint64_t seq, unsigned window,
                      struct request **ret_other, struct err *e)
{
    struct request **at = &s->early;
    /* every request begins with its sequence number */
    while (*at != NULL && (*at)->msg.ping.seq < seq) {
        at = &(*at)->next;
    }
    struct request *older = *at != NULL && (*at)->msg.ping.seq == seq ? *at : NULL;
    size_t freed = older != NULL ? older->size : 0;
    if (older != NULL && older->slot != NULL && r->slot == NULL) {
        *ret_other = r; /* a client goes from its ring to the socket, not back */
        return 0;
    }
    if (seq - s->expect > window || (older == NULL && s->early_count >= window)) {
        return err_set(e, ERR_BUSY,
                       "request %llu came while %llu is awaited: more than %u ahead of its turn",
                       (unsigned long long)seq, (unsigned long long)s->expect, window);
    }
    if (s->early_bytes - freed + r->size > EARLY_BYTES) {
        return err_set(e, ERR_BUSY, "%llu bytes of requests came before their turn",
                       (unsigned long long)s->early_bytes);
    }
    r->next = older != NULL ? older->next : *at;
    *at = r;
    s->early_count += older == NULL;
    session_let_go(s, &s->early_bytes, freed);
    session_keep(s, &s->early_bytes, r->size);
    *ret_other = older;
    return 0;
}

static struct request *early_unlink(struct session *s, struct request **at)
{
    struct request *r = *at;
    *at = r->next;
    r->next = NULL;
    s->early_count--;
    session_let_go(s, &s->early_bytes, r->size);
    return r;
}

static struct request **early_at(struct session *s, uint64_t seq)
{
    struct request **at = &s->early;
    while (*at != NULL && (*at)->msg.ping.seq < seq) {
        at = &(*at)->next;
    }
    return *at != NULL && (*at)->msg.ping.seq == seq ? at : NULL;
}

struct request *session_early_drop(struct session *s)
{
    return s->early != NULL ? early_unlink(s, &s->early) : NULL;
}

struct request *session_early_take(struct session *s, uint64_t seq)
{
    struct request **at = early_at(s, seq);
    return at != NULL ? early_unlink(s, at) : NULL;
}

struct request *session_early_find(struct session *s, uint64_t seq)
{
    struct request **at = early_at(s, seq);
    return at != NULL ? *at : NULL;
}

void session_park(struct parking *p, struct session *s, size_t bytes, uint64_t until_ns, bool again)
{
    if (s->parked) {
        return;
    }
    s->parked = true;
    s->parked_bytes = bytes;
    p->bytes += bytes;
    p->common += s->common;
    p->common_bytes += s->common ? bytes : 0;
    struct session *behind = again ? p->behind : NULL;
    DL_PREPEND_ELEM2(p->first, behind, s, parked_prev, parked_next);
    agenda_set(&p->deadlines, &s->parked_due, until_ns, s);
}

bool session_in_turn(const struct parking *p, const struct session *s, uint64_t seq)
{
    return p->turn == s && s->parked_seq == seq;
}

uint64_t session_arrived(const struct session *s, uint64_t seq, uint64_t now_ns)
{
    return s->parked_seq == seq && seq != 0 ? s->parked_since_ns : now_ns;
}

void session_unpark(struct parking *p, struct session *s)
{
    if (s->parked) {
        s->parked = false;
        p->bytes -= s->parked_bytes;
        p->common -= s->common; /* nothing of it was tried meanwhile */
        p->common_bytes -= s->common ? s->parked_bytes : 0;
        p->next = p->next == s ? s->parked_next : p->next;
        p->behind = p->behind == s ? s->parked_next : p->behind;
        DL_DELETE2(p->first, s, parked_prev, parked_next);
        agenda_drop(&p->deadlines, &s->parked_due);
    }
}

bool session_notice(struct session *s, uint64_t usual, unsigned kind, uint64_t handle)
{
    bool room =
        s->notice_count < NOTICES_MAX && tenant_check(s->tenant, TENANT_NOTICES, usual, NULL) == 0;
    struct notice *n = room ? malloc(sizeof *n) : NULL;
    if (n == NULL) {
        return false;
    }
    *n = (struct notice){.kind = kind, .handle = handle};
    if (s->notices != NULL) {
        s->notices_last->next = n;
    } else {
        s->notices = n;
    }
    s->notices_last = n;
    s->notice_count++;
    s->tenant->held[TENANT_NOTICES]++;
    return true;
}

void session_notice_drop(struct session *s)
{
    struct notice *n = s->notices;
    s->notices = n->next;
    s->notice_count--;
    s->tenant->held[TENANT_NOTICES]--;
    free(n);
}

bool session_result(struct session *s, uint64_t job, struct bytes record)
{
    struct async_result *r = malloc(sizeof *r + record.size);
    if (r == NULL) {
        return false;
    }
    *r = (struct async_result){.job = job, .size = record.size};
    memcpy(r->record, record.data, record.size);
    session_keep(s, &s->result_bytes, async_result_bytes(r));
    if (s->results != NULL) {
        s->results_last->next = r;
    } else {
        s->results = r;
    }
    s->results_last = r;
    return true;
}

size_t async_result_bytes(const struct async_result *r)
{
    return sizeof *r + r->size;
}

int session_lacks(const struct session *s, const struct idmap *map, uint64_t handle,
                  const char *noun, struct err *e)
{
    if (map != NULL && idmap_freed_of(map, handle, s->id)) {
        return err_set(e, ERR_STALE_HANDLE, "%s %#llx was freed", noun, (unsigned long long)handle);
    }
    return err_set(e, ERR_BAD_HANDLE, "there is no %s %#llx of yours", noun,
                   (unsigned long long)handle);
}
