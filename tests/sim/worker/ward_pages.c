/*
 * The memory of the simulated device. New memory holds bytes of another process. Each piece has a
 * shadow: the last use of each byte. A command that uses bytes which an earlier command of another
 * stream uses or writes, and that was not told to come after it, breaks a rule, however the two
 * happened to run. So does a mapping that ends while a command which the host does not know to be
 * over names it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "tests/sim/worker/ward.h"

#define FOREIGN_BYTE 0xebu /* of no tenant's */

struct ward_mem *ward_mem_make(struct backend_device *d, uint64_t bytes, uint8_t *host)
{
    struct ward_mem *m = calloc(1, sizeof *m);
    m->bytes = bytes;
    m->host = host != NULL;
    m->data = host != NULL ? host : malloc(bytes);
    uint64_t grains = (bytes + WARD_GRAIN - 1) / WARD_GRAIN;
    m->grain = malloc(grains * sizeof *m->grain);
    m->seen = malloc(grains);
    memset(m->seen, 0, grains);
    if (host == NULL) {
        d->used += bytes;
    }
    DL_APPEND(d->mems, m);
    return m;
}

void ward_mem_end(struct backend_device *d, struct ward_mem *m)
{
    if (!m->host) {
        d->used -= m->elsewhere ? 0 : m->bytes;
        free(m->data);
    }
    DL_DELETE(d->mems, m);
    free(m->grain);
    free(m->seen);
    free(m);
}

/* Bytes of the grain at `at`. */
static uint64_t rest_of(const struct ward_mem *m, uint64_t at)
{
    return m->bytes - at < WARD_GRAIN ? m->bytes - at : WARD_GRAIN;
}

void ward_mems_checked(struct backend_device *d)
{
    const struct ward_mem *m;
    DL_FOREACH(d->mems, m)
    {
        for (uint64_t at = 0; at < m->bytes; at += WARD_GRAIN) {
            if (m->seen[at / WARD_GRAIN] != 0 && m->grain[at / WARD_GRAIN].wrote != 0) {
                memset(m->data + at, 0, rest_of(m, at));
            }
        }
    }
}

static struct backend_block *block_make(struct backend_device *d, uint64_t bytes,
                                        uint64_t page_bytes)
{
    struct backend_block *b = calloc(1, sizeof *b);
    *b = (struct backend_block){.device = d, .bytes = bytes, .page_bytes = page_bytes};
    b->page = calloc(bytes / page_bytes, sizeof *b->page);
    DL_APPEND(d->blocks, b);
    return b;
}

struct backend_block *ward_block_of(struct backend_device *d, struct ward_mem *m)
{
    struct backend_block *b = block_make(d, m->bytes, m->bytes);
    b->page[0] = (struct ward_page){.mem = m, .access = true};
    return b;
}

/* The host must know that all commands that name the page are over. */
static void page_over(struct backend_device *d, const struct ward_page *p, const char *what,
                      uint64_t at)
{
    for (unsigned s = 0; s < d->streams; s++) {
        if (p->last[s] > d->host.at[s]) {
            ward_broken(d->w, "early",
                        "%s at %#" PRIx64 ": command %u of stream %u names it, and the host knows "
                        "of %u only",
                        what, at, p->last[s], s, d->host.at[s]);
        }
    }
}

void ward_block_end(struct backend_device *d, struct backend_block *b)
{
    page_over(d, &b->page[0], "a block is freed", 0);
    ward_mem_end(d, b->page[0].mem);
    DL_DELETE(d->blocks, b);
    free(b->page);
    free(b);
}

void ward_device_empty(struct backend_device *d)
{
    while (d->mems != NULL) {
        ward_mem_end(d, d->mems);
    }
    while (d->blocks != NULL) {
        struct backend_block *b = d->blocks;
        DL_DELETE(d->blocks, b);
        free(b->page);
        free(b);
    }
}

/* ---- use ------------------------------------------------------------------------------------- */

struct ward_span ward_span(struct ward *w, const struct backend_block *b, uint64_t at,
                           uint64_t bytes, const char *who)
{
    if (bytes == 0 || at > b->bytes || bytes > b->bytes - at) {
        ward_broken(w, "outside", "%s: %" PRIu64 " bytes at %#" PRIx64 " of a block of %" PRIu64,
                    who, bytes, at, b->bytes);
    }
    const struct ward_page *p = &b->page[at / b->page_bytes];
    uint64_t in = at % b->page_bytes;
    uint64_t most = b->page_bytes - in;
    if (p->mem == NULL || !p->access) {
        ward_broken(w, "unmapped", "%s: %" PRIu64 " bytes at %#" PRIx64 ": %s", who, bytes, at,
                    p->mem == NULL ? "nothing is mapped" : "no access");
    }
    return (struct ward_span){.mem = p->mem,
                              .at = p->at + in,
                              .data = p->mem->data + p->at + in,
                              .bytes = bytes < most ? bytes : most};
}

void ward_name(struct ward *w, struct backend_block *b, uint64_t at, uint64_t bytes,
               unsigned stream, uint32_t number)
{
    for (uint64_t n = 0; n < bytes;) {
        struct ward_span s = ward_span(w, b, at + n, bytes - n, "a command is enqueued");
        b->page[(at + n) / b->page_bytes].last[stream] = number;
        n += s.bytes;
    }
}

static void race(struct ward *w, const char *who, const struct ward_span *s, uint64_t grain,
                 unsigned stream, uint32_t number, unsigned other, uint32_t earlier, bool wrote)
{
    ward_broken(w, "race",
                "%s, command %u of stream %u, uses byte %#" PRIx64 " of a piece of %" PRIu64
                " that command %u of stream %u %s, and was not told to come after it",
                who, number, stream, grain * WARD_GRAIN, s->mem->bytes, earlier, other,
                wrote ? "writes" : "reads");
}

/* Does the span have all bytes of the grain? */
static bool covers(const struct ward_span *s, uint64_t grain)
{
    uint64_t at = grain * WARD_GRAIN;
    return s->at <= at && at + rest_of(s->mem, at) <= s->at + s->bytes;
}

/* What is never used has no bytes, and what is written as a whole needs none before: most of a
 * world's time goes into bytes. */
static void first_use(const struct ward_span *s, uint64_t grain, bool writes)
{
    struct ward_mem *m = s->mem;
    if (!m->host && !(writes && covers(s, grain))) {
        memset(m->data + grain * WARD_GRAIN, FOREIGN_BYTE, rest_of(m, grain * WARD_GRAIN));
    }
    m->grain[grain] = (struct ward_grain){.wrote = 0};
    m->seen[grain] = 1;
}

void ward_touch(struct ward *w, const struct ward_span *s, unsigned stream, uint32_t number,
                const struct ward_known *known, bool writes, const char *who)
{
    uint64_t end = (s->at + s->bytes + WARD_GRAIN - 1) / WARD_GRAIN;
    unsigned streams = w->device->streams;
    const unsigned self = stream + 1;
    for (uint64_t i = s->at / WARD_GRAIN; i < end; i++) {
        struct ward_grain *g = &s->mem->grain[i];
        if (s->mem->seen[i] == 0) {
            first_use(s, i, writes);
        }
        if (g->wrote != 0 && g->write > known->at[g->wrote - 1] && g->wrote != self) {
            race(w, who, s, i, stream, number, g->wrote - 1, g->write, true);
        }
        for (unsigned o = 0; writes && o < streams; o++) {
            if (g->read[o] > known->at[o] && o != stream) {
                race(w, who, s, i, stream, number, o, g->read[o], false);
            }
        }
        if (writes) {
            g->wrote = (uint8_t)self;
            g->write = number;
        } else {
            g->read[stream] = number;
        }
    }
}

/* ---- page table ------------------------------------------------------------------------------ */

/* Calls of a driver take time, during which the device goes on. */
static void linger(struct backend_device *d)
{
    ward_call(d->w, ward_while(d->w, d->w->params.call_ns));
}

static uint64_t page_bytes(struct backend_device *d)
{
    return d->w->params.page_kib << 10;
}

static uint64_t handle_max(struct backend_device *d)
{
    return page_bytes(d) << 4;
}

static int reserve(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e)
{
    (void)e;
    *ret_range = block_make(d, bytes, page_bytes(d));
    (*ret_range)->range = true;
    return 0;
}

static void release(struct backend_device *d, struct backend_block *range)
{
    for (uint64_t i = 0; i < range->bytes / range->page_bytes; i++) {
        if (range->page[i].mem != NULL) {
            ward_broken(d->w, "mapped", "a range is released, and page %" PRIu64 " is mapped", i);
        }
    }
    DL_DELETE(d->blocks, range);
    free(range->page);
    free(range);
}

static int create(struct backend_device *d, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    linger(d);
    uint64_t memory = d->w->params.memory_kib << 10;
    if (ward_refuses(d->w, d->w->params.refuse_memory) || d->used + d->foreign + bytes > memory) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device has no %" PRIu64 " bytes", bytes);
    }
    *ret_handle = (uint64_t)(uintptr_t)ward_mem_make(d, bytes, NULL);
    return 0;
}

static void destroy(struct backend_device *d, uint64_t handle, uint64_t bytes)
{
    struct ward_mem *m = (struct ward_mem *)(uintptr_t)handle;
    linger(d);
    if (m->stuck) { /* a driver keeps it while it is mapped: for ever */
        return;
    }
    if (m->maps > 0 || m->bytes != bytes) {
        ward_broken(d->w, "handle", "a handle of %" PRIu64 " bytes, mapped %u times, is destroyed",
                    m->bytes, m->maps);
    }
    ward_mem_end(d, m);
}

static int map(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e)
{
    struct ward_mem *m = (struct ward_mem *)(uintptr_t)handle;
    linger(d);
    if (ward_refuses(d->w, d->w->params.refuse_memory)) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device maps nothing now");
    }
    if (m->bytes != bytes || at % range->page_bytes != 0 || at + bytes > range->bytes) {
        ward_broken(d->w, "handle", "%" PRIu64 " of %" PRIu64 " bytes are mapped at %#" PRIx64,
                    bytes, m->bytes, at);
    }
    for (uint64_t n = 0; n < bytes; n += range->page_bytes) {
        struct ward_page *p = &range->page[(at + n) / range->page_bytes];
        if (p->mem != NULL) {
            ward_broken(d->w, "mapped", "memory is mapped where another is, at %#" PRIx64, at + n);
        }
        p->mem = m;
        p->at = n;
        p->access = false;
    }
    m->maps++;
    return 0;
}

static int unmap(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    linger(d);
    struct ward_page *first = &range->page[at / range->page_bytes];
    if (first->mem == NULL || first->at != 0 || first->mem->bytes != bytes) {
        ward_broken(d->w, "mapped", "%" PRIu64 " bytes at %#" PRIx64 " are no mapping", bytes, at);
    }
    for (uint64_t n = 0; n < bytes; n += range->page_bytes) {
        page_over(d, first + n / range->page_bytes, "memory is unmapped", at + n);
    }
    if (ward_refuses(d->w, d->w->params.refuse_unmap)) {
        first->mem->stuck = true;
        return err_set(e, ERR_DEVICE_MEMORY, "the device unmaps nothing now");
    }
    first->mem->maps--;
    for (uint64_t n = 0; n < bytes; n += range->page_bytes) {
        first[n / range->page_bytes].mem = NULL;
    }
    return 0;
}

static int allow(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    linger(d);
    if (ward_refuses(d->w, d->w->params.refuse_memory)) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device makes nothing accessible now");
    }
    for (uint64_t n = 0; n < bytes; n += range->page_bytes) {
        struct ward_page *p = &range->page[(at + n) / range->page_bytes];
        if (p->mem == NULL) {
            ward_broken(d->w, "unmapped", "access to nothing at %#" PRIx64, at + n);
        }
        p->access = true;
    }
    return 0;
}

const struct backend_page_ops ward_page_ops = {.page_bytes = page_bytes,
                                               .handle_max = handle_max,
                                               .reserve = reserve,
                                               .release = release,
                                               .create = create,
                                               .destroy = destroy,
                                               .map = map,
                                               .unmap = unmap,
                                               .access = allow};

/* ---- blocks ---------------------------------------------------------------------------------- */

static int block_alloc(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                       struct err *e)
{
    ward_call(d->w, ward_while(d->w, d->w->params.call_ns));
    uint64_t memory = d->w->params.memory_kib << 10;
    if (ward_refuses(d->w, d->w->params.refuse_memory) || d->used + d->foreign + size > memory) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device has no %" PRIu64 " bytes", size);
    }
    *ret_block = ward_block_of(d, ward_mem_make(d, size, NULL));
    return 0;
}

void ward_block_free(struct backend_device *d, struct backend_block *block)
{
    ward_wait_for_all(d, "the end of a block");
    ward_call(d->w, ward_while(d->w, d->w->params.call_ns));
    ward_block_end(d, block);
}

static void block_free(struct backend_device *d, struct backend_block *block)
{
    if (block->kind != WARD_ORDINARY && block->kind != WARD_MANAGED) {
        ward_broken(d->w, "handle", "the pool does not have this block");
    }
    ward_block_free(d, block);
}

static int room(struct backend_device *d, uint64_t *ret_bytes, struct err *e)
{
    uint64_t memory = d->w->params.memory_kib << 10;
    (void)e;
    *ret_bytes = d->used + d->foreign < memory ? memory - d->used - d->foreign : 0;
    return 0;
}

const struct backend_memory_ops ward_block_ops = {
    .alloc = block_alloc, .free = block_free, .room = room};
