/*
 * One of the tables of `gpuctl top`: which rows are shown, in which order, which one is selected.
 * The selection follows its row from one answer of the daemon to the next. Pure. Thread: one.
 */
#ifndef GPUCTL_TOP_VIEW_H
#define GPUCTL_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuctl/sheet/sheet.h"

#define VIEW_FILTER  48u
#define VIEW_COLUMNS 64u
#define VIEW_DAEMON  UINT32_MAX /* sorted by: the daemon's order */

struct view {
    const char *table; /* of the daemon; static */
    /* wide columns of the daemon's table that are shown all the same, the last one NULL; static */
    const char *const *also;
    const struct sheet *sheet;     /* not owned; NULL: no answer yet */
    uint32_t column[VIEW_COLUMNS]; /* of the sheet, those shown */
    uint32_t column_count;
    uint32_t *order; /* owned: rows of the sheet */
    uint32_t count;
    uint32_t sort; /* index of `column`, or VIEW_DAEMON */
    bool descending;
    char filter[VIEW_FILTER]; /* rows with a cell that contains it, in any case; "": all */
    char selected[96];        /* first cell of the selected row */
    uint32_t at;              /* index of `order` */
    uint32_t top;             /* of the first row on the screen */
};

/* Takes a new answer of the daemon. NOMEM keeps the former rows out of sight. */
bool view_take(struct view *v, const struct sheet *sheet);
void view_finish(struct view *v);

/* Sorts by the next column (step 1) or the one before (-1); numbers begin with the largest. */
void view_sort(struct view *v, int step);
void view_reverse(struct view *v);
void view_filter(struct view *v, const char *text);
/* Moves the selection by rows; larger steps stop at the ends. */
void view_move(struct view *v, int64_t step);
/* Scrolls so that the selection is among `room` rows. */
void view_scroll(struct view *v, uint32_t room);

/* A cell of a row on the screen, as text. Control characters are blanks. Returns out. */
const char *view_text(const struct view *v, uint32_t index, uint32_t column, char *out,
                      size_t size);
/* The head of a column, in capitals. Returns out. */
const char *view_head(const struct view *v, uint32_t column, char *out, size_t size);
/* The cell of the selected row in a column of the sheet; NULL: there is none. */
const struct sheet_cell *view_selected(const struct view *v, const char *column);

#endif
