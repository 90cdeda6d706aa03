#include "daemon/front/model/early.h"

#include <utlist.h>

#include "daemon/front/model/request.h"

int early_put(struct session *s, struct request *r, uint64_t seq, unsigned window,
              struct request **ret_other, struct err *e)
{
    struct request **at = &s->early.first;
    /* `ping` stands for all kinds: every request begins with its number */
    while (*at != NULL && (*at)->msg.ping.seq < seq) {
        at = &(*at)->next;
    }
    struct request *older = *at != NULL && (*at)->msg.ping.seq == seq ? *at : NULL;
    size_t freed = older != NULL ? older->size : 0;
    if (older != NULL && older->slot != NULL && r->slot == NULL) {
        *ret_other = r; /* a client moves from its ring to the socket, never back */
        return 0;
    }
    if (seq - s->order.expect > window || (older == NULL && s->early.count >= window)) {
        return err_set(e, ERR_BUSY,
                       "request %llu arrived while request %llu is expected: more than %u ahead",
                       (unsigned long long)seq, (unsigned long long)s->order.expect, window);
    }
    if (s->early.bytes - freed + r->size > EARLY_BYTES) {
        return err_set(e, ERR_BUSY, "%llu bytes of requests arrived ahead of their turn",
                       (unsigned long long)s->early.bytes);
    }
    r->next = older != NULL ? older->next : *at;
    *at = r;
    s->early.count += older == NULL;
    session_let_go(s, &s->early.bytes, freed);
    session_keep(s, &s->early.bytes, r->size);
    *ret_other = older;
    return 0;
}

static struct request *early_unlink(struct session *s, struct request **at)
{
    struct request *r = *at;
    *at = r->next;
    r->next = NULL;
    s->early.count--;
    session_let_go(s, &s->early.bytes, r->size);
    return r;
}

static struct request **early_at(struct session *s, uint64_t seq)
{
    struct request **at = &s->early.first;
    while (*at != NULL && (*at)->msg.ping.seq < seq) {
        at = &(*at)->next;
    }
    return *at != NULL && (*at)->msg.ping.seq == seq ? at : NULL;
}

struct request *early_drop(struct session *s)
{
    return s->early.first != NULL ? early_unlink(s, &s->early.first) : NULL;
}

struct request *early_take(struct session *s, uint64_t seq)
{
    struct request **at = early_at(s, seq);
    return at != NULL ? early_unlink(s, at) : NULL;
}

struct request *early_find(struct session *s, uint64_t seq)
{
    struct request **at = early_at(s, seq);
    return at != NULL ? *at : NULL;
}

void early_due_add(struct session **list, struct session *s)
{
    if (!s->early.due) {
        s->early.due = true;
        DL_APPEND2(*list, s, early.prev, early.next);
    }
}

void early_due_remove(struct session **list, struct session *s)
{
    if (s->early.due) {
        s->early.due = false;
        DL_DELETE2(*list, s, early.prev, early.next);
    }
}
