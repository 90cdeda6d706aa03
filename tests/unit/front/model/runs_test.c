/* Runs against a plain array: random entries, in order and out of it. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/runs.h"
#include "tests/unit/common/suite.h"

enum { ENTRIES = 400, STEPS = 200000 };

static struct heap_entry entry[ENTRIES];
static struct runs queue;

static unsigned at_random(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

static struct heap_entry *least(void)
{
    struct heap_entry *first = NULL;
    for (unsigned i = 0; i < ENTRIES; i++) {
        if (entry[i].in && (first == NULL || heap_before(&entry[i], first))) {
            first = &entry[i];
        }
    }
    return first;
}

static unsigned before(const struct heap_entry *x, unsigned max)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ENTRIES; i++) {
        count += entry[i].in && heap_before(&entry[i], x);
    }
    return count < max ? count : max;
}

/* `out` of 100 entries are out of order. */
static void play(unsigned out, unsigned seed)
{
    uint64_t clock = 1000000;
    memset(&queue, 0, sizeof queue);
    memset(entry, 0, sizeof entry);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = at_random(&seed, ENTRIES);
        struct heap_entry *x = &entry[i];
        if (x->in) {
            x = at_random(&seed, 2) == 0 ? runs_first(&queue) : x;
            runs_drop(&queue, x);
            ck_assert(!x->in);
            runs_drop(&queue, x);
            continue;
        }
        clock += at_random(&seed, 3);
        uint64_t key = clock - (at_random(&seed, 100) < out ? at_random(&seed, 5000) : 0);
        runs_put(&queue, x, key, i, x);
        if (step % 64 == 0) {
            ck_assert_ptr_eq(runs_first(&queue), least());
            ck_assert_ptr_eq(runs_first(&queue)->what, least());
            ck_assert_uint_eq(runs_ahead(&queue, x, 100), before(x, 100));
            ck_assert_uint_eq(runs_ahead(&queue, x, ENTRIES), before(x, ENTRIES));
        }
    }
    for (unsigned i = 0; i < ENTRIES; i++) {
        runs_drop(&queue, &entry[i]);
    }
    ck_assert_ptr_null(runs_first(&queue));
}

START_TEST(the_least_is_first)
{
    for (unsigned seed = 1; seed <= 8; seed++) {
        play(0, seed);
        play(10, seed);
        play(100, seed);
    }
}
END_TEST

/* What comes in order, in few orders, is never in the heap. */
START_TEST(what_comes_in_order_is_in_runs)
{
    memset(&queue, 0, sizeof queue);
    memset(entry, 0, sizeof entry);
    for (unsigned i = 0; i < ENTRIES; i++) {
        runs_put(&queue, &entry[i], i + 1000 * (i % RUNS_MAX), i, NULL);
        ck_assert_ptr_null(queue.rest.first);
    }
    runs_put(&queue, &(struct heap_entry){.in = false}, 0, 0, NULL);
    ck_assert_ptr_nonnull(queue.rest.first);
}
END_TEST

SUITE_MAIN("runs", the_least_is_first, what_comes_in_order_is_in_runs)
