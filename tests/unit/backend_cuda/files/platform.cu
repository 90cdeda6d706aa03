// kernels: tick
// Which system it is for, asked as programs do that time themselves; the kernel asks, too.
#if defined(__linux__) || defined(__APPLE__)
#include <sys/time.h>
#elif defined(_WIN32)
#include <windows.h>
#else
#error no clock for this system
#endif
#ifndef __unix__
#error not that of a CUDA program on Linux
#endif

#ifdef __linux__
typedef long long tick_t;
#endif

static double now(void)
{
    struct timeval t;
    gettimeofday(&t, 0);
    return t.tv_sec + 1e-6 * t.tv_usec;
}

__global__ void tick(tick_t *out)
{
    out[threadIdx.x] = clock64();
}

int main(int argc, char **argv)
{
    double begin = now();
    tick<<<1, 32>>>(0);
    return now() > begin ? 0 : argc;
}
