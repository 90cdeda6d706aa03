/*
 * A tournament: which of many contenders comes first, by key, then by tie (a winner tree: D. E.
 * Knuth, The Art of Computer Programming, volume 3, 5.4.1). A contender has a seat, a small number,
 * and the keys lie side by side in the order of seats. So a change compares a few neighbours in a
 * small array, where a heap of members would follow pointers from struct to struct. Thread: one.
 */
#ifndef COMMON_TOURNAMENT_H
#define COMMON_TOURNAMENT_H

#include <stdbool.h>
#include <stdint.h>

struct contender {
    uint64_t key;
    uint64_t tie;
    void *what; /* the struct that it stands for; NULL: the seat is empty */
};

/* Zeroed: it has no seats. */
struct tournament {
    struct contender *seat; /* owned */
    uint32_t
        *winner;    /* of the subtree of each inner node, from 1: a seat; in the block of `seat` */
    uint32_t seats; /* a power of two, or 0 */
    uint32_t given; /* seats from here on were never given to anyone */
    uint32_t
        vacant;     /* 1 + a seat that was given back, whose key is the next such number; 0: none */
    uint32_t count; /* of contenders */
};

/* Gives an empty seat to its caller, until tournament_leave. false: no memory. O(1) amortised. */
bool tournament_join(struct tournament *t, uint32_t *ret_seat);
void tournament_leave(struct tournament *t, uint32_t seat); /* with or without a contender */
/* Puts a contender on a given seat, or gives it another key. O(log n), as is tournament_drop. */
void tournament_put(struct tournament *t, uint32_t seat, uint64_t key, uint64_t tie, void *what);
void tournament_drop(struct tournament *t, uint32_t seat); /* empty: nothing happens */
bool tournament_has(const struct tournament *t, uint32_t seat);
/* What the first contender stands for; NULL: there is none. */
void *tournament_first(const struct tournament *t);
void tournament_finish(struct tournament *t);

#endif
