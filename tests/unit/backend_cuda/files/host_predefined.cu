// kernels: by_nvcc by_gnu as_gnu by_order by_word by_pointer by_size
// What the host's compiler defines chooses the device's code, too.
#include <cstdio>

#ifdef __NVCC__
typedef float real;
__global__ void by_nvcc(real *x) { x[0] = (real)1.5; }
#else
typedef float4 real;
#endif

#if defined(__GNUC__) && __GNUC__ >= 5
#define ALIGNED(n) __attribute__((aligned(n)))
__global__ void by_gnu(float *x) { x[0] = 1; }
__global__ void as_gnu(unsigned *x)
{
    __asm__ __volatile__("membar.gl;" ::: "memory");
    x[0] = __builtin_popcount(x[0]) + __builtin_clz(x[1]);
}
#else
#define ALIGNED(n)
#endif

struct ALIGNED(16) three {
    float x, y, z;
};
static_assert(sizeof(struct three) == 16, "as the host has it");

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "not this"
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
__global__ void by_order(unsigned *x) { x[0] = x[1] & 255; }
#endif

#if __BYTE_ORDER != __BIG_ENDIAN && __WORDSIZE == 64 && __LONG_MAX__ > 2147483647L
__global__ void by_word(unsigned *x) { x[0] = x[1] & 65535; }
#endif

#if defined(__x86_64__) && __SIZEOF_POINTER__ == 8 && __SIZEOF_LONG__ == 8
__global__ void by_pointer(three *x) { x[0].x = 1; }
#endif

#if __SIZEOF_INT128__ == 16
__global__ void by_size(unsigned long long *x)
{
    unsigned __int128 wide = x[0];
    x[1] = (unsigned long long)((wide * x[0]) >> 64);
}
#endif

int main()
{
    by_nvcc<<<1, 1>>>(nullptr);
}
