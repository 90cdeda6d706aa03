// options: --name-expression=map<Scale>
// kernels: map<Scale> map<Shift> fill<float,64> fill<double,64>
// Types that nothing but an instance of a kernel is named by: in an option, and in a launch; and a
// launch in a template of the host.
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

template <typename T, int N>
__global__ void fill(T *x, T value)
{
    x[blockIdx.x * N + threadIdx.x] = value;
}

template <typename T>
void fill_all(std::vector<T> &v)
{
    fill<T, 64><<<2, 64>>>(v.data(), T(1));
}

int main()
{
    Report report;
    std::vector<double> more(128);
    fill_all<float>(report.lines);
    fill_all<double>(more);
    map<Shift><<<1, 128>>>(report.lines.data(), 128);
}
