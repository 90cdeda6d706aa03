/* Shared by the files of this folder only: the parser with a separate column, and lexical helpers.
 */
#ifndef KERNELS_SIGNATURE_INT_H
#define KERNELS_SIGNATURE_INT_H

#include "kernels/signature.h"

#define SIG_GROUP_MAX       1024u  /* work items of a group */
#define SIG_LOCAL_BYTES_MAX 49152u /* static local memory that every CUDA device offers */
#define SIG_PER_MAX         65536u
#define SIG_CONST_MAX       (UINT64_C(1) << 40) /* numbers written in a signature */

/* As signature_parse, but on failure ret_col is the column (from 1) and the text does not name it.
 */
int signature_parse_at(struct bytes line, struct signature *ret_sig, unsigned *ret_col,
                       struct err *e);

/* As declared in signature.h. */
int scalar_convert(int from, uint64_t bits, int to, uint64_t *ret_bits, struct err *e);

/* a < b, both of `dtype`; false if one is NaN. */
bool scalar_less(int dtype, uint64_t a, uint64_t b);
/* Writes the value in decimal digits; returns `out`. */
const char *scalar_text(int dtype, uint64_t bits, char *out, size_t size);

bool lex_is_name_start(int c);
bool lex_is_name(int c);
bool lex_is_space(int c); /* not the end of a line */
/* Does `text` use the identifier `word` outside of comments and literals? */
bool lex_uses(struct bytes text, const char *word);
/* The position after a comment or literal that begins at `pos`; `pos` if none begins there. */
size_t lex_skip(struct bytes text, size_t pos);

#endif
