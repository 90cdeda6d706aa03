// A sparse matrix (CSR) times a vector, a warp for each row.
template <unsigned int WARP = 32>
__device__ float dot_row(const int *cols, const float *vals, const float *x, int begin, int end)
{
    float sum = 0;
    for (int k = begin + (threadIdx.x % WARP); k < end; k += WARP)
        sum += vals[k] * __ldg(&x[cols[k]]);
    for (int d = WARP / 2; d > 0; d >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    return sum;
}

__global__ void spmv(int rows, const int *row_ptr, const int *cols, const float *vals,
                     const float *x, float *y)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row < rows) {
        float sum = dot_row(cols, vals, x, row_ptr[row], row_ptr[row + 1]);
        if (threadIdx.x % 32 == 0)
            y[row] = sum;
    }
}
