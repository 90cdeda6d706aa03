#include "daemon/pool/marks.h"

#include <stdbool.h>
#include <stdlib.h>

#define BITS 64u

int marks_init(struct marks *m, uint64_t limit, struct err *e)
{
    bool good = true;
    uint64_t words = limit;
    for (unsigned level = 0; level < MARKS_LEVELS; level++) {
        words = words / BITS + 1; /* room beyond the last number: no bound to check */
        m->map[level] = calloc(words, sizeof(uint64_t));
        good = good && m->map[level] != NULL;
    }
    m->top = words;
    return good ? 0
                : err_set(e, ERR_NOMEM, "no memory for a table of %llu bits",
                          (unsigned long long)limit);
}

void marks_finish(struct marks *m)
{
    for (unsigned level = 0; level < MARKS_LEVELS; level++) {
        free(m->map[level]);
    }
    *m = (struct marks){.top = 0};
}

void marks_add(struct marks *m, uint64_t number)
{
    for (unsigned level = 0; level < MARKS_LEVELS; level++, number /= BITS) {
        uint64_t *word = &m->map[level][number / BITS];
        bool any = *word != 0;
        *word |= UINT64_C(1) << number % BITS;
        if (any) {
            return;
        }
    }
}

void marks_remove(struct marks *m, uint64_t number)
{
    for (unsigned level = 0; level < MARKS_LEVELS; level++, number /= BITS) {
        uint64_t *word = &m->map[level][number / BITS];
        *word &= ~(UINT64_C(1) << number % BITS);
        if (*word != 0) {
            return;
        }
    }
}

/* From a bit of a level down to the last or first number below it. */
static uint64_t down(const struct marks *m, unsigned level, uint64_t bit, bool last)
{
    while (level > 0) {
        uint64_t word = m->map[--level][bit];
        bit = bit * BITS +
              (last ? BITS - 1 - (unsigned)__builtin_clzll(word) : (unsigned)__builtin_ctzll(word));
    }
    return bit;
}

uint64_t marks_last(const struct marks *m, uint64_t number)
{
    for (unsigned level = 0; level < MARKS_LEVELS; level++) {
        uint64_t n = number / BITS;
        uint64_t word = m->map[level][n] & (~UINT64_C(0) >> (BITS - 1 - number % BITS));
        while (word == 0 && level + 1 == MARKS_LEVELS && n > 0) {
            word = m->map[level][--n];
        }
        if (word != 0) {
            return down(m, level, n * BITS + (BITS - 1 - (unsigned)__builtin_clzll(word)), true);
        }
        if (n == 0) {
            return MARKS_NONE;
        }
        number = n - 1;
    }
    return MARKS_NONE;
}

uint64_t marks_next(const struct marks *m, uint64_t number)
{
    for (unsigned level = 0; level < MARKS_LEVELS; level++) {
        uint64_t n = number / BITS;
        uint64_t word = m->map[level][n] & (~UINT64_C(0) << number % BITS);
        while (word == 0 && level + 1 == MARKS_LEVELS && n + 1 < m->top) {
            word = m->map[level][++n];
        }
        if (word != 0) {
            return down(m, level, n * BITS + (unsigned)__builtin_ctzll(word), false);
        }
        number = n + 1;
    }
    return MARKS_NONE;
}
