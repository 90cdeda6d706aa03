#include "daemon/worker/memory/turns.h"

#include <stddef.h>
#include <utlist.h>

void turns_add(struct turns *t, struct turn *x, uint64_t tenant)
{
    struct turn *oldest = t->first;
    *x = (struct turn){.tenant = tenant};
    while (oldest != NULL && oldest->tenant != tenant) {
        oldest = oldest->next;
    }
    if (oldest == NULL) {
        DL_APPEND(t->first, x);
    }
    DL_APPEND2(oldest, x, before, after);
}

void turns_pass(struct turns *t)
{
    struct turn *x = t->first;
    if (x != NULL) {
        DL_DELETE(t->first, x);
        DL_APPEND(t->first, x);
    }
}

void turns_remove(struct turns *t, struct turn *x)
{
    struct turn *oldest = t->first;
    while (oldest->tenant != x->tenant) {
        oldest = oldest->next;
    }
    struct turn *rest = oldest;
    DL_DELETE2(rest, x, before, after);
    if (x == oldest && rest != NULL) { /* in the same place, for the turn's sake */
        DL_REPLACE_ELEM(t->first, x, rest);
    } else if (x == oldest) {
        DL_DELETE(t->first, x);
    }
}
