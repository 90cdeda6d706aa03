/* Turns source, PTX, cubin or fatbin into what cuda_binary_wrap makes. Runs in gpud-compile. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_H
#define BACKEND_CUDA_COMPILE_COMPILE_H

#include "daemon/backend/backend.h"

/* A backend_compile_fn. Needs no driver. */
int cuda_compile(unsigned index, const struct backend_source *source,
                 struct backend_compiled *ret_compiled, struct err *e);

#endif
