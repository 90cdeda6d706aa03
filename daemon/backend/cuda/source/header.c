#include "daemon/backend/cuda/source/header.h"

#include <stdio.h>
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
    "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"
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

/* Of other headers of the C library, which the runtime's include, what sources ask for. */
static const char features_text[] =
    "#ifndef GPUD_FEATURES_H\n#define GPUD_FEATURES_H\n"
    "#define __GNUC_PREREQ(major, minor) (((major) << 16) + (minor) <= (12 << 16) + 2)\n"
    "#define __GLIBC__ 2\n#define __GLIBC_MINOR__ 36\n"
    "#define __GLIBC_PREREQ(major, minor) (((major) << 16) + (minor) <= (2 << 16) + 36)\n"
    "#define LITTLE_ENDIAN 1234\n#define BIG_ENDIAN 4321\n#define BYTE_ORDER 1234\n"
    "#define EXIT_SUCCESS 0\n#define EXIT_FAILURE 1\n#define RAND_MAX 2147483647\n"
    "#define EOF (-1)\n#define BUFSIZ 8192\n#define FILENAME_MAX 4096\n#define PATH_MAX 4096\n"
    "#define NAME_MAX 255\n#define SSIZE_MAX 9223372036854775807L\n"
    "#define SEEK_SET 0\n#define SEEK_CUR 1\n#define SEEK_END 2\n"
    "#define CLOCKS_PER_SEC 1000000L\n" /* and what the library's random numbers can be read from */
    "namespace std { template <class C, class T> class basic_istream;\n"
    "template <class C, class T> class basic_ostream; }\n"
    "#endif\n";

/* What kernels take of the driver's header: a tensor map is opaque to them. */
static const char cuda_text[] =
    "#ifndef GPUD_CUDA_H\n#define GPUD_CUDA_H\n" /* sources choose by its version */
    "#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)\n"
    "typedef unsigned long long CUdeviceptr;\n"
    "typedef unsigned long long CUtexObject;\ntypedef unsigned long long CUsurfObject;\n"
    "typedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } CUtensorMap;\n"
    "#endif\n";

/* Of the host's libraries: types that kernels have arguments of. */
static const char cufft_text[] =
    "#ifndef GPUD_CUFFT_H\n#define GPUD_CUFFT_H\n"
    "typedef float cufftReal;\ntypedef double cufftDoubleReal;\n"
    "typedef float2 cufftComplex;\ntypedef double2 cufftDoubleComplex;\n"
    "#endif\n";
/* These bring the types of halves and of complex numbers with them. */
static const char blas_text[] =
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuComplex.h>\n";
static const char types_text[] = "#ifndef GPUD_TYPES_H\n#define GPUD_TYPES_H\n"
                                 "typedef unsigned char u_char;\ntypedef unsigned short ushort;\n"
                                 "typedef unsigned int uint;\ntypedef unsigned long ulong;\n"
                                 "#endif\n";

/* Of the host's headers the names that declarations outside of functions have: spaces, and types
 * that nothing is made of. */
static const char chrono_text[] = "namespace std { namespace chrono { } "
                                  "inline namespace literals { inline namespace chrono_literals { "
                                  "} } }\n";
static const char functional_text[] = "namespace std { namespace placeholders { } }\n";
static const char filesystem_text[] = "namespace std { namespace filesystem { } }\n";
static const char thread_text[] = "namespace std { namespace this_thread { } }\n";
static const char complex_text[] = "namespace std { template <class T> class complex; }\n";
static const char stdio_text[] = "#ifndef GPUD_STDIO_H\n#define GPUD_STDIO_H\n"
                                 "typedef struct gpud_file FILE;\n#endif\n";
static const char stream_text[] =
    "namespace std { class istream; class ostream; class ifstream; class ofstream;\n"
    "class stringstream; class ostringstream; class istringstream; }\n";

/* Of what only hosts can call the name of its space. */
static const char thrust_text[] = "namespace thrust { }\n";

static const char none[] = "\n";

/* Of the C++ library what the toolkit has for devices, under the names that hosts know. */
static const char toolkit_numeric[] = "#pragma once\n#include <cuda/std/limits>\nnamespace std { "
                                      "using cuda::std::numeric_limits; }\n";
static const char toolkit_traits[] = "#pragma once\n#include <cuda/std/type_traits>\n"
                                     "namespace std { using namespace cuda::std; }\n";
static const char toolkit_utility[] = "#pragma once\n#include <cuda/std/utility>\n"
                                      "namespace std { using namespace cuda::std; }\n";
static const char toolkit_array[] = "#pragma once\n#include <cuda/std/array>\n"
                                    "namespace std { using namespace cuda::std; }\n";
/* Where the toolkit's headers are installed, its own definitions: others would clash with them. */
static const char toolkit_stdint[] =
    "#pragma once\n#include <cuda/std/cstdint>\nnamespace std {\n"
    "using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;\n"
    "using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t; }\n";
/* It makes a long's limits long longs. */
static const char toolkit_limits[] =
    "#ifndef GPUD_LIMITS_H\n#define GPUD_LIMITS_H\n#include <cuda/std/climits>\n"
    "#undef __CHAR_UNSIGNED__\n#undef SCHAR_MIN\n#undef CHAR_MIN\n#undef CHAR_MAX\n#undef "
    "SHRT_MIN\n#undef SHRT_MAX\n"
    "#undef USHRT_MAX\n#undef INT_MIN\n#undef INT_MAX\n#undef UINT_MAX\n#undef LONG_MIN\n"
    "#undef LONG_MAX\n#undef ULONG_MAX\n#undef LLONG_MIN\n#undef LLONG_MAX\n"
    "#undef ULLONG_MAX\n" LIMITS;

/* All of CUB that is made for kernels; the rest of it is for hosts and does not compile here. */
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

/* LIBRARY: always given; RUNTIME: only where the toolkit's headers are not installed; TOOLKIT: only
 * where they are. */
enum origin { LIBRARY, RUNTIME, TOOLKIT };

/* The C library's where device code finds what it needs in the compiler itself, and the runtime's,
 * whose types and built-in variables NVRTC knows. */
static const struct {
    const char *name;
    const char *text;
    enum origin origin;
} headers[] = {
    {"stdint.h", stdint_text, RUNTIME},
    {"inttypes.h", stdint_text, RUNTIME},
    {"cstdint", stdint_text, RUNTIME},
    {"limits.h", limits_text, RUNTIME},
    {"climits", limits_text, RUNTIME},
    {"stdint.h", toolkit_stdint, TOOLKIT},
    {"inttypes.h", toolkit_stdint, TOOLKIT},
    {"cstdint", toolkit_stdint, TOOLKIT},
    {"limits.h", toolkit_limits, TOOLKIT},
    {"climits", toolkit_limits, TOOLKIT},
    {"cub/cub.cuh", cub_text, TOOLKIT},
    {"limits", toolkit_numeric, TOOLKIT},
    {"type_traits", toolkit_traits, TOOLKIT},
    {"utility", toolkit_utility, TOOLKIT},
    {"array", toolkit_array, TOOLKIT},
    {"utility", none, RUNTIME},
    {"array", none, RUNTIME},
    {"iostream", stream_text, LIBRARY},
    {"fstream", stream_text, LIBRARY},
    {"sstream", stream_text, LIBRARY},
    {"ostream", stream_text, LIBRARY},
    {"istream", stream_text, LIBRARY},
    {"iomanip", stream_text, LIBRARY},
    {"functional", functional_text, LIBRARY},
    {"chrono", chrono_text, LIBRARY},
    {"filesystem", filesystem_text, LIBRARY},
    {"thread", thread_text, LIBRARY},
    {"complex", complex_text, LIBRARY},
    {"features.h", features_text, LIBRARY},
    {"float.h", float_text, LIBRARY},
    {"cfloat", float_text, LIBRARY},
    {"math.h", math_text, LIBRARY},
    {"cmath", math_text, LIBRARY},
    {"stddef.h", stddef_text, LIBRARY},
    {"cstddef", stddef_text, LIBRARY},
    {"stdio.h", stdio_text, LIBRARY},
    {"cstdio", stdio_text, LIBRARY},
    {"stdlib.h", none, LIBRARY},
    {"cstdlib", none, LIBRARY},
    {"string.h", none, LIBRARY},
    {"cstring", none, LIBRARY},
    {"assert.h", none, LIBRARY},
    {"cassert", none, LIBRARY},
    {"stdbool.h", none, LIBRARY},
    {"sys/types.h", types_text, LIBRARY},
    {"cufft.h", cufft_text, LIBRARY},
    {"cufftXt.h", cufft_text, LIBRARY},
    {"cublas.h", blas_text, TOOLKIT},
    {"cublas.h", none, RUNTIME},
    {"cublas_v2.h", blas_text, TOOLKIT},
    {"cublas_v2.h", none, RUNTIME},
    {"cublasLt.h", blas_text, TOOLKIT},
    {"cublasLt.h", none, RUNTIME},
    {"cublasXt.h", blas_text, TOOLKIT},
    {"cublasXt.h", none, RUNTIME},
    {"cusolverDn.h", blas_text, TOOLKIT},
    {"cusolverDn.h", none, RUNTIME},
    {"cusolverMg.h", blas_text, TOOLKIT},
    {"cusolverMg.h", none, RUNTIME},
    {"cusolverRf.h", blas_text, TOOLKIT},
    {"cusolverRf.h", none, RUNTIME},
    {"cusolverSp.h", blas_text, TOOLKIT},
    {"cusolverSp.h", none, RUNTIME},
    {"cusolver_common.h", blas_text, TOOLKIT},
    {"cusolver_common.h", none, RUNTIME},
    {"cusparse.h", blas_text, TOOLKIT},
    {"cusparse.h", none, RUNTIME},
    {"cusparse_v2.h", blas_text, TOOLKIT},
    {"cusparse_v2.h", none, RUNTIME},
    {"cuda.h", cuda_text, LIBRARY}, /* the toolkit's declares host functions */
    {"cuda_runtime.h", none, RUNTIME},
    {"cuda_runtime_api.h", none, RUNTIME},
    {"device_launch_parameters.h", none, RUNTIME},
    {"device_functions.h", none, RUNTIME},
    {"device_atomic_functions.h", none, RUNTIME},
    {"math_functions.h", none, RUNTIME},
    {"vector_types.h", none, RUNTIME},
    {"vector_functions.h", none, RUNTIME},
    {"builtin_types.h", none, RUNTIME},
};

/* Of hosts: files of kernels include them for the part that is left out. What device code takes of
 * them all the same is not there, and the compiler says so. */
static const char *const empty[] = {
    "algorithm",
    "random",
    "vector",
    "string",
    "map",
    "memory",
    "numeric",
    "set",
    "memory.h",
    "malloc.h",
    "ctype.h",
    "errno.h",
    "time.h",
    "ctime",
    "signal.h",
    "strings.h",
    "getopt.h",
    "unistd.h",
    "fcntl.h",
    "sys/time.h",
    "sys/stat.h",
    "omp.h",
    "atomic",
    "any",
    "bitset",
    "condition_variable",
    "cctype",
    "cerrno",
    "cfenv",
    "cinttypes",
    "csignal",
    "cstdarg",
    "cwchar",
    "deque",
    "exception",
    "execution",
    "forward_list",
    "future",
    "initializer_list",
    "ios",
    "iterator",
    "list",
    "locale",
    "mutex",
    "new",
    "optional",
    "queue",
    "ratio",
    "regex",
    "stack",
    "stdexcept",
    "streambuf",
    "string_view",
    "system_error",
    "tuple",
    "typeinfo",
    "typeindex",
    "unordered_map",
    "unordered_set",
    "valarray",
    "variant",
    "shared_mutex",
    "stdarg.h",
    "complex.h",
    "dirent.h",
    "error.h",
    "err.h",
    "fenv.h",
    "libgen.h",
    "locale.h",
    "pthread.h",
    "sched.h",
    "semaphore.h",
    "setjmp.h",
    "sys/ioctl.h",
    "sys/mman.h",
    "sys/resource.h",
    "sys/socket.h",
    "sys/sysinfo.h",
    "sys/timeb.h",
    "sys/times.h",
    "sys/un.h",
    "sys/wait.h",
    "wchar.h",
    "values.h",
    "x86intrin.h",
    "immintrin.h",
    "mpi.h",
    "cuda_profiler_api.h",
    "cudaProfiler.h",
    "nvToolsExt.h",
    "nvtx3/nvToolsExt.h",
    "cuda_gl_interop.h",
    "nccl.h",
    "nvml.h",
    "cuda_occupancy.h",
    "alloca.h",
    "arpa/inet.h",
    "cpuid.h",
    "dlfcn.h",
    "execinfo.h",
    "ftw.h",
    "glob.h",
    "iso646.h",
    "langinfo.h",
    "netdb.h",
    "netinet/in.h",
    "netinet/tcp.h",
    "numa.h",
    "numaif.h",
    "paths.h",
    "poll.h",
    "pwd.h",
    "regex.h",
    "search.h",
    "spawn.h",
    "sysexits.h",
    "syslog.h",
    "termios.h",
    "uchar.h",
    "ucontext.h",
    "wctype.h",
    "sys/epoll.h",
    "sys/ipc.h",
    "sys/prctl.h",
    "sys/select.h",
    "sys/shm.h",
    "sys/statvfs.h",
    "sys/syscall.h",
    "sys/uio.h",
    "sys/utsname.h",
    "codecvt",
    "cwctype",
    "memory_resource",
    "scoped_allocator",
    "emmintrin.h",
    "xmmintrin.h",
    "pmmintrin.h",
    "tmmintrin.h",
    "smmintrin.h",
    "nmmintrin.h",
    "cudnn.h",
    "cufftw.h",
    "cupti.h",
    "cupti_activity.h",
    "cupti_callbacks.h",
    "cupti_profiler_target.h",
    "cupti_result.h",
    "cupti_target.h",
    "nvperf_cuda_host.h",
    "nvperf_host.h",
    "nvperf_target.h",
    "npp.h",
    "nppi.h",
    "nvblas.h",
    "nvjpeg.h",
    "nvrtc.h",
    "nvToolsExtCuda.h",
    "nvToolsExtCudaRt.h",
    "nvtx3/nvtx3.hpp",
    "nvtx3/nvToolsExtCuda.h",
    "nvtx3/nvToolsExtCudaRt.h",
    "GL/freeglut.h",
    "GL/gl.h",
    "GL/glew.h",
    "GL/glext.h",
    "GL/glu.h",
    "GL/glut.h",
    "GL/glx.h",
    "EGL/egl.h",
    "EGL/eglext.h",
    "GLES2/gl2.h",
    "GLES2/gl2ext.h",
    "GLES3/gl3.h",
    "GLES3/gl31.h",
    "GLES3/gl32.h",
    "GLFW/glfw3.h",
    "X11/Xlib.h",
    "X11/Xutil.h",
};

/* Algorithms and containers that hosts run on devices; no kernel can, and NVRTC does not read them.
 */
static const char *const thrust[] = {
    "thrust/adjacent_difference.h",
    "thrust/binary_search.h",
    "thrust/copy.h",
    "thrust/count.h",
    "thrust/device_allocator.h",
    "thrust/device_delete.h",
    "thrust/device_free.h",
    "thrust/device_malloc.h",
    "thrust/device_new.h",
    "thrust/device_ptr.h",
    "thrust/equal.h",
    "thrust/execution_policy.h",
    "thrust/extrema.h",
    "thrust/fill.h",
    "thrust/find.h",
    "thrust/for_each.h",
    "thrust/gather.h",
    "thrust/generate.h",
    "thrust/inner_product.h",
    "thrust/logical.h",
    "thrust/merge.h",
    "thrust/partition.h",
    "thrust/reduce.h",
    "thrust/remove.h",
    "thrust/replace.h",
    "thrust/reverse.h",
    "thrust/scan.h",
    "thrust/scatter.h",
    "thrust/sequence.h",
    "thrust/set_operations.h",
    "thrust/shuffle.h",
    "thrust/sort.h",
    "thrust/tabulate.h",
    "thrust/transform.h",
    "thrust/transform_reduce.h",
    "thrust/transform_scan.h",
    "thrust/unique.h",
    "thrust/universal_vector.h",
    "thrust/host_vector.h",
    "thrust/device_vector.h",
    "thrust/system_error.h",
};

/* Beginnings of names of the toolkit's headers, with whom no user's file is likely to be mixed up.
 * If one is, the compiler does not find it: it looks in the toolkit's folder only. */
static const char *const toolkit_names[] = {
    "cuda/", "cub/",  "thrust/", "cooperative_groups", "nv/",      "crt/",        "cuda_", "curand",
    "mma.h", "math_", "sm_",     "texture_",           "surface_", "cuComplex.h",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

bool header_known(struct bytes name)
{
    for (size_t i = 0; i < COUNT(headers); i++) {
        if (bytes_equal_str(name, headers[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(empty); i++) {
        if (bytes_equal_str(name, empty[i])) {
            return true;
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

_Static_assert(COUNT(headers) + COUNT(empty) + COUNT(thrust) <= HEADERS_MAX,
               "room for all headers");

bool header_implied(struct bytes name)
{
    static const char *const texts[] = {limits_text, math_text, features_text};
    char wanted[48];
    int size = snprintf(wanted, sizeof wanted, "#define %.*s", (int)name.size, name.data);
    for (size_t i = 0; size < (int)sizeof wanted && i < COUNT(texts); i++) {
        const char *found = strstr(texts[i], wanted);
        for (; found != NULL; found = strstr(found + size, wanted)) {
            if (found[size] == ' ' || found[size] == '(') {
                return true;
            }
        }
    }
    return false;
}

unsigned headers_given(bool toolkit, const char *ret_name[HEADERS_MAX],
                       const char *ret_text[HEADERS_MAX])
{
    unsigned count = 0;
    for (size_t i = 0; i < COUNT(headers); i++) {
        if (headers[i].origin == LIBRARY || toolkit == (headers[i].origin == TOOLKIT)) {
            ret_name[count] = headers[i].name;
            ret_text[count++] = headers[i].text;
        }
    }
    for (size_t i = 0; i < COUNT(empty); i++) {
        ret_name[count] = empty[i];
        ret_text[count++] = none;
    }
    for (size_t i = 0; i < COUNT(thrust); i++) {
        ret_name[count] = thrust[i];
        ret_text[count++] = thrust_text;
    }
    return count;
}
