/* Arguments of a launch that share memory, and scalars that have an order: what signatures allow.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/modules/building.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/recipe.h"

static struct fake *k;
static struct recipe r;
static struct buffer *a; /* f32 16 */
static struct buffer *b; /* f32 16 */

static void setup(void)
{
    k = fake_create();
    ck_assert_int_eq(building_init(&k->f, NULL), 0);
    a = fake_buffer(k, 0, 64, true);
    b = fake_buffer(k, 0, 64, true);
    recipe_init(&r, k);
}

static void teardown(void)
{
    recipe_finish(&r);
    building_finish(&k->f);
    fake_destroy(k);
}

#define LAUNCH(name, ...) RECIPE_LAUNCH(&r, name, __VA_ARGS__)

static void fill(struct proto_arg dst)
{
    recipe_arg(&r, dst);
    recipe_arg(&r, arg_scalar(DTYPE_F32, 0));
    recipe_step(&r, (struct proto_step){.op = OP_FILL});
}

static void expect_taken(void)
{
    ck_assert_msg(recipe_resolve(&r) == 0, "%s", r.e.text);
    recipe_reset(&r);
}

static void expect_shared(const char *names, int arg)
{
    ck_assert_int_eq(recipe_resolve(&r), ERR_RANGE);
    ck_assert_msg(strstr(r.e.text, names) != NULL, "%s", r.e.text);
    ck_assert_int_eq(r.e.arg, arg);
    recipe_reset(&r);
}

START_TEST(arrays_share_memory_as_the_signature_allows)
{
    LAUNCH("neg", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
    expect_taken();
    LAUNCH("neg", arg_buffer(a, 0, 8), arg_buffer(a, 8, 8));
    expect_taken();
    LAUNCH("neg", arg_buffer(a, 0, 15), arg_buffer(a, 1, 15));
    expect_shared("neg: arguments x and y share memory", 1);
    LAUNCH("neg", arg_buffer(a, 1, 15), arg_buffer(a, 0, 15));
    expect_shared("arguments x and y", 1);
    LAUNCH("add", arg_buffer(a, 0, 15), arg_buffer(a, 1, 15), arg_buffer(b, 0, 15));
    expect_taken(); /* both are only read */
    LAUNCH("add", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
    expect_taken();
    LAUNCH("scan_inclusive", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
    expect_taken();
    LAUNCH("scan_exclusive", arg_buffer(a, 0, 15), arg_buffer(a, 1, 15));
    expect_shared("scan_exclusive: arguments x and y", 1);
    LAUNCH("reduce_sum", arg_buffer(a, 0, 0), arg_buffer(a, 3, 1));
    expect_shared("arguments x and sum", 1);
    recipe_temp(&r, DTYPE_F32, 16);
    fill(arg_temp(0, 0, 0));
    LAUNCH("neg", arg_temp(0, 0, 15), arg_temp(0, 1, 15));
    expect_shared("arguments x and y", 1);
    recipe_temp(&r, DTYPE_F32, 16);
    recipe_temp(&r, DTYPE_F32, 16);
    fill(arg_temp(0, 0, 0));
    LAUNCH("neg", arg_temp(0, 0, 0), arg_temp(1, 0, 0));
    expect_taken();
}
END_TEST

/* Operations that would read what they have written already. */
START_TEST(arrays_that_have_to_lie_apart)
{
    struct buffer *u = fake_buffer(k, 0, 64, true);
    u->shape = (struct shape){.dtype = DTYPE_U32, .ndim = 1, .dim = {16}};
    a->shape = (struct shape){.dtype = DTYPE_F32, .ndim = 2, .dim = {4, 4}};
    LAUNCH("transpose", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
    expect_shared("transpose: arguments src and dst share memory; the kernel needs them apart", 1);
    LAUNCH("sobel", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
    expect_shared("sobel: arguments src and dst", 1);
    b->shape = a->shape;
    LAUNCH("gemm", arg_buffer(a, 0, 0), arg_buffer(b, 0, 0), arg_buffer(a, 0, 0));
    expect_shared("gemm: arguments a and c", 2);
    LAUNCH("gemm", arg_buffer(a, 0, 0), arg_buffer(b, 0, 0), arg_buffer(b, 0, 0));
    expect_shared("gemm: arguments b and c", 2);
    LAUNCH("gemm_add", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(a, 0, 0), arg_buffer(a, 0, 0),
           arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(b, 0, 0));
    expect_taken();
    LAUNCH("nbody", arg_scalar(DTYPE_F32, F32_ONE), arg_scalar(DTYPE_F32, F32_ONE),
           arg_buffer(a, 0, 0), arg_buffer(b, 0, 0), arg_buffer(a, 0, 0));
    expect_shared("nbody: arguments pos and next", 4);
    LAUNCH("histogram", arg_buffer(u, 0, 0), arg_buffer(u, 0, 0));
    expect_shared("histogram: arguments x and bins", 1);
    LAUNCH("gaussian", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0), arg_scalar(DTYPE_F32, F32_ONE));
    expect_taken();
}
END_TEST

/* A transform of one number in place has nothing to do, as it has not with two arrays but a copy.
 */
START_TEST(a_transform_of_one_number_may_be_in_place)
{
    static const char *const names[] = {"fft", "ifft", "fft_batched", "fft_2d"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool two = i < 2;
        a->shape =
            (struct shape){.dtype = DTYPE_F32, .ndim = two ? 2 : 3, .dim = {1, two ? 2 : 1, 2}};
        a->bytes = 8;
        b->shape = a->shape;
        b->bytes = a->bytes;
        LAUNCH(names[i], arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
        ck_assert_msg(recipe_resolve(&r) == 0, "%s: %s", names[i], r.e.text);
        ck_assert_uint_eq(r.work.step_count, 0);
        recipe_reset(&r);
        LAUNCH(names[i], arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
        ck_assert_int_eq(recipe_resolve(&r), 0);
        ck_assert_uint_eq(r.work.step_count, 1);
        ck_assert_int_eq(r.work.steps[0].op, OP_COPY);
        recipe_reset(&r);
    }
    a->bytes = b->bytes = 64;
}
END_TEST

START_TEST(a_clamp_has_low_below_high)
{
    LAUNCH("clamp", arg_scalar(DTYPE_F32, F32_ONE), arg_scalar(DTYPE_F32, 0), arg_buffer(a, 0, 0),
           arg_buffer(b, 0, 0));
    ck_assert_int_eq(recipe_resolve(&r), ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(r.e.text, "arguments low and high: 1 is more than 0"));
    recipe_reset(&r);
    LAUNCH("clamp", arg_scalar(DTYPE_F32, 0), arg_scalar(DTYPE_F32, 0), arg_buffer(a, 0, 0),
           arg_buffer(b, 0, 0));
    expect_taken();
}
END_TEST

SUITE_MAIN_IN("alias", setup, teardown, arrays_share_memory_as_the_signature_allows,
              arrays_that_have_to_lie_apart, a_transform_of_one_number_may_be_in_place,
              a_clamp_has_low_below_high)
