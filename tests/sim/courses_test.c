/* The courses of a simulation's seeds, each of which once broke a rule, break none. Wrong options
 * end the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/common/suite.h"

START_TEST(kept_courses_break_no_rule)
{
    ck_assert_int_eq(system(SIM " --kept"), 0);
}
END_TEST

/* The text says what is valid, and has examples. */
static void refused(const char *options, const char *valid)
{
    char command[512];
    char text[4096];
    (void)snprintf(command, sizeof command, "%s %s 2>&1", SIM, options);
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    size_t size = fread(text, 1, sizeof text - 1, out);
    text[size] = '\0';
    int status = pclose(out);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 2);
    ck_assert_msg(strstr(text, valid) != NULL, "%s: %s", options, text);
    ck_assert_ptr_nonnull(strstr(text, "_sim --seeds 1-10000 --lanes 2"));
}

START_TEST(wrong_options_are_explained)
{
    refused("--seeds 5-9/0", "--seeds 5-9/0: give two numbers, 1 <= A <= B");
    refused("--seeds 5-4", "--seeds 5-4: give two numbers, 1 <= A <= B");
    refused("--seeds 0-4", "1 <= A <= B");
    refused("--seeds 1-4x", "1 <= A <= B");
    refused("--seeds", "1 <= A <= B");
    refused("--lanes 65", "--lanes 65: give a number from 1 to 64");
    refused("--lanes -1", "from 1 to 64");
    refused("--seconds soon", "from 1 to 1000000");
    refused("--keep /no/such/folder", "give a folder that exists");
    refused("--file", "give the name of a course");
    refused("--file a.course --keep /tmp", "--file --keep: --file has courses behind it");
    refused("--keep /tmp --file a.course", "--keep: --file has courses behind it");
    refused("--help", "--help: no such option");
}
END_TEST

SUITE_MAIN("courses", kept_courses_break_no_rule, wrong_options_are_explained)
