/*
 * Errors of gpuctl: a code of gpud.h and a text. Each caller can put its context in front.
 * Nothing here allocates, blocks or prints.
 */
#ifndef GPUCTL_BASE_CTL_ERR_H
#define GPUCTL_BASE_CTL_ERR_H

struct ctl_err {
    int code; /* GPUD_ERR_*; CTL_USAGE for an invalid command line */
    char text[1200];
};

#define CTL_USAGE       (-1000)
#define CTL_INTERRUPTED (-1003) /* by the user; -1001 and -1002 are in ctl.h */

/* Exit codes, which scripts may rely on. */
enum ctl_exit {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
    EXIT_DENIED = 4,
    EXIT_DEGRADED = 5,
    EXIT_DIFFERS = 6, /* gpuctl replay: not as recorded */
    EXIT_BUSY = 75,
    EXIT_TIME = 124,
    EXIT_INTERRUPTED = 130, /* as shells report SIGINT */
};

/* Fills all members of `e` and returns `code`. */
int ctl_err_set(struct ctl_err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As ctl_err_set with CTL_USAGE. */
int ctl_err_usage(struct ctl_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* GPUD_ERR_IO, NOT_FOUND or NOMEM from errno, whose text is appended. Never PERMISSION, which means
 * that the daemon refused. */
int ctl_err_errno(struct ctl_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The error of the last call of libgpud, with the format's words in front. */
int ctl_err_lib(struct ctl_err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "words: " in front of the text and returns the code. */
int ctl_err_wrap(struct ctl_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int ctl_exit_code(int code); /* enum ctl_exit for 0, a GPUD_ERR_* or CTL_USAGE */

#endif
