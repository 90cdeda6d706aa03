// Counts of bytes: a histogram of each block in shared memory, added to the whole by atomics.
#include <stdint.h>

#define NUM_BINS 256

__global__ void histogram(const uint8_t *data, unsigned int *bins, size_t size)
{
    __shared__ unsigned int local[NUM_BINS];

    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x)
        local[b] = 0;
    __syncthreads();

    const size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();

    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x)
        atomicAdd(&bins[b], local[b]);
}
