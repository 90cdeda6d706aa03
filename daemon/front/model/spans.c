#include "daemon/front/model/spans.h"

#include <string.h>

static void delete_at(struct span *at, unsigned *count, unsigned i)
{
    memmove(&at[i], &at[i + 1], (*count - i - 1) * sizeof at[0]);
    (*count)--;
}

static unsigned smallest(const struct span *at, unsigned count)
{
    unsigned best = 0;
    for (unsigned i = 1; i < count; i++) {
        if (at[i].end - at[i].begin < at[best].end - at[best].begin) {
            best = i;
        }
    }
    return best;
}

static void insert(struct span *at, unsigned *count, unsigned max, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return;
    }
    if (*count == max) {
        unsigned victim = smallest(at, *count);
        if (at[victim].end - at[victim].begin >= end - begin) {
            return;
        }
        delete_at(at, count, victim);
    }
    unsigned i = 0;
    while (i < *count && at[i].begin < begin) {
        i++;
    }
    memmove(&at[i + 1], &at[i], (*count - i) * sizeof at[0]);
    at[i] = (struct span){begin, end};
    (*count)++;
}

void span_add(struct span *at, unsigned *count, unsigned max, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return;
    }
    for (unsigned i = 0; i < *count;) {
        if (at[i].begin <= end && begin <= at[i].end) {
            begin = at[i].begin < begin ? at[i].begin : begin;
            end = at[i].end > end ? at[i].end : end;
            delete_at(at, count, i);
        } else {
            i++;
        }
    }
    insert(at, count, max, begin, end);
}

bool span_cover(const struct span *at, unsigned count, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return true;
    }
    for (unsigned i = 0; i < count; i++) {
        if (at[i].begin <= begin && end <= at[i].end) {
            return true;
        }
    }
    return false;
}

void spans_remove(struct spans *s, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return;
    }
    for (unsigned i = 0; i < s->count;) {
        struct span at = s->at[i];
        if (at.begin >= end || begin >= at.end) {
            i++;
            continue;
        }
        delete_at(s->at, &s->count, i);
        insert(s->at, &s->count, SPANS_MAX, at.begin, begin);
        insert(s->at, &s->count, SPANS_MAX, end > at.begin ? end : at.begin, at.end);
        i = 0; /* the inserted ranges lie outside of the removed one, so the loop ends */
    }
}
