// kernels: row_add<float> row_sub<float> row_mul<float> row_divide<float> column_add<double> column_sub<double> column_mul<double> column_divide<double> plane_add<int> plane_sub<int> plane_mul<int> plane_divide<int> cube_add<long> cube_sub<long> cube_mul<long> cube_divide<long> last
// What tells the templates' arguments makes the text much longer than it was: its end stays.
#include <cuda_runtime.h>
#include <vector>

template <class T> __global__ void row_add(T *x, T by) { x[threadIdx.x] += by; }
template <class T> __global__ void row_sub(T *x, T by) { x[threadIdx.x] -= by; }
template <class T> __global__ void row_mul(T *x, T by) { x[threadIdx.x] *= by; }
template <class T> __global__ void row_divide(T *x, T by) { x[threadIdx.x] /= by; }
template <class T> __global__ void column_add(T *x, T by) { x[threadIdx.x] += by; }
template <class T> __global__ void column_sub(T *x, T by) { x[threadIdx.x] -= by; }
template <class T> __global__ void column_mul(T *x, T by) { x[threadIdx.x] *= by; }
template <class T> __global__ void column_divide(T *x, T by) { x[threadIdx.x] /= by; }
template <class T> __global__ void plane_add(T *x, T by) { x[threadIdx.x] += by; }
template <class T> __global__ void plane_sub(T *x, T by) { x[threadIdx.x] -= by; }
template <class T> __global__ void plane_mul(T *x, T by) { x[threadIdx.x] *= by; }
template <class T> __global__ void plane_divide(T *x, T by) { x[threadIdx.x] /= by; }
template <class T> __global__ void cube_add(T *x, T by) { x[threadIdx.x] += by; }
template <class T> __global__ void cube_sub(T *x, T by) { x[threadIdx.x] -= by; }
template <class T> __global__ void cube_mul(T *x, T by) { x[threadIdx.x] *= by; }
template <class T> __global__ void cube_divide(T *x, T by) { x[threadIdx.x] /= by; }

int main()
{
    std::vector<float> host(32);
    float *f;
    double *d;
    int *i;
    long *l;
    row_add<<<1, 32>>>(f, 2.f);
    row_sub<<<1, 32>>>(f, 2.f);
    row_mul<<<1, 32>>>(f, 2.f);
    row_divide<<<1, 32>>>(f, 2.f);
    column_add<<<1, 32>>>(d, 2.0);
    column_sub<<<1, 32>>>(d, 2.0);
    column_mul<<<1, 32>>>(d, 2.0);
    column_divide<<<1, 32>>>(d, 2.0);
    plane_add<<<1, 32>>>(i, 2);
    plane_sub<<<1, 32>>>(i, 2);
    plane_mul<<<1, 32>>>(i, 2);
    plane_divide<<<1, 32>>>(i, 2);
    cube_add<<<1, 32>>>(l, 2L);
    cube_sub<<<1, 32>>>(l, 2L);
    cube_mul<<<1, 32>>>(l, 2L);
    cube_divide<<<1, 32>>>(l, 2L);
    return 0;
}

__global__ void last(float *x) { x[0] = 1; }
