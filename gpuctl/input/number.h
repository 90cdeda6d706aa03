/* Parses numbers of the command line as elements of a type, with exact ranges. Pure. */
#ifndef GPUCTL_INPUT_NUMBER_H
#define GPUCTL_INPUT_NUMBER_H

#include <stdint.h>

#include "gpuctl/base/ctl_err.h"

/* The bits of an element are the low bits of *ret_bits. A value out of range, trailing characters
 * and a fraction for an integer are errors. Integers may be hexadecimal (0x…). */
int spec_scalar(int dtype, const char *text, uint64_t *ret_bits, struct ctl_err *e);
/* The number of elements of a list such as "1,2,3"; 0 for "". */
uint64_t spec_list_count(const char *text);
/* Parses them into out, which has room for `count` elements. */
int spec_list(int dtype, const char *text, uint64_t count, void *out, struct ctl_err *e);

#endif
