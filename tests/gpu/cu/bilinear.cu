// A picture in another size, without textures.
struct Image {
    int width, height, channels;
};

__device__ __forceinline__ float lerp(float a, float b, float t) { return a + t * (b - a); }

__global__ void bilinear(const unsigned char *src, unsigned char *dst, Image s, Image d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= d.width || y >= d.height)
        return;
    float fx = (x + 0.5f) * s.width / d.width - 0.5f;
    float fy = (y + 0.5f) * s.height / d.height - 0.5f;
    fx = fminf(fmaxf(fx, 0.f), s.width - 1.f);
    fy = fminf(fmaxf(fy, 0.f), s.height - 1.f);
    int x0 = (int)fx, y0 = (int)fy;
    int x1 = min(x0 + 1, s.width - 1), y1 = min(y0 + 1, s.height - 1);
    for (int c = 0; c < s.channels; c++) {
        float top = lerp(src[(y0 * s.width + x0) * s.channels + c],
                         src[(y0 * s.width + x1) * s.channels + c], fx - x0);
        float low = lerp(src[(y1 * s.width + x0) * s.channels + c],
                         src[(y1 * s.width + x1) * s.channels + c], fx - x0);
        dst[(y * d.width + x) * d.channels + c] = (unsigned char)(lerp(top, low, fy - y0) + 0.5f);
    }
}
