// kernels: farthest<float> smooth
// options: --expt-relaxed-constexpr
// What sources take of the C++ library without asking for it, and what only declarations name.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <iostream>
#include <sys/times.h>
#include <vector>

using namespace std::chrono;

#if CUDA_VERSION < 12000 || CUDA_VERSION / 1000 != __CUDACC_VER_MAJOR__
#error what a source chooses by the version
#endif

extern "C" {
#define API(name) name
extern int API(reader_open)(FILE *file, int flags);
}

template <class T> struct Complex {
    T re, im;
    friend std::ostream &operator<<(std::ostream &out, const Complex<T> &c)
    {
        return out << c.re << " " << c.im;
    }
};

template <class T> __global__ void farthest(const T *x, T *out, std::uint32_t n)
{
    T best = std::numeric_limits<T>::lowest();
    for (std::uint32_t i = 0; i < n; i++) best = std::max(best, x[i]);
    *out = best;
}

__global__ void smooth(Complex<double> *x) { x[0].re = x[1].im; }

int main()
{
    std::vector<float> host(4);
    float *x, *out;
    cudaMalloc(&x, 16);
    cudaMalloc(&out, 4);
    auto begin = steady_clock::now();
    farthest<<<1, 1>>>(x, out, 4u);
    std::cout << Complex<double>() << (steady_clock::now() - begin).count() << std::endl;
    return 0;
}
