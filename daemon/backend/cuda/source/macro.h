/*
 * What the macros of a CUDA C source say of its declarations. Nothing is expanded. Pure. Thread:
 * any.
 */
#ifndef BACKEND_CUDA_SOURCE_MACRO_H
#define BACKEND_CUDA_SOURCE_MACRO_H

#include "daemon/backend/cuda/source/item.h"

/* Macros that use a macro for the device are such ones, and so are declarations; the same holds for
 * variables that say "const". What looks like a function and is a macro's use becomes ITEM_OTHER.
 * false: they lie too deep, or too many things have one name. */
bool macros_settle(struct items *s);
/* Is there a macro among the code's tokens that gives to the device? */
bool macros_say_device(const struct items *s, size_t at, size_t end);
/* Is it one where it stands? One that is defined behind a declaration does not change that. */
bool macros_name(const struct items *s, const struct lex_token *t);

#endif
