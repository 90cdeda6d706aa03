// How many random points lie in the circle; the numbers are its own.
#include <cstdint>

class Random
{
public:
    __device__ explicit Random(uint32_t seed) : state(seed * 747796405u + 2891336453u) {}
    __device__ uint32_t next()
    {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return state;
    }

private:
    uint32_t state;
};

__global__ void monte_carlo(unsigned int *hits, int rounds)
{
    Random rng(blockIdx.x * blockDim.x + threadIdx.x + 1);
    unsigned int inside = 0;
    for (int i = 0; i < rounds; ++i) {
        uint64_t x = rng.next() >> 16, y = rng.next() >> 16;
        inside += (x * x + y * y) <= (uint64_t)65535 * 65535;
    }
    atomicAdd(hits, inside);
}
