// Accelerations of bodies; what does not change comes as a structure.
#include <cuda_runtime.h>

typedef struct {
    int n;
    float softening;
    float3 wind;
} Params;

__global__ void nbody(const float4 *pos, float4 *acc, Params p)
{
    __shared__ float4 tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < p.n ? pos[i] : make_float4(0.f, 0.f, 0.f, 0.f);
    float3 a = p.wind;

    for (int base = 0; base < p.n; base += 64) {
        tile[threadIdx.x] = base + threadIdx.x < p.n ? pos[base + threadIdx.x]
                                                     : make_float4(0.f, 0.f, 0.f, 0.f);
        __syncthreads();
        for (int j = 0; j < 64; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz + p.softening;
            float s = tile[j].w / (r2 * sqrtf(r2));
            a.x += dx * s;
            a.y += dy * s;
            a.z += dz * s;
        }
        __syncthreads();
    }
    if (i < p.n)
        acc[i] = make_float4(a.x, a.y, a.z, me.w);
}
