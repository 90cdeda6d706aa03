/* The courses of a simulation's seeds, each of which once broke a rule, break none. */
#include <stdlib.h>

#include "tests/unit/common/suite.h"

START_TEST(kept_courses_break_no_rule)
{
    ck_assert_int_eq(system(SIM " --kept"), 0);
}
END_TEST

SUITE_MAIN("courses", kept_courses_break_no_rule)
