#include "tests/gpu/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void record_begin(struct record *r, const char *item)
{
    memset(r, 0, sizeof *r);
    (void)snprintf(r->item, sizeof r->item, "%s", item);
}

void record_note(struct record *r, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(r->note, sizeof r->note, format, list);
    va_end(list);
}

void record_target(struct record *r, const char *name, double value, const char *unit,
                   enum record_bound bound, double target)
{
    if (r->count == RECORD_FIGURES) {
        (void)fprintf(stderr, "%s: no room for the figure \"%s\"\n", r->item, name);
        abort();
    }
    struct record_figure *f = &r->figure[r->count++];
    *f = (struct record_figure){.value = value, .bound = bound, .target = target};
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    (void)snprintf(f->unit, sizeof f->unit, "%s", unit);
}

void record_figure(struct record *r, const char *name, double value, const char *unit)
{
    record_target(r, name, value, unit, RECORD_FREE, 0);
}

static bool is_set(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL && strcmp(text, "1") == 0;
}

bool record_is_double(void)
{
    return is_set("GPU_DOUBLE");
}

unsigned record_effort(unsigned quick, unsigned full)
{
    return is_set("GPU_QUICK") ? quick : full;
}

static bool judged(const struct record_figure *f)
{
    return f->bound != RECORD_FREE && !record_is_double();
}

static bool missed(const struct record_figure *f)
{
    bool met = f->bound == RECORD_AT_LEAST ? f->value >= f->target : f->value <= f->target;
    return judged(f) && !met;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void json_text(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            (void)fprintf(out, "\\%c", *c);
        } else if (*c < 0x20 || *c > 0x7e) {
            (void)fprintf(out, "\\u%04x", *c);
        } else {
            (void)fputc(*c, out);
        }
    }
    (void)fputc('"', out);
}

static void json_figure(FILE *out, const struct record_figure *f)
{
    (void)fputs("{\"name\":", out);
    json_text(out, f->name);
    (void)fprintf(out, ",\"value\":%.9g,\"unit\":", f->value);
    json_text(out, f->unit);
    if (f->bound != RECORD_FREE) {
        (void)fprintf(out, ",\"target\":\"%s %g\"",
                      f->bound == RECORD_AT_LEAST ? "at least" : "at most", f->target);
        (void)fprintf(out, ",\"met\":%s", !judged(f) ? "null" : missed(f) ? "false" : "true");
    }
    (void)fputc('}', out);
}

static void write_json(FILE *out, const struct record *r, const char *state, const char *reason)
{
    (void)fputs("{\"item\":", out);
    json_text(out, r->item);
    (void)fprintf(out, ",\"state\":\"%s\",\"reason\":", state);
    json_text(out, reason);
    (void)fputs(",\"note\":", out);
    json_text(out, r->note);
    (void)fputs(",\"figures\":[", out);
    for (unsigned i = 0; i < r->count; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        json_figure(out, &r->figure[i]);
    }
    (void)fputs("]}\n", out);
}

static void plain(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        (void)fputc(*text == '\n' || *text == '|' ? ' ' : *text, out);
    }
}

static void write_figures(FILE *out, const struct record *r, const char *between)
{
    for (unsigned i = 0; i < r->count; i++) {
        const struct record_figure *f = &r->figure[i];
        (void)fprintf(out, "%s%s %.4g%s%s", i > 0 ? between : "", f->name, f->value,
                      f->unit[0] != '\0' ? " " : "", f->unit);
        if (f->bound != RECORD_FREE) {
            (void)fprintf(out, " (%s %g%s)", f->bound == RECORD_AT_LEAST ? "at least" : "at most",
                          f->target, judged(f) ? "" : ", not judged");
        }
    }
}

static void write_row(FILE *out, const struct record *r, const char *state, const char *reason)
{
    (void)fprintf(out, "| %s | %s | ", r->item, state);
    write_figures(out, r, "<br>");
    (void)fputs(r->count > 0 && (reason[0] != '\0' || r->note[0] != '\0') ? "<br>" : "", out);
    plain(out, reason);
    (void)fputs(reason[0] != '\0' && r->note[0] != '\0' ? "; " : "", out);
    plain(out, r->note);
    (void)fputs(" |\n", out);
}

static void write_line(FILE *out, const struct record *r, const char *state, const char *reason)
{
    (void)fprintf(out, "%-8s%-28s", state, r->item);
    write_figures(out, r, ", ");
    (void)fprintf(out, "%s%s%s%s\n", r->count > 0 && reason[0] != '\0' ? ": " : "", reason,
                  r->note[0] != '\0' ? " -- " : "", r->note);
}

typedef void (*write_fn)(FILE *out, const struct record *r, const char *state, const char *reason);

static void append(const char *file, write_fn write, const struct record *r, const char *state,
                   const char *reason)
{
    char path[4096];
    const char *folder = getenv("GPU_RECORD");
    if (folder == NULL) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *out = fopen(path, "ae");
    if (out == NULL) {
        perror(path);
        abort(); /* a result that is lost must not look like none */
    }
    write(out, r, state, reason);
    if (fclose(out) != 0) {
        perror(path);
        abort();
    }
}

static void write_all(const struct record *r, const char *state, const char *reason)
{
    append("results.jsonl", write_json, r, state, reason);
    append("results.rows", write_row, r, state, reason);
    write_line(stdout, r, state,
               reason); /* the listener may have ended: the record is kept all the same */
    (void)fflush(stdout);
}

bool record_end(const struct record *r)
{
    char reason[RECORD_TEXT] = "";
    for (unsigned i = 0; i < r->count; i++) {
        size_t used = strlen(reason);
        if (missed(&r->figure[i])) {
            (void)snprintf(reason + used, sizeof reason - used, "%sits target was missed by: %s",
                           used > 0 ? "; " : "", r->figure[i].name);
        }
    }
    write_all(r, reason[0] == '\0' ? "passed" : "failed", reason);
    return reason[0] == '\0';
}

void record_failed(const struct record *r, const char *reason)
{
    write_all(r, "failed", reason);
}

void record_skipped(const struct record *r, const char *reason)
{
    write_all(r, "skipped", reason);
}
