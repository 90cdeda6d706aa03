// The largest of each 32 threads and the sum of each block, by cooperative groups.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ int reduce_sum(cg::thread_group g, int *temp, int val)
{
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        temp[lane] = val;
        g.sync();
        if (lane < i)
            val += temp[lane + i];
        g.sync();
    }
    return val;
}

__global__ void groups(const int *in, int *largest, int *sums, int n)
{
    __shared__ int temp[256];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    int i = block.group_index().x * block.size() + block.thread_rank();
    int val = i < n ? in[i] : 0;

    int most = val;
    for (int offset = tile.size() / 2; offset > 0; offset /= 2)
        most = max(most, tile.shfl_xor(most, offset));
    if (tile.thread_rank() == 0)
        largest[i / 32] = most;

    int sum = reduce_sum(block, temp, val);
    if (block.thread_rank() == 0)
        sums[block.group_index().x] = sum;
}
