/*
 * What the entries of a binary take of their device, as the compiler and then the workers tell it.
 * Thread: the loop's. Nothing here blocks.
 */
#ifndef FRONT_MODEL_RESOURCES_H
#define FRONT_MODEL_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec.h"

/* 0 = unknown, or none */
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

/* Adds WKERNEL records. Of an entry that was told before a known number replaces the old one. At
 * most PROTO_KERNELS_MAX entries; others, and what there is no memory for, stay unknown. */
void resource_list_take(struct resource_list *l, struct proto_list wkernels);
void resource_list_finish(struct resource_list *l);
/* Takes from the same records, if a compiler made them, through which arguments an entry only
 * reads. A worker's word on that is not asked for. */
void resource_list_take_reads(struct resource_list *l, struct proto_list wkernels);
/* Is it shown that the entry's code writes nothing through this argument? */
bool resource_list_only_reads(const struct resource_list *l, const char *entry, unsigned arg);
/* NULL: nothing is known of it. */
const struct resources *resource_list_find(const struct resource_list *l, const char *entry);

/* What suffices for both: the most of what they take, the smaller of what they allow. */
void resources_join(struct resources *all, const struct resources *one);

#endif
