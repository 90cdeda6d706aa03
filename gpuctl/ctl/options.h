/*
 * Reads the command line option by option. Options may stand before, between and after the words;
 * "--" ends them. No global state, for tests.
 */
#ifndef GPUCTL_CTL_OPTIONS_H
#define GPUCTL_CTL_OPTIONS_H

#include <stdbool.h>

#include "gpuctl/base/ctl_err.h"

struct option {
    /* without the dashes; NULL ends a list. A name that begins and ends with a dash ("-cl-")
     * matches all words that begin with it, and the word itself is the option's value */
    const char *name;
    char letter; /* 0: none */
    bool value;  /* the option takes a value */
    int id;      /* > 0 */
};

enum option_id {
    OPTION_END = 0,
    OPTION_WORD = -1, /* not an option */
    OPTION_BAD = -2,  /* see the error */
    /* options of every command */
    OPTION_URL = 1001,
    OPTION_OUTPUT,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_WATCH,
};

extern const struct option options_common[];

struct options {
    char **argv; /* not owned */
    int argc;
    int next;        /* index of the element read next */
    int letter;      /* position inside a group of letters, 0: none */
    bool words_only; /* "--" was seen */
};

void options_init(struct options *o, int argc, char **argv);
/* The next option of `own` (may be NULL) or of options_common: its id with *ret_value set if it
 * takes one; OPTION_WORD with the word; OPTION_END; OPTION_BAD. */
int options_next(struct options *o, const struct option *own, const char **ret_value,
                 struct ctl_err *e);

#endif
