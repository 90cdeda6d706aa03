/*
 * A CUDA C source without what only its host program needs, for a compiler that takes none of it.
 *
 * Kept are the declarations that are given to the device (__global__, __device__, __constant__, …)
 * and the types, constants and macros that these mention, by name and transitively; the rest
 * becomes blanks, so that lines and columns stay. Classes lose the host's functions, but for
 * constructors and the like. No program that nvcc takes means anything else for it: device code
 * cannot call what is for the host, and of other things those of one name stay or go together, so
 * no name finds another thing. All directives stay. Where branches of an #if open and close braces
 * differently, nothing is cut. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_HOST_H
#define BACKEND_CUDA_COMPILE_HOST_H

#include <stdbool.h>

#define HOST_INSTANCES_MAX 32u

struct host_cut {
    char *text; /* owned: as long as the source */
    unsigned functions, others;
    unsigned line;                      /* of the first */
    char *instance[HOST_INSTANCES_MAX]; /* owned: "f<float,4>", launched by what was cut */
    unsigned instance_count;
};

/* `text` is lex_normalize's. false: there is nothing to cut, or it cannot be told. */
bool host_cut(const char *text, struct host_cut *ret_cut);
void host_cut_finish(struct host_cut *c);

#endif
