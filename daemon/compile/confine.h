/*
 * Confines this process and the compilers that it runs by Landlock: they may read programs,
 * libraries and headers of the system and the toolkit, write to the scratch folder and the
 * compiler's cache, and use no TCP. Otherwise a source could name any file of the host in an
 * #include, and the compiler's messages would quote the lines that it does not understand. Blocks.
 * Thread: the only one.
 */
#ifndef COMPILE_CONFINE_H
#define COMPILE_CONFINE_H

#include <stdbool.h>

#include "common/err.h"

struct confine {
    const char *scratch; /* folder that may be written */
    const char *cache;   /* folder that may be written; "": none */
    const char *options; /* of the back end; the files and folders that they name may be read */
};

/* Confines this process and its children until they end. *ret_confined is false if the kernel
 * has no Landlock or a filter forbids it; nothing has changed then. ERR_INTERNAL: Landlock
 * failed. */
int confine(const struct confine *c, bool *ret_confined, struct err *e);

#endif
