#include "kernels/dialect_int.h"

/* Preambles have a line for each definition. "#line" follows, so that they do not shift positions
 * in the user's text. */

static const char opencl_preamble[] =
    "typedef char i8;\ntypedef uchar u8;\ntypedef short i16;\ntypedef ushort u16;\n"
    "typedef int i32;\ntypedef uint u32;\ntypedef long i64;\ntypedef ulong u64;\n"
    "typedef float f32;\n"
    "#define helper static inline\n"
    "#define barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)\n";

static const char opencl_f64[] = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                                 "typedef double f64;\n";

static const char cuda_preamble[] =
    "typedef signed char i8;\ntypedef unsigned char u8;\ntypedef short i16;\n"
    "typedef unsigned short u16;\ntypedef int i32;\ntypedef unsigned int u32;\n"
    "typedef long long i64;\ntypedef unsigned long long u64;\ntypedef float f32;\n"
    "#define helper static __device__ inline\n"
    "#define constant static __constant__ const\n"
    "#define local\n"
    "#define barrier() __syncthreads()\n"
    "#define atomic_add(p, v) atomicAdd((p), (v))\n"
    "#define atomic_min(p, v) atomicMin((p), (v))\n"
    "#define atomic_max(p, v) atomicMax((p), (v))\n";

static const char cuda_f64[] = "typedef double f64;\n";

static const char host_preamble[] = "#include \"kernels/host_runtime.h\"\n";

static const struct dialect_lang langs[] = {
    [DIALECT_OPENCL] = {.preamble = opencl_preamble,
                        .preamble_f64 = opencl_f64,
                        .enter = "",
                        .leave = "",
                        .kernel = "__kernel ",
                        .array = "__global ",
                        .local = "__local ",
                        .type = {"void", "char", "uchar", "short", "ushort", "int", "uint", "long",
                                 "ulong", "half", "float", "double"},
                        .infinity = "INFINITY",
                        .lid = "get_local_id(%s)",
                        .gid = "get_group_id(%s)",
                        .group_size = "get_local_size(%s)",
                        .groups = "get_num_groups(%s)"},
    [DIALECT_CUDA] = {.preamble = cuda_preamble,
                      .preamble_f64 = cuda_f64,
                      /* undefined after the text: __global__ is an attribute named `global` */
                      .enter = "\n#define global\n",
                      .leave = "#undef global\n",
                      .kernel = "extern \"C\" __global__ ",
                      .array = "",
                      .local = "__shared__ ",
                      .type = {"void", "signed char", "unsigned char", "short", "unsigned short",
                               "int", "unsigned int", "long long", "unsigned long long", "void",
                               "float", "double"},
                      .infinity = "__int_as_float(0x7f800000)",
                      .lid = "threadIdx.%s",
                      .gid = "blockIdx.%s",
                      .group_size = "blockDim.%s",
                      .groups = "gridDim.%s",
                      .axis_letter = true},
    [DIALECT_HOST] = {.preamble = host_preamble,
                      .preamble_f64 = "",
                      .enter = "",
                      .leave = "",
                      .kernel = "static ",
                      .array = "",
                      .local = "",
                      .type = {"void", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t",
                               "uint32_t", "int64_t", "uint64_t", "void", "float", "double"},
                      .infinity = "__builtin_inff()",
                      .lid = "gk_item->lid[%s]",
                      .gid = "gk_item->gid[%s]",
                      .group_size = "gk_item->group[%s]",
                      .groups = "gk_item->groups[%s]"},
};

const struct dialect_lang *dialect_lang(enum dialect_target target)
{
    return &langs[target];
}
