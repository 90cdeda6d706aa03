/*
 * What this process and the compilers that it runs may reach: by Landlock, the system's and the
 * toolkit's programs, libraries and headers to be read, the scratch folder and the compiler's cache
 * to be written, and no TCP. A source could name any other file in an #include, and compilers show
 * the lines that they do not understand. Blocks. Thread: the only one.
 */
#ifndef COMPILE_CONFINE_H
#define COMPILE_CONFINE_H

#include <stdbool.h>

#include "common/err.h"

struct confine {
    const char *scratch; /* to be written */
    const char *cache;   /* to be written; "": there is none */
    const char *options; /* the back end's: folders and files that they name may be read */
};

/* For the rest of this process's life, and for what it starts. *ret_confined is false where the
 * kernel has no Landlock or a filter keeps it from us, and nothing has changed. ERR_INTERNAL: it
 * has, and it did not work. */
int confine(const struct confine *c, bool *ret_confined, struct err *e);

#endif
