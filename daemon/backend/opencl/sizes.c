#include "daemon/backend/opencl/sizes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 128u
#define TEXT_MAX  (64u * 1024u) /* bytes of what is put behind the source */
#define PROBE     "gpud_size_of_"

struct types {
    const char *name[TYPES_MAX]; /* the arguments' */
    uint32_t bytes[TYPES_MAX];
    unsigned count;
};

/* Is it the whole name of a type, fit to stand in a source? An anonymous one is told in words. */
static bool name_fits(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size >= sizeof((struct backend_compiled_arg *)NULL)->type - 1) {
        return false; /* it may have been cut */
    }
    for (const char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != ' ') {
            return false;
        }
    }
    return true;
}

static bool size_missing(const struct backend_compiled_arg *arg)
{
    return arg->kind == BACKEND_KIND_STRUCT && arg->bytes == 0 && name_fits(arg->type);
}

static unsigned type_index(const struct types *t, const char *name)
{
    unsigned i = 0;
    while (i < t->count && strcmp(t->name[i], name) != 0) {
        i++;
    }
    return i;
}

static void types_collect(struct types *t, const struct backend_compiled *compiled)
{
    for (unsigned k = 0; k < compiled->kernel_count; k++) {
        const struct backend_compiled_kernel *kernel = &compiled->kernels[k];
        for (unsigned a = 0; a < kernel->arg_count; a++) {
            const char *name = kernel->arg[a].type;
            if (size_missing(&kernel->arg[a]) && t->count < TYPES_MAX &&
                type_index(t, name) == t->count) {
                t->name[t->count++] = name;
            }
        }
    }
}

static bool probes_write(const struct types *t, struct capbuf *out)
{
    bool ok = capbuf_printf(out, "\n\n"); /* the source may end within a line */
    for (unsigned i = 0; i < t->count; i++) {
        ok = ok && capbuf_printf(out,
                                 "__kernel __attribute__((reqd_work_group_size(sizeof(%s), 1, 1))) "
                                 "void " PROBE "%u(void) {}\n",
                                 t->name[i], i);
    }
    return ok;
}

static cl_program probes_build(const struct opencl_api *cl, cl_context context, cl_device_id device,
                               const struct opencl_text *text, struct bytes probes)
{
    cl_int status = CL_SUCCESS;
    const char *strings[] = {text->line, (const char *)text->source.data,
                             (const char *)probes.data};
    const size_t sizes[] = {strlen(text->line), text->source.size, probes.size};
    cl_program program = cl->CreateProgramWithSource(context, 3, strings, sizes, &status);
    if (status != CL_SUCCESS) {
        return NULL;
    }
    if (cl->BuildProgram(program, 1, &device, text->options, NULL, NULL) != CL_SUCCESS) {
        cl->ReleaseProgram(program);
        return NULL;
    }
    return program;
}

static uint32_t probe_read(const struct opencl_api *cl, cl_program program, cl_device_id device,
                           unsigned index)
{
    char name[sizeof PROBE + 16];
    size_t local[3] = {0};
    cl_int status = CL_SUCCESS;
    snprintf(name, sizeof name, PROBE "%u", index);
    cl_kernel kernel = cl->CreateKernel(program, name, &status);
    if (status != CL_SUCCESS) {
        return 0;
    }
    status = cl->GetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                        sizeof local, local, NULL);
    cl->ReleaseKernel(kernel);
    return status == CL_SUCCESS && local[0] <= UINT32_MAX ? (uint32_t)local[0] : 0;
}

static void sizes_apply(const struct types *t, struct backend_compiled *compiled)
{
    for (unsigned k = 0; k < compiled->kernel_count; k++) {
        struct backend_compiled_kernel *kernel = &compiled->kernels[k];
        for (unsigned a = 0; a < kernel->arg_count; a++) {
            struct backend_compiled_arg *arg = &kernel->arg[a];
            unsigned i = size_missing(arg) ? type_index(t, arg->type) : t->count;
            arg->bytes = i < t->count ? t->bytes[i] : arg->bytes;
        }
    }
}

void opencl_sizes_learn(const struct opencl_api *cl, cl_context context, cl_device_id device,
                        const struct opencl_text *text, struct backend_compiled *compiled)
{
    struct types t = {.count = 0};
    struct capbuf probes;
    types_collect(&t, compiled);
    if (t.count == 0) {
        return;
    }
    capbuf_init(&probes, TEXT_MAX);
    cl_program program = NULL;
    if (probes_write(&t, &probes)) {
        program = probes_build(cl, context, device, text, capbuf_view(&probes));
    }
    capbuf_finish(&probes);
    if (!program) {
        return;
    }
    for (unsigned i = 0; i < t.count; i++) {
        t.bytes[i] = probe_read(cl, program, device, i);
    }
    cl->ReleaseProgram(program);
    sizes_apply(&t, compiled);
}
