/*
 * The log sink: the one global of the project. Libraries do not log; programs do. Lines go to
 * stderr as "program: text". Where stderr is systemd's journal, they go there through a stream of
 * the program's own, with their level, because its child processes could forge lines on stderr.
 * Control characters become blanks. Thread-safe: one write per line.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* program: static text. $GPUD_LOG overrides `level` if it names a level. */
void log_open(const char *program, int level);
/* For log_open and tests. path: the journal's socket; NULL: stderr. */
void log_journal(const char *path);
void log_set_level(int level);
int log_level_from_name(const char *name); /* "error", "warn", "info", "debug"; -1 if unknown */
const char *log_level_name(int level);
int log_get_level(void);
void log_write(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
