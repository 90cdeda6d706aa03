#include "bench/common/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/echo.h"

const char *const plan_kernel_names[PLAN_KERNELS] = {"nothing", "saxpy", "sum",  "gemm",
                                                     "scale",   "blur",  "root", "weigh"};

const char plan_source[] =
    "__kernel void nothing(void) {}\n"
    "__kernel void saxpy(uint n, float a, __global const float *x, __global float *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n"
    "__kernel void sum(uint n, __global const float *x, __global float *part)\n"
    "{\n"
    "    size_t group = get_global_id(0);\n"
    "    size_t end = min((group + 1) * 4096, (size_t)n);\n"
    "    float s = 0;\n"
    "    for (size_t i = group * 4096; i < end; i++) s += x[i];\n"
    "    if (group * 4096 < n) part[group] = s;\n"
    "}\n"
    "__kernel void gemm(uint n, __global const float *a, __global const float *b,\n"
    "                   __global float *c)\n"
    "{\n"
    "    __local float ta[16][16], tb[16][16];\n"
    "    size_t lx = get_local_id(0), ly = get_local_id(1);\n"
    "    size_t x = get_global_id(0), y = get_global_id(1);\n"
    "    float s = 0;\n"
    "    for (uint t = 0; t < n; t += 16) {\n"
    "        ta[ly][lx] = a[y * n + t + lx];\n"
    "        tb[ly][lx] = b[(t + ly) * n + x];\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        for (uint k = 0; k < 16; k++) s += ta[ly][k] * tb[k][lx];\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    }\n"
    "    c[y * n + x] = s;\n"
    "}\n"
    "__kernel void scale(uint n, float a, __global const float *x, __global float *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) y[i] = a * x[i];\n"
    "}\n"
    "__kernel void blur(uint n, __global const float *x, __global float *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i >= n) return;\n"
    "    float before = i > 0 ? x[i - 1] : x[i], behind = i + 1 < n ? x[i + 1] : x[i];\n"
    "    y[i] = (before + x[i] + behind) * (1.0f / 3.0f);\n"
    "}\n"
    "__kernel void root(uint n, __global const float *x, __global float *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) y[i] = sqrt(x[i]);\n"
    "}\n"
    "__kernel void weigh(uint n, __global const float *x, __global const float *w,\n"
    "                    __global float *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) y[i] = x[i] * w[i];\n"
    "}\n";

static struct plan_step *next_step(struct plan *p)
{
    if (p->step_count == PLAN_STEPS) {
        bench_die("%s: over %u steps", p->name, PLAN_STEPS);
    }
    struct plan_step *s = &p->step[p->step_count++];
    *s = (struct plan_step){.op = PLAN_LAUNCH};
    return s;
}

void plan_launch(struct plan *p, enum plan_kernel k, size_t items, size_t group)
{
    struct plan_step *s = next_step(p);
    s->kernel = k;
    s->global[0] = (items + group - 1) / group * group;
    s->local[0] = group;
}

static struct plan_arg *next_arg(struct plan *p)
{
    struct plan_step *s = &p->step[p->step_count - 1];
    if (s->arg_count == PLAN_ARGS) {
        bench_die("%s: over %u arguments", p->name, PLAN_ARGS);
    }
    return &s->arg[s->arg_count++];
}

void plan_value(struct plan *p, const void *value)
{
    *next_arg(p) = (struct plan_arg){.access = PLAN_VALUE, .value = value};
}

void plan_buffer(struct plan *p, enum plan_access access, unsigned buffer)
{
    *next_arg(p) = (struct plan_arg){.access = access, .buffer = buffer};
}

void plan_move(struct plan *p, enum plan_op op, unsigned buffer)
{
    struct plan_step *s = next_step(p);
    s->op = op;
    s->buffer = buffer;
}

const struct engine_kind *engine_direct(const char *backend)
{
#ifdef BENCH_OPENCL
    if (strcmp(backend, engine_opencl.name) == 0) {
        return &engine_opencl;
    }
#endif
#ifdef BENCH_CUDA
    if (strcmp(backend, engine_cuda.name) == 0) {
        return &engine_cuda;
    }
#endif
    (void)backend;
    return NULL;
}

struct engine *engine_direct_open(const char *backend, const struct engine_kind **ret_kind,
                                  const char **ret_why)
{
    *ret_kind = engine_direct(backend);
    *ret_why = "the API of gpud's back end is not built into the benchmark";
    return *ret_kind != NULL ? (*ret_kind)->open(NULL, ret_why) : NULL;
}

static const char *device_code_path(char *path, size_t size)
{
    const char *given = getenv("BENCH_KERNELS");
    if (given != NULL) {
        return given;
    }
    static const char name[] = "bench_kernels.fatbin";
    ssize_t n = readlink("/proc/self/exe", path, size - sizeof name);
    if (n <= 0) {
        bench_die("/proc/self/exe: %s", strerror(errno));
    }
    path[n] = '\0';
    memcpy(strrchr(path, '/') + 1, name, sizeof name);
    return path;
}

void *plan_device_code(size_t *ret_size)
{
    char buffer[512];
    const char *path = device_code_path(buffer, sizeof buffer);
    FILE *f = fopen(path, "rbe");
    long size = f != NULL && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *data = size > 0 ? malloc((size_t)size + 1) : NULL;
    if (data == NULL || fseek(f, 0, SEEK_SET) != 0 ||
        fread(data, 1, (size_t)size, f) != (size_t)size) {
        bench_die("%s cannot be read: it is made where nvcc is", path);
    }
    (void)fclose(f);
    data[size] = '\0';
    *ret_size = (size_t)size;
    return data;
}
