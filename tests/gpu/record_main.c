/*
 * gpu-record ITEM passed|failed|skipped [REASON [NAME VALUE UNIT]...]: an item that a script ran.
 * A unit may have a target behind it: "x>=2.5", "ms<=5".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/record.h"

static void add(struct record *r, const char *name, double value, char *unit)
{
    char *target = strpbrk(unit, "<>");
    if (target == NULL || target[1] != '=') {
        record_figure(r, name, value, unit);
        return;
    }
    enum record_bound bound = *target == '<' ? RECORD_AT_MOST : RECORD_AT_LEAST;
    *target = '\0';
    record_target(r, name, value, unit, bound, strtod(target + 2, NULL));
}

int main(int argc, char **argv)
{
    struct record r;
    if (argc < 3) {
        (void)fputs("usage: gpu-record ITEM passed|failed|skipped [REASON [NAME VALUE UNIT]...]\n",
                    stderr);
        return 2;
    }
    const char *reason = argc > 3 ? argv[3] : "";
    record_begin(&r, argv[1]);
    for (int i = 4; i + 2 < argc; i += 3) {
        add(&r, argv[i], strtod(argv[i + 1], NULL), argv[i + 2]);
    }
    if (strcmp(argv[2], "passed") == 0) {
        record_note(&r, "%s", reason);
        return record_end(&r) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (strcmp(argv[2], "skipped") == 0) {
        record_skipped(&r, reason);
        return EXIT_SUCCESS;
    }
    record_failed(&r, reason);
    return EXIT_SUCCESS;
}
