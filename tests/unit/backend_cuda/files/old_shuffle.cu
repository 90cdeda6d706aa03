// refused: __shfl_down(x, d) is __shfl_down_sync(0xffffffff, x, d)
__global__ void sum_warp(int *x)
{
    int v = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) {
        v += __shfl_down(v, d);
    }
    x[threadIdx.x] = v;
}

int main()
{
    sum_warp<<<1, 32>>>(nullptr);
    cudaDeviceSynchronize();
}
