/* What the programs must compute: it can be missed, and each has its source and fits its arrays. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/gpu/cu/programs.h"
#include "tests/unit/common/suite.h"

static struct program_run r;

static void put(const struct program_output *o, void *data, unsigned i, double value)
{
    switch (o->type) {
    case PROGRAM_F32:
        ((float *)data)[i] = (float)value;
        break;
    case PROGRAM_F64:
        ((double *)data)[i] = value;
        break;
    case PROGRAM_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case PROGRAM_U64:
        ((uint64_t *)data)[i] = (uint64_t)value;
        break;
    default:
        ((unsigned char *)data)[i] = (unsigned char)value;
        break;
    }
}

/* Where a type has none, a number that is none of the wanted ones. */
static double off_by(const struct program_output *o, unsigned i)
{
    double away = 2 * o->tolerance * (1 + fabs(o->want[i])) + 1;
    return o->want[i] > away ? o->want[i] - away : o->want[i] + away;
}

START_TEST(a_right_result_is_told_from_a_wrong_one)
{
    const struct program *p = &programs[_i];
    program_prepare(p, &r);
    ck_assert_uint_gt(r.outputs, 0);
    for (unsigned n = 0; n < r.outputs; n++) {
        const struct program_output *o = &r.output[n];
        unsigned char *data = r.data[o->buffer];
        unsigned at = 0;
        ck_assert_msg(program_wrong(o, data, &at) > 0, "%s: right before it ran", p->name);
        for (unsigned i = 0; i < o->count; i++) {
            put(o, data, i, o->want[i]);
        }
        ck_assert_msg(program_wrong(o, data, &at) == 0, "%s: value %u", p->name, at);
        for (unsigned i = 0; i <= o->odd; i++) {
            ck_assert_msg(program_wrong(o, data, &at) == 0, "%s: %u may be odd", p->name, o->odd);
            put(o, data, o->count - 1 - i, off_by(o, o->count - 1 - i));
        }
        ck_assert_msg(program_wrong(o, data, &at) == o->odd + 1, "%s: not seen", p->name);
        ck_assert_uint_eq(at, o->count - 1 - o->odd);
        put(o, data, 0, o->type == PROGRAM_F32 || o->type == PROGRAM_F64 ? NAN : off_by(o, 0));
        ck_assert_uint_gt(program_wrong(o, data, &at), 0);
    }
}
END_TEST

START_TEST(each_has_its_source)
{
    for (unsigned i = 0; i < program_count; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, GPU_CU "/%s.cu", programs[i].name);
        ck_assert_msg(access(path, R_OK) == 0, "%s", path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("programs");
    TCase *tcase = tcase_create("programs");
    tcase_add_loop_test(tcase, a_right_result_is_told_from_a_wrong_one, 0, (int)program_count);
    tcase_add_test(tcase, each_has_its_source);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
