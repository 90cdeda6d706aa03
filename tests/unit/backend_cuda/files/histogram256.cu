// kernels: histogram256Kernel
#include <assert.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned int uint;
#define HISTOGRAM256_BIN_COUNT 256
#define UMUL(a, b) ((a) * (b))
#define UMAD(a, b, c) (UMUL((a), (b)) + (c))
#define WARP_COUNT 6

inline __device__ void addByte(uint *s_WarpHist, uint data, uint threadTag)
{
    atomicAdd(s_WarpHist + data, 1);
}

__global__ void histogram256Kernel(uint *d_PartialHistograms, uint *d_Data, uint dataCount)
{
    cg::thread_block cta = cg::this_thread_block();
    __shared__ uint s_Hist[WARP_COUNT * HISTOGRAM256_BIN_COUNT];
    uint *s_WarpHist = s_Hist + (threadIdx.x >> 5) * HISTOGRAM256_BIN_COUNT;
#pragma unroll
    for (uint i = 0; i < HISTOGRAM256_BIN_COUNT / 32; i++) s_Hist[threadIdx.x + i * WARP_COUNT * 32] = 0;
    cg::sync(cta);
    for (uint pos = UMAD(blockIdx.x, blockDim.x, threadIdx.x); pos < dataCount;
         pos += UMUL(blockDim.x, gridDim.x)) {
        uint data = d_Data[pos];
        for (int b = 0; b < 32; b += 8) addByte(s_WarpHist, (data >> b) & 0xFFU, threadIdx.x << 27);
    }
    cg::sync(cta);
    for (uint bin = threadIdx.x; bin < HISTOGRAM256_BIN_COUNT; bin += WARP_COUNT * 32) {
        uint sum = 0;
        for (uint i = 0; i < WARP_COUNT; i++) sum += s_Hist[bin + i * HISTOGRAM256_BIN_COUNT];
        assert(bin < 256);
        d_PartialHistograms[blockIdx.x * HISTOGRAM256_BIN_COUNT + bin] = sum;
    }
}
