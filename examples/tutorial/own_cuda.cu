/* The service with CUDA of its own: a line for each frame of the standard input. */
#include "frame.cu"
#include "frames.h"

struct gpu {
    unsigned char *pixels;
    float *weights, *blurred, *background, *sums;
};

static void must(cudaError_t code, const char *what)
{
    if (code != cudaSuccess) {
        (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
        exit(1);
    }
}

static void open_gpu(struct gpu *g)
{
    float weights[25];
    frame_weights(weights);
    must(cudaMalloc((void **)&g->pixels, PIXELS), "pixels");
    must(cudaMalloc((void **)&g->weights, sizeof weights), "weights");
    must(cudaMalloc((void **)&g->blurred, PIXELS * sizeof(float)), "blurred");
    must(cudaMalloc((void **)&g->background, PIXELS * sizeof(float)), "background");
    must(cudaMalloc((void **)&g->sums, GROUPS * sizeof(float)), "sums");
    must(cudaMemcpy(g->weights, weights, sizeof weights, cudaMemcpyHostToDevice), "weights");
    must(cudaMemset(g->background, 0, PIXELS * sizeof(float)), "background");
}

static float frame(struct gpu *g, const uint8_t *pixels)
{
    static float sums[GROUPS];
    const dim3 square(16, 16), squares(WIDTH / 16, HEIGHT / 16);
    must(cudaMemcpy(g->pixels, pixels, PIXELS, cudaMemcpyHostToDevice), "write");
    blur<<<squares, square>>>(g->pixels, g->weights, g->blurred, WIDTH, HEIGHT);
    must(cudaGetLastError(), "blur");
    motion<<<GROUPS, GROUP>>>(g->blurred, g->background, g->sums, PIXELS);
    must(cudaGetLastError(), "motion");
    must(cudaMemcpy(sums, g->sums, sizeof sums, cudaMemcpyDeviceToHost), "read");
    return frame_mean(sums);
}

static void close_gpu(struct gpu *g)
{
    void *all[] = {g->pixels, g->weights, g->blurred, g->background, g->sums};
    for (int i = 0; i < 5; i++) {
        must(cudaFree(all[i]), "cudaFree");
    }
}

int main(void)
{
    static uint8_t pixels[PIXELS];
    struct gpu g;
    open_gpu(&g);
    for (int i = 0; frame_read(pixels); i++) {
        (void)printf("%d %g\n", i, (double)frame(&g, pixels));
    }
    close_gpu(&g);
    return 0;
}
