/*
 * Distinguishes a compiler that ran out of memory or stack from one that crashed, because compilers
 * abort in both cases. The first becomes an exit with COMPILE_EXIT_MEMORY or COMPILE_EXIT_STACK;
 * any other crash is unchanged. Thread: one; the handlers run on the thread that fails.
 */
#ifndef COMPILE_EXHAUSTION_H
#define COMPILE_EXHAUSTION_H

#include "common/err.h"

/* Installs the handlers. said_fd: a file with the compiler's output on stderr; < 0: none. To be
 * called from main or near it, because the stack is assumed to begin there. */
int exhaustion_watch(int said_fd, struct err *e);

#endif
