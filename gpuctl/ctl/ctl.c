#include "gpuctl/ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/input/spec.h"

#define CONNECT_NS  UINT64_C(2000000000)
#define WATCH_LEAST 0.1 /* seconds */
#define WATCH_MOST  86400.0
#define ANSWER_NS   UINT64_C(10000000000) /* for a brief command: a daemon that is stopped */

void ctl_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("gpuctl: ", stderr);
    vfprintf(stderr, fmt, ap);
    putc('\n', stderr);
    va_end(ap);
}

static int take_format(struct ctl *ctl, const char *value, struct ctl_err *e)
{
    int format = sheet_format_from_name(value);
    if (format < 0) {
        return ctl_err_usage(e,
                             "-o %s: the formats are table, wide, json and csv "
                             "(files are written with -f FILE)",
                             value);
    }
    ctl->format = (enum sheet_format)format;
    return 0;
}

static int take_watch(struct ctl *ctl, const char *value, struct ctl_err *e)
{
    char *end = NULL;
    double seconds = strtod(value, &end);
    if (end == value || *end != '\0' || !(seconds >= WATCH_LEAST && seconds <= WATCH_MOST)) {
        return ctl_err_usage(e, "-w %s: seconds, from 0.1 to 86400", value);
    }
    ctl->watch_ns = (uint64_t)(seconds * 1e9);
    return ctl->command != NULL ? ctl_may_watch(ctl->command, e) : 0;
}

int ctl_may_watch(const struct command *command, struct ctl_err *e)
{
    return command->kind == COMMAND_LOOKS || command->kind == COMMAND_SCREEN
               ? 0
               : ctl_err_usage(e, "-w repeats only commands that show something");
}

int ctl_option(struct ctl *ctl, struct options *options, const struct option *own,
               const char **ret_value, struct ctl_err *e)
{
    for (;;) {
        int id = options_next(options, own, ret_value, e);
        switch (id) {
        case OPTION_URL:
            ctl->url = *ret_value;
            continue;
        case OPTION_OUTPUT:
            if (take_format(ctl, *ret_value, e) != 0) {
                return OPTION_BAD;
            }
            continue;
        case OPTION_WATCH:
            if (take_watch(ctl, *ret_value, e) != 0) {
                return OPTION_BAD;
            }
            continue;
        case OPTION_HELP:
            e->code = CTL_HELP;
            return OPTION_BAD;
        case OPTION_VERSION:
            e->code = CTL_VERSION;
            return OPTION_BAD;
        default:
            return id;
        }
    }
}

int ctl_option_only(struct ctl *ctl, struct options *options, const struct option *own,
                    const char **ret_value, struct ctl_err *e)
{
    int id = ctl_option(ctl, options, own, ret_value, e);
    if (id == OPTION_WORD) {
        ctl_err_usage(e, "unexpected word '%s'", *ret_value);
        return OPTION_BAD;
    }
    return id;
}

/* The error for a missing word: names the word of the command's synopsis with this index. */
static int missing_word(const struct command *command, unsigned index, struct ctl_err *e)
{
    const char *at = command->words;
    for (; index > 0; index--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return ctl_err_usage(e, "%.*s is missing: gpuctl %s %s", (int)strcspn(at, " "), at,
                         command->name, command->words);
}

int ctl_words(struct ctl *ctl, struct options *options, unsigned min, unsigned max,
              const char **ret_words, struct ctl_err *e)
{
    unsigned count = 0;
    const char *value = NULL;
    int id;
    while ((id = ctl_option(ctl, options, NULL, &value, e)) == OPTION_WORD) {
        if (count == max) {
            return ctl_err_usage(e, "unexpected word '%s'", value);
        }
        ret_words[count++] = value;
    }
    if (id != OPTION_END) {
        return e->code;
    }
    return count < min ? missing_word(ctl->command, count, e) : 0;
}

int ctl_number(const char *what, const char *text, uint64_t *ret_number, struct ctl_err *e)
{
    return spec_number(what, text, 0, UINT64_MAX, ret_number, e);
}

int ctl_timeout(uint64_t *ret_ns, struct ctl_err *e)
{
    const char *text = getenv("GPUD_TIMEOUT_MS");
    uint64_t ms = 0;
    int rc = text == NULL || text[0] == '\0'
                 ? 0
                 : spec_number("GPUD_TIMEOUT_MS", text, 0, UINT64_MAX / 1000000u, &ms, e);
    if (rc == 0) {
        *ret_ns = ms * 1000000u;
    }
    return rc;
}

int ctl_device(const char *value, uint64_t *ret_device, struct ctl_err *e)
{
    uint64_t id = 0;
    if (strcmp(value, "auto") == 0) {
        *ret_device = 0;
        return 0;
    }
    int rc = spec_number("--device", value, 0, UINT32_MAX, &id, e);
    if (rc == 0) {
        *ret_device = GPUD_ON(id);
    }
    return rc;
}

static void add_hint(struct ctl_err *e, const char *hint)
{
    size_t used = strlen(e->text);
    snprintf(e->text + used, sizeof e->text - used, "\n%s", hint);
}

static const char *url_of(const struct ctl *ctl)
{
    const char *url = ctl->url != NULL ? ctl->url : getenv("GPUD_URL");
    return url != NULL ? url : "";
}

/* Is the daemon reached over tcp? Then tokens matter, and groups do not. */
static bool remote(const struct ctl *ctl)
{
    return strstr(url_of(ctl), "tcp://") != NULL;
}

bool ctl_other_host(const struct ctl *ctl)
{
    static const char tls[] = "tls+";
    return strncmp(url_of(ctl), tls, sizeof tls - 1) == 0;
}

/* How long the command waits for an answer; 0: for ever. */
static uint64_t answer_limit(const struct ctl *ctl)
{
    switch (ctl->command != NULL ? ctl->command->kind : COMMAND_LONG) {
    case COMMAND_SCREEN:
        return CONNECT_NS; /* keys wait meanwhile */
    case COMMAND_BRIEF:
    case COMMAND_LOOKS:
        return ANSWER_NS + ctl->answer_ns;
    default:
        return 0;
    }
}

int ctl_connect(struct ctl *ctl, struct ctl_err *e)
{
    /* longer than a daemon takes to start again */
    gpud_options o = {.size = sizeof o, .name = "gpuctl", .connect_timeout_ns = CONNECT_NS};
    int rc = ctl_timeout(&o.timeout_ns, e);
    if (ctl->client != NULL || rc != 0) {
        return rc;
    }
    o.timeout_ns = o.timeout_ns == 0 ? answer_limit(ctl) : o.timeout_ns;
    rc = gpud_open(ctl->url, &o, &ctl->client);
    if (rc == 0) {
        return 0;
    }
    /* the mode of the socket; a refusal by the daemon says itself why */
    bool closed = gpud_last_error()->vendor == EACCES || gpud_last_error()->vendor == EPERM;
    ctl_err_set(e, rc, "%s", gpud_last_error()->text);
    if (rc == GPUD_ERR_CONNECT || rc == GPUD_ERR_TIMEOUT) {
        e->code = GPUD_ERR_CONNECT;
        add_hint(e, remote(ctl)
                        ? "Is gpud running there, with this address in its setting listen?"
                        : "Is gpud running there? Start it with: systemctl start gpud\n"
                          "or by hand: d=$(mktemp -d); export GPUD_URL=ipc://$d/gpud.sock\n"
                          "  gpud --runtime-dir $d --cache-dir $d/cache --listen $GPUD_URL &");
    } else if (rc == GPUD_ERR_INVALID) {
        e->code = CTL_USAGE;
    } else if (rc == GPUD_ERR_PERMISSION && !remote(ctl) && closed) {
        add_hint(e, "Only members of the group gpud may talk to it: adduser $USER gpud\n"
                    "and log in again.");
    }
    return e->code;
}

void ctl_disconnect(struct ctl *ctl)
{
    gpud_close(ctl->client);
    ctl->client = NULL;
}

int ctl_show(struct ctl *ctl, const char *what, const gpud_query_options *rows, struct ctl_err *e)
{
    int rc = ctl_connect(ctl, e);
    if (rc != 0) {
        return rc;
    }
    gpud_table *table = NULL;
    rc = gpud_query_with(ctl->client, what, rows, &table);
    if (rc != 0) {
        return ctl_err_set(e, rc, "%s", gpud_last_error()->text);
    }
    rc = ctl_write_table(ctl, table, e);
    gpud_table_free(table);
    return rc;
}

static struct sheet_style style_of(struct ctl *ctl)
{
    return (struct sheet_style){.format = ctl->format,
                                .series = ctl->watch_ns > 0 ? &ctl->series : NULL};
}

int ctl_write(struct ctl *ctl, const struct sheet *sheet, struct ctl_err *e)
{
    const struct sheet_style style = style_of(ctl);
    return sheet_write(sheet, &style, stdout, e);
}

int ctl_write_rows(struct ctl *ctl, const struct sheet_rows *rows, struct ctl_err *e)
{
    const struct sheet_style style = style_of(ctl);
    return sheet_write_rows(rows, &style, stdout, e);
}

int ctl_write_table(struct ctl *ctl, const gpud_table *table, struct ctl_err *e)
{
    const struct sheet_style style = style_of(ctl);
    return sheet_write_table(table, &style, stdout, e);
}

bool ctl_people(const struct ctl *ctl)
{
    return ctl->format == SHEET_TABLE || ctl->format == SHEET_WIDE;
}

int ctl_done(struct ctl *ctl, const char *what, bool ok, const char *text, struct ctl_err *e)
{
    struct result {
        struct sheet_cell command, ok, text;
    };
    static const struct sheet_field fields[] = {
        SHEET_FIELD(struct result, command, GPUD_COLUMN_TEXT, false),
        SHEET_FIELD(struct result, ok, GPUD_COLUMN_BOOL, false),
        SHEET_FIELD(struct result, text, GPUD_COLUMN_TEXT, false),
    };
    const struct result row = {
        .command = {.text = what}, .ok = {.value = ok}, .text = {.text = text}};
    const struct sheet_rows rows = SHEET_ROWS("result", fields, &row, 1);
    if (ctl->format == SHEET_JSON || ctl->format == SHEET_CSV) {
        return ctl_write_rows(ctl, &rows, e);
    }
    ctl_say("%s", text);
    return 0;
}

int ctl_control(struct ctl *ctl, const char *what, const char *value, const char *done,
                struct ctl_err *e)
{
    int rc = ctl_connect(ctl, e);
    if (rc != 0) {
        return rc;
    }
    rc = gpud_control(ctl->client, what, value);
    if (rc != 0) {
        return ctl_err_set(e, rc, "%s", gpud_last_error()->text);
    }
    return ctl_done(ctl, what, true, done, e);
}
