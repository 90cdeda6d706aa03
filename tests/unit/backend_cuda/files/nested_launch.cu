// refused: requires separate compilation mode
#include <cstdio>

__global__ void halve(int n)
{
    if (n > 1 && threadIdx.x == 0) {
        halve<<<1, n / 2>>>(n / 2);
    }
}

int main()
{
    halve<<<1, 64>>>(64);
    return 0;
}
