// A block's keys in order.
#define SHARED_SIZE_LIMIT 1024U

__device__ inline void Comparator(unsigned &keyA, unsigned &keyB, unsigned dir)
{
    if ((keyA > keyB) == dir) {
        unsigned t = keyA;
        keyA = keyB;
        keyB = t;
    }
}

__global__ void __launch_bounds__(SHARED_SIZE_LIMIT / 2) bitonic(unsigned *keys)
{
    __shared__ unsigned s_key[SHARED_SIZE_LIMIT];
    keys += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
    s_key[threadIdx.x] = keys[0];
    s_key[threadIdx.x + SHARED_SIZE_LIMIT / 2] = keys[SHARED_SIZE_LIMIT / 2];

    for (unsigned size = 2; size <= SHARED_SIZE_LIMIT; size <<= 1) {
        unsigned ddd = size == SHARED_SIZE_LIMIT ? 1 : ((threadIdx.x & (size / 2)) == 0);
        for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            Comparator(s_key[pos], s_key[pos + stride], ddd);
        }
    }
    __syncthreads();
    keys[0] = s_key[threadIdx.x];
    keys[SHARED_SIZE_LIMIT / 2] = s_key[threadIdx.x + SHARED_SIZE_LIMIT / 2];
}
