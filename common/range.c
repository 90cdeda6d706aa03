#include "common/range.h"

#include <stddef.h>
#include <stdlib.h>

void range_init(struct range *r, uint64_t size, uint64_t align)
{
    *r = (struct range){.size = size, .align = align};
}

void range_finish(struct range *r)
{
    while (r->first != NULL) {
        struct range_node *node = r->first;
        r->first = node->next;
        free(node);
    }
    *r = (struct range){0};
}

static uint64_t round_up(const struct range *r, uint64_t size)
{
    if (size > r->size) {
        return UINT64_MAX;
    }
    uint64_t wanted = size > 0 ? size : 1;
    return (wanted + r->align - 1) & ~(r->align - 1);
}

static bool insert(struct range *r, struct range_node **at, uint64_t offset, uint64_t size)
{
    struct range_node *node = malloc(sizeof *node);
    if (node == NULL) {
        return false;
    }
    *node = (struct range_node){.next = *at, .offset = offset, .size = size};
    *at = node;
    r->used += size;
    return true;
}

uint64_t range_alloc(struct range *r, uint64_t size)
{
    uint64_t wanted = round_up(r, size);
    uint64_t offset = 0;
    struct range_node **at = &r->first;
    for (; *at != NULL && (*at)->offset - offset < wanted; at = &(*at)->next) {
        offset = (*at)->offset + (*at)->size;
    }
    if (wanted > r->size || offset > r->size - wanted) {
        return RANGE_NONE;
    }
    return insert(r, at, offset, wanted) ? offset : RANGE_NONE;
}

bool range_take(struct range *r, uint64_t offset, uint64_t size)
{
    uint64_t wanted = round_up(r, size);
    if (wanted > r->size || offset > r->size - wanted || offset % r->align != 0) {
        return false;
    }
    struct range_node **at = &r->first;
    uint64_t end = 0;
    for (; *at != NULL && (*at)->offset < offset; at = &(*at)->next) {
        end = (*at)->offset + (*at)->size;
    }
    if (end > offset || (*at != NULL && (*at)->offset - offset < wanted)) {
        return false;
    }
    return insert(r, at, offset, wanted);
}

bool range_free(struct range *r, uint64_t offset)
{
    struct range_node **at = &r->first;
    while (*at != NULL && (*at)->offset != offset) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return false;
    }
    struct range_node *node = *at;
    *at = node->next;
    r->used -= node->size;
    free(node);
    return true;
}

uint64_t range_largest_free(const struct range *r)
{
    uint64_t end = 0;
    uint64_t largest = 0;
    for (const struct range_node *n = r->first; n != NULL; n = n->next) {
        if (n->offset - end > largest) {
            largest = n->offset - end;
        }
        end = n->offset + n->size;
    }
    return r->size - end > largest ? r->size - end : largest;
}
