// options: --name-expression=map<Scale>
// kernels: map<Scale> map<Shift>
// Types that nothing but an instance of a kernel is named by: in an option, and in a launch.
#include <vector>

struct Scale {
    __device__ float operator()(float x) const { return 3.0f * x; }
};

struct Shift {
    __device__ float operator()(float x) const { return x + 1.0f; }
};

struct Report {
    std::vector<float> lines;
};

template <class F>
__global__ void map(float *x, int n)
{
    F f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = f(x[i]);
    }
}

int main()
{
    Report report;
    map<Shift><<<1, 128>>>(report.lines.data(), 128);
}
