// kernels: forward inverse
// A lifting step and its inverse, with constants that are computed from others, and the host's part.
#include <cstdio>
#include <vector>

typedef double real;

const float predict = -1.586134342f;
const float update = -predict / 30.0f, damp = 0.5 * (predict + update);
static const real gain = 1.0 / 1.230174105, loss = 1.0 / gain;
const float unpredict = -predict;
const int width = 4 * 16;
const float share = 1.0f / width;

static float measure(const std::vector<float> &v)
{
    return v.empty() ? 0.0f : v[0];
}
const float measured = measure({});

__global__ void forward(const float *in, float *out, int n)
{
    int i = blockIdx.x * width + threadIdx.x;
    if (i < n) {
        out[i] = in[i] * predict + update * damp * (float)gain + share;
    }
}

__global__ void inverse(const float *in, float *out, int n, float measured)
{
    register int i = blockIdx.x * width + threadIdx.x;
    if (i < n) {
        out[i] = in[i] * unpredict * (float)loss - measured;
    }
}

int main()
{
    std::vector<float> v(1024);
    forward<<<16, width>>>(v.data(), v.data(), 1024);
    printf("%f %f\n", measure(v), measured);
}
