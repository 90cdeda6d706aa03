#include "daemon/backend/cuda/source/header.h"

#include <string.h>

static const char stdint_text[] =
    "#ifndef GPUD_STDINT_H\n#define GPUD_STDINT_H\n"
    "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\n"
    "typedef short int16_t;\ntypedef unsigned short uint16_t;\n"
    "typedef int int32_t;\ntypedef unsigned int uint32_t;\n"
    "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n"
    "typedef long long intptr_t;\ntypedef unsigned long long uintptr_t;\n"
    "#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define UINT8_MAX 255\n"
    "#define INT16_MIN (-32768)\n#define INT16_MAX 32767\n#define UINT16_MAX 65535\n"
    "#define INT32_MIN (-2147483647-1)\n#define INT32_MAX 2147483647\n"
    "#define UINT32_MAX 4294967295U\n"
    "#define INT64_MIN (-9223372036854775807LL-1)\n#define INT64_MAX 9223372036854775807LL\n"
    "#define UINT64_MAX 18446744073709551615ULL\n"
    "typedef long long intmax_t;\ntypedef unsigned long long uintmax_t;\n"
    "#define INTMAX_MIN INT64_MIN\n#define INTMAX_MAX INT64_MAX\n#define UINTMAX_MAX UINT64_MAX\n"
    "#define INTPTR_MIN INT64_MIN\n#define INTPTR_MAX INT64_MAX\n#define UINTPTR_MAX UINT64_MAX\n"
    "#define PTRDIFF_MIN INT64_MIN\n#define PTRDIFF_MAX INT64_MAX\n#define SIZE_MAX UINT64_MAX\n"
    "namespace std {\n"
    "using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;\n"
    "using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t; }\n"
    "#endif\n";

#define LIMITS                                                                                     \
    "#define SCHAR_MIN (-128)\n#define CHAR_MIN SCHAR_MIN\n#define CHAR_MAX SCHAR_MAX\n"           \
    "#define SHRT_MIN (-32768)\n#define SHRT_MAX 32767\n#define USHRT_MAX 65535\n"                 \
    "#define INT_MIN (-2147483647-1)\n#define INT_MAX 2147483647\n#define UINT_MAX 4294967295U\n"  \
    "#define LONG_MIN (-9223372036854775807L-1)\n#define LONG_MAX 9223372036854775807L\n"          \
    "#define ULONG_MAX 18446744073709551615UL\n"                                                   \
    "#define LLONG_MIN (-9223372036854775807LL-1)\n#define LLONG_MAX 9223372036854775807LL\n"      \
    "#define ULLONG_MAX 18446744073709551615ULL\n#endif\n"

static const char limits_text[] =
    "#ifndef GPUD_LIMITS_H\n#define GPUD_LIMITS_H\n"
    "#define CHAR_BIT 8\n#define SCHAR_MAX 127\n#define UCHAR_MAX 255\n" LIMITS;

static const char float_text[] =
    "#ifndef GPUD_FLOAT_H\n#define GPUD_FLOAT_H\n"
    "#define FLT_RADIX 2\n#define FLT_MANT_DIG 24\n#define FLT_DIG 6\n"
    "#define FLT_MIN_EXP (-125)\n#define FLT_MAX_EXP 128\n"
    "#define FLT_EPSILON 1.1920928955078125e-7F\n#define FLT_MIN 1.17549435082228751e-38F\n"
    "#define FLT_MAX 3.40282346638528860e+38F\n"
    "#define DBL_MANT_DIG 53\n#define DBL_DIG 15\n"
    "#define DBL_MIN_EXP (-1021)\n#define DBL_MAX_EXP 1024\n"
    "#define DBL_EPSILON 2.2204460492503131e-16\n#define DBL_MIN 2.2250738585072014e-308\n"
    "#define DBL_MAX 1.7976931348623157e+308\n"
    "#endif\n";

static const char math_text[] =
    "#ifndef GPUD_MATH_H\n#define GPUD_MATH_H\n"
    "#define M_E 2.7182818284590452354\n#define M_LOG2E 1.4426950408889634074\n"
    "#define M_LOG10E 0.43429448190325182765\n#define M_LN2 0.69314718055994530942\n"
    "#define M_LN10 2.30258509299404568402\n#define M_PI 3.14159265358979323846\n"
    "#define M_PI_2 1.57079632679489661923\n#define M_PI_4 0.78539816339744830962\n"
    "#define M_1_PI 0.31830988618379067154\n#define M_2_PI 0.63661977236758134308\n"
    "#define M_2_SQRTPI 1.12837916709551257390\n#define M_SQRT2 1.41421356237309504880\n"
    "#define M_SQRT1_2 0.70710678118654752440\n"
    "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"
    "#ifndef NAN\n#define NAN __int_as_float(0x7fc00000)\n#endif\n"
    "#define MAXFLOAT 3.40282347e+38F\n"
    "#ifndef HUGE_VALF\n#define HUGE_VALF INFINITY\n#endif\n"
    "#ifndef HUGE_VAL\n#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ULL)\n#endif\n"
    "namespace std { using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2;\n"
    "using ::ceil; using ::cos; using ::cosh; using ::exp; using ::fabs; using ::floor;\n"
    "using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot; using ::log;\n"
    "using ::log10; using ::log2; using ::pow; using ::round; using ::sin; using ::sinh;\n"
    "using ::sqrt; using ::tan; using ::tanh; using ::trunc; using ::isnan; using ::isinf; }\n"
    "#endif\n";

static const char stddef_text[] = "#ifndef GPUD_STDDEF_H\n#define GPUD_STDDEF_H\n"
                                  "#ifndef NULL\n#define NULL 0\n#endif\n"
                                  "typedef long int ptrdiff_t;\n"
                                  "namespace std { using ::size_t; using ::ptrdiff_t; }\n"
                                  "#endif\n";

static const char none[] = "\n";

/* For hosts with the toolkit's headers: leads to the toolkit's definitions, which others would
 * clash with. */
static const char toolkit_stdint[] =
    "#pragma once\n#include <cuda/std/cstdint>\nnamespace std {\n"
    "using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;\n"
    "using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t; }\n";
/* The toolkit makes the limits of long those of long long, so they are defined anew. */
static const char toolkit_limits[] =
    "#ifndef GPUD_LIMITS_H\n#define GPUD_LIMITS_H\n#include <cuda/std/climits>\n"
    "#undef __CHAR_UNSIGNED__\n#undef SCHAR_MIN\n#undef CHAR_MIN\n#undef CHAR_MAX\n#undef "
    "SHRT_MIN\n#undef SHRT_MAX\n"
    "#undef USHRT_MAX\n#undef INT_MIN\n#undef INT_MAX\n#undef UINT_MAX\n#undef LONG_MIN\n"
    "#undef LONG_MAX\n#undef ULONG_MAX\n#undef LLONG_MIN\n#undef LLONG_MAX\n"
    "#undef ULLONG_MAX\n" LIMITS;

/* All parts of CUB for kernels. The rest of CUB is for hosts and does not compile here. */
static const char cub_text[] = "#ifndef GPUD_CUB_H\n#define GPUD_CUB_H\n"
                               "#include <cub/block/block_adjacent_difference.cuh>\n"
                               "#include <cub/block/block_discontinuity.cuh>\n"
                               "#include <cub/block/block_exchange.cuh>\n"
                               "#include <cub/block/block_histogram.cuh>\n"
                               "#include <cub/block/block_load.cuh>\n"
                               "#include <cub/block/block_merge_sort.cuh>\n"
                               "#include <cub/block/block_radix_sort.cuh>\n"
                               "#include <cub/block/block_reduce.cuh>\n"
                               "#include <cub/block/block_run_length_decode.cuh>\n"
                               "#include <cub/block/block_scan.cuh>\n"
                               "#include <cub/block/block_shuffle.cuh>\n"
                               "#include <cub/block/block_store.cuh>\n"
                               "#include <cub/warp/warp_exchange.cuh>\n"
                               "#include <cub/warp/warp_load.cuh>\n"
                               "#include <cub/warp/warp_merge_sort.cuh>\n"
                               "#include <cub/warp/warp_reduce.cuh>\n"
                               "#include <cub/warp/warp_scan.cuh>\n"
                               "#include <cub/warp/warp_store.cuh>\n"
                               "#endif\n";

/* LIBRARY: always given to the compiler; RUNTIME: only if the toolkit's headers are not
 * installed; TOOLKIT: only if they are. */
enum origin { LIBRARY, RUNTIME, TOOLKIT };

/* Headers of the C library, for which the compiler itself has what device code needs, and of the
 * runtime, whose types and built-in variables NVRTC knows. Each name ends with a NUL. */
static const struct {
    const char *names;
    const char *text;
    enum origin origin;
} headers[] = {
    {"stdint.h\0inttypes.h\0cstdint\0", stdint_text, RUNTIME},
    {"limits.h\0climits\0", limits_text, RUNTIME},
    {"stdint.h\0inttypes.h\0cstdint\0", toolkit_stdint, TOOLKIT},
    {"limits.h\0climits\0", toolkit_limits, TOOLKIT},
    {"cub/cub.cuh\0", cub_text, TOOLKIT},
    {"cuda_runtime.h\0cuda_runtime_api.h\0device_launch_parameters.h\0device_functions.h\0"
     "device_atomic_functions.h\0math_functions.h\0vector_types.h\0vector_functions.h\0"
     "builtin_types.h\0",
     none, RUNTIME},
    {"stdio.h\0cstdio\0assert.h\0cassert\0stdbool.h\0", none, LIBRARY},
    {"float.h\0cfloat\0", float_text, LIBRARY},
    {"math.h\0cmath\0", math_text, LIBRARY},
    {"stddef.h\0cstddef\0", stddef_text, LIBRARY},
};

/* Beginnings of names of the toolkit's headers, which a user's file is unlikely to have. If a
 * user's file does, the compiler does not find it, because it searches only the toolkit's
 * folder. */
static const char *const toolkit_names[] = {
    "cuda/", "cub/",  "thrust/", "cooperative_groups", "nv/",      "crt/",        "cuda_", "curand",
    "mma.h", "math_", "sm_",     "texture_",           "surface_", "cuComplex.h",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

bool header_known(struct bytes name)
{
    for (size_t i = 0; i < COUNT(headers); i++) {
        for (const char *own = headers[i].names; *own != '\0'; own += strlen(own) + 1) {
            if (bytes_equal_str(name, own)) {
                return true;
            }
        }
    }
    for (size_t i = 0; i < COUNT(toolkit_names); i++) {
        size_t size = strlen(toolkit_names[i]);
        if (name.size >= size && memcmp(name.data, toolkit_names[i], size) == 0) {
            return true;
        }
    }
    return false;
}

unsigned headers_given(bool toolkit, const char *ret_name[HEADERS_MAX],
                       const char *ret_text[HEADERS_MAX])
{
    unsigned count = 0;
    for (size_t i = 0; i < COUNT(headers); i++) {
        bool given = headers[i].origin == LIBRARY || toolkit == (headers[i].origin == TOOLKIT);
        const char *name = headers[i].names;
        for (; given && *name != '\0' && count < HEADERS_MAX; name += strlen(name) + 1) {
            ret_name[count] = name;
            ret_text[count++] = headers[i].text;
        }
    }
    return count;
}
