// kernels: likelihood_kernel
#include <math.h>
#define PI 3.1415926535897932
__constant__ int A = 1103515245;
__device__ __managed__ int unused_counter;
__device__ float seen[64];
const int threads_per_block = 256;

__device__ double d_randu(int *seed, int index)
{
    int M = 2147483647, C = 12345;
    int num = A * seed[index] + C;
    seed[index] = num % M;
    return fabs(seed[index] / ((double)M));
}

__device__ double d_randn(int *seed, int index)
{
    double u = d_randu(seed, index), v = d_randu(seed, index);
    return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

__global__ void likelihood_kernel(double *arrayX, double *arrayY, double *xj, double *yj,
                                  int *seed, double *partial_sums, int Nparticles)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    __shared__ double buffer[256];
    buffer[threadIdx.x] = 0.0;
    if (i < Nparticles) {
        arrayX[i] = xj[i] + 1.0 + 5.0 * d_randn(seed, i);
        arrayY[i] = yj[i] - 2.0 + 2.0 * d_randn(seed, i);
        buffer[threadIdx.x] = arrayX[i];
        seen[i % 64] = 1;
    }
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) buffer[threadIdx.x] += buffer[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial_sums[blockIdx.x] = buffer[0];
}
