#include "daemon/launcher/copies.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void copies_init(struct copies *c)
{
    struct rlimit limit;
    memset(c->bucket, 0, sizeof c->bucket);
    c->free = c->used = c->count = 0;
    c->max = COPIES_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < COPIES_MAX) {
        c->max = (unsigned)(limit.rlim_cur / 2);
    }
}

static uint32_t *bucket_of(struct copies *c, uint64_t id)
{
    uint64_t mixed = (id ^ id >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return &c->bucket[mixed >> 52]; /* of COPIES_BUCKETS */
}

_Static_assert(COPIES_BUCKETS == UINT64_C(1) << (64 - 52), "bucket_of takes as many bits");

/* A free place; there is one. */
static uint32_t place_take(struct copies *c)
{
    uint32_t at = c->free;
    if (at != 0) {
        c->free = c->copy[at - 1].next;
        return at;
    }
    return ++c->used;
}

bool copies_keep(struct copies *c, uint64_t id, uint64_t worker, int fd)
{
    copies_release(c, id);
    if (c->count >= c->max) {
        return false;
    }
    uint32_t *bucket = bucket_of(c, id);
    uint32_t at = place_take(c);
    c->copy[at - 1] = (struct copy){.id = id, .worker = worker, .next = *bucket, .fd = fd};
    *bucket = at;
    c->count++;
    return true;
}

void copies_release(struct copies *c, uint64_t id)
{
    uint32_t *link = bucket_of(c, id);
    while (*link != 0 && c->copy[*link - 1].id != id) {
        link = &c->copy[*link - 1].next;
    }
    uint32_t at = *link;
    if (at != 0) {
        struct copy *copy = &c->copy[at - 1];
        *link = copy->next;
        (void)close(copy->fd);
        *copy = (struct copy){.next = c->free, .fd = -1};
        c->free = at;
        c->count--;
    }
}

const struct copy *copies_next(const struct copies *c, uint32_t *cursor)
{
    while (*cursor < c->used) {
        const struct copy *copy = &c->copy[(*cursor)++];
        if (copy->fd >= 0) {
            return copy;
        }
    }
    return NULL;
}

bool copies_of(const struct copies *c, uint64_t worker)
{
    uint32_t cursor = 0;
    const struct copy *copy = copies_next(c, &cursor);
    while (copy != NULL && copy->worker != worker) {
        copy = copies_next(c, &cursor);
    }
    return copy != NULL;
}

void copies_move(struct copies *c, uint64_t former, uint64_t worker)
{
    for (uint32_t i = 0; i < c->used; i++) {
        if (c->copy[i].fd >= 0 && c->copy[i].worker == former) {
            c->copy[i].worker = worker;
        }
    }
}
