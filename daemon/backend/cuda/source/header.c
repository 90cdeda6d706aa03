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
 * whose types and built-in variables NVRTC knows. Each name ends with a NUL. */
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
    {"limits\0", toolkit_numeric, TOOLKIT},
    {"type_traits\0", toolkit_traits, TOOLKIT},
    {"utility\0", toolkit_utility, TOOLKIT},
    {"array\0", toolkit_array, TOOLKIT},
    {"utility\0array\0cublas.h\0cublas_v2.h\0cublasLt.h\0cublasXt.h\0cusolverDn.h\0"
     "cusolverMg.h\0cusolverRf.h\0cusolverSp.h\0cusolver_common.h\0cusparse.h\0"
     "cusparse_v2.h\0cuda_runtime.h\0cuda_runtime_api.h\0device_launch_parameters.h\0"
     "device_functions.h\0device_atomic_functions.h\0math_functions.h\0vector_types.h\0"
     "vector_functions.h\0builtin_types.h\0",
     none, RUNTIME},
    {"iostream\0fstream\0sstream\0ostream\0istream\0iomanip\0", stream_text, LIBRARY},
    {"functional\0", functional_text, LIBRARY},
    {"chrono\0", chrono_text, LIBRARY},
    {"filesystem\0", filesystem_text, LIBRARY},
    {"thread\0", thread_text, LIBRARY},
    {"complex\0", complex_text, LIBRARY},
    {"features.h\0", features_text, LIBRARY},
    {"float.h\0cfloat\0", float_text, LIBRARY},
    {"math.h\0cmath\0", math_text, LIBRARY},
    {"stddef.h\0cstddef\0", stddef_text, LIBRARY},
    {"stdio.h\0cstdio\0", stdio_text, LIBRARY},
    /* of hosts: files of kernels include them for the part that is left out; what device code takes
     * of them all the same is not there, and the compiler says so */
    {"x86intrin.h\0stdlib.h\0cstdlib\0string.h\0cstring\0assert.h\0cassert\0stdbool.h\0algorithm\0"
     "random\0vector\0string\0map\0memory\0numeric\0set\0memory.h\0malloc.h\0ctype.h\0"
     "errno.h\0time.h\0ctime\0signal.h\0strings.h\0getopt.h\0unistd.h\0fcntl.h\0sys/time.h\0"
     "sys/stat.h\0omp.h\0atomic\0any\0bitset\0condition_variable\0cctype\0cerrno\0cfenv\0"
     "cinttypes\0csignal\0cstdarg\0cwchar\0deque\0exception\0execution\0forward_list\0"
     "future\0initializer_list\0ios\0iterator\0list\0locale\0mutex\0new\0optional\0queue\0"
     "ratio\0regex\0stack\0stdexcept\0streambuf\0string_view\0system_error\0tuple\0"
     "typeinfo\0typeindex\0unordered_map\0unordered_set\0valarray\0variant\0shared_mutex\0"
     "stdarg.h\0complex.h\0dirent.h\0error.h\0err.h\0fenv.h\0libgen.h\0locale.h\0pthread.h\0"
     "sched.h\0semaphore.h\0setjmp.h\0sys/ioctl.h\0sys/mman.h\0sys/resource.h\0"
     "sys/socket.h\0sys/sysinfo.h\0sys/timeb.h\0sys/times.h\0sys/un.h\0sys/wait.h\0wchar.h\0"
     "values.h\0immintrin.h\0mpi.h\0cuda_profiler_api.h\0cudaProfiler.h\0"
     "nvToolsExt.h\0nvtx3/nvToolsExt.h\0cuda_gl_interop.h\0nccl.h\0nvml.h\0"
     "cuda_occupancy.h\0alloca.h\0arpa/inet.h\0cpuid.h\0dlfcn.h\0execinfo.h\0ftw.h\0glob.h\0"
     "iso646.h\0langinfo.h\0netdb.h\0netinet/in.h\0netinet/tcp.h\0numa.h\0numaif.h\0"
     "paths.h\0poll.h\0pwd.h\0regex.h\0search.h\0spawn.h\0sysexits.h\0syslog.h\0termios.h\0"
     "uchar.h\0ucontext.h\0wctype.h\0sys/epoll.h\0sys/ipc.h\0sys/prctl.h\0sys/select.h\0"
     "sys/shm.h\0sys/statvfs.h\0sys/syscall.h\0sys/uio.h\0sys/utsname.h\0codecvt\0cwctype\0"
     "memory_resource\0scoped_allocator\0emmintrin.h\0xmmintrin.h\0pmmintrin.h\0"
     "tmmintrin.h\0smmintrin.h\0nmmintrin.h\0cudnn.h\0cufftw.h\0cupti.h\0cupti_activity.h\0"
     "cupti_callbacks.h\0cupti_profiler_target.h\0cupti_result.h\0cupti_target.h\0"
     "nvperf_cuda_host.h\0nvperf_host.h\0nvperf_target.h\0npp.h\0nppi.h\0nvblas.h\0"
     "nvjpeg.h\0nvrtc.h\0nvToolsExtCuda.h\0nvToolsExtCudaRt.h\0nvtx3/nvtx3.hpp\0"
     "nvtx3/nvToolsExtCuda.h\0nvtx3/nvToolsExtCudaRt.h\0GL/freeglut.h\0GL/gl.h\0GL/glew.h\0"
     "GL/glext.h\0GL/glu.h\0GL/glut.h\0GL/glx.h\0EGL/egl.h\0EGL/eglext.h\0GLES2/gl2.h\0"
     "GLES2/gl2ext.h\0GLES3/gl3.h\0GLES3/gl31.h\0GLES3/gl32.h\0GLFW/glfw3.h\0X11/Xlib.h\0"
     "X11/Xutil.h\0",
     none, LIBRARY},
    {"sys/types.h\0", types_text, LIBRARY},
    {"cufft.h\0cufftXt.h\0", cufft_text, LIBRARY},
    {"cublas.h\0cublas_v2.h\0cublasLt.h\0cublasXt.h\0cusolverDn.h\0cusolverMg.h\0"
     "cusolverRf.h\0cusolverSp.h\0cusolver_common.h\0cusparse.h\0cusparse_v2.h\0",
     blas_text, TOOLKIT},
    /* the toolkit's declares host functions */
    {"cuda.h\0", cuda_text, LIBRARY},
    /* algorithms and containers that hosts run on devices: no kernel can, NVRTC reads none */
    {"thrust/adjacent_difference.h\0thrust/binary_search.h\0thrust/copy.h\0thrust/count.h\0"
     "thrust/device_allocator.h\0thrust/device_delete.h\0thrust/device_free.h\0"
     "thrust/device_malloc.h\0thrust/device_new.h\0thrust/device_ptr.h\0thrust/equal.h\0"
     "thrust/execution_policy.h\0thrust/extrema.h\0thrust/fill.h\0thrust/find.h\0"
     "thrust/for_each.h\0thrust/gather.h\0thrust/generate.h\0thrust/inner_product.h\0"
     "thrust/logical.h\0thrust/merge.h\0thrust/partition.h\0thrust/reduce.h\0"
     "thrust/remove.h\0thrust/replace.h\0thrust/reverse.h\0thrust/scan.h\0thrust/scatter.h\0"
     "thrust/sequence.h\0thrust/set_operations.h\0thrust/shuffle.h\0thrust/sort.h\0"
     "thrust/tabulate.h\0thrust/transform.h\0thrust/transform_reduce.h\0"
     "thrust/transform_scan.h\0thrust/unique.h\0thrust/universal_vector.h\0"
     "thrust/host_vector.h\0thrust/device_vector.h\0thrust/system_error.h\0",
     thrust_text, LIBRARY},
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
        bool given = headers[i].origin == LIBRARY || toolkit == (headers[i].origin == TOOLKIT);
        const char *name = headers[i].names;
        for (; given && *name != '\0' && count < HEADERS_MAX; name += strlen(name) + 1) {
            ret_name[count] = name;
            ret_text[count++] = headers[i].text;
        }
    }
    return count;
}
