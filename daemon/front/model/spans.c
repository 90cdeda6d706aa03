#include "daemon/front/model/spans.h"

#include <string.h>

static void delete_at(struct spans *s, unsigned i)
{
    memmove(&s->at[i], &s->at[i + 1], (s->count - i - 1) * sizeof s->at[0]);
    s->count--;
}

static unsigned smallest(const struct spans *s)
{
    unsigned best = 0;
    for (unsigned i = 1; i < s->count; i++) {
        if (s->at[i].end - s->at[i].begin < s->at[best].end - s->at[best].begin) {
            best = i;
        }
    }
    return best;
}

static void insert(struct spans *s, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return;
    }
    if (s->count == SPANS_MAX) {
        unsigned victim = smallest(s);
        if (s->at[victim].end - s->at[victim].begin >= end - begin) {
            return;
        }
        delete_at(s, victim);
    }
    unsigned i = 0;
    while (i < s->count && s->at[i].begin < begin) {
        i++;
    }
    memmove(&s->at[i + 1], &s->at[i], (s->count - i) * sizeof s->at[0]);
    s->at[i] = (struct span){begin, end};
    s->count++;
}

void spans_add(struct spans *s, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return;
    }
    for (unsigned i = 0; i < s->count;) {
        struct span *at = &s->at[i];
        if (at->begin <= end && begin <= at->end) {
            begin = at->begin < begin ? at->begin : begin;
            end = at->end > end ? at->end : end;
            delete_at(s, i);
        } else {
            i++;
        }
    }
    insert(s, begin, end);
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
        delete_at(s, i);
        insert(s, at.begin, begin);
        insert(s, end > at.begin ? end : at.begin, at.end);
        i = 0; /* the inserted ranges lie outside of the removed one, so the loop ends */
    }
}

bool spans_cover(const struct spans *s, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return true;
    }
    for (unsigned i = 0; i < s->count; i++) {
        if (s->at[i].begin <= begin && end <= s->at[i].end) {
            return true;
        }
    }
    return false;
}
