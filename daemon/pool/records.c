#include "daemon/pool/records.h"

#include <string.h>
#include <sys/mman.h>

int records_init(struct records *r, size_t bytes, uint32_t max, struct err *e)
{
    void *base = mmap(NULL, bytes * max, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return err_errno(e, ERR_NOMEM, "address space for %u records of %zu bytes", max, bytes);
    }
    *r = (struct records){.base = base, .bytes = bytes, .max = max, .free = RECORD_NONE};
    return 0;
}

void records_finish(struct records *r)
{
    if (r->base != NULL) {
        (void)munmap(r->base, r->bytes * r->max);
    }
    *r = (struct records){0};
}

uint32_t records_take(struct records *r)
{
    uint32_t index = r->free;
    if (index != RECORD_NONE) {
        memcpy(&r->free, records_at(r, index), sizeof r->free);
    } else if (r->made < r->max) {
        index = r->made++;
    } else {
        return RECORD_NONE;
    }
    r->live++;
    return index;
}

void records_give(struct records *r, uint32_t index)
{
    memcpy(records_at(r, index), &r->free, sizeof r->free);
    r->free = index;
    r->live--;
}
