/*
 * Errors that travel with their context.
 *
 * A fallible function returns 0 or a negative ERR_* code and takes a `struct err *` (may be NULL)
 * as its last argument. The function that finds the error calls err_set(). A caller that has
 * context calls err_wrap(), which puts it in front: "launch axpy, step 2: argument y: 4096 bytes,
 * kernel needs 8192". On success the struct is not touched.
 *
 * Thread: a struct err belongs to its owner. Nothing here allocates or blocks.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdbool.h>
#include <stdint.h>

enum err_code {
    ERR_OK = 0,
#define ERR(name, value, retriable, text) ERR_##name = (value),
#include "common/errors.def"
#undef ERR
};

/* Whether the failed operation changed anything outside itself. */
enum err_effects { ERR_EFFECTS_NONE = 0, ERR_EFFECTS_MAYBE = 1, ERR_EFFECTS_YES = 2 };

#define ERR_TEXT_MAX 384 /* bytes, with the terminating NUL */

struct err {
    int code;                /* ERR_* */
    int vendor;              /* the vendor's code, 0 if none */
    int step;                /* index of the program's step, -1 if none */
    int arg;                 /* index of the argument, -1 if none */
    int effects;             /* enum err_effects */
    uint64_t retry_after_ns; /* 0: no hint */
    char text[ERR_TEXT_MAX]; /* the whole chain, always terminated */
};

#define ERR_INIT ((struct err){.step = -1, .arg = -1})

/* Sets ERR_INIT without writing the whole text, for code that runs once for each job. */
static inline void err_init(struct err *e)
{
    e->code = 0;
    e->vendor = 0;
    e->step = -1;
    e->arg = -1;
    e->effects = ERR_EFFECTS_NONE;
    e->retry_after_ns = 0;
    e->text[0] = '\0';
}

/* Fills all members of `e` (if not NULL) and returns `code`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As err_set, with the vendor's code as well. */
int err_set_vendor(struct err *e, int code, int vendor, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "context: " in front of the text and returns e->code (or ERR_INTERNAL if `e` is NULL). */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* err_set with ": <strerror(errno)>" appended; `code` is usually ERR_IO. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

const char *err_name(int code);      /* "BUSY"; "UNKNOWN" for a code not in the list; static */
const char *err_text(int code);      /* the list's sentence; static */
bool err_retriable(int code);        /* may the same request succeed later? */
int err_from_name(const char *name); /* 0 if unknown */

#endif
