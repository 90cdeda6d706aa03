// kernels: mean_kernel std_kernel corr_kernel
#define M 2048
#define N 2048
#define sqrt_of_array_cell(x, j) sqrt(x[j])
#define FLOAT_N 3214212.01f
#define EPS 0.005f
typedef float DATA_TYPE;

__global__ void mean_kernel(DATA_TYPE *mean, DATA_TYPE *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if ((j >= 1) && (j < (M + 1))) {
        mean[j] = 0.0;
        for (int i = 1; i < (N + 1); i++) mean[j] += data[i * (M + 1) + j];
        mean[j] /= (DATA_TYPE)FLOAT_N;
    }
}

__global__ void std_kernel(DATA_TYPE *mean, DATA_TYPE *std, DATA_TYPE *data)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if ((j >= 1) && (j < (M + 1))) {
        std[j] = 0.0;
        for (int i = 1; i < (N + 1); i++) {
            std[j] += (data[i * (M + 1) + j] - mean[j]) * (data[i * (M + 1) + j] - mean[j]);
        }
        std[j] = sqrt_of_array_cell(std, j);
        if (std[j] <= EPS) std[j] = 1.0;
    }
}

__global__ void corr_kernel(DATA_TYPE *symmat, DATA_TYPE *data)
{
    int j1 = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if ((j1 >= 1) && (j1 < M)) {
        symmat[j1 * (M + 1) + j1] = 1.0;
        for (int j2 = (j1 + 1); j2 < (M + 1); j2++) {
            symmat[j1 * (M + 1) + j2] = 0.0;
            for (int i = 1; i < (N + 1); i++) {
                symmat[j1 * (M + 1) + j2] += data[i * (M + 1) + j1] * data[i * (M + 1) + j2];
            }
            symmat[j2 * (M + 1) + j1] = symmat[j1 * (M + 1) + j2];
        }
    }
}
