#include "daemon/front/model/session_events.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/tenant.h"

#define NOTICES_MAX 4096u

bool session_notice(struct session *s, uint64_t usual, unsigned kind, uint64_t handle)
{
    bool room = s->events.notice_count < NOTICES_MAX &&
                tenant_check(s->tenant, TENANT_NOTICES, usual, NULL) == 0;
    struct notice *n = room ? malloc(sizeof *n) : NULL;
    if (n == NULL) {
        return false;
    }
    *n = (struct notice){.kind = kind, .handle = handle};
    if (s->events.notices != NULL) {
        s->events.notices_last->next = n;
    } else {
        s->events.notices = n;
    }
    s->events.notices_last = n;
    s->events.notice_count++;
    s->tenant->held[TENANT_NOTICES]++;
    return true;
}

void session_notice_drop(struct session *s)
{
    struct notice *n = s->events.notices;
    s->events.notices = n->next;
    s->events.notice_count--;
    s->tenant->held[TENANT_NOTICES]--;
    free(n);
}

struct async_result *async_result_reserve(void)
{
    return malloc(sizeof(struct async_result) + RESULT_ROOM);
}

bool session_result(struct session *s, uint64_t job, struct bytes record)
{
    struct async_result *none = NULL;
    return session_result_in(s, &none, job, record);
}

bool session_result_in(struct session *s, struct async_result **reserve, uint64_t job,
                       struct bytes record)
{
    struct async_result *r = *reserve;
    if (r != NULL && record.size <= RESULT_ROOM) {
        *reserve = NULL;
    } else {
        r = malloc(sizeof *r + record.size);
    }
    if (r == NULL) {
        return false;
    }
    *r = (struct async_result){.job = job, .size = record.size};
    memcpy(r->record, record.data, record.size);
    session_keep(s, &s->events.result_bytes, async_result_bytes(r));
    if (s->events.results != NULL) {
        s->events.results_last->next = r;
    } else {
        s->events.results = r;
    }
    s->events.results_last = r;
    return true;
}

size_t async_result_bytes(const struct async_result *r)
{
    return sizeof *r + r->size;
}

static void results_destroy(struct async_result **list)
{
    while (*list != NULL) {
        struct async_result *r = *list;
        *list = r->next;
        free(r);
    }
}

void session_events_destroy(struct session *s)
{
    results_destroy(&s->events.results);
    results_destroy(&s->events.sent);
    while (s->events.notices != NULL) {
        session_notice_drop(s);
    }
    free(s->events.message.data);
}
