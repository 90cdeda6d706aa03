/* Every built-in operation once, from a client through the daemon to a device and back. */
#include <math.h>
#include <string.h>

#include "tests/system/harness/harness.h"

#define F(p, n)  gpud_host((p), (n), GPUD_F32)
#define U(p, n)  gpud_host((p), (n), GPUD_U32)
#define B(p, n)  gpud_host((p), (n), GPUD_U8)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static gpud_client *client;

#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        gpud_arg call_args[] = {__VA_ARGS__};                                                      \
        int call_rc =                                                                              \
            gpud_call(client, kernel_find(client, name), call_args, COUNT(call_args), NULL);       \
        ck_assert_msg(call_rc == 0, "%s: %s", name, gpud_last_error()->text);                      \
    } while (0)

static void same(const char *what, const float *got, const double *expected, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_msg(fabs((double)got[i] - expected[i]) <= 1e-5 * (1 + fabs(expected[i])),
                      "%s: element %u is %g, not %g", what, i, (double)got[i], expected[i]);
    }
}

#define SAME(name, got, ...)                                                                       \
    do {                                                                                           \
        const double same_expected[] = {__VA_ARGS__};                                              \
        same(name, got, same_expected, COUNT(same_expected));                                      \
    } while (0)

static float x[] = {1, 4, 9, 16};
static float y[] = {2, 3, 5, 7};
static float out[64];

static void poison(void)
{
    for (unsigned i = 0; i < COUNT(out); i++) {
        out[i] = -12345;
    }
}

static void arithmetic(void)
{
    float z[] = {2, 3, 5, 7};
    CALL("fill", gpud_f32(3), F(out, 4));
    SAME("fill", out, 3, 3, 3, 3);
    CALL("axpy", gpud_f32(2), F(x, 4), F(z, 4));
    SAME("axpy", z, 4, 11, 23, 39);
    CALL("scale", gpud_f32(2), F(x, 4), F(out, 4));
    SAME("scale", out, 2, 8, 18, 32);
    CALL("add", F(x, 4), F(y, 4), F(out, 4));
    SAME("add", out, 3, 7, 14, 23);
    CALL("mul", F(x, 4), F(y, 4), F(out, 4));
    SAME("mul", out, 2, 12, 45, 112);
    CALL("clamp", gpud_f32(2), gpud_f32(10), F(x, 4), F(out, 4));
    SAME("clamp", out, 2, 4, 9, 10);
}

static void maps(void)
{
    static const struct {
        const char *name;
        double value[2];
    } map[] = {
        {"neg", {2, -0.25}},
        {"abs", {2, 0.25}},
        {"relu", {0, 0.25}},
        {"square", {4, 0.0625}},
        {"exp", {0.1353352832366127, 1.2840254166877414}},
        {"sin", {-0.9092974268256817, 0.24740395925452294}},
        {"cos", {-0.4161468365471424, 0.9689124217106447}},
        {"recip", {-0.5, 4}},
    };
    float in[] = {-2, 0.25f};
    for (unsigned i = 0; i < COUNT(map); i++) {
        poison();
        CALL(map[i].name, F(in, 2), F(out, 2));
        same(map[i].name, out, map[i].value, 2);
    }
    CALL("sqrt", F(x, 4), F(out, 4));
    SAME("sqrt", out, 1, 2, 3, 4);
    CALL("log", F(x, 4), F(out, 4));
    SAME("log", out, 0, 1.3862943611198906, 2.1972245773362196, 2.772588722239781);
}

static void reductions(void)
{
    CALL("dot", F(x, 4), F(y, 4), F(out, 1));
    SAME("dot", out, 171);
    CALL("reduce_sum", F(x, 4), F(out, 1));
    SAME("reduce_sum", out, 30);
    CALL("reduce_min", F(x, 4), F(out, 1));
    SAME("reduce_min", out, 1);
    CALL("reduce_max", F(x, 4), F(out, 1));
    SAME("reduce_max", out, 16);
    CALL("scan_inclusive", F(x, 4), F(out, 4));
    SAME("scan_inclusive", out, 1, 5, 14, 30);
    CALL("scan_exclusive", F(x, 4), F(out, 4));
    SAME("scan_exclusive", out, 0, 1, 5, 14);
}

static void integers(void)
{
    uint32_t keys[5000];
    uint32_t seen[4] = {9, 9, 9, 9};
    uint32_t values[] = {0, 3, 3, 1, 7, 3};
    for (uint32_t i = 0; i < COUNT(keys); i++) {
        keys[i] = i * 2654435761u;
    }
    CALL("sort", U(keys, COUNT(keys)));
    for (unsigned i = 1; i < COUNT(keys); i++) {
        ck_assert_uint_le(keys[i - 1], keys[i]);
    }
    CALL("histogram", U(values, 6), U(seen, 4));
    ck_assert(seen[0] == 1 && seen[1] == 1 && seen[2] == 0 && seen[3] == 3);
}

static gpud_arg matrix(float *data, uint64_t rows, uint64_t columns)
{
    return gpud_host_shaped(data, gpud_shape_2d(GPUD_F32, rows, columns), GPUD_AS_KERNEL);
}

static void matrices(void)
{
    float a[] = {1, 2, 3, 4, 5, 6};
    float b[] = {1, 0, 2, 1, 0, 3};
    float c[] = {1, 1, 1, 1};
    CALL("transpose", matrix(a, 2, 3), matrix(out, 3, 2));
    SAME("transpose", out, 1, 4, 2, 5, 3, 6);
    CALL("gemm", matrix(a, 2, 3), matrix(b, 3, 2), matrix(out, 2, 2));
    SAME("gemm", out, 5, 11, 14, 23);
    CALL("gemm_add", gpud_f32(2), matrix(a, 2, 3), matrix(b, 3, 2), gpud_f32(10), matrix(c, 2, 2));
    SAME("gemm_add", c, 20, 32, 38, 56);
    CALL("gemm_batched", gpud_host_shaped(a, gpud_shape_3d(GPUD_F32, 3, 1, 2), GPUD_AS_KERNEL),
         gpud_host_shaped(b, gpud_shape_3d(GPUD_F32, 3, 2, 1), GPUD_AS_KERNEL),
         gpud_host_shaped(out, gpud_shape_3d(GPUD_F32, 3, 1, 1), GPUD_AS_KERNEL));
    SAME("gemm_batched", out, 1, 10, 18);
}

static void images(void)
{
    float flat[20];
    float ramp[20];
    uint8_t rgb[] = {255, 255, 255, 0, 0, 0};
    uint8_t bytes[4] = {0};
    float wide[] = {-3, 0.4f, 127.6f, 999};
    for (unsigned i = 0; i < 20; i++) {
        flat[i] = 7;
        ramp[i] = (float)(i % 5);
    }
    CALL("gaussian", matrix(flat, 4, 5), matrix(out, 4, 5), gpud_f32(1.5f));
    SAME("gaussian", out, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7);
    CALL("sobel", matrix(ramp, 4, 5), matrix(out, 4, 5));
    SAME("sobel", out, 4, 8, 8, 8, 4);
    CALL("rgb_to_gray", gpud_host_shaped(rgb, gpud_shape_3d(GPUD_U8, 1, 2, 3), GPUD_AS_KERNEL),
         matrix(out, 1, 2));
    ck_assert_msg(fabsf(out[0] - 255) < 0.1f && out[1] == 0, "rgb_to_gray: %g %g", (double)out[0],
                  (double)out[1]);
    CALL("from_u8", gpud_f32(0.5f), B(rgb, 6), F(out, 6));
    SAME("from_u8", out, 127.5, 127.5, 127.5, 0, 0, 0);
    CALL("to_u8", gpud_f32(1), F(wide, 4), B(bytes, 4));
    ck_assert(bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 128 && bytes[3] == 255);
}

static void science(void)
{
    float wave[] = {1, 0, 0, 0, -1, 0, 0, 0}; /* one period of a cosine, as complex numbers */
    float back[8];
    CALL("fft", matrix(wave, 4, 2), matrix(out, 4, 2));
    SAME("fft", out, 0, 0, 2, 0, 0, 0, 2, 0);
    CALL("ifft", matrix(out, 4, 2), matrix(back, 4, 2));
    SAME("ifft", back, 1, 0, 0, 0, -1, 0, 0, 0);
    float flat[] = {1, 0, 1, 0, 1, 0, 1, 0};
    gpud_shape square = gpud_shape_3d(GPUD_F32, 2, 2, 2);
    CALL("fft_2d", gpud_host_shaped(flat, square, GPUD_AS_KERNEL),
         gpud_host_shaped(out, square, GPUD_AS_KERNEL));
    SAME("fft_2d", out, 4, 0, 0, 0, 0, 0, 0, 0);
    CALL("ifft_2d", gpud_host_shaped(out, square, GPUD_AS_KERNEL),
         gpud_host_shaped(back, square, GPUD_AS_KERNEL));
    SAME("ifft_2d", back, 1, 0, 1, 0, 1, 0, 1, 0);
    CALL("fft_batched", gpud_host_shaped(flat, square, GPUD_AS_KERNEL),
         gpud_host_shaped(out, square, GPUD_AS_KERNEL));
    SAME("fft_batched", out, 2, 0, 0, 0, 2, 0, 0, 0);
    CALL("ifft_batched", gpud_host_shaped(out, square, GPUD_AS_KERNEL),
         gpud_host_shaped(back, square, GPUD_AS_KERNEL));
    SAME("ifft_batched", back, 1, 0, 1, 0, 1, 0, 1, 0);
    CALL("random_uniform", gpud_u64(0), F(out, 2));
    SAME("random_uniform", out, 0x6627e8 / 16777216.0, 0xbc57ac / 16777216.0);
    CALL("random_normal", gpud_u64(0), gpud_f32(5), gpud_f32(0), F(out, 3));
    SAME("random_normal", out, 5, 5, 5);
    float pos[] = {0, 0, 0, 1, 2, 0, 0, 4}; /* masses 1 and 4, two apart */
    float vel[8] = {0};
    CALL("nbody", gpud_f32(0.5f), gpud_f32(0), matrix(pos, 2, 4), matrix(vel, 2, 4),
         matrix(out, 2, 4));
    SAME("nbody", out, 0.25, 0, 0, 1, 1.9375, 0, 0, 4);
    SAME("nbody", vel, 0.5, 0, 0, 0, -0.125, 0, 0, 0);
}

/* Arguments that share memory: as the operation allows, or refused with both named. */
static void apart(const char *name, const char *names, const gpud_arg *args, uint32_t count)
{
    int rc = gpud_call(client, kernel_find(client, name), args, count, NULL);
    ck_assert_msg(rc == GPUD_ERR_RANGE && strstr(gpud_last_error()->text, names) != NULL,
                  "%s: %d, %s", name, rc, rc == 0 ? "" : gpud_last_error()->text);
}

#define APART(name, names, ...)                                                                    \
    do {                                                                                           \
        const gpud_arg apart_args[] = {__VA_ARGS__};                                               \
        apart(name, names, apart_args, COUNT(apart_args));                                         \
    } while (0)

static gpud_buffer buffer_of(gpud_shape shape, const void *data)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(client, shape, 0, NULL, &b));
    ck_gpud_ok(gpud_write(client, b, (int)shape.dtype, 0, GPUD_REST, data, NULL));
    return b;
}

static void shared(void)
{
    static const float data[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint32_t counts[4] = {0, 1, 2, 3};
    gpud_buffer flat = buffer_of(gpud_shape_1d(GPUD_F32, 16), data);
    gpud_buffer square = buffer_of(gpud_shape_2d(GPUD_F32, 4, 4), data);
    gpud_buffer vel = buffer_of(gpud_shape_2d(GPUD_F32, 4, 4), data);
    gpud_buffer bins = buffer_of(gpud_shape_1d(GPUD_U32, 4), counts);
    gpud_buffer one = buffer_of(gpud_shape_2d(GPUD_F32, 1, 2), data);
    gpud_arg sq = gpud_inout(square);
    APART("transpose", "arguments src and dst", sq, sq);
    APART("sobel", "arguments src and dst", sq, sq);
    APART("gemm", "arguments a and c", sq, gpud_inout(vel), sq);
    APART("nbody", "arguments pos and next", gpud_f32(1), gpud_f32(1), sq, gpud_inout(vel), sq);
    APART("histogram", "arguments x and bins", gpud_inout(bins), gpud_inout(bins));
    APART("neg", "arguments x and y", gpud_slice(flat, 0, 15), gpud_slice(flat, 1, 15));
    APART("scan_inclusive", "arguments x and y", gpud_slice(flat, 1, 15), gpud_slice(flat, 0, 15));
    APART("clamp", "arguments low and high: 2 is more than 1", gpud_f32(2), gpud_f32(1),
          gpud_slice(flat, 0, 4), gpud_slice(flat, 4, 4));
    CALL("scan_inclusive", gpud_inout(flat), gpud_inout(flat));
    CALL("neg", gpud_inout(flat), gpud_inout(flat));
    ck_gpud_ok(gpud_read(client, flat, GPUD_F32, 0, 4, out, NULL));
    SAME("in place", out, -1, -3, -6, -10);
    CALL("fft", gpud_inout(one), gpud_inout(one));
    CALL("ifft", gpud_inout(one), gpud_inout(one));
    ck_gpud_ok(gpud_read(client, one, GPUD_F32, 0, 2, out, NULL));
    SAME("fft of one number", out, 1, 2);
    float *host = NULL;
    ck_gpud_ok(gpud_host_alloc(client, 1 << 20, (void **)&host));
    APART("neg", "arguments x and y", F(host, 1 << 16), F(host + 1, 1 << 16));
    host[0] = 5;
    CALL("neg", F(host, 1), F(host, 1));
    SAME("host memory in place", host, -5);
    gpud_host_free(client, host);
}

static const char *const backends[] = {"sim", "opencl"};

START_TEST(builtins)
{
    struct daemon d;
    daemon_start(&d, "--backend", backends[_i], NULL);
    client = client_open(d.url);
    arithmetic();
    maps();
    reductions();
    integers();
    matrices();
    images();
    science();
    shared();
    daemon_end(&d, client);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("builtins");
    TCase *tc = tcase_create("builtins");
    tcase_set_timeout(tc, 400);
    tcase_add_loop_test(tc, builtins, 0, (int)COUNT(backends));
    suite_add_tcase(suite, tc);
    return system_main(suite);
}
