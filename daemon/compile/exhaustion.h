/*
 * Tells a compiler that ran out of memory or stack from one that crashed: compilers answer neither,
 * they abort. Such an end is an exit with COMPILE_EXIT_MEMORY or COMPILE_EXIT_STACK; any other
 * crash stays what it is. Thread: one; the handlers run on whichever thread fails.
 */
#ifndef COMPILE_EXHAUSTION_H
#define COMPILE_EXHAUSTION_H

#include "common/err.h"

/* From then on. said_fd: where the compiler's last words on stderr can be read again; < 0: nowhere.
 * Called from main or near it: the stack is taken to begin there. */
int exhaustion_watch(int said_fd, struct err *e);

#endif
