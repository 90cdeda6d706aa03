#include "daemon/front/model/taken.h"

#include <stdlib.h>

#define NUMBER_MAX (UINT64_MAX / 2) /* nobody counts so far, and sums stay numbers */

static bool believed(const struct proto_span *span, uint64_t behind)
{
    return span->count > 0 && span->count <= NUMBER_MAX && span->first <= NUMBER_MAX &&
           span->first >= behind;
}

void taken_add(struct taken *t, uint64_t number)
{
    if (t->count == 0 || t->ranges[t->count - 1].end != number) {
        t->ranges[t->count++].first = number;
    }
    t->ranges[t->count - 1].end = number + 1;
}

int taken_read(struct proto_list spans, struct taken *ret_taken, struct err *e)
{
    struct proto_iter it = proto_iter_of(spans);
    struct proto_span span;
    struct taken t = {0};
    uint64_t behind = 0;
    if (spans.count > 0) {
        t.ranges = malloc((size_t)spans.count * sizeof *t.ranges);
        if (t.ranges == NULL) {
            return err_set(e, ERR_NOMEM, "%llu ranges of numbers", (unsigned long long)spans.count);
        }
    }
    while (t.count < spans.count && proto_list_next(&it, &schema_span, &span)) {
        if (believed(&span, behind)) {
            behind = span.first + span.count;
            t.ranges[t.count++] = (struct taken_range){.first = span.first, .end = behind};
        }
    }
    *ret_taken = t;
    return 0;
}

void taken_finish(struct taken *t)
{
    free(t->ranges);
    *t = (struct taken){0};
}

uint64_t taken_end(const struct taken *t, uint64_t number)
{
    unsigned low = 0;
    unsigned high = t->count;
    while (low < high) { /* the first one that ends behind it */
        unsigned middle = low + (high - low) / 2;
        if (t->ranges[middle].end <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < t->count && t->ranges[low].first <= number ? t->ranges[low].end : 0;
}

uint64_t taken_last(const struct taken *t)
{
    return t->count > 0 ? t->ranges[t->count - 1].end : 0;
}
