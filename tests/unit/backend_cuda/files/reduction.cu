// options: --name-expression=reduce<float,256> --name-expression=reduce<double,128>
// kernels: reduce<float,256> reduce<double,128>
// A template with shared memory given at launch, as a struct that templates may use.
template <class T> struct SharedMem
{
    __device__ T *getPointer()
    {
        extern __shared__ unsigned char s_any[];
        return reinterpret_cast<T *>(s_any);
    }
};

template <class T, int blockSize>
__global__ void reduce(const T *__restrict__ g_idata, T *__restrict__ g_odata, const unsigned int n)
{
    SharedMem<T> shared;
    volatile T *sdata = shared.getPointer();
    const unsigned int tid = threadIdx.x;
    unsigned int i = (blockIdx.x * (blockDim.x * 2)) + tid;
    const unsigned int gridSize = blockDim.x * 2 * gridDim.x;
    sdata[tid] = 0.0f;
    while (i < n) {
        sdata[tid] += g_idata[i] + (i + blockSize < n ? g_idata[i + blockSize] : (T)0);
        i += gridSize;
    }
    __syncthreads();
    if (blockSize >= 256) { if (tid < 128) { sdata[tid] += sdata[tid + 128]; } __syncthreads(); }
    if (blockSize >= 128) { if (tid < 64) { sdata[tid] += sdata[tid + 64]; } __syncthreads(); }
    for (int s = 32; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
