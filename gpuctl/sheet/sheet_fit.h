/*
 * Fits a table to the width of a terminal. A number is never cut: long texts wrap, and columns that
 * still find no room are left out. Pure, but for the character set of the locale.
 */
#ifndef GPUCTL_SHEET_SHEET_FIT_H
#define GPUCTL_SHEET_SHEET_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct fit_column {
    size_t head;  /* width of its head */
    size_t width; /* of its widest cell or its head, the wider of both */
    bool text;    /* its cells may wrap */
    bool empty;   /* no cell has a value */
    bool shown;   /* result: the column is shown */
    size_t given; /* result: the width of its cells, at least `head`; texts beyond it wrap */
};

/* Columns that a text takes on a terminal; 1 for each byte that is not part of a character. */
size_t fit_width(const char *text);

/* Bytes of the longest begin of a text that takes at most `width` columns. */
size_t fit_cut(const char *text, size_t width);

/* Chooses the columns for a line of `room` characters, one blank between columns. Leaves out
 * columns without values first, then the rightmost ones; the first column is always shown. room 0:
 * all columns are shown at full width. */
void fit_columns(struct fit_column *columns, size_t count, size_t room);

/* The text in lines of at most `width` > 0 columns, broken at blanks where possible. Owned by the
 * caller; NULL: out of memory. */
char *fit_wrap(const char *text, size_t width);

#endif
