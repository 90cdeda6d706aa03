/* For the examples: ends the program with the whole reason when a call fails. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <gpud/gpud.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(int code)
{
    if (code < 0) {
        (void)fprintf(stderr, "%s\n", gpud_last_error()->text);
        exit(1);
    }
}

#endif
