// kernels: fold<float> fold<int> count
// A function that a macro of the same name calls, a size in a macro, instances that the host names.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

void check(cudaError_t status, const char *file, int line)
{
    if (status != cudaSuccess) {
        printf("%s:%d: %s\n", file, line, cudaGetErrorString(status));
        exit(1);
    }
}
#define check(status) check((status), __FILE__, __LINE__)

#define WORD_BITS (sizeof(unsigned) * 8)

static int bits;

template <class T> __global__ void fold(T *x)
{
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    x[0] = cg::reduce(tile, x[threadIdx.x], cg::plus<T>());
}

__global__ void count(int *x, int bits)
{
    x[0] = bits % WORD_BITS;
}

template <class T> void reduce(T *x)
{
    fold<T><<<1, 32>>>(x);
    check(cudaGetLastError());
}

template void reduce<int>(int *x);
template void reduce<float>(float *x);

int main()
{
    count<<<1, 1>>>(NULL, bits);
    check(cudaDeviceSynchronize());
}
