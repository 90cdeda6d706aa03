#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/journal.h"
#include "common/log_json.h"
#include "common/utf8.h"

#define LINE_MAX_BYTES 1024
#define WINDOW_NS      UINT64_C(10000000000)

struct kind {
    const char *name;
    const char *id;
    const char *hint;
    int level;
    unsigned rate;
};

static const struct kind kinds[LOG_KINDS] = {
#define LOG_KIND(name, level, rate, id, hint, subject, what, todo)                                 \
    {#name, id, hint, LOG_LEVEL_##level, LOG_RATE_##rate},
#include "common/log_kinds.def"
#undef LOG_KIND
};

/* How often a kind was logged lately. */
struct rate {
    atomic_uint_least64_t begin_ns; /* of the window; 0: none so far */
    atomic_uint count;              /* lines in it */
    atomic_uint left_out;           /* lines that no later line has told of */
};

static struct {
    const char *program;
    const char *journal; /* its socket; NULL: stderr */
    int fd;              /* for that; -1: there is none */
    bool json;           /* how lines are written to stderr */
    atomic_int level;
    atomic_uint missing; /* lines that found no reader, and that no later line has told of */
    uint64_t (*now_ns)(void);
    struct rate rate[LOG_KINDS];
} sink = {.program = "gpud", .fd = -1, .level = LOG_LEVEL_INFO, .now_ns = clock_now_ns};

/* ---- settings -------------------------------------------------------------------------------- */

void log_open(const char *program, int level)
{
    const char *wish = getenv("GPUD_LOG");
    const char *format = getenv("GPUD_LOG_FORMAT");
    int wished = wish != NULL ? log_level_from_name(wish) : -1;
    sink.program = program;
    sink.json = format != NULL && strcmp(format, "json") == 0;
    log_journal(journal_is(STDERR_FILENO) ? JOURNAL_ENTRIES : NULL);
    log_set_level(wished >= 0 ? wished : level);
}

int log_environment(struct err *e)
{
    const char *level = getenv("GPUD_LOG");
    const char *format = getenv("GPUD_LOG_FORMAT");
    if (level != NULL && level[0] != '\0' && log_level_from_name(level) < 0) {
        return err_set(e, ERR_INVALID, "GPUD_LOG = %.60s: not one of error, warn, info, debug",
                       level);
    }
    if (format != NULL && format[0] != '\0' && strcmp(format, "text") != 0 &&
        strcmp(format, "json") != 0) {
        return err_set(e, ERR_INVALID, "GPUD_LOG_FORMAT = %.60s: not one of text, json", format);
    }
    return 0;
}

void log_environment_warn(void)
{
    struct err e = ERR_INIT;
    if (log_environment(&e) != 0) {
        log_say(LOG_ENVIRONMENT_BAD, "%s", e.text);
    }
}

void log_journal(const char *path)
{
    if (sink.fd >= 0) {
        (void)close(sink.fd);
    }
    sink.fd = path != NULL ? journal_socket() : -1;
    sink.journal = sink.fd >= 0 ? path : NULL;
}

void log_clock(uint64_t (*now_ns)(void))
{
    sink.now_ns = now_ns;
    for (unsigned i = 0; i < LOG_KINDS; i++) {
        atomic_store(&sink.rate[i].begin_ns, 0);
        atomic_store(&sink.rate[i].count, 0);
        atomic_store(&sink.rate[i].left_out, 0);
    }
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

/* ---- where lines go -------------------------------------------------------------------------- */

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

/* A pipe, socket or terminal with room takes a line at once, and a file does in any case. */
static bool stderr_write(const char *line, size_t size)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0) {
        return false;
    }
    return write(STDERR_FILENO, line, size) == (ssize_t)size;
}

static bool plain_write(const char *text)
{
    char line[LINE_MAX_BYTES + 64];
    int size = snprintf(line, sizeof line, "%s: %s\n", sink.program, text);
    return size > 0 && size < (int)sizeof line && stderr_write(line, (size_t)size);
}

static bool json_write(const struct kind *k, const struct log_about *about, const char *text)
{
    char line[LOG_JSON_BYTES];
    const struct log_json_head head = {.program = sink.program,
                                       .level = log_level_name(k->level),
                                       .kind = k->name,
                                       .id = k->id,
                                       .wall_ns = clock_wall_ns(),
                                       .pid = getpid()};
    return stderr_write(line, log_json(&head, about, text, line));
}

struct entry {
    struct journal_field field[JOURNAL_FIELDS_MAX];
    unsigned count;
};

static void entry_add(struct entry *e, const char *name, const char *data)
{
    e->field[e->count++] = (struct journal_field){.name = name, .data = data, .size = strlen(data)};
}

/* 0, or an errno. */
static int entry_send(const struct kind *k, const struct log_about *about, const char *text)
{
    char level[4];
    char job[24];
    char device[16];
    char trace[24];
    struct entry e = {.count = 0};
    (void)snprintf(level, sizeof level, "%u", (unsigned)k->level & 7u);
    entry_add(&e, "MESSAGE", text);
    entry_add(&e, "PRIORITY", level);
    entry_add(&e, "SYSLOG_IDENTIFIER", sink.program);
    entry_add(&e, "MESSAGE_ID", k->id);
    entry_add(&e, "GPUD_KIND", k->name);
    if (about->job != 0) {
        (void)snprintf(job, sizeof job, "%" PRIu64, about->job);
        entry_add(&e, "GPUD_JOB", job);
    }
    if (about->tenant != NULL) {
        entry_add(&e, "GPUD_TENANT", about->tenant);
    }
    if (about->device != 0) {
        (void)snprintf(device, sizeof device, "%u", about->device - 1);
        entry_add(&e, "GPUD_DEVICE", device);
    }
    if (about->trace != 0) {
        (void)snprintf(trace, sizeof trace, LOG_TRACE_FORMAT, about->trace);
        entry_add(&e, "GPUD_TRACE", trace);
    }
    return journal_send(sink.fd, sink.journal, e.field, e.count);
}

/* Does not wait: a journal that is slow costs lines. One that is gone may be restarting, and the
 * service manager has stderr meanwhile. */
static bool put(enum log_kind kind, const struct log_about *about, const char *text)
{
    const struct kind *k = &kinds[kind];
    if (sink.journal != NULL) {
        int rc = entry_send(k, about, text);
        if (rc == 0 || rc == EAGAIN || rc == ENOBUFS) {
            return rc == 0;
        }
    }
    return sink.json ? json_write(k, about, text) : plain_write(text);
}

static void tell_missing(void)
{
    char text[128];
    unsigned missing = atomic_exchange(&sink.missing, 0);
    if (missing == 0) {
        return;
    }
    (void)snprintf(text, sizeof text,
                   "%u lines before this one are missing: the reader of the log took no more",
                   missing);
    if (!put(LOG_MISSING, &(struct log_about){0}, text)) {
        atomic_fetch_add(&sink.missing, missing);
    }
}

static void deliver(enum log_kind kind, const struct log_about *about, const char *text)
{
    tell_missing();
    if (atomic_load(&sink.missing) > 0 || !put(kind, about, text)) {
        atomic_fetch_add(&sink.missing, 1);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void tell_left_out(enum log_kind kind, uint64_t ns)
{
    char text[160];
    unsigned left_out = atomic_exchange(&sink.rate[kind].left_out, 0);
    if (left_out == 0 || kinds[LOG_SUPPRESSED].level > log_get_level()) {
        return;
    }
    (void)snprintf(
        text, sizeof text,
        "%u lines of kind %s were left out in the last %u s: at most %u in 10 s are kept", left_out,
        kinds[kind].name, (unsigned)(ns / 1000000000u), kinds[kind].rate);
    deliver(LOG_SUPPRESSED, &(struct log_about){0}, text);
}

/* Ends a window that is over. Only one thread does. It may have begun after `now`, which another
 * thread read later. */
static void turn_window(enum log_kind kind, uint64_t now)
{
    struct rate *r = &sink.rate[kind];
    uint64_t begin = atomic_load(&r->begin_ns);
    if ((begin == 0 || now >= begin + WINDOW_NS) &&
        atomic_compare_exchange_strong(&r->begin_ns, &begin, now)) {
        atomic_store(&r->count, 0);
        tell_left_out(kind, now - begin);
    }
}

static bool admit(enum log_kind kind)
{
    struct rate *r = &sink.rate[kind];
    turn_window(kind, sink.now_ns());
    if (atomic_fetch_add(&r->count, 1) < kinds[kind].rate) {
        return true;
    }
    atomic_fetch_add(&r->left_out, 1);
    return false;
}

void log_tend(void)
{
    uint64_t now = sink.now_ns();
    for (unsigned i = 0; i < LOG_KINDS; i++) {
        if (atomic_load(&sink.rate[i].left_out) > 0) {
            turn_window(i, now);
        }
    }
}

void log_end(void)
{
    uint64_t now = sink.now_ns();
    for (unsigned i = 0; i < LOG_KINDS; i++) {
        tell_left_out(i, now - atomic_load(&sink.rate[i].begin_ns));
    }
    if (sink.journal != NULL) {
        journal_drain(sink.fd);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The text is cut rather than what to do. */
static void say(enum log_kind kind, const struct log_about *about, const char *fmt, va_list ap)
{
    char text[LINE_MAX_BYTES];
    const char *hint = kinds[kind].hint;
    size_t tail = hint[0] != '\0' ? strlen(hint) + 2 : 0;
    if (kinds[kind].level > log_get_level() || !admit(kind)) {
        return;
    }
    /* both callers began the list; the analyzer loses it on one of its paths */
    if (vsnprintf(text, sizeof text - tail, fmt, ap) < 0) { /* NOLINT(clang-analyzer-valist.*) */
        return;
    }
    if (!sink.json || sink.journal != NULL) { /* JSON has escapes */
        flatten(text);
    }
    if (tail > 0) {
        (void)snprintf(text + strlen(text), tail + 1, "; %s", hint);
    }
    deliver(kind, about, text);
}

void log_say(enum log_kind kind, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(kind, &(struct log_about){0}, fmt, ap);
    va_end(ap);
}

void log_about(enum log_kind kind, struct log_about about, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(kind, &about, fmt, ap);
    va_end(ap);
}
