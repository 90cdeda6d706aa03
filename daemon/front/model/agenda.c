#include "daemon/front/model/agenda.h"

#include <stddef.h>

#include "common/clock.h"

void agenda_set(struct agenda *a, struct heap_entry *x, uint64_t at_ns, void *what)
{
    if (at_ns == NS_NEVER) {
        heap_drop(&a->heap, x);
    } else {
        heap_put(&a->heap, x, at_ns, 0, what);
    }
}

void agenda_drop(struct agenda *a, struct heap_entry *x)
{
    heap_drop(&a->heap, x);
}

void *agenda_due(const struct agenda *a, uint64_t now_ns)
{
    const struct heap_entry *first = a->heap.first;
    return first != NULL && first->key <= now_ns ? first->what : NULL;
}

uint64_t agenda_next_ns(const struct agenda *a)
{
    return a->heap.first != NULL ? a->heap.first->key : NS_NEVER;
}
