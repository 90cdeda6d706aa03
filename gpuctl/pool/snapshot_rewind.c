/* Finds the pieces that lived when the log began, by playing the log backwards. */
#include <stdlib.h>

#include "gpuctl/pool/snapshot.h"

#define REMOVED UINT32_MAX

/* A hash table of pieces by address, with open addressing. A slot has the piece's index + 1; 0:
 * free; REMOVED: its piece was removed. */
struct places {
    struct snapshot_piece *pieces; /* not owned */
    uint32_t *slot;
    uint64_t mask;
};

static uint32_t *find(const struct places *p, uint64_t at)
{
    uint64_t i = at * UINT64_C(0x9e3779b97f4a7c15) >> 24;
    for (;; i++) {
        uint32_t *slot = &p->slot[i & p->mask];
        if (*slot == 0 || (*slot != REMOVED && p->pieces[*slot - 1].at == at)) {
            return slot;
        }
    }
}

struct snapshot_piece *snapshot_live(const struct snapshot_device *d, uint32_t *ret_count)
{
    struct snapshot_piece *live = calloc((size_t)d->piece_count + d->event_count + 1, sizeof *live);
    uint32_t count = 0;
    for (uint32_t i = 0; live != NULL && i < d->piece_count; i++) {
        if (d->pieces[i].state == SNAPSHOT_LIVE) {
            live[count++] = d->pieces[i];
        }
    }
    *ret_count = count;
    return live;
}

/* Moves the pieces that are in the table to the front and returns their number. */
static uint32_t collect(const struct places *p, struct snapshot_piece *pieces, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (*find(p, pieces[i].at) == i + 1) {
            pieces[i].until = 1;
        } else {
            pieces[i].until = 0;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].until != 0) {
            pieces[kept++] = pieces[i];
        }
    }
    return kept;
}

uint32_t snapshot_rewind(const struct snapshot_device *d, struct snapshot_piece *pieces,
                         uint32_t count, uint32_t *ret_piece)
{
    struct places p = {.pieces = pieces, .mask = 63};
    uint32_t given = count;
    while (p.mask < 4 * ((uint64_t)count + d->event_count)) {
        p.mask = 2 * p.mask + 1;
    }
    p.slot = calloc((size_t)p.mask + 1, sizeof *p.slot);
    if (p.slot == NULL) {
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < count; i++) {
        *find(&p, pieces[i].at) = i + 1;
    }
    for (uint32_t i = d->event_count; i > 0; i--) {
        const struct snapshot_event *v = &d->events[i - 1];
        uint32_t *slot = v->kind <= SNAPSHOT_RELEASE ? find(&p, v->at) : NULL;
        uint32_t piece = SNAPSHOT_NO_PIECE;
        if (slot != NULL && v->kind == SNAPSHOT_RELEASE && *slot == 0) {
            pieces[count++] =
                (struct snapshot_piece){.at = v->at, .size = v->size, .tenant = v->tenant};
            *slot = count;
        } else if (slot != NULL && v->kind != SNAPSHOT_RELEASE && *slot != 0) {
            piece = *slot - 1 < given ? *slot - 1 : SNAPSHOT_NO_PIECE;
            *slot = REMOVED;
        }
        if (ret_piece != NULL) {
            ret_piece[i - 1] = piece;
        }
    }
    count = collect(&p, pieces, count);
    free(p.slot);
    return count;
}
