// kernels: draw
// Random numbers of the library's, with what it says of streams.
#include <cstdio>
#include <thrust/random.h>

__global__ void draw(float *out)
{
    thrust::default_random_engine engine(threadIdx.x);
    thrust::uniform_real_distribution<float> uniform(0, 1);
    engine.discard(blockIdx.x);
    out[threadIdx.x] = uniform(engine);
}

int main()
{
    draw<<<1, 32>>>(nullptr);
    return 0;
}
