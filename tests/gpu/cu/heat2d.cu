// A step of the heat equation in the plane; the border stays.
#ifndef __CUDACC_RTC__ // which has no host's headers
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>
#endif

#define IDX(i, j, nx) ((j) * (nx) + (i))

__global__ void heat2d(float *__restrict__ next, const float *__restrict__ cur, int nx, int ny,
                       float alpha)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny)
        return;
    const float c = cur[IDX(i, j, nx)];
    if (i == 0 || j == 0 || i == nx - 1 || j == ny - 1) {
        next[IDX(i, j, nx)] = c;
        return;
    }
    next[IDX(i, j, nx)] = c + alpha * (cur[IDX(i - 1, j, nx)] + cur[IDX(i + 1, j, nx)] +
                                       cur[IDX(i, j - 1, nx)] + cur[IDX(i, j + 1, nx)] - 4.0f * c);
}

#ifndef __CUDACC_RTC__
int main(int argc, char **argv)
{
    const int nx = argc > 1 ? atoi(argv[1]) : 256, ny = nx;
    std::vector<float> host(nx * ny, 1.0f);
    float *a = nullptr, *b = nullptr;
    cudaMalloc(&a, host.size() * sizeof(float));
    cudaMalloc(&b, host.size() * sizeof(float));
    cudaMemcpy(a, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
    dim3 block(16, 16), grid((nx + 15) / 16, (ny + 15) / 16);
    for (int step = 0; step < 100; ++step) {
        heat2d<<<grid, block>>>(b, a, nx, ny, 0.1f);
        std::swap(a, b);
    }
    cudaMemcpy(host.data(), a, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
    std::cout << host[nx / 2] << std::endl;
    cudaFree(a);
    cudaFree(b);
}
#endif
