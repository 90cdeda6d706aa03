// kernels: FFT512_device
#include <vector_functions.h>
#define M_SQRT1_2F 0.70710678118654752440f
#define exp_1_8 make_float2(1, -1)
typedef float2 T2;
inline __device__ T2 operator*(T2 a, T2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
inline __device__ T2 operator*(T2 a, float b) { return make_float2(b * a.x, b * a.y); }
inline __device__ T2 operator+(T2 a, T2 b) { return make_float2(a.x + b.x, a.y + b.y); }
inline __device__ T2 operator-(T2 a, T2 b) { return make_float2(a.x - b.x, a.y - b.y); }
#define FFT2(a0, a1) { T2 c0 = *a0; *a0 = c0 + *a1; *a1 = c0 - *a1; }

__device__ void globalLoads8(T2 *data, T2 *in, int stride)
{
    for (int i = 0; i < 8; i++) data[i] = in[i * stride];
}

__global__ void FFT512_device(T2 *work)
{
    int tid = threadIdx.x;
    work = work + blockIdx.x * 512 + tid;
    T2 data[8];
    globalLoads8(data, work, 64);
    for (int i = 0; i < 4; i++) { FFT2(&data[i], &data[i + 4]); }
    data[5] = (data[5] * exp_1_8) * M_SQRT1_2F;
    __sincosf(-2 * 3.14159265f * tid / 512, &data[6].y, &data[6].x);
    for (int i = 0; i < 8; i++) work[i * 64] = data[i];
}
