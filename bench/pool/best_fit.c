/*
 * Address-ordered best fit over one range: free blocks in a treap by (size, address), all blocks in
 * a list by address. Logarithmic time. The range ends at the highest end of any block so far.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/pool/policy.h"

#define NONE      0u
#define UNIT      256u
#define NODES_MAX (UINT32_C(1) << 23) /* addresses; pages are allocated at first access */

struct node {
    uint64_t at, size;
    uint32_t left, right; /* treap; `right` links unused nodes */
    uint32_t before, after;
    uint32_t priority;
    bool free;
};

struct best_fit {
    struct node *node; /* index 0 (NONE) is not used */
    uint32_t made;
    uint32_t unused;
    uint32_t root;
    uint32_t last; /* the block with the highest address */
    uint32_t random;
    uint64_t end, peak;
    uint64_t limit;
};

static uint32_t node_take(struct best_fit *b)
{
    uint32_t i = b->unused;
    if (i != NONE) {
        b->unused = b->node[i].right;
    } else if (b->made + 1 < NODES_MAX) {
        i = ++b->made;
    } else {
        abort();
    }
    b->random = b->random * 1664525u + 1013904223u;
    b->node[i] = (struct node){.priority = b->random};
    return i;
}

static void node_give(struct best_fit *b, uint32_t i)
{
    b->node[i].right = b->unused;
    b->unused = i;
}

/* Is node i before (size, at)? */
static bool below(const struct best_fit *b, uint32_t i, uint64_t size, uint64_t at)
{
    const struct node *n = &b->node[i];
    return n->size < size || (n->size == size && n->at < at);
}

/* Splits a treap: nodes before (size, at) to *ret_low, the others to *ret_high. */
static void split(struct best_fit *b, uint32_t i, uint64_t size, uint64_t at, uint32_t *ret_low,
                  uint32_t *ret_high)
{
    while (i != NONE) {
        struct node *n = &b->node[i];
        if (below(b, i, size, at)) {
            *ret_low = i;
            ret_low = &n->right;
            i = n->right;
        } else {
            *ret_high = i;
            ret_high = &n->left;
            i = n->left;
        }
    }
    *ret_low = NONE;
    *ret_high = NONE;
}

static uint32_t merge(struct best_fit *b, uint32_t low, uint32_t high)
{
    uint32_t root = NONE;
    uint32_t *to = &root;
    while (low != NONE && high != NONE) {
        if (b->node[low].priority > b->node[high].priority) {
            *to = low;
            to = &b->node[low].right;
            low = *to;
        } else {
            *to = high;
            to = &b->node[high].left;
            high = *to;
        }
    }
    *to = low != NONE ? low : high;
    return root;
}

static void insert(struct best_fit *b, uint32_t i)
{
    struct node *n = &b->node[i];
    uint32_t *to = &b->root;
    while (*to != NONE && b->node[*to].priority >= n->priority) {
        to = below(b, *to, n->size, n->at) ? &b->node[*to].right : &b->node[*to].left;
    }
    split(b, *to, n->size, n->at, &n->left, &n->right);
    *to = i;
    n->free = true;
}

static void withdraw(struct best_fit *b, uint32_t i)
{
    struct node *n = &b->node[i];
    uint32_t *to = &b->root;
    while (*to != i) {
        to = below(b, *to, n->size, n->at) ? &b->node[*to].right : &b->node[*to].left;
    }
    *to = merge(b, n->left, n->right);
    n->free = false;
}

static uint32_t find(const struct best_fit *b, uint64_t size)
{
    uint32_t best = NONE;
    for (uint32_t i = b->root; i != NONE;) {
        if (below(b, i, size, 0)) {
            i = b->node[i].right;
        } else {
            best = i;
            i = b->node[i].left;
        }
    }
    return best;
}

static void link_after(struct best_fit *b, uint32_t i, uint32_t before)
{
    struct node *n = &b->node[i];
    n->before = before;
    n->after = before != NONE ? b->node[before].after : NONE;
    if (before != NONE) {
        b->node[before].after = i;
    }
    if (n->after != NONE) {
        b->node[n->after].before = i;
    } else {
        b->last = i;
    }
}

static void unlink_node(struct best_fit *b, uint32_t i)
{
    const struct node *n = &b->node[i];
    if (n->before != NONE) {
        b->node[n->before].after = n->after;
    }
    if (n->after != NONE) {
        b->node[n->after].before = n->before;
    } else {
        b->last = n->before;
    }
    node_give(b, i);
}

/* Makes a block at the end of the range; a free block there becomes its start. */
static uint32_t grow(struct best_fit *b, uint64_t size)
{
    uint32_t i = b->last;
    if (i != NONE && b->node[i].free) {
        withdraw(b, i);
        b->end += size - b->node[i].size;
        b->node[i].size = size;
        return i;
    }
    i = node_take(b);
    b->node[i].at = b->end;
    b->node[i].size = size;
    b->end += size;
    link_after(b, i, b->last);
    return i;
}

static bool best_fit_alloc(void *self, uint64_t size, struct pool_piece *ret_piece)
{
    struct best_fit *b = self;
    size = (size + UNIT - 1) / UNIT * UNIT;
    uint32_t i = find(b, size);
    if (i == NONE) {
        uint64_t last = b->last != NONE && b->node[b->last].free ? b->node[b->last].size : 0;
        if (b->end - last + size > b->limit) {
            return false;
        }
        i = grow(b, size);
    } else {
        withdraw(b, i);
        if (b->node[i].size > size) {
            uint32_t rest = node_take(b);
            b->node[rest].at = b->node[i].at + size;
            b->node[rest].size = b->node[i].size - size;
            b->node[i].size = size;
            link_after(b, rest, i);
            insert(b, rest);
        }
    }
    b->peak = b->end > b->peak ? b->end : b->peak;
    ret_piece->block = i;
    return true;
}

static void best_fit_free(void *self, struct pool_piece *piece)
{
    struct best_fit *b = self;
    uint32_t i = piece->block;
    uint32_t after = b->node[i].after;
    uint32_t before = b->node[i].before;
    if (after != NONE && b->node[after].free) {
        withdraw(b, after);
        b->node[i].size += b->node[after].size;
        unlink_node(b, after);
    }
    if (before != NONE && b->node[before].free) {
        withdraw(b, before);
        b->node[before].size += b->node[i].size;
        unlink_node(b, i);
        i = before;
    }
    insert(b, i);
}

static uint64_t best_fit_peak(void *self)
{
    const struct best_fit *b = self;
    return b->peak;
}

static void best_fit_destroy(void *self)
{
    struct best_fit *b = self;
    (void)munmap(b->node, sizeof *b->node * NODES_MAX);
    free(b);
}

void policy_best_fit(uint64_t limit, struct policy *ret_policy)
{
    struct best_fit *b = bench_calloc(1, sizeof *b);
    b->node = mmap(NULL, sizeof *b->node * NODES_MAX, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->node == MAP_FAILED) {
        abort();
    }
    b->random = 1;
    b->limit = limit;
    *ret_policy = (struct policy){.name = "best fit",
                                  .self = b,
                                  .alloc = best_fit_alloc,
                                  .free = best_fit_free,
                                  .peak = best_fit_peak,
                                  .destroy = best_fit_destroy};
}
