#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/settings/accepted.h"
#include "tests/unit/common/suite.h"

static char dir[64];

static const char *at(const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *out = path[turn++ % 4];
    (void)snprintf(out, sizeof path[0], "%s/%s", dir, name);
    return out;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void expect(const char *name, const char *want)
{
    char text[64] = "";
    FILE *f = fopen(at(name), "r");
    ck_assert_int_eq(f != NULL, want != NULL);
    if (f != NULL) {
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        ck_assert_str_eq(text, want);
        (void)fclose(f);
    }
}

/* Settings in `dir`/etc, and the service manager's folder. */
static void begin(struct config *config)
{
    (void)snprintf(dir, sizeof dir, "/tmp/gpud-accepted-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    static const char *const folders[] = {"state", "etc", "etc/gpud.conf.d", "etc/tenants.d"};
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(mkdir(at(folders[i]), 0700), 0);
    }
    ck_assert_int_eq(setenv("STATE_DIRECTORY", at("state"), 1), 0);
    put("etc/gpud.conf", "main");
    put("etc/gpud.conf.d/10.conf", "ten");
    put("etc/gpud.conf.d/20.conf", "twenty");
    put("etc/gpud.conf.d/other.txt", "not read");
    put("etc/tenants.d/a.conf", "tenant");
    *config = (struct config){.chosen = false};
    (void)snprintf(config->root, sizeof config->root, "%s", at("etc"));
}

static void end(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0); /* NOLINT: the test's own folder */
}

START_TEST(copies_follow_the_files)
{
    struct config config;
    struct err e = ERR_INIT;
    char root[CONFIG_PATH];
    begin(&config);
    ck_assert(!accepted_root(root));
    ck_assert_msg(accepted_keep(&config, &e) == 0, "%s", e.text);
    ck_assert(accepted_root(root));
    ck_assert_str_eq(root, at("state/settings"));
    expect("state/settings/gpud.conf", "main");
    expect("state/settings/gpud.conf.d/10.conf", "ten");
    expect("state/settings/gpud.conf.d/20.conf", "twenty");
    expect("state/settings/gpud.conf.d/other.txt", NULL);
    expect("state/settings/tenants.d/a.conf", "tenant");
    put("etc/gpud.conf", "changed");
    ck_assert_int_eq(unlink(at("etc/gpud.conf.d/10.conf")), 0);
    ck_assert_msg(accepted_keep(&config, &e) == 0, "%s", e.text);
    expect("state/settings/gpud.conf", "changed");
    expect("state/settings/gpud.conf.d/10.conf", NULL);
    expect("state/settings/gpud.conf.d/20.conf", "twenty");
    end();
}
END_TEST

START_TEST(one_that_was_interrupted_is_begun_anew)
{
    struct config config;
    struct err e = ERR_INIT;
    begin(&config);
    ck_assert_int_eq(mkdir(at("state/settings.new"), 0700), 0);
    put("state/settings.new/gpud.conf", "half");
    ck_assert_msg(accepted_keep(&config, &e) == 0, "%s", e.text);
    expect("state/settings/gpud.conf", "main");
    ck_assert_int_ne(access(at("state/settings.new"), F_OK), 0);
    end();
}
END_TEST

START_TEST(a_failure_leaves_the_copies)
{
    struct config config;
    struct err e = ERR_INIT;
    begin(&config);
    ck_assert_int_eq(accepted_keep(&config, &e), 0);
    ck_assert_int_eq(unlink(at("etc/gpud.conf")), 0);
    ck_assert_int_eq(mkdir(at("etc/gpud.conf"), 0700), 0); /* cannot be read as a file */
    ck_assert_int_eq(accepted_keep(&config, &e), ERR_IO);
    expect("state/settings/gpud.conf", "main");
    expect("state/settings/tenants.d/a.conf", "tenant");
    end();
}
END_TEST

START_TEST(one_file_that_was_chosen)
{
    struct config config;
    struct err e = ERR_INIT;
    begin(&config);
    config.chosen = true;
    (void)snprintf(config.file, sizeof config.file, "%s", at("etc/gpud.conf.d/20.conf"));
    ck_assert_msg(accepted_keep(&config, &e) == 0, "%s", e.text);
    expect("state/settings/gpud.conf", "twenty");
    ck_assert_int_ne(access(at("state/settings/gpud.conf.d"), F_OK), 0);
    end();
}
END_TEST

START_TEST(without_a_state_folder_nothing_is_done)
{
    struct config config;
    struct err e = ERR_INIT;
    char root[CONFIG_PATH];
    begin(&config);
    ck_assert_int_eq(unsetenv("STATE_DIRECTORY"), 0);
    ck_assert_int_eq(accepted_keep(&config, &e), 0);
    ck_assert(!accepted_root(root));
    end();
}
END_TEST

SUITE_MAIN("accepted", copies_follow_the_files, one_that_was_interrupted_is_begun_anew,
           a_failure_leaves_the_copies, one_file_that_was_chosen,
           without_a_state_folder_nothing_is_done)
