// What 64-bit atomics do: a sum, the greatest, and a sum of doubles by compare and swap.
#include <cstdint>

__device__ double add_by_cas(double *address, double val)
{
    unsigned long long int *as_ull = (unsigned long long int *)address;
    unsigned long long int old = *as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void atomics64(const uint64_t *in, unsigned long long *sum, unsigned long long *most,
                          double *counted, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(sum, in[i]);
        atomicMax(most, in[i]);
        if (i % 64 == 0)
            add_by_cas(counted, 0.5);
    }
}
