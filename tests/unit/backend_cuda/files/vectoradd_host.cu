// kernels: vectorAdd
#include <stdio.h>
#include <cuda_runtime.h>
__global__ void vectorAdd(const float *A, const float *B, float *C, int numElements)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < numElements) C[i] = A[i] + B[i];
}
int main(void)
{
    float *d_A = NULL;
    cudaMalloc((void **)&d_A, 4096);
    vectorAdd<<<4, 256>>>(d_A, d_A, d_A, 1024);
    return 0;
}
