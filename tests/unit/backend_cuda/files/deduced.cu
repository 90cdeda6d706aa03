// kernels: field::scale<float> field::scale<double> field::fill<4,short> sum<float,2> sum<unsigned long,2> table<float,8> pick<float>
// Programs that leave a template's arguments to the compiler, as most of C++ do.
#include <cuda_runtime.h>
#include <vector>

struct Settings {
    std::vector<int> sizes;
    int n = 3;
};

namespace field {
namespace {
template <typename T>
__global__ void scale(T *__restrict__ x, const T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
}

template <int N, class T> __global__ void fill(T *x) { x[threadIdx.x % N] = N; }

template <typename T> void run(std::vector<T> &v, T by)
{
    T *device = nullptr;
    cudaMalloc(&device, v.size() * sizeof(T));
    scale<<<dim3((v.size() + 255) / 256), 256>>>(device, by, v.size());
    constexpr int width = 2 * 2;
    fill<width><<<1, 32>>>((short *)device);
}
}

template <class T, int N = 2> __global__ void sum(T *out, const T *const in, const size_t n)
{
    for (size_t i = 0; i < n; i++) *out += N * in[i];
}

template <class T, int N> __global__ void table(const T (*t)[N], T *out) { *out = t[0][N - 1]; }

template <class T> struct Identity { typedef T type; };
template <class T> __global__ void pick(typename Identity<T>::type *x, T y) { *x = y; }

template <class T> static void total(T *in, const Settings &settings, cudaStream_t stream)
{
    T *result;
    cudaMalloc(&result, sizeof(T));
    sum<<<1, 1, 0, stream>>>(result, in, settings.sizes[0]);
}

float *all;

int main()
{
    Settings settings;
    std::vector<float> a(3);
    std::vector<double> b(3);
    field::run<float>(a, 2);
    field::run<double>(b, 3.0);
    unsigned long *list = nullptr;
    float grid[2][8];
    total(all, settings, 0);
    total(list, settings, 0);
    table<<<1, 1>>>(grid, all);
    pick<<<1, 1>>>(all, grid[0][1]);
    return cudaDeviceSynchronize();
}
