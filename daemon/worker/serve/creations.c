#include "daemon/worker/serve/creations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

/* Other processes and drivers free memory of the device without a word. */
#define AGAIN_NS (100 * NS_PER_MS)

void creations_init(struct creations *l, const struct memory *memory, creation_fn create,
                    creation_failed_fn failed, void *data)
{
    *l = (struct creations){.memory = memory, .create = create, .failed = failed, .data = data};
}

static unsigned count_of(const struct creations *l, uint64_t tenant)
{
    unsigned count = 0;
    for (const struct creation *x = l->first; x != NULL; x = x->next) {
        count += x->ask.tenant == tenant;
    }
    return count;
}

int creations_add(struct creations *l, struct creation *x, uint64_t now, struct err *e)
{
    if (count_of(l, x->ask.tenant) >= CREATIONS_MAX) {
        return err_set(e, ERR_LIMIT,
                       "%u buffers of the tenant wait for device memory already: wait for answers "
                       "about them",
                       CREATIONS_MAX);
    }
    struct creation *new = malloc(sizeof *new);
    if (new == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to let buffer %" PRIu64 " wait for device memory",
                       x->ask.id);
    }
    *new = *x;
    x->host = MEMFD_NONE;
    new->changes = l->memory->changes;
    new->tried_ns = now;
    new->until_ns = now + CREATION_NS;
    DL_APPEND(l->first, new);
    return 0;
}

struct creation *creations_find(const struct creations *l, uint64_t id)
{
    struct creation *x = l->first;
    while (x != NULL && x->ask.id != id) {
        x = x->next;
    }
    return x;
}

void creations_end(struct creations *l, struct creation *x)
{
    DL_DELETE(l->first, x);
    memfd_finish(&x->host);
    free(x);
}

void creations_finish(struct creations *l)
{
    while (l->first != NULL) {
        creations_end(l, l->first);
    }
}

void creations_adopted(struct creations *l)
{
    struct creation *x;
    struct creation *next;
    DL_FOREACH_SAFE(l->first, x, next)
    {
        x->unreported = x->host.fd >= 0;
        if (!x->unreported) {
            creations_end(l, x);
        }
    }
}

/* May a try have another result than the last one? */
static bool is_due(const struct creations *l, const struct creation *x, uint64_t now)
{
    return x->clearing.moves || x->changes != l->memory->changes || now >= x->tried_ns + AGAIN_NS;
}

/* Tries once. The last try does not wait for more room. */
static void again(struct creations *l, struct creation *x, uint64_t now)
{
    struct err e = ERR_INIT;
    bool last = now >= x->until_ns;
    int rc = l->create(l->data, x, last, &e);
    x->changes = l->memory->changes;
    x->tried_ns = now;
    if (rc != BUFFER_LATER) {
        uint64_t id = x->ask.id;
        creations_end(l, x);
        if (rc != 0) {
            l->failed(l->data, id, &e);
        }
    }
}

void creations_poll(struct creations *l, uint64_t now)
{
    struct creation *x;
    struct creation *next;
    DL_FOREACH_SAFE(l->first, x, next)
    {
        if (now >= x->until_ns || is_due(l, x, now)) {
            again(l, x, now);
        }
    }
}

bool creations_move(const struct creations *l)
{
    const struct creation *x = l->first;
    while (x != NULL && !x->clearing.moves) {
        x = x->next;
    }
    return x != NULL;
}
