/*
 * Memory of several streams for one request. A free block waits for one point, so such memory waits
 * for a point of the joint line, which counts like a stream: point n is past when each stream has
 * reached the point that `joint` has for it. A stream that waits for n waits for the others'
 * points.
 *
 * Memory joins only for a request that would be refused otherwise: the oldest, and no more than it
 * needs. Its own stream gets it for waits, too, from then on.
 */
#include <string.h>

#include "daemon/pool/pool_int.h"

#define LOOKED      1024u /* blocks of a line examined for one request */
#define SHARED_MOST 256u  /* handles */

/* ---- points of the joint line -----------------------------------------------------------------*/

int joint_wait(struct pool *p, unsigned stream, uint64_t n, struct err *e)
{
    const uint64_t *seq = p->joint.seq[n % JOINTS];
    int rc = 0;
    for (unsigned s = 0; s < p->streams && n > p->done[joint_line(p)] && rc == 0; s++) {
        rc = s != stream && seq[s] > p->done[s] ? pool_wait(p, stream, s, seq[s], e) : 0;
    }
    return rc;
}

bool joint_needs(const struct pool *p, unsigned stream)
{
    const uint64_t *seq = p->joint.seq[p->joint.last % JOINTS];
    return p->line[joint_line(p)].oldest != BLOCK_NONE && seq[stream] > p->done[stream];
}

static bool reached(const struct pool *p, uint64_t n)
{
    unsigned s = 0;
    while (s < p->streams && p->joint.seq[n % JOINTS][s] <= p->done[s]) {
        s++;
    }
    return s == p->streams;
}

uint64_t joint_reached(const struct pool *p)
{
    uint64_t n = p->done[joint_line(p)];
    while (n < p->joint.last && reached(p, n + 1)) {
        n++;
    }
    return n;
}

/* A new point; the newest once more, which then comes later, if there are too many. */
static uint64_t point_new(struct pool *p)
{
    uint64_t n = p->joint.last;
    if (n - p->done[joint_line(p)] < JOINTS) {
        p->joint.last = n + 1;
        memcpy(p->joint.seq[(n + 1) % JOINTS], p->joint.seq[n % JOINTS], sizeof p->joint.seq[0]);
    }
    return p->joint.last;
}

/* ---- joining ----------------------------------------------------------------------------------*/

/* A held block, READY, PENDING or VACANT, waits for joint point n. Returns what it is part of. */
static uint32_t join(struct pool *p, uint32_t i, uint64_t n)
{
    struct block *b = block_at(&p->blocks, i);
    uint64_t *seq = &p->joint.seq[n % JOINTS][b->stream % POOL_STREAMS];
    if (b->stream != joint_line(p) && b->seq > *seq) {
        *seq = b->seq;
    }
    b->stream = (uint8_t)joint_line(p);
    b->seq = n;
    if (b->state != BLOCK_VACANT) {
        b->state = BLOCK_PENDING;
        i = space_merge(p, i);
    }
    space_enter(p, i);
    return i;
}

/* READY and PENDING blocks join from `at` to `end`. Needs two records. */
static void join_range(struct pool *p, uint64_t at, uint64_t end, uint64_t n)
{
    while (at < end) {
        uint32_t i = by_address(p, at);
        const struct block *b = block_at(&p->blocks, i);
        uint64_t next = b->at + b->size;
        space_leave(p, i);
        if (b->at < at) {
            uint32_t rest = space_cut(p, i, at - b->at);
            space_enter(p, i);
            i = rest;
        }
        if (next > end) {
            space_enter(p, space_cut(p, i, end - at));
        }
        (void)join(p, i, n);
        at = next;
    }
}

static bool is_free(const struct block *b)
{
    return b->state == BLOCK_READY || b->state == BLOCK_PENDING;
}

/* ---- whole pages ------------------------------------------------------------------------------*/

static uint64_t whole_of(const struct pool *p, unsigned line)
{
    return p->pending_whole[line] + p->leaving_of[line];
}

/* Bytes that the request lacks beside whole pages that are past, new ones and those that have
 * joined. */
static uint64_t missing(const struct pool *p, uint64_t need)
{
    uint64_t past = sat_add(p->whole_bytes, pool_room(p) & ~(p->page - 1));
    return sat_sub(need, sat_add(past, whole_of(p, joint_line(p))));
}

/* The oldest of a stream's whole pages join, as many as are missing. */
static void join_oldest(struct pool *p, unsigned stream, uint64_t need, uint64_t n)
{
    uint32_t i = p->line[stream].oldest;
    while (i != BLOCK_NONE && missing(p, need) > 0 && space_has_records(p, 2)) {
        const struct block *b = block_at(&p->blocks, i);
        uint32_t next = b->newer;
        uint64_t at;
        uint64_t whole = b->state == BLOCK_PENDING ? space_whole(p, b, &at) : 0;
        if (whole > 0) {
            join_range(p, at, at + backing_pages_reach(p, at, whole, missing(p, need)), n);
        } else if (b->state == BLOCK_VACANT) {
            space_leave(p, i);
            (void)join(p, i, n);
        }
        i = next;
    }
}

/* The request's stream comes first, then the streams with most: so waits are few. */
static unsigned next_stream(const struct pool *p, unsigned stream, const bool *tried)
{
    unsigned best = tried[stream] ? LINE_NONE : stream;
    for (unsigned s = 0; s < p->streams && best != stream; s++) {
        bool more = best == LINE_NONE || whole_of(p, s) > whole_of(p, best);
        best = !tried[s] && more ? s : best;
    }
    return best;
}

/* Handles whose parts are free, for different streams. */
struct shared {
    uint64_t at[SHARED_MOST];
    unsigned count;
    uint64_t bytes;
};

/* Is the handle that has the byte at `at` one of these? It counts once: for its first PENDING part.
 */
static void shared_at(const struct pool *p, uint32_t i, uint64_t at, struct shared *s)
{
    at &= ~(p->page - 1);
    uint64_t end = at + page_rest(p, at);
    uint32_t first = BLOCK_NONE;
    unsigned parts = 0;
    at -= page_inside(p, at);
    for (uint64_t next = at; next < end; parts++) {
        uint32_t part = by_address(p, next);
        const struct block *b = block_at(&p->blocks, part);
        if (!is_free(b)) {
            return;
        }
        first = first == BLOCK_NONE && b->state == BLOCK_PENDING ? part : first;
        next = b->at + b->size;
    }
    if (first == i && parts > 1 && s->count < SHARED_MOST) {
        s->at[s->count++] = at;
        s->bytes += end - at;
    }
}

static void shared_find(const struct pool *p, struct shared *s)
{
    for (unsigned line = 0; line <= joint_line(p); line++) {
        uint32_t i = p->line[line].oldest;
        for (unsigned looked = 0; i != BLOCK_NONE && looked < LOOKED; looked++) {
            const struct block *b = block_at(&p->blocks, i);
            uint64_t front = b->at & ~(p->page - 1);
            uint64_t last = b->at + b->size - 1;
            if (b->state == BLOCK_PENDING) {
                shared_at(p, i, front, s);
            }
            if (b->state == BLOCK_PENDING && last >= front + page_rest(p, front)) {
                shared_at(p, i, last, s);
            }
            i = b->newer;
        }
    }
}

bool joint_pages(struct pool *p, const struct pool_ask *ask)
{
    if (p->source.pages == NULL || p->source.wait == NULL) {
        return false;
    }
    struct shared shared = {.count = 0};
    bool tried[POOL_STREAMS] = {false};
    uint64_t need = (ask->size + p->page - 1) & ~(p->page - 1);
    uint64_t lack = missing(p, need);
    uint64_t there = 0;
    for (unsigned s = 0; s < p->streams; s++) {
        there += whole_of(p, s);
    }
    if (lack > there) {
        shared_find(p, &shared);
    }
    if (lack == 0 || lack > there + shared.bytes) {
        return false;
    }
    uint64_t n = point_new(p);
    for (unsigned k = 0; k < shared.count && missing(p, need) > there; k++) {
        uint64_t at = shared.at[k];
        if (space_has_records(p, 2)) {
            join_range(p, at, at + page_rest(p, at), n);
        }
    }
    unsigned s = next_stream(p, ask->stream, tried);
    while (missing(p, need) > 0 && s != LINE_NONE) {
        tried[s] = true;
        join_oldest(p, s, need, n);
        s = next_stream(p, ask->stream, tried);
    }
    return true;
}

/* ---- in a row ---------------------------------------------------------------------------------*/

static bool adjoin(const struct block *a, const struct block *b)
{
    return is_free(a) && is_free(b) && a->home == b->home && !b->edge;
}

/* Do free blocks in a row from here on have `size` bytes? It is the first of them that is PENDING,
 * or has a READY one before it. */
static bool row_from(const struct pool *p, uint32_t *i, uint64_t size)
{
    const struct block *b = block_at(&p->blocks, *i);
    if (b->before != BLOCK_NONE && adjoin(block_at(&p->blocks, b->before), b)) {
        if (block_at(&p->blocks, b->before)->state != BLOCK_READY) {
            return false;
        }
        *i = b->before;
        b = block_at(&p->blocks, *i);
    }
    uint64_t bytes = b->size;
    while (bytes < size && b->after != BLOCK_NONE && adjoin(b, block_at(&p->blocks, b->after))) {
        b = block_at(&p->blocks, b->after);
        bytes += b->size;
    }
    return bytes >= size;
}

static uint32_t row_find(const struct pool *p, uint64_t size)
{
    for (unsigned line = 0; line <= joint_line(p); line++) {
        uint32_t i = p->line[line].oldest;
        for (unsigned looked = 0; i != BLOCK_NONE && looked < LOOKED; looked++) {
            uint32_t first = i;
            if (block_at(&p->blocks, i)->state == BLOCK_PENDING && row_from(p, &first, size)) {
                return first;
            }
            i = block_at(&p->blocks, i)->newer;
        }
    }
    return BLOCK_NONE;
}

bool joint_row(struct pool *p, const struct pool_ask *ask)
{
    uint64_t size = (ask->size + POOL_ALIGN - 1) & ~(uint64_t)(POOL_ALIGN - 1);
    size += pool_align(ask) - POOL_ALIGN;
    uint32_t i = p->source.wait != NULL ? row_find(p, size) : BLOCK_NONE;
    if (i == BLOCK_NONE) {
        return false;
    }
    uint64_t end = block_at(&p->blocks, i)->at + size;
    uint64_t n = point_new(p);
    while (true) {
        space_leave(p, i);
        i = join(p, i, n);
        const struct block *b = block_at(&p->blocks, i);
        if (b->at + b->size >= end) {
            return true;
        }
        i = b->after;
    }
}
