/* The service's kernels, from its source in OpenCL C or CUDA C. */
#ifndef KERNELS_H
#define KERNELS_H

#include <gpud/gpud.h>
#include <string.h>

#include "frames.h"

struct kernels {
    gpud_kernel blur, motion;
};

static inline void must(int code)
{
    if (code < 0) {
        (void)fprintf(stderr, "%s\n", gpud_last_error()->text);
        exit(1);
    }
}

static inline void kernels_load(gpud_client *c, const char *file, struct kernels *ret_kernels)
{
    const char *end = strrchr(file, '.');
    int lang = end != NULL && strcmp(end, ".cu") == 0 ? GPUD_LANG_CUDA : GPUD_LANG_OPENCL;
    const gpud_module_options options = {.size = sizeof options, .file = file};
    size_t bytes;
    char *source = file_read(file, &bytes);
    gpud_module module;
    must(gpud_module_load(c, lang, source, bytes, &options, &module));
    free(source);
    must(gpud_module_kernel(c, module, "blur", &ret_kernels->blur));
    must(gpud_module_kernel(c, module, "motion", &ret_kernels->motion));
}

#endif
