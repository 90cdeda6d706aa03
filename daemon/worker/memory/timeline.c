#include "daemon/worker/memory/timeline.h"

#include <stddef.h>
#include <utlist.h>

#include "daemon/backend/backend.h"

void timeline_add(struct timeline *t, unsigned stream, struct backend_marker *marker,
                  struct timeline_point *point)
{
    *point = (struct timeline_point){
        .marker = marker, .seq = ++t->stream[stream].last, .stream = stream};
    DL_APPEND(t->stream[stream].first, point);
    if (t->stream[stream].open == NULL) {
        t->stream[stream].open = point;
    }
}

uint64_t timeline_pass(struct timeline *t, struct timeline_point *point)
{
    if (point->marker == NULL) {
        return 0;
    }
    unsigned stream = point->stream;
    uint64_t done = t->stream[stream].done;
    done = point->seq > done ? point->seq : done;
    t->stream[stream].done = done;
    while (t->stream[stream].open != NULL && t->stream[stream].open->seq <= done) {
        t->stream[stream].open = t->stream[stream].open->next;
    }
    DL_DELETE(t->stream[stream].first, point);
    point->marker = NULL;
    return done;
}

uint64_t timeline_ask(struct timeline *t, unsigned stream, const struct backend_marker_ops *ops)
{
    struct timeline_point *point = t->stream[stream].open;
    struct err why = ERR_INIT;
    unsigned asked = 0;
    while (point != NULL && asked++ < TIMELINE_ASKED &&
           ops->state(point->marker, &why) == BACKEND_DONE) {
        point = point->next;
    }
    t->stream[stream].open = point;
    return point != NULL ? point->seq - 1 : t->stream[stream].last;
}

struct backend_marker *timeline_marker(const struct timeline *t, unsigned stream, uint64_t seq)
{
    if (seq <= t->stream[stream].done) {
        return NULL;
    }
    const struct timeline_point *point = t->stream[stream].first;
    while (point != NULL && point->seq < seq) {
        point = point->next;
    }
    return point != NULL ? point->marker : NULL;
}
