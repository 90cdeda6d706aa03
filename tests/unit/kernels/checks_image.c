#include <math.h>
#include <stdlib.h>

#include "checks.h"
#include "runner.h"

static const uint64_t image_sizes[][2] = {{0, 5},   {5, 0},   {1, 1},   {1, 40},  {40, 1}, {2, 3},
                                          {15, 17}, {16, 16}, {17, 15}, {31, 97}, {64, 64}};
#define IMAGE_SIZES (sizeof(image_sizes) / sizeof(image_sizes[0]))

static uint64_t held(int64_t at, uint64_t size)
{
    return at < 0 ? 0 : (uint64_t)at >= size ? size - 1 : (uint64_t)at;
}

static double pixel(const float *image, uint64_t h, uint64_t w, int64_t y, int64_t x)
{
    return (double)image[held(y, h) * w + held(x, w)];
}

/* The blur of one axis in double; step is 1 along rows, w along columns. */
static void blur(const double *src, double *dst, uint64_t h, uint64_t w, double sigma, bool rows)
{
    int64_t radius = (int64_t)ceil(3 * sigma);
    double total = 0;
    for (int64_t d = -radius; d <= radius; d++) {
        total += exp(-(double)(d * d) / (2 * sigma * sigma));
    }
    for (uint64_t y = 0; y < h; y++) {
        for (uint64_t x = 0; x < w; x++) {
            double sum = 0;
            for (int64_t d = -radius; d <= radius; d++) {
                uint64_t at_y = rows ? y : held((int64_t)y + d, h);
                uint64_t at_x = rows ? held((int64_t)x + d, w) : x;
                sum += exp(-(double)(d * d) / (2 * sigma * sigma)) * src[at_y * w + at_x];
            }
            dst[y * w + x] = sum / total;
        }
    }
}

/* A weight is exp of an argument of at most 4.5 (relative error 3 u of it), 3 ulp by OpenCL's exp,
 * divided by a sum of m of them: at most (14 + 6 + m + 3) u. A row sums 2 m rounded terms that are
 * convex weights, twice. */
static void check_gaussian(uint64_t h, uint64_t w, double sigma)
{
    float *src = array_random(DTYPE_F32, h * w, 0, 255), *dst = array_new(DTYPE_F32, h * w);
    double *wide = array_new(DTYPE_F64, h * w), *rows = array_new(DTYPE_F64, h * w);
    const uint64_t dims[] = {h, w};
    const struct operand operands[] = {op_array(DTYPE_F32, src, 2, dims),
                                       op_array(DTYPE_F32, dst, 2, dims), op_f32((float)sigma)};
    double m = ceil(3 * sigma) + 1;
    double bound = 2 * (23 + m + 2 * m + 2) * 0x1p-24 * 255;
    run_operation("gaussian", operands, 3);
    for (uint64_t i = 0; i < h * w; i++) {
        wide[i] = (double)src[i];
    }
    blur(wide, rows, h, w, sigma, true);
    blur(rows, wide, h, w, sigma, false);
    for (uint64_t i = 0; i < h * w; i++) {
        check_close("gaussian", i, (long double)dst[i], (long double)wide[i], (long double)bound);
    }
    free(src);
    free(dst);
    free(wide);
    free(rows);
}

START_TEST(test_gaussian)
{
    random_seed(51);
    for (unsigned s = 0; s < IMAGE_SIZES; s++) {
        check_gaussian(image_sizes[s][0], image_sizes[s][1], 1.25);
    }
    check_gaussian(40, 30, 0.25);
    check_gaussian(20, 50, 12.5);
    check_gaussian(211, runner_target.size_max > 1000000 ? 997 : 97, 2.0);
}
END_TEST

/* Each gradient: 8 additions and doublings of values up to 4 max|src| per side, so 8 u 8 max|src|;
 * both enter the length with at most sqrt 2, and the length is rounded by 2 + 3 ulp more. */
static void check_sobel(uint64_t h, uint64_t w)
{
    float *src = array_random(DTYPE_F32, h * w, 0, 255), *dst = array_new(DTYPE_F32, h * w);
    const uint64_t dims[] = {h, w};
    const struct operand operands[] = {op_array(DTYPE_F32, src, 2, dims),
                                       op_array(DTYPE_F32, dst, 2, dims)};
    run_operation("sobel", operands, 2);
    for (int64_t y = 0; y < (int64_t)h; y++) {
        for (int64_t x = 0; x < (int64_t)w; x++) {
            double gx = 0, gy = 0;
            for (int64_t d = -1; d <= 1; d++) {
                double weight = d == 0 ? 2 : 1;
                gx += weight * (pixel(src, h, w, y + d, x + 1) - pixel(src, h, w, y + d, x - 1));
                gy += weight * (pixel(src, h, w, y + 1, x + d) - pixel(src, h, w, y - 1, x + d));
            }
            double expected = sqrt(gx * gx + gy * gy);
            uint64_t i = (uint64_t)y * w + (uint64_t)x;
            check_close("sobel", i, (long double)dst[i], (long double)expected,
                        0x1p-24L * (8 * 8 * 255 * 1.5L + 10 * (long double)expected));
        }
    }
    free(src);
    free(dst);
}

START_TEST(test_sobel)
{
    random_seed(52);
    for (unsigned s = 0; s < IMAGE_SIZES; s++) {
        check_sobel(image_sizes[s][0], image_sizes[s][1]);
    }
    check_sobel(runner_target.size_max / 251, 251);
}
END_TEST

/* Nothing of the neighbours comes in, however small sigma is, not even where they are infinite. */
START_TEST(test_gaussian_identity)
{
    static const float sigmas[] = {1e-45f, 1e-39f, 1.1754944e-38f, 1e-30f, 1e-6f, 0.0499f};
    float src[6] = {1.5f, -2.0f, INFINITY, 3.25f, 1e-30f, 7.0f};
    const uint64_t dims[] = {2, 3};
    for (unsigned s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++) {
        float dst[6] = {0};
        const struct operand operands[] = {op_array(DTYPE_F32, src, 2, dims),
                                           op_array(DTYPE_F32, dst, 2, dims), op_f32(sigmas[s])};
        run_operation("gaussian", operands, 3);
        for (unsigned i = 0; i < 6; i++) {
            ck_assert_msg(dst[i] == src[i], "sigma %g: pixel %u is %g, not %g", (double)sigmas[s],
                          i, (double)dst[i], (double)src[i]);
        }
    }
}
END_TEST

/* The weights by themselves are weights for any sigma: none is NaN, and their sum is 1. */
START_TEST(test_gaussian_weights)
{
    static const float sigmas[] = {1e-45f, 1e-30f, 1e-20f, 0.06f, 1.0f, 80.0f, 1e30f, INFINITY};
    for (unsigned s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++) {
        float weight[9];
        const struct operand operands[] = {op_f32(sigmas[s]), op_vector(DTYPE_F32, weight, 9)};
        run_operation("gaussian_weights", operands, 2);
        long double sum = weight[0];
        for (unsigned i = 1; i < 9; i++) {
            sum += 2 * (long double)weight[i];
        }
        check_close("gaussian_weights", s, sum, 1, 64 * 0x1p-24L);
    }
}
END_TEST

/* Three products and two sums of values up to 255 with weights of sum 1: 6 u 255 covers the
 * rounding of the weights too. */
START_TEST(test_gray)
{
    random_seed(53);
    for (unsigned s = 0; s < IMAGE_SIZES; s++) {
        uint64_t h = image_sizes[s][0], w = image_sizes[s][1];
        uint8_t *rgb = array_random(DTYPE_U8, h * w * 3, 0, 256);
        float *gray = array_new(DTYPE_F32, h * w);
        const uint64_t from[] = {h, w, 3}, to[] = {h, w};
        const struct operand operands[] = {op_array(DTYPE_U8, rgb, 3, from),
                                           op_array(DTYPE_F32, gray, 2, to)};
        run_operation("rgb_to_gray", operands, 2);
        for (uint64_t i = 0; i < h * w; i++) {
            long double expected =
                0.299L * rgb[3 * i] + 0.587L * rgb[3 * i + 1] + 0.114L * rgb[3 * i + 2];
            check_close("rgb_to_gray", i, (long double)gray[i], expected, 6 * 0x1p-24L * 255);
        }
        free(rgb);
        free(gray);
    }
}
END_TEST

START_TEST(test_u8)
{
    static const float values[] = {-3.0f,  0.0f,   0.49f,  0.5f,  1.25f,     254.4f,
                                   254.6f, 255.0f, 300.0f, 1e30f, -INFINITY, NAN};
    static const uint8_t bytes[] = {0, 0, 0, 1, 1, 254, 255, 255, 255, 255, 0, 0};
    float src[12];
    uint8_t dst[12];
    for (unsigned v = 0; v < 12; v++) {
        src[v] = values[v];
    }
    const struct operand narrow[] = {op_f32(1.0f), op_vector(DTYPE_F32, src, 12),
                                     op_vector(DTYPE_U8, dst, 12)};
    const struct operand widen[] = {op_f32(0.5f), op_vector(DTYPE_U8, dst, 12),
                                    op_vector(DTYPE_F32, src, 12)};
    run_operation("to_u8", narrow, 3);
    ck_assert_mem_eq(dst, bytes, sizeof(bytes));
    run_operation("from_u8", widen, 3);
    for (unsigned v = 0; v < 12; v++) {
        check_close("from_u8", v, (long double)src[v], 0.5L * bytes[v], 0);
    }
}
END_TEST

TCase *checks_image(void)
{
    TCase *t = tcase_create("image");
    tcase_add_test(t, test_gaussian);
    tcase_add_test(t, test_gaussian_identity);
    tcase_add_test(t, test_gaussian_weights);
    tcase_add_test(t, test_sobel);
    tcase_add_test(t, test_gray);
    tcase_add_test(t, test_u8);
    return t;
}
