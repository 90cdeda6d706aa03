// refused: texture is not a template
#include <cstdio>

texture<float, 1, cudaReadModeElementType> table;

__global__ void look_up(float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex1Dfetch(table, i);
    }
}

int main()
{
    look_up<<<1, 32>>>(NULL, 0);
    return 0;
}
