/* The configuration file as installed and the table of settings say the same. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/settings/config.h"

static char text[32768];

static void file_read(void)
{
    FILE *f = fopen(GPUD_CONF, "re");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    ck_assert_int_eq(ferror(f), 0);
    ck_assert_uint_lt(n, sizeof text - 1);
    ck_assert_int_eq(fclose(f), 0);
    text[n] = '\0';
}

/* Where a section begins and how long it is. */
static const char *section_find(const char *name, size_t *ret_size)
{
    char head[64];
    (void)snprintf(head, sizeof head, "\n[%s]\n", name);
    const char *begin = strstr(text, head);
    ck_assert_msg(begin != NULL, "no section [%s]", name);
    const char *end = strstr(begin + 1, "\n[");
    *ret_size = end != NULL ? (size_t)(end - begin) : strlen(begin);
    return begin;
}

START_TEST(every_setting_is_there_with_its_default)
{
    file_read();
    struct config config;
    config_defaults(&config);
    const char *section = NULL;
    const char *key = NULL;
    char value[512];
    unsigned count = 0;
    for (; config_at(&config, count, &section, &key, value, sizeof value); count++) {
        char line[1024];
        (void)snprintf(line, sizeof line, "\n#%s =%s%s", key, value[0] != '\0' ? " " : "", value);
        size_t size = 0;
        const char *begin = section_find(section, &size);
        ck_assert_msg(memmem(begin, size, line, strlen(line)) != NULL, "no line \"%s\" in [%s]",
                      line + 1, section);
    }
    ck_assert_uint_gt(count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_keys");
    TCase *tcase = tcase_create("config_keys");
    tcase_add_test(tcase, every_setting_is_there_with_its_default);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
