/* The parts of examples/edges that need no daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/edges/image.h"
#include "examples/edges/reference.h"
#include "tests/unit/common/suite.h"

static char dir[] = "/tmp/edges-test-XXXXXX";
static char path[64];

static void make_dir(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a.png", dir);
}

static void remove_dir(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

START_TEST(pictures_go_to_png_and_back)
{
    uint8_t pixels[4 * 3 * 3];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * 7);
    }
    struct image image = {4, 3, 3, pixels}, back;
    ck_assert_ptr_null(image_save(path, &image));
    ck_assert_ptr_null(image_load(path, &back));
    ck_assert_uint_eq(back.width, 4);
    ck_assert_uint_eq(back.height, 3);
    ck_assert_mem_eq(back.pixels, pixels, sizeof pixels);
    image_free(&back);
}
END_TEST

START_TEST(damaged_pictures_are_refused)
{
    /* a PNG's and a JPEG's first bytes, then nonsense */
    static const char *const heads[] = {"\x89PNG\r\n\x1a\nnonsense", "\xff\xd8\xff\xe0nonsense",
                                        "nonsense", ""};
    for (int i = 0; i < 4; i++) {
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs(heads[i], file), 0);
        (void)fclose(file);
        struct image image = {0};
        ck_assert_ptr_nonnull(image_load(path, &image));
        ck_assert_ptr_null(image.pixels);
    }
    ck_assert_str_eq(image_load("/nonexistent/x.png", &(struct image){0}),
                     "No such file or directory");
}
END_TEST

START_TEST(sizes_have_a_limit)
{
    struct image image;
    ck_assert(!image_alloc(0, 1, 3, &image));
    ck_assert(!image_alloc(1, IMAGE_SIDE_MAX + 1, 3, &image));
    ck_assert(image_alloc(1, IMAGE_SIDE_MAX, 3, &image));
    image_free(&image);
}
END_TEST

/* A vertical step from black to white: its edges lie at the step, and are the same in each row. */
START_TEST(reference_finds_a_step)
{
    enum { W = 32, H = 8 };
    uint8_t pixels[W * H * 3];
    for (int i = 0; i < W * H; i++) {
        memset(pixels + 3 * i, i % W < W / 2 ? 0 : 255, 3);
    }
    struct image photo = {W, H, 3, pixels};
    double most = 0;
    double *edges = reference_edges(&photo, 1.0, &most);
    ck_assert_ptr_nonnull(edges);
    ck_assert_double_gt(most, 255);
    ck_assert_double_lt(most, 8 * 255);
    for (int y = 0; y < H; y++) {
        ck_assert_double_eq_tol(edges[y * W + W / 2], 1, 1e-12);
        ck_assert_double_eq_tol(edges[y * W + W / 2 - 1], 1, 1e-12);
        ck_assert_double_eq(edges[y * W], 0);
        ck_assert_double_eq(edges[y * W + W - 1], 0);
    }
    double bound = reference_bound(1.0, most);
    ck_assert_double_gt(bound, 0);
    ck_assert_double_lt(bound, 1e-3);
    free(edges);
}
END_TEST

SUITE_MAIN_IN("edges", make_dir, remove_dir, pictures_go_to_png_and_back,
              damaged_pictures_are_refused, sizes_have_a_limit, reference_finds_a_step)
