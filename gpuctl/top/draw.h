/* Draws `gpuctl top` on the terminal, by ncurses. Thread: one. */
#ifndef GPUCTL_TOP_DRAW_H
#define GPUCTL_TOP_DRAW_H

#include "gpuctl/top/top.h"

/* Takes the terminal. UNSUPPORTED where it cannot move a cursor. colour: as the user wants. */
int draw_begin(bool colour, struct ctl_err *e);
void draw_end(void);
/* Draws everything anew; only what changed goes to the terminal. Fits any size. */
void draw_all(struct top *top);
/* The next key that was pressed, for top_key; -1: none. */
int draw_key(void);

#endif
