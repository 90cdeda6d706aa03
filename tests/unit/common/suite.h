/* The main function of a test program: one suite, one case for each list of tests. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

/* setup and teardown surround each test; NULL: none */
static inline int suite_run_in(const char *name, void (*setup)(void), void (*teardown)(void),
                               const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < count; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    return suite_run_in(name, NULL, NULL, tests, count);
}

#define SUITE_MAIN_IN(name, setup, teardown, ...)                                                  \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return suite_run_in(name, setup, teardown, tests, sizeof tests / sizeof tests[0]);         \
    }

#define SUITE_MAIN(name, ...) SUITE_MAIN_IN(name, NULL, NULL, __VA_ARGS__)

#endif
