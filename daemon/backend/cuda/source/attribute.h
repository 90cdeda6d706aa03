/*
 * Attributes that stand behind the body of a type: "struct { … } __align__(16) x;". nvcc gives them
 * to the type, as g++ does; NVRTC gives them to what is declared or, of templates, to nothing, and
 * says nothing of it. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_ATTRIBUTE_H
#define BACKEND_CUDA_SOURCE_ATTRIBUTE_H

#include "common/err.h"

/* Moves each before its type's name, where both give it to the type, in the text that lex_normalize
 * made: it keeps its size and its lines. Macros are seen through, but for those of options, which
 * are told by where they stand. ERR_COMPILE "file:line:column: error: …" where it cannot be moved
 * or would mean something else: a directive or a macro with half of a body lies between, an enum is
 * aligned, alignments of a type differ, nothing parts it from what is before it. */
int attributes_move(char *text, const char *file, struct err *e);

#endif
