#include "daemon/front/model/ack_set.h"

#include <stdlib.h>

#define NUMBER_MAX (UINT64_MAX / 2) /* clients do not count this far, and sums do not overflow */

static bool is_valid(const struct proto_span *span, uint64_t behind)
{
    return span->count > 0 && span->count <= NUMBER_MAX && span->first <= NUMBER_MAX &&
           span->first >= behind;
}

void ack_set_add(struct ack_set *t, uint64_t number)
{
    if (t->count == 0 || t->ranges[t->count - 1].end != number) {
        t->ranges[t->count++].first = number;
    }
    t->ranges[t->count - 1].end = number + 1;
}

int ack_set_read(struct proto_list spans, struct ack_set *ret_set, struct err *e)
{
    struct proto_iter it = proto_iter_of(spans);
    struct proto_span span;
    struct ack_set t = {0};
    uint64_t behind = 0;
    if (spans.count > 0) {
        t.ranges = malloc((size_t)spans.count * sizeof *t.ranges);
        if (t.ranges == NULL) {
            return err_set(e, ERR_NOMEM, "no memory for %llu ranges of acknowledged numbers",
                           (unsigned long long)spans.count);
        }
    }
    while (t.count < spans.count && proto_list_next(&it, &schema_span, &span)) {
        if (is_valid(&span, behind)) {
            behind = span.first + span.count;
            t.ranges[t.count++] = (struct ack_range){.first = span.first, .end = behind};
        }
    }
    *ret_set = t;
    return 0;
}

void ack_set_finish(struct ack_set *t)
{
    free(t->ranges);
    *t = (struct ack_set){0};
}

uint64_t ack_set_end(const struct ack_set *t, uint64_t number)
{
    unsigned low = 0;
    unsigned high = t->count;
    while (low < high) { /* finds the first range that ends above the number */
        unsigned middle = low + (high - low) / 2;
        if (t->ranges[middle].end <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < t->count && t->ranges[low].first <= number ? t->ranges[low].end : 0;
}

uint64_t ack_set_last(const struct ack_set *t)
{
    return t->count > 0 ? t->ranges[t->count - 1].end : 0;
}
