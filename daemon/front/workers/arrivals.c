#include "daemon/front/workers/arrivals.h"

#include <string.h>

/* The entry of that buffer; 0: one that is free. NULL: there is none. */
static struct arrival *entry_of(struct device *d, uint64_t id)
{
    for (unsigned i = 0; i < ARRIVALS_MAX; i++) {
        if (d->arrival[i].id == id) {
            return &d->arrival[i];
        }
    }
    return NULL;
}

bool arrivals_has(const struct device *d, uint64_t id)
{
    bool has = false;
    for (unsigned i = 0; i < ARRIVALS_MAX && !has; i++) {
        has = d->arrival[i].id == id;
    }
    return has;
}

bool arrivals_room(const struct device *d)
{
    return arrivals_has(d, 0);
}

bool arrivals_any(const struct device *d)
{
    bool any = false;
    for (unsigned i = 0; i < ARRIVALS_MAX && !any; i++) {
        any = d->arrival[i].id != 0;
    }
    return any;
}

void arrivals_add(struct device *d, uint64_t id, bool wanted)
{
    struct arrival *a = entry_of(d, 0);
    if (a != NULL) {
        *a = (struct arrival){.id = id, .unwanted = !wanted};
    }
}

void arrivals_refuse(struct device *d, uint64_t id)
{
    struct arrival *a = entry_of(d, id);
    if (a != NULL) {
        a->unwanted = true;
    }
}

bool arrivals_end(struct device *d, uint64_t id)
{
    struct arrival *a = entry_of(d, id);
    bool wanted = a != NULL && !a->unwanted;
    if (a != NULL) {
        *a = (struct arrival){.id = 0};
    }
    return wanted;
}

void arrivals_forget(struct device *d)
{
    memset(d->arrival, 0, sizeof d->arrival);
}
