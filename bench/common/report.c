#include "bench/common/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/echo.h"
#include "bench/common/machine.h"

void report_init(struct report *r, const char *name, const char *command, bool smoke)
{
    *r = (struct report){.name = name, .command = command, .smoke = smoke};
    r->figure = calloc(FIGURES_MAX, sizeof *r->figure);
    if (r->figure == NULL) {
        bench_die("no memory for figures");
    }
}

void report_finish(struct report *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        samples_finish(&r->figure[i].value);
        samples_finish(&r->figure[i].ratio);
    }
    free(r->figure);
    r->figure = NULL;
    r->count = 0;
}

static struct figure *find(const struct report *r, const char *part, const char *what,
                           const char *figure)
{
    for (unsigned i = 0; i < r->count; i++) {
        struct figure *f = &r->figure[i];
        if (strcmp(f->part, part) == 0 && strcmp(f->what, what) == 0 &&
            strcmp(f->figure, figure) == 0) {
            return f;
        }
    }
    return NULL;
}

static void copy(char *to, size_t size, const char *text)
{
    if (strlen(text) >= size) {
        bench_die("a name of %zu bytes: %s", strlen(text), text);
    }
    memcpy(to, text, strlen(text) + 1);
}

void report_add(struct report *r, const char *part, const char *what, const char *figure,
                const char *unit, double value)
{
    struct figure *f = find(r, part, what, figure);
    if (f == NULL) {
        if (r->count == FIGURES_MAX) {
            bench_die("over %u figures", FIGURES_MAX);
        }
        f = &r->figure[r->count++];
        copy(f->part, sizeof f->part, part);
        copy(f->what, sizeof f->what, what);
        copy(f->figure, sizeof f->figure, figure);
        copy(f->unit, sizeof f->unit, unit);
        samples_init(&f->value);
        samples_init(&f->ratio);
    }
    samples_add(&f->value, value);
}

void report_against(struct report *r, const char *part, const char *what, const char *figure,
                    const char *floor)
{
    struct figure *f = find(r, part, what, figure);
    const struct figure *g = find(r, part, floor, figure);
    if (f == NULL || g == NULL || f->value.count == 0) {
        return; /* one of them was left out */
    }
    if (f->value.count != g->value.count || f->value.sorted || g->value.sorted) {
        bench_die("%s and %s: %u and %u repetitions", what, floor, f->value.count, g->value.count);
    }
    copy(f->against, sizeof f->against, floor);
    bool rate = strstr(f->unit, "/s") != NULL; /* more is better */
    double best[2] = {f->value.value[0], g->value.value[0]};
    for (unsigned i = 0; i < f->value.count; i++) {
        const double value[2] = {f->value.value[i], g->value.value[i]};
        for (unsigned k = 0; k < 2; k++) {
            best[k] = (value[k] < best[k]) != rate ? value[k] : best[k];
        }
        if (value[1] > 0) {
            samples_add(&f->ratio, value[0] / value[1]);
        }
    }
    f->quiet = best[1] > 0 ? best[0] / best[1] : 0;
}

double report_median(struct report *r, const char *part, const char *what, const char *figure)
{
    const struct figure *f = find(r, part, what, figure);
    if (f == NULL) {
        return 0;
    }
    struct samples sorted; /* a copy, because the order of the values is still needed */
    samples_init(&sorted);
    for (unsigned i = 0; i < f->value.count; i++) {
        samples_add(&sorted, f->value.value[i]);
    }
    double median = samples_median(&sorted);
    samples_finish(&sorted);
    return median;
}

void report_left_out(struct report *r, const char *what, const char *why)
{
    if (r->left_out_count < REPORT_LEFT_OUT) {
        (void)snprintf(r->left_out[r->left_out_count++], REPORT_LINE, "%s: %s", what, why);
    }
}

static void write_table(struct report *r)
{
    (void)printf("%s; load %.1f%s\n", machine_name(), machine_load(),
                 r->smoke ? "; a smoke test: no figure counts" : "");
    for (unsigned i = 0; i < r->count; i++) {
        struct figure *f = &r->figure[i];
        if (i == 0 || strcmp(f->part, r->figure[i - 1].part) != 0) {
            (void)printf("\n%-38s %-14s %12s %-6s %12s   %s\n", f->part, "figure", "median", "",
                         "spread", "ratio (at best)");
        }
        (void)printf("  %-36s %-14s %12.4g %-6s %5.3g..%-6.4g", f->what, f->figure,
                     samples_median(&f->value), f->unit, samples_at(&f->value, 0.1),
                     samples_at(&f->value, 0.9));
        if (f->ratio.count > 0) {
            (void)printf("  %.2f (%.2f) of %s", samples_median(&f->ratio), f->quiet, f->against);
        }
        (void)printf("\n");
    }
    for (unsigned i = 0; i < r->left_out_count; i++) {
        (void)printf("%sleft out: %s\n", i == 0 ? "\n" : "", r->left_out[i]);
    }
}

/* Writes a JSON string. Only quotes and backslashes need escaping in the report's texts. */
static void write_text(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)putchar('\\');
        }
        (void)putchar(*text);
    }
    (void)putchar('"');
}

static void write_row(struct figure *f)
{
    (void)printf("{\"part\": \"%s\", \"case\": \"%s\", \"figure\": \"%s\", \"unit\": \"%s\", "
                 "\"repetitions\": %u, \"value\": %.9g, \"low\": %.9g, \"high\": %.9g",
                 f->part, f->what, f->figure, f->unit, f->value.count, samples_median(&f->value),
                 samples_at(&f->value, 0.1), samples_at(&f->value, 0.9));
    if (f->ratio.count > 0) {
        (void)printf(", \"against\": \"%s\", \"ratio\": %.9g, \"ratio_low\": %.9g, "
                     "\"ratio_high\": %.9g, \"ratio_best\": %.9g",
                     f->against, samples_median(&f->ratio), samples_at(&f->ratio, 0.1),
                     samples_at(&f->ratio, 0.9), f->quiet);
    }
    (void)printf("}");
}

static void write_json(struct report *r)
{
    (void)printf("{\"benchmark\": \"%s\", \"smoke\": %s,\n \"command\": ", r->name,
                 r->smoke ? "true" : "false");
    write_text(r->command);
    (void)printf(",\n \"machine\": ");
    write_text(machine_name());
    (void)printf(",\n \"load\": %.2f, \"cpus\": %u,\n \"left_out\": [", machine_load(),
                 machine_cpus());
    for (unsigned i = 0; i < r->left_out_count; i++) {
        (void)printf("%s", i == 0 ? "" : ", ");
        write_text(r->left_out[i]);
    }
    (void)printf("],\n \"rows\": [");
    for (unsigned i = 0; i < r->count; i++) {
        (void)printf("%s\n  ", i == 0 ? "" : ",");
        write_row(&r->figure[i]);
    }
    (void)printf("\n]}\n");
}

void report_write(struct report *r, bool json)
{
    if (json) {
        write_json(r);
    } else {
        write_table(r);
    }
    if (fflush(stdout) != 0) {
        bench_die("writing the report");
    }
}
