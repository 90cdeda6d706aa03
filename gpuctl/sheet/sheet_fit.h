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
    size_t width; /* of its widest cell or its head, whichever is wider */
    bool text;    /* its cells may wrap */
    bool empty;   /* no cell has a value */
    bool shown;   /* result: it has a place */
    size_t given; /* result: the width of its cells, at least `head`; texts beyond it wrap */
};

/* Columns that a terminal gives to a text; 1 for each byte that is no character. */
size_t fit_width(const char *text);

/* Chooses the columns for a line of `room` characters, one blank between columns. Columns without
 * values go first, then the rightmost one; the first column is always shown. room 0: all are shown
 * whole. */
void fit_columns(struct fit_column *columns, size_t count, size_t room);

/* The text in lines of at most `width` > 0 columns, broken at blanks where there are any. Owned by
 * the caller; NULL without memory. */
char *fit_wrap(const char *text, size_t width);

#endif
