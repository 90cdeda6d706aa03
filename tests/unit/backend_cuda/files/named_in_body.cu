// kernels: fill<float> fill<short> add<double> add<int> scale<double>
// Types of instances by names that only the launching function has.
#include <cstdio>

typedef double real; // only launches mention it
template <class T> __global__ void fill(T *x, T v) { x[0] = v; }
template <class T> __global__ void add(const T *a, T *b) { b[0] += a[0]; }
template <class T> __global__ void scale(T *x) { x[0] *= 2; }

void first()
{
    typedef float T; /* another function's T is another type */
    using Other = int;
    T *x = nullptr;
    Other *y = nullptr;
    T value = 1;
    fill<<<1, 1>>>(x, value);
    add<Other><<<1, 1>>>(y, y);
}

void second()
{
    typedef short T;
    fill<T><<<1, 1>>>(nullptr, 1);
    real *x = nullptr;
    add<<<1, 1>>>(x, x);
    scale<<<1, 1>>>(x);
}

int main()
{
    first();
    second();
}
