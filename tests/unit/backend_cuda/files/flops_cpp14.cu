// kernels: flops
// options: -std=c++14
// Words that C++17 has no more, in a program.
#include <cuda_runtime.h>
__global__ void flops(float *out, int rounds, uint32_t seed)
{
    register float a = out[0], b = float(seed & UINT_MAX);
    for (int i = 0; i < rounds; i++) {
        a = a * b + a;
    }
    out[0] = a;
}
int main()
{
    flops<<<1, 1>>>(nullptr, 10, 1);
}
