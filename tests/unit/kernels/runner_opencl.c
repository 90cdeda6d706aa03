#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/dialect.h"
#include "runner.h"

#define MODULES_MAX 64
#define SOURCE_MAX  (16u << 20)

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program[MODULES_MAX];

static int opencl_init(void)
{
    cl_platform_id platform[8];
    cl_uint count = 0;
    cl_int r = clGetPlatformIDs(8, platform, &count);
    for (cl_uint p = 0; r == CL_SUCCESS && p < count && p < 8 && device == NULL; p++) {
        (void)clGetDeviceIDs(platform[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    }
    if (device == NULL) {
        return 77;
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    if (r == CL_SUCCESS) {
        queue = clCreateCommandQueue(context, device, 0, &r);
    }
    return r == CL_SUCCESS ? 0 : 1;
}

static void opencl_finish(void)
{
    for (unsigned m = 0; m < MODULES_MAX; m++) {
        if (program[m] != NULL) {
            clReleaseProgram(program[m]);
        }
    }
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

static void *opencl_create(const void *data, size_t size)
{
    cl_int r = 0;
    void *copy = NULL;
    memcpy(&copy, &data, sizeof(copy)); /* the interface has no const, but only reads */
    cl_mem memory =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size, copy, &r);
    ck_assert_int_eq(r, CL_SUCCESS);
    return memory;
}

static void opencl_read(void *memory, void *data, size_t size)
{
    cl_int r = size == 0
                   ? CL_SUCCESS
                   : clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, size, data, 0, NULL, NULL);
    ck_assert_int_eq(r, CL_SUCCESS);
}

static void opencl_write(void *memory, const void *data, size_t size)
{
    cl_int r = size == 0
                   ? CL_SUCCESS
                   : clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, size, data, 0, NULL, NULL);
    ck_assert_int_eq(r, CL_SUCCESS);
}

static void opencl_free(void *memory)
{
    ck_assert_int_eq(clReleaseMemObject(memory), CL_SUCCESS);
}

static void build(unsigned module)
{
    struct capbuf text;
    struct err e = ERR_INIT;
    cl_int r = 0;
    capbuf_init(&text, SOURCE_MAX);
    ck_assert_msg(dialect_translate(builtin_module_source(module), builtin_module_name(module),
                                    DIALECT_OPENCL, true, &text, &e) == 0,
                  "%s", e.text);
    const char *source = (const char *)text.data;
    program[module] = clCreateProgramWithSource(context, 1, &source, &text.size, &r);
    ck_assert_int_eq(r, CL_SUCCESS);
    r = clBuildProgram(program[module], 1, &device, "", NULL, NULL);
    if (r != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program[module], device, CL_PROGRAM_BUILD_LOG, sizeof(log), log,
                              NULL);
        ck_abort_msg("%s does not compile: %s", builtin_module_name(module), log);
    }
    capbuf_finish(&text);
}

static void opencl_launch(unsigned module, const char *entry, const struct sig_binding *binding,
                          const struct runner_arg *args, unsigned count)
{
    cl_int r = 0;
    size_t global[3], local[3];
    if (program[module] == NULL) {
        build(module);
    }
    cl_kernel kernel = clCreateKernel(program[module], entry, &r);
    ck_assert_msg(r == CL_SUCCESS, "kernel %s: %d", entry, r);
    for (unsigned a = 0; a < count; a++) {
        r = args[a].array ? clSetKernelArg(kernel, a, sizeof(cl_mem), &args[a].memory)
                          : clSetKernelArg(kernel, a, dtype_size(args[a].dtype), args[a].value);
        ck_assert_msg(r == CL_SUCCESS, "%s, argument %u: %d", entry, a, r);
    }
    for (unsigned axis = 0; axis < 3; axis++) {
        global[axis] = binding->global[axis];
        local[axis] = binding->local[axis];
    }
    r = clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local[0] == 0 ? NULL : local, 0,
                               NULL, NULL);
    ck_assert_msg(r == CL_SUCCESS, "%s: launch %d", entry, r);
    ck_assert_int_eq(clFinish(queue), CL_SUCCESS);
    clReleaseKernel(kernel);
}

const struct runner_target runner_target = {
    .name = "opencl",
    .size_max = 3000017, /* a prime */
    .init = opencl_init,
    .finish = opencl_finish,
    .mem_create = opencl_create,
    .mem_read = opencl_read,
    .mem_write = opencl_write,
    .mem_free = opencl_free,
    .launch = opencl_launch,
};
