// kernels: spmv::csr_vector zero
static const int WARP_SIZE = 32;
namespace spmv {
__global__ void csr_vector(const float *__restrict__ val, const int *__restrict__ cols,
                           const int *__restrict__ rowDelimiters, const int dim,
                           float *__restrict__ out, const float *__restrict__ vec)
{
    int t = threadIdx.x, id = t & (WARP_SIZE - 1);
    int myRow = blockIdx.x * (blockDim.x / WARP_SIZE) + t / WARP_SIZE;
    if (myRow < dim) {
        float mySum = 0;
        for (int j = rowDelimiters[myRow] + id; j < rowDelimiters[myRow + 1]; j += WARP_SIZE) {
            mySum += __ldg(&val[j]) * vec[cols[j]];
        }
        for (int offset = 16; offset > 0; offset /= 2) {
            mySum += __shfl_down_sync(0xffffffff, mySum, offset);
        }
        if (id == 0) out[myRow] = mySum;
    }
}
} // namespace spmv
extern "C" __global__ __launch_bounds__(128, 4) void zero(float *out, const int size)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < size) out[t] = 0;
}
