/* Between host.c and the generated kernels. */
#ifndef KERNELS_HOST_INT_H
#define KERNELS_HOST_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/host.h"

struct host_fiber;

/* A work item: the values that its kernel can see. */
struct host_item {
    void *const *args;
    unsigned char *memory; /* the group's local memory */
    uint64_t lid[3], gid[3], group[3], groups[3];
    struct host_fiber *fiber; /* NULL: the kernel has no barriers */
};

typedef void (*host_item_fn)(const struct host_item *item);

struct host_code {
    const char *entry;
    host_item_fn item;
    unsigned arg_count;
    bool barriers;
    uint64_t local_bytes;
};

int host_run(const struct host_code *code, const uint64_t global[3], const uint64_t local[3],
             void *const *args, unsigned arg_count, struct err *e);
void host_barrier(const struct host_item *item);

extern const struct host_kernel host_table[]; /* generated */
extern const unsigned host_table_count;

#endif
