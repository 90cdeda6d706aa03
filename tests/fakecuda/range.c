#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

#define TAINT 0xA5

/* All memory that the driver knows, by address. */
static struct {
    struct range **sorted;
    size_t count, capacity;
    uint64_t ids;
} map;

/* The first range that ends behind the address. */
static size_t seek(uint64_t address)
{
    size_t low = 0, high = map.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct range *r = map.sorted[middle];
        if (r->base + r->size <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct range *range_add(const struct range *r)
{
    if (map.count == map.capacity) {
        size_t capacity = map.capacity ? 2 * map.capacity : 64;
        struct range **sorted = realloc(map.sorted, capacity * sizeof(struct range *));
        if (!sorted) {
            return NULL;
        }
        map.sorted = sorted;
        map.capacity = capacity;
    }
    struct range *copy = malloc(sizeof *copy);
    if (!copy) {
        return NULL;
    }
    *copy = *r;
    copy->id = ++map.ids;
    size_t at = seek(r->base);
    memmove(map.sorted + at + 1, map.sorted + at, (map.count - at) * sizeof(struct range *));
    map.sorted[at] = copy;
    map.count++;
    return copy;
}

void range_remove(struct range *r)
{
    size_t at = seek(r->base);
    map.count--;
    memmove(map.sorted + at, map.sorted + at + 1, (map.count - at) * sizeof(struct range *));
    free(r);
}

struct range *range_at(uint64_t address)
{
    return range_overlap(address, 1);
}

struct range *range_overlap(uint64_t base, uint64_t size)
{
    size_t at = seek(base);
    bool inside = at < map.count && map.sorted[at]->base < base + size;
    return inside ? map.sorted[at] : NULL;
}

struct range *range_next(const struct range *r)
{
    size_t at = r ? seek(r->base) + 1 : 0;
    return at < map.count ? map.sorted[at] : NULL;
}

const char *range_name(enum range_kind kind)
{
    static const char *const names[] = {
        [RANGE_DEVICE] = "device",   [RANGE_POOL] = "pool", [RANGE_MAPPED] = "mapped",
        [RANGE_MANAGED] = "managed", [RANGE_HOST] = "host", [RANGE_REGISTERED] = "registered",
        [RANGE_GLOBAL] = "module"};
    return names[kind];
}

bool range_is_device(const struct range *r)
{
    return r->kind != RANGE_HOST && r->kind != RANGE_REGISTERED;
}

uint64_t pages_new(uint64_t size, uint64_t *ret_mapped)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (size > UINT64_C(1) << 46) {
        return 0;
    }
    uint64_t usable = (size + page - 1) / page * page;
    uint8_t *p = mmap(NULL, usable + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return 0;
    }
    (void)mprotect(p + usable, page, PROT_NONE);
    *ret_mapped = usable + page;
    return (uint64_t)(uintptr_t)p;
}

void pages_taint(uint64_t base, uint64_t size, uint64_t at_ends)
{
    uint8_t *p = (uint8_t *)(uintptr_t)base;
    uint64_t head = size < at_ends ? size : at_ends;
    memset(p, TAINT, head);
    if (size > head) {
        uint64_t tail = size - head < at_ends ? size - head : at_ends;
        memset(p + size - tail, TAINT, tail);
    }
}

void pages_free(uint64_t base, uint64_t mapped)
{
    if (mapped > 0) {
        munmap((void *)(uintptr_t)base, mapped);
    }
}

/* c NULL: a copy, which reaches every device. */
static bool range_usable(const struct context *c, const struct range *r, bool write)
{
    uint64_t bits = write ? r->writable : r->readable;
    switch (r->kind) {
    case RANGE_MAPPED:
        return c ? (bits >> c->device->index & 1u) != 0 : bits != 0;
    case RANGE_REGISTERED:
        return !write || (r->flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0;
    case RANGE_DEVICE:
    case RANGE_POOL:
    case RANGE_GLOBAL:
        return !c || r->device == c->device || (c->peers >> r->device->index & 1u) != 0;
    default:
        return true;
    }
}

bool memory_usable(const struct context *c, uint64_t base, uint64_t size, bool write)
{
    const uint64_t end = base + size;
    while (base < end) {
        const struct range *r = range_at(base);
        if (!r || !range_usable(c, r, write)) {
            return false;
        }
        base = r->base + r->size;
    }
    return true;
}

CUresult device_take(struct device *d, uint64_t size)
{
    if (size > fake.script.memory || d->used > fake.script.memory - size) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    d->used += size;
    return CUDA_SUCCESS;
}
