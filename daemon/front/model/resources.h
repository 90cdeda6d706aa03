/*
 * What the entries (kernels) of a binary need of their device, as the compiler and later the
 * workers report it. Thread: the loop's. Nothing here blocks.
 */
#ifndef FRONT_MODEL_RESOURCES_H
#define FRONT_MODEL_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec.h"

/* A member is 0 if it is unknown or does not apply. */
struct resources {
    uint64_t registers;      /* of a work item */
    uint64_t item_bytes;     /* of a work item, beside its registers */
    uint64_t group_bytes;    /* of a group, without what a launch adds */
    uint64_t max_group;      /* work items */
    uint64_t group_multiple; /* work items */
    uint64_t occupancy;      /* of the work items that a unit can hold, in millionths */
};

struct resource_entry;

struct resource_list {
    struct resource_entry *entry; /* owned array */
    unsigned count;
};

/* Adds WKERNEL records. A reported number replaces an older one; 0 does not. Entries beyond
 * PROTO_KERNELS_MAX, or without memory, stay unknown. */
void resource_list_take(struct resource_list *l, struct proto_list wkernels);
void resource_list_finish(struct resource_list *l);
/* Notes the arguments through which an entry only reads. Takes records of the compiler only:
 * workers are not trusted with this. */
void resource_list_take_reads(struct resource_list *l, struct proto_list wkernels);
/* Whether the compiler has shown that the entry's code writes nothing through this argument. */
bool resource_list_only_reads(const struct resource_list *l, const char *entry, unsigned arg);
/* NULL: unknown. */
const struct resources *resource_list_find(const struct resource_list *l, const char *entry);

/* Widens `all` to what suffices for `one`, too: the larger of the needs, the smaller of the
 * limits. */
void resources_join(struct resources *all, const struct resources *one);

#endif
