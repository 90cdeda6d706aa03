/* Keeps a heap of the compiler's at a fixed address: see heap.c. */
#ifndef COMPILE_HEAP_H
#define COMPILE_HEAP_H

#include <stdbool.h>

/* Does this build do so? Without it precompiled headers are useless. */
bool heap_placed(void);

#endif
