/*
 * A CUDA C source without what only its host program needs, for a compiler that takes none of it.
 *
 * Kept are the declarations that are given to the device (__global__, __device__, __constant__, …),
 * the types, constants and macros that these mention, by name and transitively, and all that is not
 * plainly a function, a variable or a type; the rest becomes blanks, so that lines and columns
 * stay. The host's functions in classes lose their bodies only. All directives stay. The "const" of
 * a float or double that is computed from others becomes CONSTANT_COMPUTED.
 *
 * What is left must mean the same as with nvcc. Device code cannot call what goes, so that among
 * functions of one name it finds the same without it. Nothing is cut at all where that does not
 * hold or cannot be told: where what stays names a function that would go and looks names up
 * without running them (sizeof, decltype, …), or that may be the device's by a macro of elsewhere;
 * where braces open in one #if and close in another, but for those of extern "C" and in a function
 * under the same words; where a "#" could begin a line by the cut. Pure but for memory.
 * Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_CUT_H
#define BACKEND_CUDA_SOURCE_CUT_H

#include "daemon/backend/cuda/source/constant.h"
#include "daemon/backend/cuda/source/instance.h"

struct host_cut {
    char *text; /* owned: the source, as long, and what tells instances of templates put into it */
    unsigned functions, others;
    unsigned line; /* of the first */
    struct instances instances;
};

/* `text` is lex_normalize's; `expressions` name instances of kernels, whose types stay. false:
 * there is nothing to cut, or it cannot be told. */
bool host_cut(const char *text, const char *const *expressions, unsigned expression_count,
              struct host_cut *ret_cut);
void host_cut_finish(struct host_cut *c);

#endif
