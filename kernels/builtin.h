/*
 * The built-in kernels: sources in the portable dialect (kernels/src), embedded as text, one module
 * for each source file.
 * Thread: builtin_init once at start, then any.
 */
#ifndef KERNELS_BUILTIN_H
#define KERNELS_BUILTIN_H

#include "common/bytes.h"
#include "common/err.h"
#include "kernels/signature.h"

#define BUILTIN_VERSION 3 /* grows when what a kernel computes or its signature changes */

int builtin_init(struct err *e); /* parses all signatures; fails only in a broken build */

unsigned builtin_module_count(void);
const char *builtin_module_name(unsigned module); /* "reduce"; static */
struct bytes builtin_module_source(unsigned module);

/* A primitive kernel by its name without the type. false if there is none. */
bool builtin_find(const char *name, unsigned *ret_module, const struct signature **ret_sig);
unsigned builtin_kernel_count(void);
const struct signature *builtin_kernel(unsigned index, unsigned *ret_module);

#endif
