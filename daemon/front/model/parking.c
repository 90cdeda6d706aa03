#include "daemon/front/model/parking.h"

#include <utlist.h>

#include "daemon/front/model/session.h"

void parking_add(struct parking *p, struct session *s, size_t bytes, uint64_t until_ns, bool again)
{
    if (s->parked.waits) {
        return;
    }
    s->parked.waits = true;
    s->parked.bytes = bytes;
    p->bytes += bytes;
    p->common += s->parked.common;
    p->common_bytes += s->parked.common ? bytes : 0;
    struct session *behind = again ? p->behind : NULL;
    DL_PREPEND_ELEM2(p->first, behind, s, parked.prev, parked.next);
    agenda_set(&p->deadlines, &s->parked.deadline, until_ns, s);
}

bool parking_in_turn(const struct parking *p, const struct session *s, uint64_t seq)
{
    return p->turn == s && s->parked.seq == seq;
}

void parking_remove(struct parking *p, struct session *s)
{
    if (s->parked.waits) {
        s->parked.waits = false;
        p->bytes -= s->parked.bytes;
        /* `common` is what parking_add counted: only a try of the job changes it */
        p->common -= s->parked.common;
        p->common_bytes -= s->parked.common ? s->parked.bytes : 0;
        p->next = p->next == s ? s->parked.next : p->next;
        p->behind = p->behind == s ? s->parked.next : p->behind;
        DL_DELETE2(p->first, s, parked.prev, parked.next);
        agenda_drop(&p->deadlines, &s->parked.deadline);
    }
}
