/*
 * Confines this process and the compilers that it runs by Landlock: they may read programs,
 * libraries and headers of the system and the toolkit, write to the scratch folder and the
 * compiler's cache, and use no TCP. Otherwise a source could name any file in an #include, and a
 * compiler's messages quote the lines that it does not understand. Blocks. Thread: the only one.
 */
#ifndef COMPILE_CONFINE_H
#define COMPILE_CONFINE_H

#include <stdbool.h>

#include "common/err.h"

struct confine {
    const char *scratch; /* folder to write */
    const char *cache;   /* folder to write; "": none */
    const char *options; /* of the back end; files and folders that they name may be read */
};

/* Confines this process and its children until they end. *ret_confined is false where the kernel
 * has no Landlock or a filter forbids it; then nothing has changed. ERR_INTERNAL: Landlock failed.
 */
int confine(const struct confine *c, bool *ret_confined, struct err *e);

#endif
