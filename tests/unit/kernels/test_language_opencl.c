/* The dialect as users write it, executed by OpenCL: every promised name, positions in errors. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dialect.h"
#include "language.h"

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static bool opencl_init(void)
{
    cl_platform_id platform[8];
    cl_uint count = 0;
    cl_int r = clGetPlatformIDs(8, platform, &count);
    for (cl_uint p = 0; r == CL_SUCCESS && p < count && p < 8 && device == NULL; p++) {
        (void)clGetDeviceIDs(platform[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    }
    if (device != NULL) {
        context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
        queue = clCreateCommandQueue(context, device, 0, NULL);
    }
    return device != NULL;
}

static cl_program build(const char *text, cl_int *ret_code)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 1u << 20);
    ck_assert_msg(dialect_translate(bytes_str(text), "user.gk", DIALECT_OPENCL, true, &out, &e) ==
                      0,
                  "%s", e.text);
    const char *source = (const char *)out.data;
    cl_program p = clCreateProgramWithSource(context, 1, &source, &out.size, NULL);
    ck_assert_ptr_nonnull(p);
    *ret_code = clBuildProgram(p, 1, &device, "", NULL, NULL);
    capbuf_finish(&out);
    return p;
}

struct array {
    void *data;
    size_t size;
    cl_mem memory;
};

/* Arrays first, then one u64 for each named size. */
static void launch(cl_program p, const char *entry, struct array *arrays, unsigned array_count,
                   const cl_ulong *dims, unsigned dim_count, const size_t global[3],
                   const size_t local[3])
{
    cl_int r = 0;
    cl_kernel k = clCreateKernel(p, entry, &r);
    ck_assert_msg(r == CL_SUCCESS, "%s: %d", entry, r);
    for (unsigned a = 0; a < array_count; a++) {
        arrays[a].memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                          arrays[a].size, arrays[a].data, &r);
        ck_assert_int_eq(r, CL_SUCCESS);
        ck_assert_int_eq(clSetKernelArg(k, a, sizeof(cl_mem), &arrays[a].memory), CL_SUCCESS);
    }
    for (unsigned d = 0; d < dim_count; d++) {
        ck_assert_int_eq(clSetKernelArg(k, array_count + d, sizeof(cl_ulong), &dims[d]),
                         CL_SUCCESS);
    }
    r = clEnqueueNDRangeKernel(queue, k, 3, NULL, global, local, 0, NULL, NULL);
    ck_assert_int_eq(r, CL_SUCCESS);
    for (unsigned a = 0; a < array_count; a++) {
        r = clEnqueueReadBuffer(queue, arrays[a].memory, CL_TRUE, 0, arrays[a].size, arrays[a].data,
                                0, NULL, NULL);
        ck_assert_int_eq(r, CL_SUCCESS);
        clReleaseMemObject(arrays[a].memory);
    }
    clReleaseKernel(k);
}

START_TEST(test_language)
{
    cl_int r = 0;
    cl_program p = build(language_source, &r);
    ck_assert_int_eq(r, CL_SUCCESS);

    float x[3] = {1, 2, 3}, y[3] = {0};
    struct array helped[] = {{x, sizeof(x), NULL}, {y, sizeof(y), NULL}};
    launch(p, "helped", helped, 2, (const cl_ulong[]){3}, 1, (const size_t[]){256, 1, 1},
           (const size_t[]){256, 1, 1});
    ck_assert_float_eq(y[2], 12.0f);

    cl_uint values[40], counts[3] = {0};
    cl_int ends[2] = {100, 0};
    for (cl_uint v = 0; v < 40; v++) {
        values[v] = v + 3;
    }
    struct array counted[] = {
        {values, sizeof(values), NULL}, {counts, sizeof(counts), NULL}, {ends, sizeof(ends), NULL}};
    launch(p, "counted", counted, 3, (const cl_ulong[]){40}, 1, (const size_t[]){64, 1, 1},
           (const size_t[]){32, 1, 1});
    ck_assert_uint_eq(counts[0], 900);
    ck_assert_uint_eq(counts[1], 32);
    ck_assert_uint_eq(counts[2], 201);
    ck_assert_int_eq(ends[0], 3);
    ck_assert_int_eq(ends[1], 42);

    cl_uint cube[2 * 3 * 5] = {0};
    struct array one = {cube, sizeof(cube), NULL};
    launch(p, "cube", &one, 1, (const cl_ulong[]){2, 3, 5}, 3, (const size_t[]){8, 8, 4},
           (const size_t[]){8, 8, 4});
    ck_assert_uint_eq(cube[0], 0);
    ck_assert_uint_eq(cube[29], 10204);
    clReleaseProgram(p);
}
END_TEST

START_TEST(test_ranges)
{
    cl_int r = 0;
    cl_program p = build(language_source, &r);
    ck_assert_int_eq(r, CL_SUCCESS);
    const size_t items[] = {256, 1, 1};
    int8_t small[2] = {0};
    int64_t large[2] = {0};
    uint64_t plain[2] = {1, 0};
    struct array a = {small, sizeof(small), NULL};
    launch(p, "range_i8", &a, 1, NULL, 0, items, items);
    ck_assert(small[0] == INT8_MIN && small[1] == INT8_MAX);
    a = (struct array){large, sizeof(large), NULL};
    launch(p, "range_i64", &a, 1, NULL, 0, items, items);
    ck_assert(large[0] == INT64_MIN && large[1] == INT64_MAX);
    a = (struct array){plain, sizeof(plain), NULL};
    launch(p, "range_u64", &a, 1, NULL, 0, items, items);
    ck_assert(plain[0] == 0 && plain[1] == UINT64_MAX);
    clReleaseProgram(p);
}
END_TEST

/* The compiler's message names the user's line: where it is kept in the log, it must be right. */
START_TEST(test_error_position)
{
    cl_int r = 0;
    char log[8192] = "";
    cl_program p =
        build("\n\n//@kernel wrong(out f32 y[n]) over n\n{\n    y[i] = missing;\n}\n", &r);
    ck_assert_int_ne(r, CL_SUCCESS);
    clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL);
    ck_assert_msg(strstr(log, "missing") == NULL || strstr(log, "user.gk:5:12") != NULL, "%s", log);
    clReleaseProgram(p);
}
END_TEST

int main(void)
{
    if (!opencl_init()) {
        return 77;
    }
    Suite *s = suite_create("language");
    TCase *t = tcase_create("opencl");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_language);
    tcase_add_test(t, test_ranges);
    tcase_add_test(t, test_error_position);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_set_fork_status(sr, CK_NOFORK);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
