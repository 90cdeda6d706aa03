/* c = a b for row-major matrices of m x k and k x n, TILE x TILE elements at a time. */
#ifndef TILE
#define TILE 8
#endif

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void
matmul(const int m, const int n, const int k, __global const float *restrict a,
       __global const float *restrict b, __global float *restrict c)
{
    __local float tile_a[TILE][TILE];
    __local float tile_b[TILE][TILE + 1];
    int x = get_local_id(0), y = get_local_id(1);
    int column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0.0f;
        tile_b[y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}
