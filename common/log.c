#include "common/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static struct {
    const char *program;
    bool journal;
    atomic_int level;
} sink = {.program = "gpud", .level = LOG_LEVEL_INFO};

void log_open(const char *program, int level)
{
    const char *wish = getenv("GPUD_LOG");
    int wished = wish != NULL ? log_level_from_name(wish) : -1;
    sink.program = program;
    sink.journal = getenv("JOURNAL_STREAM") != NULL;
    log_set_level(wished >= 0 ? wished : level);
}

void log_set_level(int level)
{
    atomic_store(&sink.level, level);
}

int log_get_level(void)
{
    return atomic_load(&sink.level);
}

int log_level_from_name(const char *name)
{
    static const int levels[] = {LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(name, log_level_name(levels[i])) == 0) {
            return levels[i];
        }
    }
    return -1;
}

const char *log_level_name(int level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARN:
        return "warn";
    case LOG_LEVEL_DEBUG:
        return "debug";
    default:
        return "info";
    }
}

/* What a client sent must not look like lines of ours. */
static void flatten(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

void log_write(int level, const char *fmt, ...)
{
    if (level > atomic_load(&sink.level)) {
        return;
    }
    char line[LINE_MAX_BYTES];
    int head = sink.journal ? snprintf(line, sizeof line, "<%d>", level)
                            : snprintf(line, sizeof line, "%s: ", sink.program);
    if (head < 0) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, fmt, ap);
    va_end(ap);
    if (body < 0) {
        return;
    }
    flatten(line + head);
    size_t used = strlen(line);
    line[used] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used + 1);
    (void)written; /* there is nowhere to report that the log cannot be written */
}
