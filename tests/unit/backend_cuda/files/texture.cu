// refused: texture
texture<float, 1, cudaReadModeElementType> tex;
__global__ void fetch(float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch(tex, i);
}
