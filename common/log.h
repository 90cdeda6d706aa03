/*
 * The log sink: the one global of the project. Libraries do not log; programs do. Each line is of a
 * kind (log_kinds.def), which has its level and its limit: beyond so many lines in ten seconds,
 * lines of the kind are counted, and a later line says how many were left out.
 *
 * Where stderr is systemd's journal, lines go there as entries with fields, by a socket of the
 * program's own, because its child processes could forge lines on stderr. Otherwise they go to
 * stderr as "program: text", or as a line of JSON with $GPUD_LOG_FORMAT=json. Control characters
 * become blanks, or \u escapes in JSON.
 *
 * Thread-safe, and safe in a handler of SIGSYS: there is no lock, and one call writes a line.
 * Nothing waits for a reader: a line that finds no room is lost, and a later one says how many are.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdint.h>

#include "common/err.h"
#include "common/log_about.h"

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* Lines of a kind in ten seconds. */
enum log_rate { LOG_RATE_FEW = 10, LOG_RATE_MANY = 200, LOG_RATE_DEBUG = 100000 };

enum log_kind {
#define LOG_KIND(name, level, rate, id, hint, subject, what, todo) LOG_##name,
#include "common/log_kinds.def"
#undef LOG_KIND
    LOG_KINDS
};

/* program: static text. $GPUD_LOG overrides `level` if it names a level. Here an unknown value of
 * $GPUD_LOG or $GPUD_LOG_FORMAT has no effect: log_environment reports it. */
void log_open(const char *program, int level);
/* INVALID if $GPUD_LOG or $GPUD_LOG_FORMAT is set and not empty, and its value is none of those
 * that exist. The error names the variable, its value and these. */
int log_environment(struct err *e);
/* For processes that another program of gpud starts, which has refused such a value unless it is
 * older: logs the error of log_environment. */
void log_environment_warn(void);
/* For log_open and tests. path: the journal's socket, static text; NULL: stderr. */
void log_journal(const char *path);
/* For tests: a clock in place of clock_now_ns, and all limits begin anew. */
void log_clock(uint64_t (*now_ns)(void));
void log_set_level(int level);
int log_level_from_name(const char *name); /* "error", "warn", "info", "debug"; -1 if unknown */
const char *log_level_name(int level);
int log_get_level(void);

void log_say(enum log_kind kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As log_say, with what the line is about. */
void log_about(enum log_kind kind, struct log_about about, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Tells of lines that were left out and that no later line has told of. To be called now and then.
 */
void log_tend(void);
/* As log_tend, before the process ends: without waiting for the ten seconds to pass. Blocks until
 * the journal has the lines, for a second at most: without it they may have no unit. */
void log_end(void);

#define log_debug(...) log_say(LOG_DETAIL, __VA_ARGS__)

#endif
