// The kernels of bench/common/plan.c in CUDA C. nvcc compiles them at build time, so that neither
// gpud nor the benchmark compiles anything.
#define ITEM (blockIdx.x * (size_t)blockDim.x + threadIdx.x)

extern "C" {

__global__ void nothing()
{
}

__global__ void saxpy(unsigned n, float a, const float *x, float *y)
{
    size_t i = ITEM;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}

__global__ void sum(unsigned n, const float *x, float *part)
{
    size_t group = ITEM;
    size_t end = (group + 1) * 4096 < n ? (group + 1) * 4096 : n;
    float s = 0;
    for (size_t i = group * 4096; i < end; i++) {
        s += x[i];
    }
    if (group * 4096 < n) {
        part[group] = s;
    }
}

__global__ void gemm(unsigned n, const float *a, const float *b, float *c)
{
    __shared__ float ta[16][16];
    __shared__ float tb[16][16];
    size_t lx = threadIdx.x;
    size_t ly = threadIdx.y;
    size_t x = blockIdx.x * (size_t)blockDim.x + lx;
    size_t y = blockIdx.y * (size_t)blockDim.y + ly;
    float s = 0;
    for (unsigned t = 0; t < n; t += 16) {
        ta[ly][lx] = a[y * n + t + lx];
        tb[ly][lx] = b[(t + ly) * n + x];
        __syncthreads();
        for (unsigned k = 0; k < 16; k++) {
            s += ta[ly][k] * tb[k][lx];
        }
        __syncthreads();
    }
    c[y * n + x] = s;
}

__global__ void scale(unsigned n, float a, const float *x, float *y)
{
    size_t i = ITEM;
    if (i < n) {
        y[i] = a * x[i];
    }
}

__global__ void blur(unsigned n, const float *x, float *y)
{
    size_t i = ITEM;
    if (i >= n) {
        return;
    }
    float before = i > 0 ? x[i - 1] : x[i];
    float behind = i + 1 < n ? x[i + 1] : x[i];
    y[i] = (before + x[i] + behind) * (1.0f / 3.0f);
}

__global__ void root(unsigned n, const float *x, float *y)
{
    size_t i = ITEM;
    if (i < n) {
        y[i] = sqrtf(x[i]);
    }
}

__global__ void weigh(unsigned n, const float *x, const float *w, float *y)
{
    size_t i = ITEM;
    if (i < n) {
        y[i] = x[i] * w[i];
    }
}
}
