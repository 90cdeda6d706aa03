#include "common/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/journal.h"
#include "common/utf8.h"

#define LINE_MAX_BYTES 1024

static struct {
    const char *program;
    int journal; /* the program's own stream, whose lines have levels; -1: stderr */
    atomic_int level;
} sink = {.program = "gpud", .journal = -1, .level = LOG_LEVEL_INFO};

void log_open(const char *program, int level)
{
    const char *wish = getenv("GPUD_LOG");
    int wished = wish != NULL ? log_level_from_name(wish) : -1;
    sink.program = program;
    log_journal(journal_is(STDERR_FILENO) ? JOURNAL_SOCKET : NULL);
    log_set_level(wished >= 0 ? wished : level);
}

void log_journal(const char *path)
{
    if (sink.journal >= 0) {
        (void)close(sink.journal);
    }
    sink.journal = path != NULL ? journal_stream(path, sink.program, true) : -1;
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

/* Text from a client must not look like log lines of the daemon, and the journal does not show
 * lines that are not text. */
static void flatten(char *text)
{
    size_t left = strlen(text);
    utf8_mend(text, left);
    for (uint8_t *c = (uint8_t *)text; left > 0;) {
        size_t size = utf8_size(c, left);
        if (*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        } else if (*c == 0xc2 && c[1] < 0xa0) { /* a C1 control character */
            c[0] = '?';
            c[1] = '?';
        }
        c += size;
        left -= size;
    }
}

void log_write(int level, const char *fmt, ...)
{
    if (level > atomic_load(&sink.level)) {
        return;
    }
    char line[LINE_MAX_BYTES];
    int head = sink.journal >= 0 ? snprintf(line, sizeof line, "<%d>", level)
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
    ssize_t written = -1;
    if (sink.journal >= 0) {
        written = send(sink.journal, line, used + 1, MSG_NOSIGNAL);
    }
    if (written < 0) { /* the journal may be restarting */
        written = write(STDERR_FILENO, line + (sink.journal >= 0 ? head : 0),
                        used + 1 - (sink.journal >= 0 ? (size_t)head : 0));
    }
    (void)written; /* a failure cannot be reported anywhere */
}
