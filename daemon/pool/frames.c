#include "daemon/pool/frames.h"

#include <stdlib.h>

#include "daemon/pool/pool_int.h"

#define ORDER_MOST  15u /* `behind` has 16 bits */
#define ROWS_LOOKED 16u /* rows of frames without memory examined for a longer one */

int frames_init(struct frames *f, uint32_t max, struct err *e)
{
    f->name = calloc(max, sizeof *f->name);
    f->order = calloc(max, sizeof *f->order);
    f->behind = calloc(max, sizeof *f->behind);
    f->max = max;
    return f->name != NULL && f->order != NULL && f->behind != NULL
               ? marks_init(&f->vacant, max, e)
               : err_set(e, ERR_NOMEM, "no memory for a table of %u frames", max);
}

void frames_finish(struct frames *f)
{
    free(f->name);
    free(f->order);
    free(f->behind);
    marks_finish(&f->vacant);
}

/* ---- numbers ----------------------------------------------------------------------------------*/

/* Vacant frames in a row from `first` on, up to `most`. */
static uint64_t row(const struct frames *f, uint64_t first, uint64_t most)
{
    uint64_t count = 1;
    while (count < most && marks_next(&f->vacant, first + count) == first + count) {
        count++;
    }
    return count;
}

/* A row of `most`, or the longest of the first few. */
static uint64_t longest_row(const struct frames *f, uint64_t most, uint64_t *ret_first)
{
    uint64_t best = 0;
    uint64_t at = marks_next(&f->vacant, 0);
    for (unsigned n = 0; n < ROWS_LOOKED && at != MARKS_NONE && best < most; n++) {
        uint64_t count = row(f, at, most);
        if (count > best) {
            best = count;
            *ret_first = at;
        }
        at = marks_next(&f->vacant, at + count);
    }
    return best;
}

uint64_t frames_take(struct frames *f, uint64_t most, uint32_t *ret_first)
{
    uint64_t first = 0;
    uint64_t fresh = f->max - f->made;
    uint64_t count = longest_row(f, most, &first);
    if (count < most && fresh > count) { /* never used before: in one row */
        count = most < fresh ? most : fresh;
        *ret_first = f->made;
        f->made += (uint32_t)count;
        return count;
    }
    for (uint64_t n = 0; n < count; n++) {
        marks_remove(&f->vacant, first + n);
    }
    *ret_first = (uint32_t)first;
    return count;
}

void frames_give(struct frames *f, uint64_t first, uint64_t count)
{
    for (uint64_t n = 0; n < count; n++) {
        marks_add(&f->vacant, first + n);
    }
}

/* ---- handles ----------------------------------------------------------------------------------*/

static unsigned log_of(uint64_t count)
{
    return 63u - (unsigned)__builtin_clzll(count);
}

/* log2 of the frames of the largest handle. */
static unsigned order_most(const struct pool *p)
{
    unsigned order = log_of(to_pages(p, p->handle_max));
    order = order < p->late.order ? order : p->late.order;
    return order < ORDER_MOST ? order : ORDER_MOST;
}

uint64_t frames_largest(const struct pool *p, uint64_t bytes)
{
    unsigned most = order_most(p);
    unsigned order = log_of(to_pages(p, bytes));
    return p->page << (order < most ? order : most);
}

static void note(struct frames *f, uint64_t first, unsigned order)
{
    f->order[first] = (uint8_t)order;
    for (uint64_t n = 0; n < UINT64_C(1) << order; n++) {
        f->behind[first + n] = (uint16_t)n;
    }
    f->handles++;
}

uint64_t frames_create(struct pool *p, uint64_t first, uint64_t count, bool rising, struct err *e)
{
    struct frames *f = &p->table.frames;
    unsigned most = order_most(p);
    uint64_t done = 0;
    while (done < count) {
        uint64_t left = count - done;
        unsigned order = rising ? (unsigned)__builtin_ctzll(left) : log_of(left);
        order = order < most ? order : most;
        p->stats.driver_calls++;
        int rc =
            p->source.pages->create(p->source.user, p->page << order, &f->name[first + done], e);
        if (rc == 0) {
            note(f, first + done, order);
            done += UINT64_C(1) << order;
        } else if (rc == ERR_DEVICE_MEMORY && order > 0) {
            most = order - 1;
        } else {
            break;
        }
    }
    p->stats.size += done * p->page;
    p->stats.size_peak = p->stats.size > p->stats.size_peak ? p->stats.size : p->stats.size_peak;
    return done;
}

void frames_destroy(struct pool *p, uint64_t first, uint64_t count)
{
    struct frames *f = &p->table.frames;
    for (uint64_t n = first; n < first + count;) {
        uint64_t end = handle_end(f, n);
        p->stats.driver_calls++;
        p->source.pages->destroy(p->source.user, f->name[n], (end - n) * p->page);
        f->handles--;
        n = end;
    }
    p->stats.size -= count * p->page;
}
