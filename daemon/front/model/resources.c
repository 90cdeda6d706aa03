#include "daemon/front/model/resources.h"

#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/messages.h"

#define NAME_BYTES (2u * PROTO_NAME_MAX + 1u)

struct resource_entry {
    char name[NAME_BYTES];
    struct resources needs;
    uint8_t only_reads[PROTO_ARGS_MAX / 8]; /* a bit for each argument */
};

static struct resource_entry *find(const struct resource_list *l, const char *name)
{
    for (unsigned i = 0; i < l->count; i++) {
        if (strcmp(l->entry[i].name, name) == 0) {
            return &l->entry[i];
        }
    }
    return NULL;
}

const struct resources *resource_list_find(const struct resource_list *l, const char *entry)
{
    const struct resource_entry *found = find(l, entry);
    return found != NULL ? &found->needs : NULL;
}

static void learn(uint64_t *known, uint64_t reported)
{
    *known = reported != 0 ? reported : *known;
}

static void most(uint64_t *all, uint64_t one)
{
    *all = one > *all ? one : *all;
}

static void least(uint64_t *all, uint64_t one)
{
    *all = *all == 0 || (one != 0 && one < *all) ? one : *all;
}

void resource_list_take(struct resource_list *l, struct proto_list wkernels)
{
    struct proto_wkernel k;
    size_t room = l->count + (size_t)wkernels.count + 1;
    struct resource_entry *all = reallocarray(l->entry, room, sizeof *all);
    if (all == NULL) {
        return;
    }
    l->entry = all;
    for (struct proto_iter it = proto_iter_of(wkernels);
         proto_list_next(&it, &schema_wkernel, &k);) {
        struct resource_entry new = {.needs = {.registers = 0}};
        if (!bytes_to_str(k.entry, new.name, sizeof new.name)) {
            continue;
        }
        struct resource_entry *entry = find(l, new.name);
        if (entry == NULL && l->count == PROTO_KERNELS_MAX) {
            continue;
        }
        if (entry == NULL) {
            entry = &l->entry[l->count++];
            *entry = new;
        }
        learn(&entry->needs.registers, k.registers);
        learn(&entry->needs.item_bytes, k.local_bytes);
        learn(&entry->needs.group_bytes, k.shared_bytes);
        learn(&entry->needs.max_group, k.max_group);
        learn(&entry->needs.group_multiple, k.preferred_multiple);
        learn(&entry->needs.occupancy, k.occupancy);
    }
}

void resource_list_take_reads(struct resource_list *l, struct proto_list wkernels)
{
    char name[NAME_BYTES];
    struct proto_wkernel k;
    for (struct proto_iter it = proto_iter_of(wkernels);
         proto_list_next(&it, &schema_wkernel, &k);) {
        struct resource_entry *entry =
            bytes_to_str(k.entry, name, sizeof name) ? find(l, name) : NULL;
        if (entry == NULL || k.only_reads.size > sizeof entry->only_reads) {
            continue;
        }
        memset(entry->only_reads, 0, sizeof entry->only_reads);
        if (k.only_reads.size > 0) {
            memcpy(entry->only_reads, k.only_reads.data, k.only_reads.size);
        }
    }
}

bool resource_list_only_reads(const struct resource_list *l, const char *entry, unsigned arg)
{
    const struct resource_entry *found = find(l, entry);
    return found != NULL && arg < PROTO_ARGS_MAX &&
           (found->only_reads[arg / 8] >> arg % 8 & 1) != 0;
}

void resource_list_finish(struct resource_list *l)
{
    free(l->entry);
    *l = (struct resource_list){.count = 0};
}

void resources_join(struct resources *all, const struct resources *one)
{
    most(&all->registers, one->registers);
    most(&all->item_bytes, one->item_bytes);
    most(&all->group_bytes, one->group_bytes);
    least(&all->max_group, one->max_group);
    most(&all->group_multiple, one->group_multiple);
    least(&all->occupancy, one->occupancy);
}
