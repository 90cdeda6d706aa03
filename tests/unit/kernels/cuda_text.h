/* The built-in kernels and the language's own test as CUDA C, for whichever compiler is here. */
#ifndef TEST_KERNELS_CUDA_TEXT_H
#define TEST_KERNELS_CUDA_TEXT_H

#include "common/bytes.h"

/* One translation unit for each: the language's test first, then the modules. */
unsigned cuda_text_count(void);
const char *cuda_text_name(unsigned index);
/* Appends; fails the test if it cannot be translated. */
void cuda_text_write(unsigned index, struct capbuf *out);
/* Fails the test unless the PTX has an entry for each member of each kernel. The language's test
 * has none to look for. */
void cuda_text_check(unsigned index, const char *ptx);

#endif
