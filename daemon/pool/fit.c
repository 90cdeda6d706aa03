#include "daemon/pool/fit.h"

#define COLUMN_BITS 5u
#define LOOK_MAX    16u /* blocks of the request's own bin that are examined */

struct bin {
    unsigned row, column;
};

/* Row 0 holds 0 … 31 units one by one; row r > 0 holds 2^(r+4) … 2^(r+5)-1 in 32 steps. */
static struct bin bin_of(uint64_t units)
{
    if (units < FIT_COLUMNS) {
        return (struct bin){0, (unsigned)units};
    }
    unsigned log = 63u - (unsigned)__builtin_clzll(units);
    return (struct bin){log - COLUMN_BITS + 1,
                        (unsigned)(units >> (log - COLUMN_BITS)) & (FIT_COLUMNS - 1)};
}

void fit_init(struct fit *f)
{
    f->rows = 0;
    for (unsigned r = 0; r < FIT_ROWS; r++) {
        f->columns[r] = 0;
        for (unsigned c = 0; c < FIT_COLUMNS; c++) {
            f->head[r][c] = BLOCK_NONE;
        }
    }
}

void fit_insert(struct fit *f, const struct records *blocks, uint32_t i)
{
    struct block *b = block_at(blocks, i);
    struct bin bin = bin_of(b->size / FIT_UNIT);
    uint32_t *head = &f->head[bin.row][bin.column];
    b->prev = BLOCK_NONE;
    b->next = *head;
    if (*head != BLOCK_NONE) {
        block_at(blocks, *head)->prev = i;
    }
    *head = i;
    f->columns[bin.row] |= UINT32_C(1) << bin.column;
    f->rows |= UINT64_C(1) << bin.row;
}

void fit_remove(struct fit *f, const struct records *blocks, uint32_t i)
{
    const struct block *b = block_at(blocks, i);
    if (b->next != BLOCK_NONE) {
        block_at(blocks, b->next)->prev = b->prev;
    }
    if (b->prev != BLOCK_NONE) {
        block_at(blocks, b->prev)->next = b->next;
        return;
    }
    struct bin bin = bin_of(b->size / FIT_UNIT);
    f->head[bin.row][bin.column] = b->next;
    if (b->next == BLOCK_NONE) {
        f->columns[bin.row] &= ~(UINT32_C(1) << bin.column);
        if (f->columns[bin.row] == 0) {
            f->rows &= ~(UINT64_C(1) << bin.row);
        }
    }
}

/* The smallest of the bin's first blocks that fits `size`. */
static uint32_t look(const struct records *blocks, uint32_t head, uint64_t size)
{
    uint32_t best = BLOCK_NONE;
    uint64_t best_size = UINT64_MAX;
    for (unsigned n = 0; head != BLOCK_NONE && n < LOOK_MAX; n++) {
        const struct block *b = block_at(blocks, head);
        if (b->size >= size && b->size < best_size) {
            best = head;
            best_size = b->size;
        }
        head = b->next;
    }
    return best;
}

uint32_t fit_find(const struct fit *f, const struct records *blocks, uint64_t size)
{
    struct bin bin = bin_of((size + FIT_UNIT - 1) / FIT_UNIT);
    if (bin.row >= FIT_ROWS) {
        return BLOCK_NONE;
    }
    uint32_t found = look(blocks, f->head[bin.row][bin.column], size);
    if (found != BLOCK_NONE) {
        return found;
    }
    uint32_t columns = bin.column == FIT_COLUMNS - 1
                           ? 0
                           : f->columns[bin.row] & (~UINT32_C(0) << (bin.column + 1));
    if (columns == 0) {
        uint64_t rows = f->rows & (~UINT64_C(0) << (bin.row + 1));
        if (rows == 0) {
            return BLOCK_NONE;
        }
        bin.row = (unsigned)__builtin_ctzll(rows);
        columns = f->columns[bin.row];
    }
    return look(blocks, f->head[bin.row][__builtin_ctz(columns)], size);
}

unsigned fit_top(const struct fit *f, const struct records *blocks, uint32_t *ret_top, unsigned max)
{
    unsigned n = 0;
    for (uint64_t rows = f->rows; rows != 0 && n < max;) {
        unsigned row = 63u - (unsigned)__builtin_clzll(rows);
        for (uint32_t columns = f->columns[row]; columns != 0 && n < max;) {
            unsigned column = 31u - (unsigned)__builtin_clz(columns);
            uint32_t i = f->head[row][column];
            while (i != BLOCK_NONE && n < max) {
                ret_top[n++] = i;
                i = block_at(blocks, i)->next;
            }
            columns &= ~(UINT32_C(1) << column);
        }
        rows &= ~(UINT64_C(1) << row);
    }
    return n;
}

unsigned fit_least(const struct fit *f, const struct records *blocks, uint64_t size,
                   uint32_t *ret_least, unsigned max)
{
    unsigned n = 0;
    unsigned looked = 0;
    struct bin bin = bin_of((size + FIT_UNIT - 1) / FIT_UNIT);
    for (unsigned row = bin.row; row < FIT_ROWS && n < max; row++) {
        uint32_t columns = f->columns[row];
        columns &= row == bin.row ? ~UINT32_C(0) << bin.column : ~UINT32_C(0);
        for (; columns != 0 && n < max; columns &= columns - 1) {
            uint32_t i = f->head[row][__builtin_ctz(columns)];
            for (; i != BLOCK_NONE && n < max && looked < max + LOOK_MAX;
                 i = block_at(blocks, i)->next, looked++) {
                if (block_at(blocks, i)->size >= size) {
                    ret_least[n++] = i;
                }
            }
        }
    }
    return n;
}

uint64_t fit_largest(const struct fit *f, const struct records *blocks)
{
    if (f->rows == 0) {
        return 0;
    }
    unsigned row = 63u - (unsigned)__builtin_clzll(f->rows);
    unsigned column = 31u - (unsigned)__builtin_clz(f->columns[row]);
    return block_at(blocks, f->head[row][column])->size;
}
