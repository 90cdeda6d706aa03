#define GROUP 256

static __device__ int between(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* 5 x 5 points around each pixel, by their weights. */
extern "C" __global__ void blur(const unsigned char *pixels, const float *weights, float *blurred,
                                int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    if (x >= width || y >= height) {
        return;
    }
    for (int v = -2; v <= 2; v++) {
        for (int u = -2; u <= 2; u++) {
            int from = between(y + v, 0, height - 1) * width + between(x + u, 0, width - 1);
            sum += weights[(v + 2) * 5 + u + 2] * pixels[from];
        }
    }
    blurred[y * width + x] = sum;
}

/* How far each point is from the background, which follows slowly; a sum for each group. */
extern "C" __global__ void motion(const float *blurred, float *background, float *sums, int count)
{
    __shared__ float scratch[GROUP];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int me = threadIdx.x;
    float difference = 0;
    if (i < count) {
        difference = blurred[i] - background[i];
        background[i] += difference / 8;
    }
    scratch[me] = fabsf(difference);
    for (int step = GROUP / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me < step) {
            scratch[me] += scratch[me + step];
        }
    }
    if (me == 0) {
        sums[blockIdx.x] = scratch[0];
    }
}
