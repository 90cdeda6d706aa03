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

/* Bytes of the UTF-8 character that the text begins with (RFC 3629); 0: it is none, or a control.
 */
static unsigned character(const unsigned char *c)
{
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char least, most; /* of the second: shorter forms and surrogates are none */
        unsigned size;
    } forms[] = {
        {0xc2, 0xc2, 0xa0, 0xbf, 2}, {0xc3, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    unsigned size = c[0] < 0x80 ? 1 : 0;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        bool lead = c[0] >= forms[i].first && c[0] <= forms[i].last;
        size = lead && c[1] >= forms[i].least && c[1] <= forms[i].most ? forms[i].size : size;
    }
    for (unsigned i = 2; i < size; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return size;
}

/* What a client sent must not look like lines of ours, and the journal shows no line with bytes
 * that are no text. */
static void flatten(char *text)
{
    while (*text != '\0') {
        unsigned size = character((const unsigned char *)text);
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        } else if (size == 0) {
            *text = '?';
        }
        text += size > 0 ? size : 1;
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
