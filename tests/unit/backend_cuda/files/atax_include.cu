// refused: polybenchUtilFuncts.h
#include "../../../common/polybenchUtilFuncts.h"
#define NX 4096
__global__ void atax_kernel1(float *A, float *x, float *tmp)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < NX) tmp[i] = A[i] * x[i];
}
