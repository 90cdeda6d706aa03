#include "daemon/backend/opencl/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"

#define TYPES_MAX  128u
#define TEXT_MAX   (64u * 1024u) /* bytes appended to the source */
#define PROBE      "gpud_type_of_"
#define CODE_DTYPE 16u /* a code is an enum dtype plus 16 for each step of the vector's width */

struct type {
    char name[sizeof((struct backend_compiled_arg *)NULL)->type]; /* without the pointer's "*" */
    uint32_t bytes;                                               /* 0: unknown */
    uint32_t code;                                                /* 0: no known element type */
};

struct types {
    struct type type[TYPES_MAX];
    unsigned count;
};

/* The code of a probe kernel, which shows what a type is. Names of the language are spelt so
 * that macros of the source do not change them, as far as possible. */
static const char codes[] =
    "#define GPUD_IS(T, type, code) __builtin_types_compatible_p(T, type) ? (code) :\n"
    "#define GPUD_OF(T, type, vec, code) GPUD_IS(T, type, code) GPUD_IS(T, vec##2, code + 16) \\\n"
    "    GPUD_IS(T, vec##3, code + 32) GPUD_IS(T, vec##4, code + 48) \\\n"
    "    GPUD_IS(T, vec##8, code + 64) GPUD_IS(T, vec##16, code + 80)\n"
    "#ifdef cl_khr_fp64\n"
    "#define GPUD_F64(T) GPUD_OF(T, double, double, 11)\n"
    "#else\n"
    "#define GPUD_F64(T)\n"
    "#endif\n"
    "#ifdef cl_khr_fp16\n"
    "#define GPUD_F16(T) GPUD_OF(T, half, half, 9)\n"
    "#else\n"
    "#define GPUD_F16(T) GPUD_IS(T, half, 9)\n"
    "#endif\n"
    "#if __OPENCL_C_VERSION__ >= 200\n"
    "#define GPUD_ATOMIC(T) GPUD_IS(T, atomic_int, 5) GPUD_IS(T, atomic_uint, 6) \\\n"
    "    GPUD_IS(T, atomic_float, 10)\n"
    "#else\n"
    "#define GPUD_ATOMIC(T)\n"
    "#endif\n"
    "#define GPUD_CODE(T) (GPUD_OF(T, char, char, 1) GPUD_IS(T, signed char, 1) \\\n"
    "    GPUD_OF(T, unsigned char, uchar, 2) GPUD_OF(T, short, short, 3) \\\n"
    "    GPUD_OF(T, unsigned short, ushort, 4) GPUD_OF(T, int, int, 5) \\\n"
    "    GPUD_OF(T, unsigned int, uint, 6) GPUD_OF(T, long, long, 7) \\\n"
    "    GPUD_OF(T, unsigned long, ulong, 8) GPUD_F16(T) GPUD_OF(T, float, float, 10) \\\n"
    "    GPUD_F64(T) GPUD_ATOMIC(T) 0)\n";
/* For a compiler without the builtin: sizes only. */
static const char no_codes[] = "#define GPUD_CODE(T) 0\n";

_Static_assert(DTYPE_I8 == 1 && DTYPE_U64 == 8 && DTYPE_F16 == 9 && DTYPE_F64 == 11, "codes");

/* ---- names ----------------------------------------------------------------------------------- */

/* Reduces "DATA_TYPE*" to its name without the pointer. */
static void pointee_name(const char *type, char *out, size_t size)
{
    size_t length = strcspn(type, "*");
    bool one = type[length] == '*' && strchr(type + length + 1, '*') == NULL;
    while (length > 0 && type[length - 1] == ' ') {
        length--;
    }
    (void)snprintf(out, size, "%.*s", one ? (int)length : 0, type);
}

/* Is it the whole name of a type, which can be written into a source? The name of an anonymous
 * type is a description, with other characters. */
static bool name_fits(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || isdigit((unsigned char)name[0])) {
        return false;
    }
    for (const char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != ' ') {
            return false;
        }
    }
    return true;
}

/* The name of an argument's type if the type is unknown; "": it is known. */
static void missing_name(const struct backend_compiled_arg *arg, char *out, size_t size)
{
    out[0] = '\0';
    if (strlen(arg->type) >= sizeof arg->type - 1) {
        return; /* the name may have been truncated */
    }
    if (arg->kind == BACKEND_KIND_STRUCT && arg->bytes == 0) {
        (void)snprintf(out, size, "%s", arg->type);
    } else if (arg->kind == BACKEND_KIND_ARRAY && arg->dtype == DTYPE_NONE &&
               strncmp(arg->type, "struct ", 7) != 0 && strncmp(arg->type, "union ", 6) != 0) {
        pointee_name(arg->type, out, size);
    }
    if (!name_fits(out) || strcmp(out, "void") == 0) {
        out[0] = '\0';
    }
}

static struct type *type_find(struct types *t, const char *name)
{
    for (unsigned i = 0; i < t->count; i++) {
        if (strcmp(t->type[i].name, name) == 0) {
            return &t->type[i];
        }
    }
    return NULL;
}

static void types_collect(struct types *t, const struct backend_compiled *compiled)
{
    char name[sizeof t->type[0].name];
    for (unsigned k = 0; k < compiled->kernel_count; k++) {
        const struct backend_compiled_kernel *kernel = &compiled->kernels[k];
        for (unsigned a = 0; a < kernel->arg_count; a++) {
            missing_name(&kernel->arg[a], name, sizeof name);
            if (name[0] != '\0' && t->count < TYPES_MAX && type_find(t, name) == NULL) {
                memcpy(t->type[t->count++].name, name, sizeof name);
            }
        }
    }
}

/* ---- asking the compiler --------------------------------------------------------------------- */

/* Writes a probe kernel for each type. #undef removes a macro of the type's name that the source
 * defines after its kernels, and that does not mean the type. */
static bool probes_write(const struct types *t, const char *how, struct capbuf *out)
{
    bool ok = capbuf_printf(out, "\n\n%s", how); /* the source may end within a line */
    for (unsigned i = 0; i < t->count; i++) {
        const char *name = t->type[i].name;
        const char *last = strrchr(name, ' ');
        ok = ok && capbuf_printf(out,
                                 "#undef %s\n__kernel __attribute__((reqd_work_group_size("
                                 "sizeof(%s), 1 + GPUD_CODE(%s), 1))) void " PROBE "%u(void) {}\n",
                                 last != NULL ? last + 1 : name, name, name, i);
    }
    return ok;
}

static cl_program probes_build(const struct opencl_api *cl, cl_context context, cl_device_id device,
                               const struct opencl_text *text, struct bytes probes)
{
    cl_int status = CL_SUCCESS;
    const char *strings[] = {text->head, (const char *)text->source.data,
                             (const char *)probes.data};
    const size_t sizes[] = {strlen(text->head), text->source.size, probes.size};
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

static void probe_read(const struct opencl_api *cl, cl_program program, cl_device_id device,
                       unsigned index, struct type *ret_type)
{
    char name[sizeof PROBE + 16];
    size_t local[3] = {0};
    cl_int status = CL_SUCCESS;
    (void)snprintf(name, sizeof name, PROBE "%u", index);
    cl_kernel kernel = cl->CreateKernel(program, name, &status);
    if (status != CL_SUCCESS) {
        return;
    }
    status = cl->GetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                        sizeof local, local, NULL);
    cl->ReleaseKernel(kernel);
    if (status == CL_SUCCESS && local[0] <= UINT32_MAX && local[1] >= 1 && local[1] <= UINT8_MAX) {
        ret_type->bytes = (uint32_t)local[0];
        ret_type->code = (uint32_t)local[1] - 1;
    }
}

/* Returns false if the source does not compile with the probes. */
static bool types_ask(const struct opencl_api *cl, cl_context context, cl_device_id device,
                      const struct opencl_text *text, const char *how, struct types *t)
{
    struct capbuf probes;
    cl_program program = NULL;
    capbuf_init(&probes, TEXT_MAX);
    if (probes_write(t, how, &probes)) {
        program = probes_build(cl, context, device, text, capbuf_view(&probes));
    }
    capbuf_finish(&probes);
    if (!program) {
        return false;
    }
    for (unsigned i = 0; i < t->count; i++) {
        probe_read(cl, program, device, i, &t->type[i]);
    }
    cl->ReleaseProgram(program);
    return true;
}

/* ---- what is learned ------------------------------------------------------------------------- */

static void type_apply(const struct type *t, struct backend_compiled_arg *arg)
{
    int dtype = (int)(t->code % CODE_DTYPE);
    if (dtype_size(dtype) == 0) {
        dtype = DTYPE_NONE;
    }
    if (arg->kind == BACKEND_KIND_ARRAY) {
        arg->dtype = dtype;
        return;
    }
    arg->bytes = t->bytes;
    if (dtype != DTYPE_NONE && t->code < CODE_DTYPE) {
        arg->kind = BACKEND_KIND_SCALAR;
        arg->dtype = dtype;
    }
}

void opencl_types_learn(const struct opencl_api *cl, cl_context context, cl_device_id device,
                        const struct opencl_text *text, struct backend_compiled *compiled)
{
    char name[sizeof((struct type *)NULL)->name];
    struct types *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return;
    }
    types_collect(t, compiled);
    bool known = t->count > 0 && (types_ask(cl, context, device, text, codes, t) ||
                                  types_ask(cl, context, device, text, no_codes, t));
    for (unsigned k = 0; known && k < compiled->kernel_count; k++) {
        struct backend_compiled_kernel *kernel = &compiled->kernels[k];
        for (unsigned a = 0; a < kernel->arg_count; a++) {
            missing_name(&kernel->arg[a], name, sizeof name);
            const struct type *found = name[0] != '\0' ? type_find(t, name) : NULL;
            if (found != NULL) {
                type_apply(found, &kernel->arg[a]);
            }
        }
    }
    free(t);
}
