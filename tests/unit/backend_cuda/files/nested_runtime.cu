// refused: kernels cannot call the runtime (cudaMalloc, cudaDeviceSynchronize)
#include <cstdio>

__global__ void grow(int **list, int n)
{
    cudaMalloc((void **)list, n * sizeof(int));
}

int main()
{
    grow<<<1, 1>>>(nullptr, 4);
    return 0;
}
