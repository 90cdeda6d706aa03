/* Source files of kernels: language, compiler options, loading. */
#ifndef GPUCTL_INPUT_SOURCE_H
#define GPUCTL_INPUT_SOURCE_H

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/input/include.h"

#define SOURCE_MAX         (1024u * 1024u) /* bytes, the daemon's limit */
#define SOURCE_OPTIONS_MAX 4096u           /* bytes */

struct source {
    const char *file; /* not owned; NULL: none */
    int lang;         /* enum gpud_lang; 0: from the suffix */
    struct include_dirs include;
    char options[SOURCE_OPTIONS_MAX];
};

/* enum gpud_lang by the file's suffix; 0 if unknown. */
int source_lang_from_file(const char *file);
/* Sets the language by a name such as "opencl" or "cl". */
int source_lang(struct source *source, const char *name, struct ctl_err *e);
/* Adds -DN[=V]. */
int source_define(struct source *source, const char *text, struct ctl_err *e);
/* Adds a folder of headers. */
int source_include(struct source *source, const char *folder, struct ctl_err *e);
int source_build_option(struct source *source, const char *text, struct ctl_err *e);
/* Chooses the compiler of CUDA C: "auto", "nvrtc" or "nvcc". */
int source_compiler(struct source *source, const char *name, struct ctl_err *e);
/* Reads the source, with the headers that OpenCL C and CUDA C include, and compiles it. The
 * compiler's messages go to standard error. Blocks. */
int source_load(gpud_client *client, const struct source *source, gpud_module *ret_module,
                struct ctl_err *e);

#endif
