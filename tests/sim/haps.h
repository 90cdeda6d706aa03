/* What happens later in a world, by time: a heap. Thread: one. */
#ifndef TEST_SIM_HAPS_H
#define TEST_SIM_HAPS_H

#include <stddef.h>
#include <stdint.h>

struct hap {
    uint64_t at_ns;
    uint64_t order;    /* of two at the same time the one that was planned first comes first */
    void (*run)(void); /* of the type that the world's functions have */
    void *actor;
    uint64_t a, b;
};

struct haps {
    struct hap *hap; /* owned; the first one is the next */
    size_t count, room;
    uint64_t order;
};

void haps_add(struct haps *g, struct hap h); /* sets its order */
uint64_t haps_next_ns(const struct haps *g); /* NS_NEVER: nothing is planned */
struct hap haps_take(struct haps *g);        /* the next one; there is one */
void haps_finish(struct haps *g);

#endif
