#include "daemon/pool/pool_int.h"

/* ---- whole pages ------------------------------------------------------------------------------*/

struct handles space_handles(const struct pool *p, const struct block *b)
{
    if (p->source.pages != NULL) {
        return page_handles(p, b->at, b->at + b->size);
    }
    const struct home *h = records_at(&p->homes, b->home);
    uint64_t bytes = h->at == b->at && h->bytes == b->size ? b->size : 0;
    return (struct handles){.at = b->at, .bytes = bytes, .front = bytes, .back = bytes};
}

uint64_t space_whole(const struct pool *p, const struct block *b, uint64_t *ret_at)
{
    const struct handles h = space_handles(p, b);
    *ret_at = h.at;
    return h.bytes;
}

unsigned space_whole_list(const struct pool *p, uint64_t bytes)
{
    unsigned log = 63u - (unsigned)__builtin_clzll(to_pages(p, bytes));
    log = p->source.pages != NULL ? (log + 1) / 2 : log;
    return log < WHOLE_LISTS - 1 ? log : WHOLE_LISTS - 1;
}

static void whole_enter(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    const struct handles h = space_handles(p, b);
    b->whole = 0;
    if (h.bytes == 0) {
        return;
    }
    unsigned list = space_whole_list(p, h.front < h.back ? h.front : h.back);
    uint32_t *head = &p->whole[list];
    b->whole = (uint8_t)(list + 1) & 7u;
    b->older = BLOCK_NONE;
    b->newer = *head;
    if (*head != BLOCK_NONE) {
        block_at(&p->blocks, *head)->older = i;
    }
    *head = i;
    p->whole_bytes += h.bytes;
}

static void whole_leave(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    uint64_t at;
    if (b->whole == 0) {
        return;
    }
    if (b->newer != BLOCK_NONE) {
        block_at(&p->blocks, b->newer)->older = b->older;
    }
    if (b->older != BLOCK_NONE) {
        block_at(&p->blocks, b->older)->newer = b->newer;
    } else {
        p->whole[b->whole - 1] = b->newer;
    }
    p->whole_bytes -= space_whole(p, b, &at);
    b->whole = 0;
}

/* ---- memory that waits for a stream -----------------------------------------------------------*/

static bool is_idle(const struct block *b)
{
    return b->state == BLOCK_VACANT && b->seq == 0;
}

static struct line *line_of(struct pool *p, const struct block *b)
{
    return is_idle(b) ? &p->idle : &p->line[b->stream];
}

static uint64_t memory_of(const struct pool *p, const struct block *b)
{
    return b->state == BLOCK_VACANT ? b->owner * p->page : b->size;
}

/* Pages of VACANT blocks that no stream uses count as whole pages. */
static void line_count(struct pool *p, const struct block *b, bool comes)
{
    uint64_t *sum = is_idle(b) ? &p->whole_bytes : &p->stats.pending;
    uint64_t bytes = memory_of(p, b);
    *sum = comes ? *sum + bytes : *sum - bytes;
    if (b->state == BLOCK_PENDING) {
        uint64_t at;
        uint64_t whole = space_whole(p, b, &at);
        uint64_t *of = &p->pending_whole[b->stream];
        *of = comes ? *of + whole : *of - whole;
    }
    if (b->state == BLOCK_VACANT && !is_idle(b)) {
        p->leaving = comes ? p->leaving + 1 : p->leaving - 1;
        p->leaving_bytes = comes ? p->leaving_bytes + bytes : p->leaving_bytes - bytes;
        p->leaving_of[b->stream] += comes ? bytes : 0 - bytes;
    }
}

/* Always behind the newest, which is O(1). The rest of an older block therefore waits as long as
 * the newest: a little longer than it must. */
static void line_enter(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    struct line *l = line_of(p, b);
    b->older = l->newest;
    b->newer = BLOCK_NONE;
    if (l->newest == BLOCK_NONE) {
        l->oldest = i;
    } else {
        struct block *last = block_at(&p->blocks, l->newest);
        last->newer = i;
        b->seq = b->seq > last->seq ? b->seq : last->seq;
    }
    l->newest = i;
    line_count(p, b, true);
}

static void line_leave(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    struct line *l = line_of(p, b);
    *(b->newer == BLOCK_NONE ? &l->newest : &block_at(&p->blocks, b->newer)->older) = b->older;
    *(b->older == BLOCK_NONE ? &l->oldest : &block_at(&p->blocks, b->older)->newer) = b->newer;
    line_count(p, b, false);
}

void space_lose_pages(struct pool *p, uint32_t i, uint64_t bytes)
{
    struct block *b = block_at(&p->blocks, i);
    line_count(p, b, false);
    b->owner -= (uint32_t)to_pages(p, bytes);
    line_count(p, b, true);
    if (b->owner == 0 && bytes > 0) {
        line_leave(p, i);
    }
}

/* ---- failed memory ----------------------------------------------------------------------------*/

static void failed_enter(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    b->prev = BLOCK_NONE;
    b->next = p->late.first;
    if (b->next != BLOCK_NONE) {
        block_at(&p->blocks, b->next)->prev = i;
    }
    p->late.first = i;
}

static void failed_leave(struct pool *p, uint32_t i)
{
    const struct block *b = block_at(&p->blocks, i);
    *(b->prev != BLOCK_NONE ? &block_at(&p->blocks, b->prev)->next : &p->late.first) = b->next;
    if (b->next != BLOCK_NONE) {
        block_at(&p->blocks, b->next)->prev = b->prev;
    }
}

/* ---- indexed and held -------------------------------------------------------------------------*/

void space_enter(struct pool *p, uint32_t i)
{
    const struct block *b = block_at(&p->blocks, i);
    switch ((enum block_state)b->state) {
    case BLOCK_VOID:
        if (!b->viewed) { /* or it is reserved for repeated requests */
            fit_insert(&p->void_fit, &p->blocks, i);
        }
        break;
    case BLOCK_READY:
        fit_insert(&p->ready, &p->blocks, i);
        whole_enter(p, i);
        break;
    case BLOCK_PENDING:
        fit_insert(&p->pending[b->stream], &p->blocks, i);
        line_enter(p, i);
        break;
    case BLOCK_VACANT:
        if (b->owner > 0) {
            line_enter(p, i);
        }
        break;
    case BLOCK_LIVE:
    case BLOCK_SLAB:
    case BLOCK_HELD:
    case BLOCK_AWAY:
    case BLOCK_WARM:
    case BLOCK_LOST:
        break;
    case BLOCK_FAILED:
        failed_enter(p, i);
        break;
    }
}

void space_leave(struct pool *p, uint32_t i)
{
    const struct block *b = block_at(&p->blocks, i);
    switch ((enum block_state)b->state) {
    case BLOCK_VOID:
        if (!b->viewed) {
            fit_remove(&p->void_fit, &p->blocks, i);
        }
        break;
    case BLOCK_READY:
        fit_remove(&p->ready, &p->blocks, i);
        whole_leave(p, i);
        break;
    case BLOCK_PENDING:
        fit_remove(&p->pending[b->stream], &p->blocks, i);
        line_leave(p, i);
        break;
    case BLOCK_VACANT:
        if (b->owner > 0) {
            line_leave(p, i);
        }
        break;
    case BLOCK_LIVE:
    case BLOCK_SLAB:
    case BLOCK_HELD:
    case BLOCK_AWAY:
    case BLOCK_WARM:
    case BLOCK_LOST:
        break;
    case BLOCK_FAILED:
        failed_leave(p, i);
        break;
    }
}

bool space_has_records(const struct pool *p, uint32_t count)
{
    return p->blocks.max - p->blocks.live >= count;
}

uint32_t space_cut(struct pool *p, uint32_t i, uint64_t size)
{
    uint32_t r = records_take(&p->blocks);
    struct block *b = block_at(&p->blocks, i);
    struct block *rest = block_at(&p->blocks, r);
    uint32_t generation = rest->generation;
    *rest = *b;
    rest->generation = generation;
    rest->edge = 0;
    rest->at = b->at + size;
    rest->size = b->size - size;
    rest->before = i;
    if (b->after != BLOCK_NONE) {
        block_at(&p->blocks, b->after)->before = r;
    }
    b->after = r;
    b->size = size;
    by_address_add(p, r);
    return r;
}

static bool alike(const struct block *a, const struct block *b)
{
    return a->state == b->state && !b->edge && a->home == b->home &&
           (a->state == BLOCK_VOID || a->state == BLOCK_READY || a->state == BLOCK_FAILED ||
            (a->state == BLOCK_PENDING && a->stream == b->stream));
}

/* b follows a; both held. */
static void join(struct pool *p, uint32_t ai, uint32_t bi)
{
    struct block *a = block_at(&p->blocks, ai);
    const struct block *b = block_at(&p->blocks, bi);
    by_address_remove(p, bi);
    moving_joined(p, bi, ai);
    a->size += b->size;
    a->seq = a->seq > b->seq ? a->seq : b->seq;
    a->after = b->after;
    if (b->after != BLOCK_NONE) {
        block_at(&p->blocks, b->after)->before = ai;
    }
    records_give(&p->blocks, bi);
}

uint32_t space_merge(struct pool *p, uint32_t i)
{
    const struct block *b = block_at(&p->blocks, i);
    uint32_t before = b->before;
    uint32_t after = b->after;
    if (after != BLOCK_NONE && alike(b, block_at(&p->blocks, after))) {
        space_leave(p, after);
        join(p, i, after);
    }
    if (before != BLOCK_NONE && alike(block_at(&p->blocks, before), b)) {
        space_leave(p, before);
        join(p, before, i);
        i = before;
    }
    return i;
}

void space_point(const struct pool *p, const struct block *b, unsigned *stream, uint64_t *seq)
{
    if (b->seq > p->done[b->stream]) { /* it was allocated before the earlier use was past */
        if (b->stream == *stream) {
            *seq = *seq > b->seq ? *seq : b->seq;
        } else if (*seq <= p->done[*stream]) {
            *stream = b->stream;
            *seq = b->seq;
        }
    }
    *seq = *seq <= p->done[*stream] ? 0 : *seq;
}

uint32_t space_release(struct pool *p, uint32_t i, unsigned stream, uint64_t seq)
{
    struct block *b = block_at(&p->blocks, i);
    space_point(p, b, &stream, &seq);
    b->state = seq == 0 ? BLOCK_READY : BLOCK_PENDING;
    b->stream = seq == 0 ? 0 : (uint8_t)stream;
    b->seq = seq;
    b->generation++;
    const uint64_t at = b->at;
    const uint64_t end = at + b->size;
    i = space_merge(p, i);
    space_enter(p, i);
    if (p->late.failed > 0) {
        late_strike(p, at, end);
        i = by_address(p, at);
    }
    return i;
}

/* A block free for one stream becomes free for all. */
static void settle(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    space_leave(p, i);
    b->state = b->state == BLOCK_VACANT ? BLOCK_VACANT : BLOCK_READY;
    b->stream = 0;
    b->seq = 0;
    space_enter(p, space_merge(p, i));
}

static void line_settle(struct pool *p, unsigned line)
{
    uint32_t i = p->line[line].oldest;
    while (i != BLOCK_NONE && block_at(&p->blocks, i)->seq <= p->done[line]) {
        settle(p, i);
        i = p->line[line].oldest;
    }
}

void pool_advance(struct pool *p, unsigned stream, uint64_t seq)
{
    if (stream >= p->streams || seq <= p->done[stream]) {
        return;
    }
    p->done[stream] = seq;
    p->vacant.stuck = BLOCK_NONE;
    p->moving.advances++;
    event_add(p, POOL_EVENT_ADVANCE,
              (struct pool_event){.stream = (uint8_t)stream, .value = (uint32_t)seq});
    line_settle(p, stream);
    uint64_t joint = joint_reached(p);
    if (joint > p->done[joint_line(p)]) {
        p->done[joint_line(p)] = joint;
        line_settle(p, joint_line(p));
    }
    slab_advance(p, stream);
}
