/* What is due when: against a plain list, in the worst orders. */
#include "daemon/front/model/agenda.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/common/suite.h"

enum { COUNT = 2000 };

static struct heap_entry entry[COUNT];
static struct agenda agenda;

static uint64_t earliest(void)
{
    uint64_t at_ns = NS_NEVER;
    for (unsigned i = 0; i < COUNT; i++) {
        at_ns = entry[i].in && entry[i].key < at_ns ? entry[i].key : at_ns;
    }
    return at_ns;
}

/* The longest way down to the right, and that each is before what is below it. */
static unsigned check_tree(void)
{
    unsigned longest = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        const struct heap_entry *x = &entry[i];
        unsigned way = 0;
        ck_assert(!x->in || x->parent != NULL || agenda.heap.first == x);
        ck_assert(!x->in || x->parent == NULL || x->parent->key <= x->key);
        for (; x != NULL && x->in; x = x->right) {
            way++;
        }
        longest = way > longest ? way : longest;
    }
    return longest;
}

static void order(unsigned kind)
{
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t at_ns = kind == 0 ? i : kind == 1 ? COUNT - i : (uint64_t)(rand() % 500);
        agenda_set(&agenda, &entry[i], at_ns, &entry[i]);
    }
    ck_assert_uint_le(check_tree(), 11); /* the logarithm of their number */
    for (unsigned i = 0; i < COUNT; i += 3) {
        agenda_drop(&agenda, &entry[i]);
        agenda_drop(&agenda, &entry[i]); /* not there any more */
    }
    for (unsigned i = 1; i < COUNT; i += 3) {
        agenda_set(&agenda, &entry[i], (uint64_t)(rand() % 500), &entry[i]);
    }
    ck_assert_uint_le(check_tree(), 11);
    uint64_t at_ns = 0;
    unsigned left = 0;
    while ((at_ns = agenda_next_ns(&agenda)) != NS_NEVER) {
        ck_assert_uint_eq(at_ns, earliest());
        ck_assert(at_ns == 0 || agenda_due(&agenda, at_ns - 1) == NULL);
        struct heap_entry *x = agenda_due(&agenda, at_ns);
        ck_assert_ptr_nonnull(x);
        agenda_set(&agenda, x, NS_NEVER, x);
        left++;
    }
    ck_assert_uint_eq(left, COUNT - (COUNT + 2) / 3);
    ck_assert_ptr_null(agenda.heap.first);
}

START_TEST(the_earliest_comes_first)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        order(kind);
    }
}
END_TEST

/* Counted as a plain list would be, up to what is asked for. */
START_TEST(those_ahead_are_counted)
{
    struct heap heap = {.first = NULL};
    memset(entry, 0, sizeof entry);
    for (unsigned i = 0; i < COUNT; i++) {
        heap_put(&heap, &entry[i], (uint64_t)(rand() % 200), i, NULL);
    }
    for (unsigned i = 0; i < COUNT; i += 2) {
        heap_drop(&heap, &entry[i]);
    }
    for (unsigned i = 1; i < COUNT; i += 40) {
        unsigned ahead = 0;
        for (unsigned k = 1; k < COUNT; k += 2) {
            ahead += entry[k].key < entry[i].key || (entry[k].key == entry[i].key && k < i);
        }
        ck_assert_uint_eq(heap_ahead(&heap, &entry[i], COUNT), ahead);
        ck_assert_uint_eq(heap_ahead(&heap, &entry[i], 7), ahead < 7 ? ahead : 7);
    }
}
END_TEST

SUITE_MAIN("agenda", the_earliest_comes_first, those_ahead_are_counted)
