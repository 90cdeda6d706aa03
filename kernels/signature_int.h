/* Shared by the files of this folder only: the parser with its column apart, and lexical helpers.
 */
#ifndef KERNELS_SIGNATURE_INT_H
#define KERNELS_SIGNATURE_INT_H

#include "kernels/signature.h"

#define SIG_GROUP_MAX       1024u  /* work items of a group */
#define SIG_LOCAL_BYTES_MAX 49152u /* what every CUDA device has without asking for more */
#define SIG_PER_MAX         65536u
#define SIG_CONST_MAX       (UINT64_C(1) << 40) /* numbers written in a signature */

/* As signature_parse, but on failure ret_col is the column (from 1) and the text does not name it.
 */
int signature_parse_at(struct bytes line, struct signature *ret_sig, unsigned *ret_col,
                       struct err *e);

/* A scalar's bits converted to another type. ERR_RANGE, or ERR_ARG_TYPE for unknown types; texts
 * have no "argument …" in front. */
int scalar_convert(int from, uint64_t bits, int to, uint64_t *ret_bits, struct err *e);

/* a < b, both of `dtype`; false where one is NaN. */
bool scalar_less(int dtype, uint64_t a, uint64_t b);
/* The value in decimal digits; returns `out`. */
const char *scalar_text(int dtype, uint64_t bits, char *out, size_t size);

bool lex_is_name_start(int c);
bool lex_is_name(int c);
bool lex_is_space(int c); /* not the end of a line */
/* Is the identifier `word` used anywhere in `text` outside comments and literals? */
bool lex_uses(struct bytes text, const char *word);
/* From `pos`: skips one comment or literal if one begins there, else returns `pos`. */
size_t lex_skip(struct bytes text, size_t pos);

#endif
