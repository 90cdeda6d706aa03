/*
 * The command line of the programs that play worlds. An option that is wrong ends the process with
 * status 2, after a line that says what is wrong and what is valid, and examples.
 */
#ifndef TEST_SIM_OPTIONS_H
#define TEST_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define LANES_MAX 64u

struct options {
    uint64_t first, last; /* seeds; last 0: the usual ones */
    uint64_t step;        /* from one seed to the next */
    unsigned lanes;       /* processes at once */
    uint64_t until_ns;    /* of the real clock */
    bool one;             /* the first broken rule ends all */
    bool log;
    bool kept;        /* only the files */
    const char *keep; /* a folder for shortened courses; NULL: none */
    char **file;      /* not owned: courses to play in place of seeds */
    unsigned files;
};

void options_read(char **argv, struct options *ret_options);

#endif
