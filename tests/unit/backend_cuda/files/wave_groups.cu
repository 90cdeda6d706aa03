// kernels: wave
// The host's library gives a type, an alias of a namespace stands outside of the kernel.
#include <cooperative_groups.h>
#include <cufft.h>
#include <cublas_v2.h>
namespace cg = cooperative_groups;
texture_free_surface *unused_by_kernels;
extern "C" {
int wave_begin(cublasHandle_t handle, int n);
__global__ void wave(cufftComplex *z, int n)
{
    cg::thread_block block = cg::this_thread_block();
    int i = blockIdx.x * blockDim.x + block.thread_rank();
    block.sync();
    if (i < n) z[i].x += z[i].y;
}
}
int wave_begin(cublasHandle_t handle, int n)
{
    wave<<<1, n>>>(nullptr, n);
    return 0;
}
