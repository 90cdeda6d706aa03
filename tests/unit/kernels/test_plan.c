#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/plan.h"

static struct sig_value array(int dtype, uint64_t a, uint64_t b)
{
    struct sig_value v = {.array = true};
    const uint64_t dims[] = {a, b};
    ck_assert_int_eq(shape_make(dtype, b == 0 ? 1 : 2, dims, &v.shape, NULL), 0);
    return v;
}

static struct plan *planned(const char *name, const struct sig_value *values, unsigned count,
                            int *ret_code, struct err *e)
{
    struct plan *plan = malloc(sizeof(*plan));
    struct sig_binding b;
    const struct signature *s = plan_signature(name);
    unsigned module = 0;
    ck_assert_ptr_nonnull(plan);
    if (s == NULL) {
        ck_assert_msg(builtin_find(name, &module, &s), "%s", name);
    }
    ck_assert_msg(signature_bind(s, values, count, &b, e) == 0, "%s", e->text);
    *ret_code = plan_make(name, values, count, &b, plan, e);
    return plan;
}

/* Each launch fits its kernel, each reference what the plan has. */
static void check_plan(const struct plan *plan, unsigned user_count)
{
    ck_assert_uint_le(plan->temp_count, PLAN_TEMPS);
    ck_assert_uint_le(plan->step_count, PLAN_STEPS);
    for (unsigned s = 0; s < plan->step_count; s++) {
        const struct plan_step *step = &plan->step[s];
        struct sig_value values[SIG_ARGS] = {0};
        struct sig_binding b;
        struct err e = ERR_INIT;
        const struct signature *sig = NULL;
        unsigned module = 0;
        for (unsigned a = 0; a < step->arg_count; a++) {
            const struct plan_ref *ref = &step->arg[a];
            values[a] = (struct sig_value){.array = ref->kind != PLAN_SCALAR,
                                           .shape = ref->shape,
                                           .dtype = ref->dtype,
                                           .bits = ref->bits};
            if (ref->kind == PLAN_TEMP) {
                ck_assert_uint_lt(ref->index, plan->temp_count);
                ck_assert_uint_le(ref->offset + shape_bytes(&ref->shape), plan->temp[ref->index]);
            } else if (ref->kind == PLAN_USER) {
                ck_assert_uint_lt(ref->index, user_count);
            }
        }
        if (step->op == PLAN_LAUNCH) {
            ck_assert_msg(builtin_find(step->kernel, &module, &sig), "%s", step->kernel);
            ck_assert_msg(signature_bind(sig, values, step->arg_count, &b, &e) == 0, "%s: %s",
                          step->kernel, e.text);
        }
    }
}

START_TEST(test_single)
{
    int r = 0;
    struct err e = ERR_INIT;
    const struct sig_value values[] = {
        {.dtype = DTYPE_I32, .bits = 2}, array(DTYPE_F32, 100, 0), array(DTYPE_F32, 100, 0)};
    struct plan *plan = planned("axpy", values, 3, &r, &e);
    ck_assert_int_eq(r, 0);
    ck_assert_uint_eq(plan->step_count, 1);
    ck_assert_str_eq(plan->step[0].kernel, "axpy");
    ck_assert_int_eq(plan->step[0].arg[0].kind, PLAN_SCALAR);
    ck_assert_int_eq(plan->step[0].arg[0].dtype, DTYPE_F32);
    ck_assert_uint_eq(plan->step[0].arg[0].bits, 0x40000000);
    ck_assert_int_eq(plan->step[0].arg[2].kind, PLAN_USER);
    ck_assert_uint_eq(plan->step[0].arg[2].index, 2);
    check_plan(plan, 3);
    free(plan);
}
END_TEST

static const uint64_t sizes[] = {0, 1, 4096, 4097, UINT64_C(1) << 24, (UINT64_C(1) << 32) - 1};

START_TEST(test_sizes)
{
    static const char *const in_out[] = {"scan_inclusive", "scan_exclusive"};
    static const char *const to_one[] = {"reduce_sum", "reduce_min", "reduce_max"};
    uint64_t n = sizes[_i];
    int r = 0;
    struct err e = ERR_INIT;
    const struct sig_value same[] = {array(DTYPE_U32, n, 0), array(DTYPE_U32, n, 0)};
    const struct sig_value one[] = {array(DTYPE_U32, n, 0), array(DTYPE_U32, 1, 0)};
    const struct sig_value dot[] = {same[0], same[1], one[1]};
    for (unsigned o = 0; o < 2; o++) {
        struct plan *plan = planned(in_out[o], same, 2, &r, &e);
        ck_assert_msg(r == 0, "%s", e.text);
        check_plan(plan, 2);
        free(plan);
    }
    for (unsigned o = 0; o < 3; o++) {
        struct plan *plan = planned(to_one[o], one, 2, &r, &e);
        ck_assert_msg(r == 0, "%s", e.text);
        ck_assert_int_eq(plan->step[0].op, n == 0 ? PLAN_FILL : PLAN_LAUNCH);
        check_plan(plan, 2);
        free(plan);
    }
    struct plan *plan = planned("dot", dot, 3, &r, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    check_plan(plan, 3);
    free(plan);
    plan = planned("sort", same, 1, &r, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    check_plan(plan, 1);
    free(plan);
}
END_TEST

START_TEST(test_fft)
{
    int r = 0;
    struct err e = ERR_INIT;
    for (unsigned bits = 0; bits < 60; bits++) {
        const struct sig_value values[] = {array(DTYPE_F32, UINT64_C(1) << bits, 2),
                                           array(DTYPE_F32, UINT64_C(1) << bits, 2)};
        struct plan *plan = planned("fft", values, 2, &r, &e);
        ck_assert_msg(r == 0, "%s", e.text);
        ck_assert_uint_eq(plan->step_count, bits == 0 ? 1 : bits);
        check_plan(plan, 2);
        free(plan);
    }
    const struct sig_value odd[] = {array(DTYPE_F32, 12, 2), array(DTYPE_F32, 12, 2)};
    struct plan *plan = planned("fft", odd, 2, &r, &e);
    ck_assert_int_eq(r, ERR_ARG_SHAPE);
    ck_assert_str_eq(e.text, "fft: n = 12 is no power of two");
    free(plan);
}
END_TEST

START_TEST(test_refused)
{
    int r = 0;
    struct err e = ERR_INIT;
    static const uint32_t sigmas[] = {0,
                                      0x80000000 /* -0 */,
                                      0xbf800000 /* -1 */,
                                      0x7fc00000 /* NaN */,
                                      0x7f800000 /* inf */,
                                      0xff800000 /* -inf */,
                                      0x42aaaaac /* the next above 256/3 */,
                                      0x7f7fffff /* the largest */,
                                      0x80000001 /* the largest below 0 */};
    for (unsigned s = 0; s < sizeof(sigmas) / sizeof(sigmas[0]); s++) {
        const struct sig_value values[] = {array(DTYPE_F32, 8, 8),
                                           array(DTYPE_F32, 8, 8),
                                           {.dtype = DTYPE_F32, .bits = sigmas[s]}};
        struct plan *plan = planned("gaussian", values, 3, &r, &e);
        ck_assert_int_eq(r, ERR_RANGE);
        free(plan);
    }
    const struct sig_value many[] = {array(DTYPE_U32, UINT64_C(1) << 32, 0)};
    struct plan *plan = planned("sort", many, 1, &r, &e);
    ck_assert_int_eq(r, ERR_LIMIT);
    ck_assert_int_eq(plan_make("none", NULL, 0, NULL, plan, &e), ERR_NOT_FOUND);
    ck_assert_int_eq(plan_make("sort", NULL, 0, NULL, plan, &e), ERR_ARG_COUNT);
    free(plan);
}
END_TEST

/* Any sigma in (0, 256/3] has a plan, with one weight where it is too narrow to reach a pixel. */
START_TEST(test_gaussian_reach)
{
    static const struct {
        uint32_t sigma;
        uint64_t weights;
    } cases[] = {{0x00000001 /* the smallest */, 1}, {0x007fffff /* denormal */, 1},
                 {0x0da24260 /* 1e-30 */, 1},        {0x3d4ccccc /* below 0.05 */, 1},
                 {0x3d4ccccd /* 0.05 */, 2},         {0x3f800000 /* 1 */, 4},
                 {0x42aaaaaa /* 85.33 */, 257}};
    int r = 0;
    struct err e = ERR_INIT;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct sig_value values[] = {array(DTYPE_F32, 8, 8),
                                           array(DTYPE_F32, 8, 8),
                                           {.dtype = DTYPE_F32, .bits = cases[i].sigma}};
        struct plan *plan = planned("gaussian", values, 3, &r, &e);
        ck_assert_msg(r == 0, "%s", e.text);
        ck_assert_uint_eq(plan->temp[0], cases[i].weights * 4);
        check_plan(plan, 3);
        free(plan);
    }
}
END_TEST

START_TEST(test_operations)
{
    ck_assert_uint_ge(plan_operation_count(), 11);
    for (unsigned o = 0; o < plan_operation_count(); o++) {
        const char *name = plan_operation_name(o);
        ck_assert_str_ne(name, "");
        ck_assert_ptr_nonnull(plan_signature(name));
    }
    ck_assert_ptr_null(plan_operation_name(plan_operation_count()));
    ck_assert_ptr_null(plan_signature(""));
    ck_assert_ptr_null(plan_signature("axpy"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_add_test(t, test_single);
    tcase_add_loop_test(t, test_sizes, 0, sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_test(t, test_fft);
    tcase_add_test(t, test_refused);
    tcase_add_test(t, test_gaussian_reach);
    tcase_add_test(t, test_operations);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
