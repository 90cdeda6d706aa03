/* Keeps one heap of the compiler's at one address: see heap.c. */
#ifndef COMPILE_HEAP_H
#define COMPILE_HEAP_H

#include <stdbool.h>

/* Whether this build does so. Without it precompiled headers are of no use. */
bool heap_placed(void);

#endif
