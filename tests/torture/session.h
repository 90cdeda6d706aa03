/*
 * Sessions that touch everything, played while a call fails somewhere, and played again to show
 * that the daemon is as good as new. A session never ends the test: it goes as far as it gets.
 *
 * Blocks until each request is answered, at most SESSION_PATIENCE each (in a famine
 * FAMINE_PATIENCE). Thread: one.
 */
#ifndef TORTURE_SESSION_H
#define TORTURE_SESSION_H

#include <gpud/gpud.h>

#include "tests/torture/house.h"

#define PROBLEM_TEXT     512
#define SESSION_PATIENCE (30 * SECOND)
#define FAMINE_PATIENCE  (20 * MS)
#define FAMINE_START     (1 * SECOND) /* of a daemon */

struct session {
    struct house *h;
    bool clean;  /* nothing fails: every request must succeed */
    bool brief;  /* only what shows that all works: no module that does not compile */
    bool famine; /* calls fail until the end: requests may wait for that, but not break anything */
    gpud_client *c;
    gpud_kernel axpy, add, fill;
    unsigned failed;            /* requests that had an error */
    char problem[PROBLEM_TEXT]; /* a broken promise, the first one; "": none */
};

enum act {
    ACT_JOBS,    /* buffers, jobs, programs, arenas, tables */
    ACT_SOCKET,  /* jobs, without rings */
    ACT_MODULE,  /* modules that are compiled, found in the cache, and do not compile */
    ACT_CONTROL, /* reload, drain, resume, snapshots, a session that is ended */
    ACT_RECORD,  /* jobs that are recorded */
    ACT_DEATH,   /* the worker is killed */
    ACT_ADOPT,   /* the front hands over to another one */
    ACT_START,   /* the daemon starts and ends */
    ACT_COUNT
};
const char *act_name(enum act act);

/* What ACT_JOBS … ACT_ADOPT do; ACT_START is the campaign's. */
void session_play(struct session *s, enum act act);

/* For the acts: whether the request succeeded. An answer that never came is a problem, and in a
 * clean session every error. */
uint64_t patience_of(const struct session *s);
bool said(struct session *s, int code, const char *what);
void wrong(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool session_open(struct session *s);
void session_close(struct session *s);
bool numbers_make(struct session *s, unsigned count, float first, gpud_buffer *ret_buffer);
bool numbers_check(struct session *s, gpud_buffer b, unsigned count, float first, const char *what);
void play_jobs(struct session *s);
void play_memory(struct session *s);
void play_tables(struct session *s);
void play_module(struct session *s);
void play_control(struct session *s);
void play_record(struct session *s);
void play_death(struct session *s);
void play_adopt(struct session *s);

#endif
