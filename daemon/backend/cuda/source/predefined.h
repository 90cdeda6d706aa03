/*
 * What nvcc has defined of the host's compiler and NVRTC has not. Sources choose by it: among
 * headers of hosts, layouts of structs, byte orders; what is undefined counts as 0, so that another
 * text than nvcc's would be compiled and nobody told. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_PREDEFINED_H
#define BACKEND_CUDA_SOURCE_PREDEFINED_H

#include "common/err.h"

#define PREDEFINED_MAX 64u

/* Options, NULL-terminated; the user's own come behind them. */
extern const char *const predefined_options[];

/* The toolkit's headers ask for some of these, too, and are to know NVRTC as it is: those have
 * another name of the same length in the text that lex_normalize made, and scan_source has read,
 * and in an option. ERR_COMPILE "file:line:column: error: …" where # or ## would tell the
 * difference. */
int predefined_rename(char *text, const char *file, struct err *e);

#endif
