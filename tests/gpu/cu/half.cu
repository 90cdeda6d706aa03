// Products in half precision and in bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void half_products(const float *x, float *as_half, float *as_bf16, int n)
{
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 1 >= n)
        return;
    __half2 h = __floats2half2_rn(x[i], x[i + 1]);
    h = __hfma2(h, h, __float2half2_rn(1.0f));
    as_half[i] = __low2float(h);
    as_half[i + 1] = __high2float(h);

    for (int k = 0; k < 2; ++k) {
        __nv_bfloat16 b = __float2bfloat16(x[i + k]);
        as_bf16[i + k] = __bfloat162float(__hmul(b, b));
    }
}
