/* The service with OpenCL of its own: a line for each frame of the standard input. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "frames.h"

struct gpu {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel blur, motion;
    cl_mem pixels, weights, blurred, background, sums;
};

static void must(cl_int code, const char *what)
{
    if (code != CL_SUCCESS) {
        (void)fprintf(stderr, "%s: OpenCL error %d\n", what, code);
        exit(1);
    }
}

static void build(struct gpu *g, cl_device_id device)
{
    static char log[65536];
    cl_int rc;
    size_t bytes;
    char *source = file_read("frame.cl", &bytes);
    g->program = clCreateProgramWithSource(g->context, 1, (const char **)&source, &bytes, &rc);
    must(rc, "clCreateProgramWithSource");
    if (clBuildProgram(g->program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
        clGetProgramBuildInfo(g->program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        (void)fprintf(stderr, "frame.cl: %s\n", log);
        exit(1);
    }
    free(source);
    g->blur = clCreateKernel(g->program, "blur", &rc);
    must(rc, "blur");
    g->motion = clCreateKernel(g->program, "motion", &rc);
    must(rc, "motion");
}

static cl_mem buffer(struct gpu *g, size_t bytes)
{
    cl_int rc;
    cl_mem memory = clCreateBuffer(g->context, CL_MEM_READ_WRITE, bytes, NULL, &rc);
    must(rc, "clCreateBuffer");
    return memory;
}

static void allocate(struct gpu *g)
{
    float weights[25];
    const float zero = 0;
    g->pixels = buffer(g, PIXELS);
    g->weights = buffer(g, sizeof weights);
    g->blurred = buffer(g, PIXELS * sizeof(float));
    g->background = buffer(g, PIXELS * sizeof(float));
    g->sums = buffer(g, GROUPS * sizeof(float));
    frame_weights(weights);
    must(clEnqueueWriteBuffer(g->queue, g->weights, CL_TRUE, 0, sizeof weights, weights, 0, NULL,
                              NULL),
         "weights");
    must(clEnqueueFillBuffer(g->queue, g->background, &zero, sizeof zero, 0, PIXELS * sizeof zero,
                             0, NULL, NULL),
         "background");
}

static void open_gpu(struct gpu *g)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int rc;
    must(clGetPlatformIDs(1, &platform, NULL), "no platform");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no device");
    g->context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    must(rc, "clCreateContext");
    g->queue = clCreateCommandQueue(g->context, device, 0, &rc);
    must(rc, "clCreateCommandQueue");
    build(g, device);
    allocate(g);
}

static void set(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    must(clSetKernelArg(kernel, index, bytes, value), "clSetKernelArg");
}

static float frame(struct gpu *g, const uint8_t *pixels)
{
    static float sums[GROUPS];
    const int width = WIDTH, height = HEIGHT, count = PIXELS;
    const size_t size[2] = {WIDTH, HEIGHT}, square[2] = {16, 16};
    const size_t points = PIXELS, group = GROUP;
    must(clEnqueueWriteBuffer(g->queue, g->pixels, CL_FALSE, 0, PIXELS, pixels, 0, NULL, NULL),
         "write");
    set(g->blur, 0, sizeof(cl_mem), &g->pixels);
    set(g->blur, 1, sizeof(cl_mem), &g->weights);
    set(g->blur, 2, sizeof(cl_mem), &g->blurred);
    set(g->blur, 3, sizeof(int), &width);
    set(g->blur, 4, sizeof(int), &height);
    must(clEnqueueNDRangeKernel(g->queue, g->blur, 2, NULL, size, square, 0, NULL, NULL), "blur");
    set(g->motion, 0, sizeof(cl_mem), &g->blurred);
    set(g->motion, 1, sizeof(cl_mem), &g->background);
    set(g->motion, 2, sizeof(cl_mem), &g->sums);
    set(g->motion, 3, sizeof(int), &count);
    must(clEnqueueNDRangeKernel(g->queue, g->motion, 1, NULL, &points, &group, 0, NULL, NULL),
         "motion");
    must(clEnqueueReadBuffer(g->queue, g->sums, CL_TRUE, 0, sizeof sums, sums, 0, NULL, NULL),
         "read");
    return frame_mean(sums);
}

static void close_gpu(struct gpu *g)
{
    cl_mem *all[] = {&g->pixels, &g->weights, &g->blurred, &g->background, &g->sums};
    for (int i = 0; i < 5; i++) {
        clReleaseMemObject(*all[i]);
    }
    clReleaseKernel(g->blur);
    clReleaseKernel(g->motion);
    clReleaseProgram(g->program);
    clReleaseCommandQueue(g->queue);
    clReleaseContext(g->context);
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
