/* The numeric checks of built-in operations, one test case a file; run on runner_target. */
#ifndef TEST_KERNELS_CHECKS_H
#define TEST_KERNELS_CHECKS_H

#include <check.h>

TCase *checks_elementwise(void);
TCase *checks_reduce(void);
TCase *checks_scan(void);
TCase *checks_integer(void); /* histogram, sort */
TCase *checks_matrix(void);  /* transpose, gemm */
TCase *checks_image(void);   /* gaussian, sobel, conversions */
TCase *checks_physics(void); /* nbody, fft */
TCase *checks_special(void); /* NaN, -0, bounds, arrays in place */
TCase *checks_random(void);  /* random_uniform, random_normal; a library's are checked by their
                                promised distribution */

#endif
