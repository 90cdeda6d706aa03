// y = a x + y, with the host's side of it as it usually stands in one file.
#include <cuda_runtime.h>
#ifndef __CUDACC_RTC__ // which has no host's headers
#include <cstdio>
#endif

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t err_ = (call);                                                                 \
        if (err_ != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_));          \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

#ifndef __CUDACC_RTC__
int main()
{
    const int n = 1 << 20;
    float *x, *y;
    CHECK(cudaMallocManaged(&x, n * sizeof(float)));
    CHECK(cudaMallocManaged(&y, n * sizeof(float)));
    for (int i = 0; i < n; i++) {
        x[i] = 1.0f;
        y[i] = 2.0f;
    }
    saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y);
    CHECK(cudaDeviceSynchronize());
    printf("y[0] = %f\n", y[0]);
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return 0;
}
#endif
