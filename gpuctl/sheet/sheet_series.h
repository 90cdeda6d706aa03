/*
 * A sheet that is written again and again, below itself, as `-w` does: with the time as its first
 * column, columns that stay where they are, and heads that come again. Thread: one.
 */
#ifndef GPUCTL_SHEET_SHEET_SERIES_H
#define GPUCTL_SHEET_SHEET_SERIES_H

#include "gpuctl/sheet/sheet.h"
#include "gpuctl/sheet/sheet_fit.h"

#define SERIES_COLUMNS 128u
#define SERIES_LINES   20u /* rows between heads */

struct sheet_series {
    char name[GPUD_NAME];         /* of the sheet that was written last; "": none yet */
    uint32_t column_count;        /* with the time */
    size_t width[SERIES_COLUMNS]; /* of the columns, as wide as they were so far */
    uint32_t lines;               /* rows since the heads */
    bool changed;                 /* columns are others, or wider, than below the last heads */
};

/* The sheet with the column `time` before its others: the time of day for people, else date and
 * time in UTC. The caller ends the new sheet (sheet_finish); `time` must live
 * as long as it. false: out of memory. */
bool series_sheet(const struct sheet *sheet, const char *time, struct sheet *ret_sheet);
/* Writes the present time for the format; returns out. */
const char *series_time(enum sheet_format format, char *out, size_t size);

/* Begins writing a sheet: another one than before begins anew. */
void series_begin(struct sheet_series *s, const struct sheet *sheet);
/* Makes the columns at least as wide as they were. */
void series_widths(struct sheet_series *s, struct fit_column *columns, uint32_t count);
/* Are heads due before these rows? Counts the rows. */
bool series_heads(struct sheet_series *s, uint32_t rows);

#endif
