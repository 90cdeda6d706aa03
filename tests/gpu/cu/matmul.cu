// C = A B for square matrices, a tile of each in shared memory.
#define TILE 16

__global__ void matmul(const float *A, const float *B, float *C, int width)
{
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;

    for (int t = 0; t < (width + TILE - 1) / TILE; ++t) {
        int a = t * TILE + threadIdx.x;
        int b = t * TILE + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < width && a < width ? A[row * width + a] : 0.0f;
        Bs[threadIdx.y][threadIdx.x] = b < width && col < width ? B[b * width + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < width && col < width)
        C[row * width + col] = sum;
}
