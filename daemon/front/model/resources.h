/*
 * What the entries of a binary need of their device, as the compiler and then the workers report
 * it. Thread: the loop's. Nothing here blocks.
 */
#ifndef FRONT_MODEL_RESOURCES_H
#define FRONT_MODEL_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec.h"

/* 0: unknown, or none. */
struct resources {
    uint64_t registers;      /* of a work item */
    uint64_t item_bytes;     /* of a work item, beside its registers */
    uint64_t group_bytes;    /* of a group, without what a launch adds */
    uint64_t max_group;      /* work items */
    uint64_t group_multiple; /* work items */
    uint64_t occupancy;      /* parts of a million */
};

struct resource_entry;

struct resource_list {
    struct resource_entry *entry; /* owned array */
    unsigned count;
};

/* Adds WKERNEL records. A known number replaces an older one. Entries beyond PROTO_KERNELS_MAX, or
 * without memory, remain unknown. */
void resource_list_take(struct resource_list *l, struct proto_list wkernels);
void resource_list_finish(struct resource_list *l);
/* Notes from a compiler's records through which arguments an entry only reads. Workers' records
 * must not be passed, because they are not trusted with that. */
void resource_list_take_reads(struct resource_list *l, struct proto_list wkernels);
/* Is it shown that the entry's code writes nothing through this argument? */
bool resource_list_only_reads(const struct resource_list *l, const char *entry, unsigned arg);
/* NULL: unknown. */
const struct resources *resource_list_find(const struct resource_list *l, const char *entry);

/* What suffices for both: the larger of their needs, the smaller of their limits. */
void resources_join(struct resources *all, const struct resources *one);

#endif
