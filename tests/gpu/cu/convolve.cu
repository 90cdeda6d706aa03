// A row filtered; the filter lies in constant memory.
#define RADIUS 4

__constant__ float filter[2 * RADIUS + 1] = {0.0625f, 0.125f, 0.25f,  0.5f,   1.0f,
                                             0.5f,    0.25f,  0.125f, 0.0625f};

__global__ void convolve(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.f;
    for (int k = -RADIUS; k <= RADIUS; k++) {
        int at = i + k;
        if (at >= 0 && at < n)
            sum += in[at] * filter[k + RADIUS];
    }
    out[i] = sum;
}
