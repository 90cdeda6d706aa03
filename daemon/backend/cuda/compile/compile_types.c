#include "daemon/backend/cuda/compile/compile_types.h"

#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/source/name.h"

#define PROBE "gpud_signature"

static bool arg_wanted(const struct backend_compiled_arg *arg)
{
    bool array = arg->kind == BACKEND_KIND_ARRAY && arg->dtype == DTYPE_NONE;
    bool number = arg->kind == BACKEND_KIND_STRUCT && arg->bytes <= sizeof(uint64_t);
    return arg->kind == BACKEND_KIND_UNKNOWN || number ||
           (array && strstr(arg->type, "void") == NULL);
}

static bool kernel_wanted(const struct backend_compiled_kernel *k)
{
    bool wanted = false;
    for (unsigned i = 0; i < k->arg_count; i++) {
        wanted = wanted || arg_wanted(&k->arg[i]);
    }
    return wanted && strncmp(k->entry, "_Z", 2) != 0;
}

bool compile_types_wanted(const struct image *image)
{
    bool wanted = false;
    for (unsigned i = 0; i < image->kernel_count; i++) {
        wanted = wanted || kernel_wanted(&image->kernels[i]);
    }
    return wanted;
}

bool compile_types_source(const struct image *image, struct bytes text, struct capbuf *out)
{
    bool ok = capbuf_append(out, text.data, text.size) &&
              capbuf_printf(out, "\ntemplate <int, class F> __global__ void " PROBE "() {}\n");
    for (unsigned i = 0; ok && i < image->kernel_count; i++) {
        if (kernel_wanted(&image->kernels[i])) {
            ok = capbuf_printf(out, "template __global__ void " PROBE "<%u, decltype(::%s)>();\n",
                               i, image->kernels[i].entry);
        }
    }
    return ok;
}

/* Takes a type that the probe has shown. The sizes of the image have precedence, and the type
 * keeps its name from the source. */
static void arg_take(const struct param_type *type, struct backend_compiled_arg *arg)
{
    struct backend_compiled_arg described = {.kind = BACKEND_KIND_UNKNOWN};
    param_describe(type, &described);
    bool array = described.kind == BACKEND_KIND_ARRAY &&
                 (arg->kind == BACKEND_KIND_ARRAY ||
                  (arg->kind == BACKEND_KIND_UNKNOWN && arg->bytes == sizeof(uint64_t)));
    bool value = (described.kind == BACKEND_KIND_SCALAR || described.kind == BACKEND_KIND_STRUCT) &&
                 arg->kind != BACKEND_KIND_ARRAY &&
                 (described.bytes == 0 || described.bytes == arg->bytes);
    if (!array && !value) {
        return;
    }
    arg->kind = described.kind;
    arg->dtype = described.dtype;
    arg->access = described.access;
    arg->bytes = array ? 0 : arg->bytes;
    if (arg->type[0] == '\0') {
        memcpy(arg->type, described.type, sizeof arg->type);
    }
}

void compile_types_take(const struct image *probed, struct image *image)
{
    for (unsigned p = 0; p < probed->kernel_count; p++) {
        struct name_info info;
        if (!name_read(probed->kernels[p].entry, &info) ||
            strncmp(info.name, PROBE "<", sizeof PROBE) != 0) {
            continue;
        }
        unsigned long index = strtoul(info.name + sizeof PROBE, NULL, 10);
        if (index >= image->kernel_count) {
            continue;
        }
        struct backend_compiled_kernel *k = &image->kernels[index];
        for (unsigned i = 0; info.typed && info.param_count == k->arg_count && i < k->arg_count;
             i++) {
            arg_take(&info.param[i], &k->arg[i]);
        }
    }
}
