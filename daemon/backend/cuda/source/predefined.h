/*
 * What nvcc has defined of the host's compiler and NVRTC has not. Sources choose by it: among
 * headers of hosts, layouts of structs, byte orders; what is undefined counts as 0, so that another
 * text than nvcc's would be compiled and nobody told. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_PREDEFINED_H
#define BACKEND_CUDA_SOURCE_PREDEFINED_H

#define PREDEFINED_MAX 64u

/* Options, NULL-terminated; the user's own come behind them. */
extern const char *const predefined_options[];

/* The toolkit's headers ask for some of these, too, and are to know NVRTC as it is: those have
 * another name of the same length in the text that lex_normalize made, and scan_source has read. */
void predefined_rename(char *text);

#endif
