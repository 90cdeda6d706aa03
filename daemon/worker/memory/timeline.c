#include "daemon/worker/memory/timeline.h"

#include <stddef.h>
#include <utlist.h>

void timeline_add(struct timeline *t, unsigned stream, struct backend_marker *marker,
                  struct timeline_point *point)
{
    *point = (struct timeline_point){
        .marker = marker, .seq = ++t->stream[stream].last, .stream = stream};
    DL_APPEND(t->stream[stream].first, point);
}

uint64_t timeline_pass(struct timeline *t, struct timeline_point *point)
{
    if (point->marker == NULL) {
        return 0;
    }
    unsigned stream = point->stream;
    uint64_t done = t->stream[stream].done;
    DL_DELETE(t->stream[stream].first, point);
    point->marker = NULL;
    t->stream[stream].done = point->seq > done ? point->seq : done;
    return t->stream[stream].done;
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
