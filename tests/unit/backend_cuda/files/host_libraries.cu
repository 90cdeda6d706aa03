// kernels: narrow rotate
// Types that the headers of the host's libraries bring with them.
#include <cstdio>
#include <cublas_v2.h>

typedef __nv_bfloat16 narrow_t;

__global__ void narrow(narrow_t *out, const float *in)
{
    out[threadIdx.x] = (narrow_t)in[threadIdx.x];
}

__global__ void rotate(cuComplex *x, cuComplex by)
{
    x[threadIdx.x] = cuCmulf(x[threadIdx.x], by);
}

int main()
{
    cublasHandle_t handle;
    cublasCreate(&handle);
    narrow<<<1, 32>>>(NULL, NULL);
    rotate<<<1, 32>>>(NULL, make_cuComplex(0, 1));
    return 0;
}
