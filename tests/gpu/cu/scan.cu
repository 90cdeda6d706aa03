// Inclusive prefix sums of each block, in dynamic shared memory with two halves taken in turns.
extern __shared__ int temp[];

__global__ void scan(int *out, const int *in, int n)
{
    int tid = threadIdx.x;
    int i = blockIdx.x * blockDim.x + tid;
    int pout = 0, pin = 1;

    temp[pout * blockDim.x + tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < (int)blockDim.x; offset *= 2) {
        pout = 1 - pout;
        pin = 1 - pout;
        int sum = temp[pin * blockDim.x + tid];
        if (tid >= offset)
            sum += temp[pin * blockDim.x + tid - offset];
        temp[pout * blockDim.x + tid] = sum;
        __syncthreads();
    }
    if (i < n)
        out[i] = temp[pout * blockDim.x + tid];
}
