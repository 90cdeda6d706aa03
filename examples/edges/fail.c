#include "edges/fail.h"

#include <stdio.h>
#include <stdlib.h>

#include <gpud/gpud.h>

static const char *program = "gpud-demo";

void fail_init(const char *name)
{
    program = name;
}

void fail(int code, const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program, what, why);
    exit(-code);
}

void need(int code, const char *what)
{
    if (code < 0) {
        const gpud_error *last = gpud_last_error();
        fail(code, what, last->text[0] != '\0' ? last->text : gpud_strerror(code));
    }
}
