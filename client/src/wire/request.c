#include "client/src/wire/request.h"

#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/pack.h"

#define SLOT_BITS       16
#define GENERATION_MASK 0x7fffu

/* Requests that may overtake others. A daemon with rings holds at least 256; the rest is for
 * requests that its receiving threads reorder. */
#define OVERTAKE_MAX 240u

#define SPANS_MAX 1024u /* of a message */

/* the seq and ack with which messages are encoded: one byte each on the wire */
#define PLACEHOLDER 1

void requests_init(struct requests *t)
{
    *t = (struct requests){.next_seq = 1, .ahead_max = UINT64_MAX};
}

void requests_finish(struct requests *t)
{
    free(t->slots);
    *t = (struct requests){0};
}

int request_encode(struct request *r, const struct schema *s, void *msg, struct err *e)
{
    uint64_t *head = msg;
    head[0] = PLACEHOLDER;
    head[1] = PLACEHOLDER;
    capbuf_init_in(&r->msg, PROTO_MESSAGE_MAX, r->room, sizeof r->room);
    int rc = proto_encode(s, msg, &r->msg, e);
    if (rc != 0) {
        capbuf_finish(&r->msg);
        return rc;
    }
    r->kind = s->kind;
    return 0;
}

void request_finish(struct request *r)
{
    capbuf_finish(&r->msg);
}

static bool slots_grow(struct requests *t)
{
    uint32_t capacity = t->capacity > 0 ? t->capacity * 2 : 64;
    struct request_slot *slots = realloc(t->slots, capacity * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    memset(slots + t->capacity, 0, (capacity - t->capacity) * sizeof *slots);
    t->slots = slots;
    t->capacity = capacity;
    return true;
}

/* Inserts `r` after `prev`; NULL: as the first. */
static void list_put(struct request_list *l, struct request *r, struct request *prev)
{
    r->list = l;
    r->prev = prev;
    r->next = prev != NULL ? prev->next : l->first;
    *(prev != NULL ? &prev->next : &l->first) = r;
    *(r->next != NULL ? &r->next->prev : &l->last) = r;
}

static void list_remove(struct request_list *l, struct request *r)
{
    if (r->prev != NULL) {
        r->prev->next = r->next;
    } else {
        l->first = r->next;
    }
    if (r->next != NULL) {
        r->next->prev = r->prev;
    } else {
        l->last = r->prev;
    }
    r->prev = NULL;
    r->next = NULL;
}

static int id_give(struct requests *t, struct request *r, struct err *e)
{
    uint32_t slot = t->used;
    if (t->first_free != 0) {
        slot = t->first_free - 1;
        t->first_free = t->slots[slot].next_free;
    } else if (t->used == REQUESTS_MAX) {
        return err_set(e, ERR_LIMIT, "%u requests wait for their answers", REQUESTS_MAX);
    } else if (t->used == t->capacity && !slots_grow(t)) {
        return err_set(e, ERR_NOMEM, "no memory for a table of requests");
    } else {
        t->used++;
    }
    t->slots[slot].request = r;
    r->id = SP_ID_BIT | (uint32_t)t->slots[slot].generation << SLOT_BITS | slot;
    t->live++;
    return 0;
}

int requests_add(struct requests *t, struct request *r, bool sequenced, struct err *e)
{
    int rc = id_give(t, r, e);
    if (rc == 0) {
        struct request_list *l = sequenced ? &t->sequenced : &t->plain;
        r->seq = sequenced ? t->next_seq++ : 0;
        list_put(l, r, l->last);
        if (sequenced && t->open == NULL) {
            t->open = r;
        }
        if (sequenced && ++t->waiting == GAPS_MAX) {
            t->mark = r;
        }
    }
    return rc;
}

static void open_settle(struct requests *t)
{
    while (t->open != NULL && t->open->accepted) {
        t->open = t->open->next;
    }
}

void requests_accepted(struct requests *t, struct request *r)
{
    r->accepted = true;
    open_settle(t);
}

void requests_forget_accepted(struct requests *t)
{
    for (struct request *r = t->sequenced.first; r != NULL; r = r->next) {
        r->accepted = false;
    }
    t->open = t->sequenced.first;
}

int requests_add_filler(struct requests *t, struct request *r, uint64_t seq, struct err *e)
{
    int rc = id_give(t, r, e);
    if (rc == 0) {
        struct request *prev = t->fillers.last;
        while (prev != NULL && prev->seq > seq) {
            prev = prev->prev;
        }
        r->seq = seq;
        list_put(&t->fillers, r, prev);
    }
    return rc;
}

void requests_end(struct requests *t, struct request *r)
{
    if (r->id == 0) {
        return;
    }
    uint32_t slot = r->id & ((1u << SLOT_BITS) - 1);
    struct request_slot *s = &t->slots[slot];
    s->request = NULL;
    s->generation = (uint16_t)((s->generation + 1u) & GENERATION_MASK);
    s->next_free = (uint16_t)t->first_free;
    t->first_free = slot + 1;
    if (t->unsent == r) {
        t->unsent = r->next;
    }
    if (t->open == r) {
        t->open = r->next;
        open_settle(t);
    }
    if (r->list == &t->sequenced) {
        t->waiting--;
        if (t->mark != NULL && r->seq <= t->mark->seq) {
            t->mark = t->mark->next;
        }
    }
    list_remove(r->list, r);
    r->id = 0;
    t->live--;
}

int requests_replace(struct requests *t, struct request *old, struct request *r, struct err *e)
{
    int rc = id_give(t, r, e);
    if (rc == 0) {
        struct request *mark = t->mark == old ? r : t->mark;
        uint32_t waiting = t->waiting;
        r->seq = old->seq;
        r->again_ns = old->again_ns;
        r->refusals = old->refusals;
        list_put(&t->sequenced, r, old);
        requests_end(t, old); /* pointers to it now point to the next request, which is `r` */
        t->mark = mark;
        t->waiting = waiting;
    }
    return rc;
}

void requests_retire(struct requests *t, struct request *r)
{
    requests_end(t, r);
    request_finish(r);
}

struct request *requests_find(const struct requests *t, uint32_t id)
{
    uint32_t slot = id & ((1u << SLOT_BITS) - 1);
    struct request *r = slot < t->used ? t->slots[slot].request : NULL;
    return r != NULL && r->id == id ? r : NULL;
}

uint64_t requests_lowest(const struct requests *t)
{
    uint64_t lowest = t->sequenced.first != NULL ? t->sequenced.first->seq : t->next_seq;
    const struct request *filler = t->fillers.first;
    return filler != NULL && filler->seq < lowest ? filler->seq : lowest;
}

bool requests_far(const struct requests *t, uint64_t seq)
{
    return t->mark != NULL && seq > t->mark->seq + FAR_MAX;
}

int requests_spans(const struct requests *t, uint64_t from, struct capbuf *out, uint64_t *ret_count,
                   uint64_t *ret_until, struct err *e)
{
    uint64_t at = from;
    uint64_t count = 0;
    const struct request *r = t->sequenced.first;
    for (; r != NULL && r->seq < from; r = r->next) {
    }
    while (at < t->next_seq) {
        uint64_t until = r != NULL ? r->seq : t->next_seq;
        if (until > at) {
            struct proto_span span = {.first = at, .count = until - at};
            int rc = count < SPANS_MAX ? proto_list_add(&schema_span, &span, out, e) : 1;
            if (rc != 0) {
                *ret_count = count;
                *ret_until = at;
                return rc > 0 ? 0 : rc;
            }
            count++;
        }
        at = until + (r != NULL);
        r = r != NULL ? r->next : NULL;
    }
    *ret_count = count;
    *ret_until = at;
    return 0;
}

/* Far ahead of `lowest` the acknowledged number stops at `most` and does not fall back: a restarted
 * daemon that learned answered numbers by HELLO has no room for more until some are acknowledged.
 */
uint64_t requests_acknowledged(const struct requests *t)
{
    uint64_t lowest = requests_lowest(t);
    uint64_t most = t->ahead_max < UINT64_MAX - lowest ? lowest + t->ahead_max : UINT64_MAX;
    uint64_t open = t->open != NULL ? t->open->seq : t->next_seq;
    const struct request *filler = t->fillers.first;
    open = filler != NULL && filler->seq < open ? filler->seq : open;
    return (open < most ? open : most) - 1;
}

/* Array header, kind, seq, ack: only the last two change their size. */
static void head_write(const struct requests *t, struct request *r, struct capbuf *head)
{
    const uint8_t *msg = r->msg.data;
    size_t fixed = (msg[0] & 0xf0) == 0x90 ? 2 : 4;
    size_t skip = fixed + 2;
    r->sent = true;
    (void)capbuf_append(head, msg, fixed);
    (void)pack_uint(head, r->seq);
    (void)pack_uint(head, requests_acknowledged(t));
    r->out.body = bytes_of(msg + skip, r->msg.size - skip);
}

void requests_head(const struct requests *t, struct request *r, enum sp_transport transport)
{
    uint8_t room[32];
    struct capbuf head = {.data = room, .capacity = sizeof room, .limit = sizeof room};
    head_write(t, r, &head);
    size_t size = sp_head(transport, r->id, head.size + r->out.body.size, r->out.head);
    memcpy(r->out.head + size, head.data, head.size);
    r->out.head_size = size + head.size;
}

void requests_ring_head(const struct requests *t, struct request *r)
{
    struct capbuf head = {
        .data = r->out.head, .capacity = sizeof r->out.head, .limit = sizeof r->out.head};
    head_write(t, r, &head);
    r->out.head_size = head.size;
}

void requests_answered(struct requests *t, const struct request *r)
{
    if (r->seq > t->admitted) {
        t->admitted = r->seq;
    }
}

bool requests_may_go(const struct requests *t, uint64_t seq, enum way way)
{
    enum way other = way == WAY_RING ? WAY_SOCKET : WAY_RING;
    return t->went[other] <= t->admitted || seq <= t->admitted + OVERTAKE_MAX;
}

void requests_went(struct requests *t, uint64_t seq, enum way way)
{
    if (seq > t->went[way]) {
        t->went[way] = seq;
    }
}

void requests_begin_again(struct requests *t)
{
    t->admitted = requests_lowest(t) - 1;
    t->went[WAY_SOCKET] = 0;
    t->went[WAY_RING] = 0;
    t->unsent = NULL;
}
