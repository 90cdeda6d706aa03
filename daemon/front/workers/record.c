#include "daemon/front/workers/record.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memfd.h"

#define CELL_BYTES    256u
#define CELLS_MIN     64u
#define CELLS_MAX     (1u << 22)
#define STATE_FREE    0u
#define STATE_REUSED  0x80u /* a flag beside the kind: other jobs use the staging memory */
#define STATE_ENDED   0x40u /* another: the entries of the buffers have what the job wrote */
#define STATE_TAINTED 0x20u /* another: it has read what a failed job should have written */
#define STATE_COUNTED 0x10u /* another: the job is in the account of its tenant */
#define STATE_FLAGS   (STATE_REUSED | STATE_ENDED | STATE_TAINTED | STATE_COUNTED)
#define NO_CELL       0u /* the first cell is the record's head */

/* A cell. An entry is a chain of cells, of which the first has kind and id. A cell that is neither
 * in such a chain nor marked by its state is free. */
struct cell {
    atomic_uint state; /* enum record_kind, and the flags; written last */
    uint32_t next;
    uint64_t id;
    uint64_t serial; /* the greater one counts if two entries have one id */
    uint32_t size;
    uint32_t unused; /* aligns the data, which in the head has numbers: head_of */
    uint8_t data[CELL_BYTES - 32];
};

_Static_assert(sizeof(struct cell) == CELL_BYTES, "cells have no holes");

/* Whether record_find or record_departed has returned an entry, or record_keep got it. */
enum seen { SEEN_NOT, SEEN_FOUND, SEEN_DEPARTED, SEEN_KEPT };

/* An entry of the index that serves the adoption; sorted by kind and id. */
struct found {
    unsigned kind;
    uint32_t cell;
    uint64_t id;
    enum seen seen;
};

struct record {
    struct memfd memory;
    uint32_t epoch; /* distinguishes entries of other records */
    uint32_t count; /* number of cells */
    uint32_t free;  /* first cell of the free list */
    uint32_t used;  /* cells in entries */
    uint64_t serial;
    struct found *found; /* owned; the index during the adoption */
    size_t found_count;
    uint8_t *view; /* owned; the bytes of the latest record_find */
};

static struct cell *cell_at(const struct record *r, uint32_t index)
{
    return (struct cell *)(void *)(r->memory.data + (size_t)index * CELL_BYTES);
}

/* The greatest id of that kind that was ever written; in the head, for the next front. */
static uint64_t *last_of(const struct record *r, enum record_kind kind)
{
    struct cell *head = cell_at(r, NO_CELL);
    return kind == RECORD_JOB ? &head->id : &head->serial;
}

/* Numbers in the head, too. */
enum head {
    HEAD_BEGUN, /* the serial of the last entry that is of an earlier worker */
    HEAD_LEASE,
};

static uint64_t *head_of(const struct record *r, enum head which)
{
    return (uint64_t *)(void *)cell_at(r, NO_CELL)->data + which;
}

static uint32_t cell_of(const struct record *r, record_entry entry)
{
    uint32_t index = (uint32_t)entry;
    bool ours = r != NULL && entry >> 32 == r->epoch && index > NO_CELL && index < r->count;
    return ours ? index : NO_CELL;
}

/* ---- cells ---------------------------------------------------------------------------------- */

static void cells_free(struct record *r, uint32_t from, uint32_t to)
{
    for (uint32_t i = to; i > from; i--) {
        cell_at(r, i - 1)->next = r->free;
        r->free = i - 1;
    }
}

/* Doubles the number of cells, in the same shared memory. */
static bool grow(struct record *r)
{
    size_t size = (size_t)r->count * 2 * CELL_BYTES;
    if (r->count >= CELLS_MAX || ftruncate(r->memory.fd, (off_t)size) != 0) {
        return false;
    }
    void *data = mremap(r->memory.data, r->memory.size, size, MREMAP_MAYMOVE);
    if (data == MAP_FAILED) {
        return false;
    }
    r->memory.data = data;
    r->memory.size = size;
    uint32_t before = r->count;
    r->count *= 2;
    cells_free(r, before, r->count);
    return true;
}

static uint32_t cell_take(struct record *r)
{
    if (r->free == NO_CELL && !grow(r)) {
        return NO_CELL;
    }
    uint32_t index = r->free;
    r->free = cell_at(r, index)->next;
    r->used++;
    return index;
}

/* One atomic word takes the entry out of the record; then its cells are free. */
static void chain_free(struct record *r, uint32_t first)
{
    atomic_store_explicit(&cell_at(r, first)->state, STATE_FREE, memory_order_release);
    while (first != NO_CELL) {
        uint32_t next = cell_at(r, first)->next;
        cell_at(r, first)->next = r->free;
        r->free = first;
        r->used--;
        first = next;
    }
}

/* Makes a chain with this content, which is not in the record yet. NO_CELL: no memory. */
static uint32_t chain_make(struct record *r, struct bytes bytes)
{
    uint32_t first = NO_CELL;
    uint32_t last = NO_CELL;
    size_t at = 0;
    do {
        uint32_t index = cell_take(r);
        if (index == NO_CELL) {
            if (first != NO_CELL) {
                chain_free(r, first);
            }
            return NO_CELL;
        }
        struct cell *c = cell_at(r, index);
        size_t part = bytes.size - at < sizeof c->data ? bytes.size - at : sizeof c->data;
        if (part > 0) {
            memcpy(c->data, bytes.data + at, part);
        }
        c->next = NO_CELL;
        if (last == NO_CELL) {
            first = index;
        } else {
            cell_at(r, last)->next = index;
        }
        last = index;
        at += part;
    } while (at < bytes.size);
    return first;
}

void record_note(struct record *r, enum record_kind kind, uint64_t id)
{
    if (r != NULL && id > *last_of(r, kind)) {
        *last_of(r, kind) = id;
    }
}

void record_begin(struct record *r)
{
    *head_of(r, HEAD_BEGUN) = r->serial;
}

record_entry record_put(struct record *r, record_entry old, enum record_kind kind, uint64_t id,
                        struct bytes bytes)
{
    if (r == NULL) {
        return 0;
    }
    uint32_t first = bytes.size <= RECORD_BYTES_MAX ? chain_make(r, bytes) : NO_CELL;
    if (first == NO_CELL) {
        return 0;
    }
    struct cell *c = cell_at(r, first);
    c->id = id;
    c->size = (uint32_t)bytes.size;
    c->serial = ++r->serial;
    atomic_store_explicit(&c->state, kind, memory_order_release);
    record_drop(r, old);
    return (uint64_t)r->epoch << 32 | first;
}

void record_drop(struct record *r, record_entry entry)
{
    uint32_t first = cell_of(r, entry);
    if (first != NO_CELL) {
        chain_free(r, first);
    }
}

static void flag(struct record *r, record_entry entry, unsigned which)
{
    uint32_t first = cell_of(r, entry);
    if (first != NO_CELL) {
        (void)atomic_fetch_or(&cell_at(r, first)->state, which);
    }
}

void record_staging_reused(struct record *r, record_entry entry)
{
    flag(r, entry, STATE_REUSED);
}

void record_ended(struct record *r, record_entry entry, bool written)
{
    flag(r, entry, written ? STATE_COUNTED | STATE_ENDED : STATE_COUNTED);
}

void record_tainted(struct record *r, record_entry entry)
{
    flag(r, entry, STATE_TAINTED);
}

void record_set_lease(struct record *r, uint64_t bytes)
{
    if (r != NULL) {
        *head_of(r, HEAD_LEASE) = bytes;
    }
}

uint64_t record_lease(const struct record *r)
{
    return r != NULL ? *head_of(r, HEAD_LEASE) : 0;
}

uint32_t record_used(const struct record *r)
{
    return r != NULL ? r->used : 0;
}

/* ---- make and unmake ------------------------------------------------------------------------- */

static struct record *record_of(uint32_t epoch, struct memfd memory)
{
    struct record *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->memory = memory;
        r->epoch = epoch;
        r->count = (uint32_t)(memory.size / CELL_BYTES);
    }
    return r;
}

int record_create(uint32_t epoch, struct record **ret_record, struct err *e)
{
    struct memfd memory = MEMFD_NONE;
    const size_t size = (size_t)CELLS_MIN * CELL_BYTES;
    int fd = memfd_create("gpud-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        int rc = err_errno(e, ERR_IO, "memory for a worker's adoption record");
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    int rc = memfd_adopt(fd, size, true, &memory, e);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    struct record *r = record_of(epoch, memory);
    if (r == NULL) {
        memfd_finish(&memory);
        return err_set(e, ERR_NOMEM, "no memory for a worker's adoption record");
    }
    cells_free(r, NO_CELL + 1, r->count);
    *ret_record = r;
    return 0;
}

void record_destroy(struct record *r)
{
    if (r != NULL) {
        memfd_finish(&r->memory);
        free(r->found);
        free(r->view);
        free(r);
    }
}

int record_fd(const struct record *r)
{
    return r->memory.fd;
}

/* ---- adoption -------------------------------------------------------------------------------- */

/* Marks the cells of an entry; false: the entry is damaged, and none is marked. */
static bool chain_mark(const struct record *r, uint32_t first, uint8_t *marks)
{
    uint64_t left = cell_at(r, first)->size;
    uint32_t at = first;
    bool good = left <= RECORD_BYTES_MAX;
    uint32_t marked = 0;
    while (good && at != NO_CELL) {
        good = at < r->count && marks[at] == 0 && (left > 0 || at == first);
        if (good) {
            marks[at] = 1;
            marked++;
            uint64_t part = sizeof cell_at(r, at)->data;
            left -= left < part ? left : part;
            at = cell_at(r, at)->next;
        }
    }
    good = good && left == 0;
    for (at = first; !good && marked > 0; marked--, at = cell_at(r, at)->next) {
        marks[at] = 0;
    }
    return good;
}

static int by_id(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    return (x->id > y->id) - (x->id < y->id);
}

static void collect(struct record *r, uint8_t *marks)
{
    r->serial = *head_of(r, HEAD_BEGUN);
    for (uint32_t i = NO_CELL + 1; i < r->count; i++) {
        struct cell *c = cell_at(r, i);
        unsigned kind = atomic_load_explicit(&c->state, memory_order_acquire) & ~STATE_FLAGS;
        if (kind != RECORD_BUFFER && kind != RECORD_JOB) {
            continue;
        }
        if (!chain_mark(r, i, marks)) {
            atomic_store(&c->state, STATE_FREE);
            continue;
        }
        r->found[r->found_count++] = (struct found){.kind = kind, .cell = i, .id = c->id};
        r->serial = c->serial > r->serial ? c->serial : r->serial;
    }
}

/* Keeps the newer of two entries for one id: a front that ended while it replaced an entry left
 * both. */
static void settle_twins(struct record *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->found_count; i++) {
        struct found *last = kept > 0 ? &r->found[kept - 1] : NULL;
        if (last == NULL || by_id(last, &r->found[i]) != 0) {
            r->found[kept++] = r->found[i];
            continue;
        }
        uint32_t older = r->found[i].cell;
        if (cell_at(r, older)->serial > cell_at(r, last->cell)->serial) {
            older = last->cell;
            last->cell = r->found[i].cell;
        }
        chain_free(r, older);
    }
    r->found_count = kept;
}

int record_adopt(uint32_t epoch, int fd, struct record **ret_record, struct err *e)
{
    struct memfd memory = MEMFD_NONE;
    int rc = memfd_adopt(fd, (size_t)CELLS_MIN * CELL_BYTES, true, &memory, e);
    if (rc != 0) {
        return rc;
    }
    struct record *r = memory.size / CELL_BYTES <= CELLS_MAX ? record_of(epoch, memory) : NULL;
    uint8_t *marks = r != NULL ? calloc(r->count, 1) : NULL;
    if (marks != NULL) {
        r->found = calloc(r->count, sizeof *r->found);
        r->view = malloc(RECORD_BYTES_MAX);
    }
    if (marks == NULL || r->found == NULL || r->view == NULL) {
        if (r != NULL) {
            r->memory.fd = -1; /* the caller keeps it */
            record_destroy(r);
        } else {
            memory.fd = -1;
            memfd_finish(&memory);
        }
        free(marks);
        return err_set(e, ERR_NOMEM, "no memory for a worker's adoption record");
    }
    collect(r, marks);
    for (uint32_t i = r->count; i > NO_CELL + 1; i--) {
        if (marks[i - 1] == 0) {
            cell_at(r, i - 1)->next = r->free;
            r->free = i - 1;
        } else {
            r->used++;
        }
    }
    free(marks);
    qsort(r->found, r->found_count, sizeof *r->found, by_id);
    settle_twins(r);
    *ret_record = r;
    return 0;
}

static bool is_departed(const struct record *r, const struct found *f)
{
    return cell_at(r, f->cell)->serial <= *head_of(r, HEAD_BEGUN);
}

static void view(struct record *r, const struct found *f, struct record_view *ret_view)
{
    struct cell *c = cell_at(r, f->cell);
    size_t at = 0;
    for (uint32_t i = f->cell; i != NO_CELL; i = cell_at(r, i)->next) {
        size_t part = c->size - at < sizeof c->data ? c->size - at : sizeof c->data;
        memcpy(r->view + at, cell_at(r, i)->data, part);
        at += part;
    }
    *ret_view = (struct record_view){.entry = (uint64_t)r->epoch << 32 | f->cell,
                                     .id = f->id,
                                     .staging_reused = (atomic_load(&c->state) & STATE_REUSED) != 0,
                                     .ended = (atomic_load(&c->state) & STATE_ENDED) != 0,
                                     .tainted = (atomic_load(&c->state) & STATE_TAINTED) != 0,
                                     .counted = (atomic_load(&c->state) & STATE_COUNTED) != 0,
                                     .bytes = bytes_of(r->view, c->size)};
}

static struct found *found_of(const struct record *r, enum record_kind kind, uint64_t id)
{
    const struct found key = {.kind = kind, .id = id};
    return r != NULL && r->found_count > 0
               ? bsearch(&key, r->found, r->found_count, sizeof key, by_id)
               : NULL;
}

bool record_find(struct record *r, enum record_kind kind, uint64_t id, struct record_view *ret_view,
                 bool *ret_again)
{
    struct found *f = found_of(r, kind, id);
    if (f == NULL || is_departed(r, f)) {
        return false;
    }
    view(r, f, ret_view);
    *ret_again = f->seen == SEEN_FOUND;
    f->seen = SEEN_FOUND;
    return true;
}

void record_unfind(struct record *r, enum record_kind kind, uint64_t id)
{
    struct found *f = found_of(r, kind, id);
    if (f != NULL) {
        f->seen = SEEN_NOT;
    }
}

bool record_departed(struct record *r, bool present, size_t *cursor, struct record_view *ret_view)
{
    while (*cursor < r->found_count) {
        struct found *f = &r->found[(*cursor)++];
        if (f->kind == RECORD_JOB && (present || is_departed(r, f)) && f->seen != SEEN_FOUND) {
            f->seen = SEEN_DEPARTED;
            view(r, f, ret_view);
            return true;
        }
    }
    return false;
}

bool record_unfound(struct record *r, size_t *cursor, struct record_view *ret_view)
{
    while (*cursor < r->found_count) {
        const struct found *f = &r->found[(*cursor)++];
        if (f->kind == RECORD_BUFFER && f->seen == SEEN_NOT) {
            view(r, f, ret_view);
            return true;
        }
    }
    return false;
}

void record_keep(struct record *r, uint64_t buffer)
{
    struct found *f = found_of(r, RECORD_BUFFER, buffer);
    if (f != NULL) {
        f->seen = SEEN_KEPT;
    }
}

bool record_adopting(const struct record *r)
{
    return r != NULL && r->found != NULL;
}

uint64_t record_last(const struct record *r, enum record_kind kind)
{
    return r != NULL ? *last_of(r, kind) : 0;
}

void record_settle(struct record *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < r->found_count; i++) {
        if (r->found[i].seen == SEEN_NOT) {
            chain_free(r, r->found[i].cell);
        }
    }
    free(r->found);
    free(r->view);
    r->found = NULL;
    r->view = NULL;
    r->found_count = 0;
}
