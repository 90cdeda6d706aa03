// kernels: invert_mapping kmeansPoint
#include <float.h>
#define ASSUMED_NR_CLUSTERS 32
#define THREADS_PER_DIM 16
#define THREADS_PER_BLOCK THREADS_PER_DIM *THREADS_PER_DIM

__constant__ float c_clusters[ASSUMED_NR_CLUSTERS * 34];

__global__ static void invert_mapping(float *input, float *output, int npoints, int nfeatures)
{
    int point_id = threadIdx.x + blockDim.x * blockIdx.x;
    if (point_id < npoints) {
        for (int i = 0; i < nfeatures; i++) {
            output[point_id + npoints * i] = input[point_id * nfeatures + i];
        }
    }
}

__global__ void kmeansPoint(const float *features, int nfeatures, int npoints, int nclusters,
                            int *membership, float *clusters)
{
    const unsigned int block_id = gridDim.x * blockIdx.y + blockIdx.x;
    const unsigned int point_id = block_id * blockDim.x * blockDim.y + threadIdx.x;
    int index = -1;
    if (point_id < npoints) {
        float min_dist = FLT_MAX;
        for (int i = 0; i < nclusters; i++) {
            float ans = 0.0;
            for (int j = 0; j < nfeatures; j++) {
                float diff = features[point_id + j * npoints] - c_clusters[i * nfeatures + j];
                ans += diff * diff;
            }
            if (ans < min_dist) {
                min_dist = ans;
                index = i;
            }
        }
        membership[point_id] = index;
    }
}
