#include "common/log_json.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define ESCAPE        6u /* bytes of \u001b */
#define END           3u /* bytes that end the line: "}\n and a NUL */
#define TENANT_SHARE  1024u

struct line {
    char *data;
    size_t used;
    size_t room; /* without the end */
};

/* Appends what never needs to be cut: names, numbers, punctuation. */
__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->data + l->used, l->room - l->used, fmt, ap);
    va_end(ap);
    l->used += n > 0 && (size_t)n < l->room - l->used ? (size_t)n : 0;
}

/* One character of `size` bytes; 0 bytes: it is not text. */
static void add_character(struct line *l, const uint8_t *c, size_t size)
{
    unsigned code = size == 2 ? (unsigned)(*c & 0x1f) << 6 | (c[1] & 0x3f) : *c;
    if (size == 0) {
        l->data[l->used++] = '?';
    } else if (size <= 2 && (code < 0x20 || (code >= 0x7f && code < 0xa0))) {
        add(l, "\\u%04x", code);
    } else {
        if (*c == '"' || *c == '\\') {
            l->data[l->used++] = '\\';
        }
        memcpy(l->data + l->used, c, size);
        l->used += size;
    }
}

/* At most `most` bytes of it, in quotes. */
static void add_text(struct line *l, const char *key, const char *text, size_t most)
{
    const uint8_t *c = (const uint8_t *)text;
    size_t left = strlen(text);
    add(l, ",\"%s\":\"", key);
    size_t end = l->used + most < l->room ? l->used + most : l->room;
    while (left > 0 && l->used + ESCAPE + END < end) {
        size_t size = utf8_size(c, left);
        add_character(l, c, size);
        c += size > 0 ? size : 1;
        left -= size > 0 ? size : 1;
    }
    add(l, "\"");
}

/* Without gmtime_r, which takes a lock. The era's first day is the 1st of March, so that the day
 * that a leap year has more is a year's last. */
static void add_time(struct line *l, uint64_t wall_ns)
{
    uint64_t s = wall_ns / NS_PER_SECOND;
    uint64_t days = s / 86400 + 719468; /* since 0000-03-01 */
    uint64_t era = days / 146097;
    unsigned day = (unsigned)(days % 146097); /* of 400 years */
    unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    unsigned month = (5 * day + 2) / 153; /* 0: March */
    unsigned date = day - (153 * month + 2) / 5 + 1;
    unsigned shown = month < 10 ? month + 3 : month - 9;
    unsigned of_day = (unsigned)(s % 86400);
    add(l, "\"time\":\"%04u-%02u-%02uT%02u:%02u:%02u.%06uZ\"",
        (unsigned)(era * 400) + year + (shown <= 2 ? 1 : 0), shown, date, of_day / 3600,
        of_day / 60 % 60, of_day % 60, (unsigned)(wall_ns % NS_PER_SECOND / 1000));
}

size_t log_json(const struct log_json_head *head, const struct log_about *about,
                const char *message, char out[LOG_JSON_BYTES])
{
    struct line l = {.data = out, .room = LOG_JSON_BYTES - END};
    add(&l, "{");
    add_time(&l, head->wall_ns);
    add(&l, ",\"level\":\"%s\",\"program\":\"%s\",\"pid\":%d,\"kind\":\"%s\",\"message_id\":\"%s\"",
        head->level, head->program, (int)head->pid, head->kind, head->id);
    if (about->device != 0) {
        add(&l, ",\"device\":%u", about->device - 1);
    }
    if (about->job != 0) {
        add(&l, ",\"job\":%" PRIu64, about->job);
    }
    if (about->trace != 0) {
        add(&l, ",\"trace\":\"" LOG_TRACE_FORMAT "\"", about->trace);
    }
    if (about->tenant != NULL) {
        add_text(&l, "tenant", about->tenant, TENANT_SHARE);
    }
    add_text(&l, "message", message, LOG_JSON_BYTES);
    out[l.used++] = '}';
    out[l.used++] = '\n';
    return l.used;
}
