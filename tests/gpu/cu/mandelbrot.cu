// After how many rounds a point leaves.
__device__ int escape(float cx, float cy, int limit)
{
    float zx = 0, zy = 0;
    int n = 0;
    while (n < limit && zx * zx + zy * zy < 4.0f) {
        float t = zx * zx - zy * zy + cx;
        zy = 2.0f * zx * zy + cy;
        zx = t;
        ++n;
    }
    return n;
}

__global__ void mandelbrot(int *out, int width, int height, float x0, float y0, float dx, float dy,
                           int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px < width && py < height)
        out[py * width + px] = escape(x0 + px * dx, y0 + py * dy, limit);
}
