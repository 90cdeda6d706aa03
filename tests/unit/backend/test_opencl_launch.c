#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/backend/backend.h"

#define SKIPPED 77
#define COUNT   1009u /* prime */

/* What people's kernels use beyond the dialect. */
static const char source[] =
    "__constant float table[2] = {10.0f, 20.0f};\n"
    "__kernel void scaled(__constant float *c, __global const float *x, __global float *y,\n"
    "                     float4 v) {\n"
    "    size_t i = get_global_id(0);\n"
    "    y[i] = c[i % 4] * x[i] + v.y + table[i & 1];\n"
    "}\n"
    "__kernel void turned(__global const uint *x, __global uint *y, __local uint *scratch) {\n"
    "    size_t l = get_local_id(0), n = get_local_size(0);\n"
    "    scratch[l] = x[get_global_id(0)];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    y[get_global_id(0)] = scratch[n - 1 - l];\n"
    "}\n"
    "__kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(__global uint *y) {\n"
    "    y[get_global_id(1) * get_global_size(0) + get_global_id(0)] =\n"
    "        (uint)(get_local_size(0) * 100 + get_local_size(1) * 10 + get_local_size(2));\n"
    "}\n"
    "__kernel void nothing(__global const uint *x, __global uint *y) { y[0] = x ? 1 : 2; }\n"
    "#define FOUR(a) int a##0, int a##1, int a##2, int a##3\n"
    "#define SOME(a) FOUR(a##0), FOUR(a##1), FOUR(a##2), FOUR(a##3)\n"
    "__kernel void many(__global uint *y, SOME(a), SOME(b), SOME(c), SOME(d), SOME(e), SOME(f),\n"
    "                   SOME(g), SOME(h)) { y[0] = a00; }\n";

#define BIG (((size_t)5 << 20) + 4099) /* bytes */

static const struct backend *b;
static struct backend_device *device;
static struct backend_stream *stream;
static struct backend_module *module;
static struct backend_block *x;
static struct backend_block *y;
static uint32_t in[COUNT];
static uint32_t out[COUNT];

static void drain(void)
{
    const struct timespec pause = {0, 50000};
    struct err e = ERR_INIT;
    struct backend_marker *m = NULL;
    ck_assert_int_eq(b->stream->mark(stream, &m, &e), 0);
    ck_assert_int_eq(b->stream->flush(stream, &e), 0);
    enum backend_state state = b->marker->state(m, &e);
    while (state != BACKEND_DONE && state != BACKEND_FAILED) {
        nanosleep(&pause, NULL);
        state = b->marker->state(m, &e);
    }
    ck_assert_msg(state == BACKEND_DONE, "%s", e.text);
    b->marker->release(m);
}

static void start_with(const char *options)
{
    struct err e = ERR_INIT;
    struct backend_info info;
    struct backend_compiled c = {0};
    b = backend_find("opencl");
    ck_assert_msg(b->device->open(0, options, NULL, NULL, &device, &e) == 0, "%s", e.text);
    b->device->info(device, &info);
    struct backend_source s = {.lang = BACKEND_LANG_OPENCL,
                               .text = bytes_str(source),
                               .file = "user.cl",
                               .options = "",
                               .arch = info.arch};
    ck_assert_msg(b->compile(0, &s, &c, &e) == 0, "%s", e.text);
    struct bytes binary = bytes_of(c.binary, c.binary_size);
    ck_assert_msg(b->module->load(device, binary, &module, &e) == 0, "%s", e.text);
    backend_compiled_finish(&c);
    ck_assert_int_eq(b->stream->create(device, 0, &stream, &e), 0);
    ck_assert_int_eq(b->memory->alloc(device, sizeof in, &x, &e), 0);
    ck_assert_int_eq(b->memory->alloc(device, sizeof out, &y, &e), 0);
}

static void start(void)
{
    start_with("");
}

static void start_buffers(void)
{
    start_with("svm=off");
}

static void stop(void)
{
    b->module->unload(module);
    b->memory->free(device, x);
    b->memory->free(device, y);
    b->stream->destroy(stream);
    b->device->close(device);
}

static struct backend_arg memory(struct backend_block *block)
{
    return (struct backend_arg){.kind = BACKEND_ARG_MEMORY, .memory = {block, 0}};
}

static int launch(const char *entry, const struct backend_arg *args, unsigned count, uint64_t width,
                  uint64_t height, uint64_t local, struct err *e)
{
    struct backend_launch l = {
        .global = {width, height, 1}, .local = {local, 0, 0}, .args = args, .arg_count = count};
    return b->stream->launch(stream, module, entry, &l, e);
}

static void put(const void *data, size_t size)
{
    ck_assert_int_eq(b->stream->write(stream, (struct backend_ref){x, 0}, data, size, NULL), 0);
}

static void get(void *data, size_t size)
{
    ck_assert_int_eq(b->stream->read(stream, data, (struct backend_ref){y, 0}, size, NULL), 0);
    drain();
}

START_TEST(constants_and_vectors)
{
    struct err e = ERR_INIT;
    float data[COUNT];
    float result[COUNT];
    const float v[4] = {1, 0.5f, 3, 4};
    struct backend_block *c = NULL;
    const float factors[4] = {1, 2, 3, 4};
    for (unsigned i = 0; i < COUNT; i++) {
        data[i] = (float)i;
    }
    ck_assert_int_eq(b->memory->alloc(device, sizeof factors, &c, &e), 0);
    struct backend_ref constant = {c, 0};
    ck_assert_int_eq(b->stream->write(stream, constant, factors, sizeof factors, &e), 0);
    put(data, sizeof data);
    struct backend_arg args[] = {
        memory(c), memory(x), memory(y), {.kind = BACKEND_ARG_VALUE, .value = v, .size = sizeof v}};
    ck_assert_msg(launch("scaled", args, 4, COUNT, 1, 0, &e) == 0, "%s", e.text);
    get(result, sizeof result);
    for (unsigned i = 0; i < COUNT; i++) {
        float want = factors[i % 4] * (float)i + 0.5f + (i & 1 ? 20.0f : 10.0f);
        ck_assert_float_eq(result[i], want); /* exact: small integers and halves */
    }
    b->memory->free(device, c);
}
END_TEST

START_TEST(local_memory_is_an_argument)
{
    struct err e = ERR_INIT;
    for (unsigned i = 0; i < 64; i++) {
        in[i] = i;
    }
    put(in, sizeof in);
    struct backend_arg args[] = {
        memory(x), memory(y), {.kind = BACKEND_ARG_LOCAL, .size = 16 * sizeof(uint32_t)}};
    ck_assert_msg(launch("turned", args, 3, 64, 1, 16, &e) == 0, "%s", e.text);
    get(out, 64 * sizeof *out);
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_uint_eq(out[i], i / 16 * 16 + 15 - i % 16);
    }
    args[2] = memory(x);
    ck_assert_int_eq(launch("turned", args, 3, 64, 1, 16, &e), ERR_ARG_TYPE);
    ck_assert_int_eq(e.arg, 2);
}
END_TEST

START_TEST(required_group_sizes_are_kept)
{
    struct err e = ERR_INIT;
    struct backend_arg args[] = {memory(y)};
    ck_assert_msg(launch("fixed", args, 1, 8, 4, 0, &e) == 0, "%s", e.text);
    get(out, 32 * sizeof *out);
    for (unsigned i = 0; i < 32; i++) {
        ck_assert_uint_eq(out[i], 421);
    }
    ck_assert_int_eq(launch("fixed", args, 1, 8, 4, 8, &e), ERR_LAUNCH);
    ck_assert_int_eq(launch("fixed", args, 1, 7, 4, 0, &e), ERR_LAUNCH);
}
END_TEST

/* It was loaded with the others, which can be. */
START_TEST(a_kernel_of_too_many_arguments_cannot_be_launched)
{
    struct err e = ERR_INIT;
    struct backend_kernel kernel;
    unsigned count = b->module->kernel_count(module);
    unsigned many = 0;
    for (unsigned i = 0; i < count; i++) {
        ck_assert_msg(b->module->kernel(module, i, &kernel, &e) == 0, "%s", e.text);
        many += strcmp(kernel.entry, "many") == 0 && kernel.arg_count == 129;
    }
    ck_assert_uint_eq(many, 1);
    const struct backend_launch l = {.global = {1, 1, 1}};
    ck_assert_int_eq(b->stream->launch(stream, module, "many", &l, &e), ERR_LIMIT);
}
END_TEST

START_TEST(a_null_pointer_can_be_passed)
{
    struct err e = ERR_INIT;
    struct backend_arg args[] = {memory(NULL), memory(y)};
    ck_assert_msg(launch("nothing", args, 2, 1, 1, 0, &e) == 0, "%s", e.text);
    get(out, sizeof *out);
    ck_assert_uint_eq(out[0], 2);
}
END_TEST

static bool device_present(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        unsigned count = 0;
        _exit(backend_find("opencl")->enumerate("", &count, NULL) == 0 ? 0 : 1);
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void add(Suite *suite, const char *name, void (*setup)(void))
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, stop);
    tcase_add_test(t, constants_and_vectors);
    tcase_add_test(t, local_memory_is_an_argument);
    tcase_add_test(t, required_group_sizes_are_kept);
    tcase_add_test(t, a_null_pointer_can_be_passed);
    tcase_add_test(t, a_kernel_of_too_many_arguments_cannot_be_launched);
    suite_add_tcase(suite, t);
}

/* With huge pages blocks begin elsewhere than the driver said, and the end of one is of usual ones.
 */
START_TEST(large_blocks_of_odd_sizes_are_whole)
{
    static const char *const options[] = {"", "huge_pages=off"};
    static uint32_t back[(BIG + 3) / 4];
    const uint32_t pattern = 0xa5c3e187u, mark = 0x12345678u;
    struct backend_block *big = NULL;
    struct err e = ERR_INIT;
    start_with(options[_i]);
    ck_assert_int_eq(b->memory->alloc(device, BIG, &big, &e), 0);
    ck_assert_int_eq(
        b->stream->fill(stream, (struct backend_ref){big, 0}, &pattern, 4, BIG & ~3u, &e), 0);
    ck_assert_int_eq(
        b->stream->write(stream, (struct backend_ref){big, BIG - 4}, &mark, sizeof mark, &e), 0);
    ck_assert_int_eq(b->stream->read(stream, back, (struct backend_ref){big, 0}, BIG, &e), 0);
    drain();
    for (size_t i = 0; i < BIG / 4 - 1; i++) {
        ck_assert_uint_eq(back[i], pattern);
    }
    ck_assert_int_eq(memcmp((uint8_t *)back + BIG - 4, &mark, 4), 0);
    b->memory->free(device, big);
    stop();
}
END_TEST

START_TEST(huge_pages_are_on_or_off)
{
    struct err e = ERR_INIT;
    struct backend_device *none = NULL;
    ck_assert_int_ne(backend_find("opencl")->device->open(0, "huge_pages=2", NULL, NULL, &none, &e),
                     0);
    ck_assert_int_eq(e.code, ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "huge_pages"));
}
END_TEST

int main(void)
{
    if (!device_present()) {
        fprintf(stderr, "skipped: no OpenCL device\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("opencl launch");
    add(suite, "pointers", start);
    add(suite, "buffers", start_buffers);
    TCase *t = tcase_create("blocks");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, large_blocks_of_odd_sizes_are_whole, 0, 2);
    tcase_add_test(t, huge_pages_are_on_or_off);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
