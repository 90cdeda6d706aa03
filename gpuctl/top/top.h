/*
 * The state of `gpuctl top`: what is shown and what the keys do. Drawing is in draw.h. Thread: one.
 */
#ifndef GPUCTL_TOP_TOP_H
#define GPUCTL_TOP_TOP_H

#include "gpuctl/top/source.h"
#include "gpuctl/top/view.h"

enum top_view { TOP_DEVICES = 0, TOP_TENANTS, TOP_SESSIONS, TOP_JOBS, TOP_POOL, TOP_VIEWS };

enum top_mode {
    TOP_LIST = 0, /* rows */
    TOP_FILTER,   /* the user types a filter */
    TOP_CONFIRM,  /* the user confirms that a job is cancelled */
    TOP_TEXT,     /* an explanation or help in place of the rows */
};

struct top {
    struct ctl *ctl;
    struct source source;
    struct view view[TOP_VIEWS];
    enum top_view shown;
    enum top_mode mode;
    char input[VIEW_FILTER]; /* TOP_FILTER */
    uint64_t job;            /* TOP_CONFIRM */
    char text[2048];         /* TOP_TEXT; lines by newlines */
    char note[200];          /* what the last key did; "": nothing to say */
    uint32_t page;           /* rows on the screen, as drawn last */
    bool paused, over;
    bool stale; /* another table is shown than was asked for */
};

void top_init(struct top *top, struct ctl *ctl);
void top_finish(struct top *top);
/* Asks the daemon. Blocks up to the connection's time limit. */
void top_ask(struct top *top);

/* Keys without a character of their own. */
enum top_key {
    TOP_KEY_UP = 0x1000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACK, /* backspace */
};

/* Takes a key: a character or enum top_key. Explaining and cancelling ask the daemon and block up
 * to the connection's time limit. */
void top_key(struct top *top, int key);

#endif
