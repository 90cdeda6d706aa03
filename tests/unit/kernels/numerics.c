/* Every built-in operation against references in higher precision, on one target. */
#include <check.h>
#include <stdlib.h>

#include "checks.h"
#include "runner.h"

int main(void)
{
    int r = runner_target.init();
    if (r != 0) {
        return r;
    }
    Suite *s = suite_create("numerics");
    suite_add_tcase(s, checks_elementwise());
    suite_add_tcase(s, checks_reduce());
    suite_add_tcase(s, checks_scan());
    suite_add_tcase(s, checks_integer());
    suite_add_tcase(s, checks_matrix());
    suite_add_tcase(s, checks_image());
    suite_add_tcase(s, checks_physics());
    suite_add_tcase(s, checks_special());
    suite_add_tcase(s, checks_random());
    SRunner *sr = srunner_create(s);
    /* an OpenCL driver does not survive a fork */
    srunner_set_fork_status(sr, CK_NOFORK);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    runner_target.finish();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
