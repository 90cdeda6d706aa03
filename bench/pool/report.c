#include "bench/pool/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void report_add(struct report *r, const char *part, const char *name, const char *policy,
                const char *figure, double value)
{
    if (r->count == REPORT_ROWS) {
        abort();
    }
    struct row *row = &r->row[r->count++];
    *row = (struct row){.part = part, .policy = policy, .figure = figure, .value = value};
    (void)snprintf(row->name, sizeof row->name, "%s", name);
}

static bool same_line(const struct row *a, const struct row *b)
{
    return strcmp(a->part, b->part) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->policy, b->policy) == 0;
}

void report_table(const struct report *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        const struct row *row = &r->row[i];
        if (i == 0 || strcmp(row->part, r->row[i - 1].part) != 0) {
            (void)printf("%s%s\n", i == 0 ? "" : "\n", row->part);
        }
        if (i == 0 || !same_line(row, &r->row[i - 1])) {
            (void)printf("  %-24s %-10s", row->name, row->policy);
        }
        (void)printf("  %s %.4g", row->figure, row->value);
        if (i + 1 == r->count || !same_line(row, &r->row[i + 1])) {
            (void)printf("\n");
        }
    }
}

void report_json(const struct report *r)
{
    (void)printf("{\"benchmark\": \"pool\", \"rows\": [");
    for (unsigned i = 0; i < r->count; i++) {
        const struct row *row = &r->row[i];
        (void)printf(
            "%s\n  {\"part\": \"%s\", \"case\": \"%s\", \"policy\": \"%s\", \"figure\": \"%s\", "
            "\"value\": %.9g}",
            i == 0 ? "" : ",", row->part, row->name, row->policy, row->figure, row->value);
    }
    (void)printf("\n]}\n");
}
