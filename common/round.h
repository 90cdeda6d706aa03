/*
 * Turns by number, for owners of whom one may ask for many: each owner's next turn has a number,
 * and turns are served by number, the first one asked for first among equal ones. An owner that
 * asks for a thousand delays another one by a turn. An owner that did not ask saves nothing up.
 * Thread: any, one at a time.
 */
#ifndef COMMON_ROUND_H
#define COMMON_ROUND_H

#include <stdint.h>

/* The number of a turn that is asked for. own: of the owner's next turn; zero at the start. now: of
 * the turn that was served last. */
static inline uint64_t round_next(uint64_t *own, uint64_t now)
{
    *own = *own < now ? now : *own;
    return (*own)++;
}

#endif
