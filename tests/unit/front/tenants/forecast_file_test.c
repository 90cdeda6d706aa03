/* What jobs take, over a restart, and with files that are not to be believed. */
#include "daemon/front/tenants/forecast_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

static struct tenant *tenants;
static char folder[SCRATCH_PATH];
static char path[256];

static struct tenant *named(const char *name)
{
    struct tenant *t = tenant_named(&tenants, name);
    ck_assert_ptr_nonnull(t);
    return t;
}

static void learn(struct tenant *t, uint64_t key, uint64_t ns)
{
    for (unsigned i = 0; i < 10; i++) {
        forecast_learn(&t->forecast, key, ns);
    }
}

/* The file after two tenants have learnt something. */
static const char *written(void)
{
    const char *dir = folder;
    scratch_make(folder);
    learn(named("a"), 7, 5000);
    learn(named("a"), 8, 123456789);
    learn(named("b"), 7, 900);
    forecast_file_write(NULL, tenants, dir);
    tenant_destroy_all(&tenants);
    (void)snprintf(path, sizeof path, "%s/forecasts", dir);
    return dir;
}

START_TEST(each_tenant_gets_its_own_back)
{
    struct forecast_file *file = NULL;
    const char *dir = written();
    for (unsigned restarts = 0; restarts < 3; restarts++) {
        forecast_file_read(dir, &file);
        ck_assert_ptr_nonnull(file);
        struct tenant *a = named("a");
        struct tenant *c = named("c");
        forecast_file_give(file, a);
        forecast_file_give(file, c);
        ck_assert_uint_eq(forecast_find(&a->forecast, 7).ns, 5000);
        ck_assert(forecast_find(&a->forecast, 7).sure);
        ck_assert_uint_eq(forecast_find(&a->forecast, 8).ns / 1000, 123456);
        ck_assert_uint_eq(forecast_find(&c->forecast, 7).ns, 0);
        if (restarts == 2) { /* it had not connected meanwhile */
            forecast_file_give(file, named("b"));
            ck_assert_uint_eq(forecast_find(&named("b")->forecast, 7).ns, 900);
        }
        forecast_file_write(file, tenants, dir);
        forecast_file_destroy(file);
        tenant_destroy_all(&tenants);
    }
    scratch_remove(folder);
}
END_TEST

static void expect_ignored(const char *dir)
{
    struct forecast_file *file = NULL;
    forecast_file_read(dir, &file);
    ck_assert_ptr_null(file);
    forecast_file_give(file, named("a"));
    ck_assert_uint_eq(forecast_find(&named("a")->forecast, 7).ns, 0);
    tenant_destroy_all(&tenants);
}

/* Cut anywhere, or with any byte changed to one that is none of its kind. */
START_TEST(a_damaged_file_is_ignored)
{
    char text[1024];
    log_set_level(LOG_LEVEL_ERROR); /* each is a warning */
    const char *dir = written();
    FILE *in = fopen(path, "r");
    ck_assert_ptr_nonnull(in);
    size_t size = fread(text, 1, sizeof text, in);
    ck_assert_int_eq(fclose(in), 0);
    for (size_t i = 0; i + 1 < 2 * size; i++) {
        FILE *out = fopen(path, "w");
        ck_assert_ptr_nonnull(out);
        char kept = text[i / 2];
        text[i / 2] = i % 2 == 1 ? '#' : kept;
        ck_assert_uint_eq(fwrite(text, 1, i % 2 == 1 ? size : i / 2, out),
                          i % 2 == 1 ? size : i / 2);
        text[i / 2] = kept;
        ck_assert_int_eq(fclose(out), 0);
        expect_ignored(dir);
    }
    scratch_remove(folder);
}
END_TEST

START_TEST(a_foreign_file_is_ignored)
{
    struct forecast_file *file = NULL;
    char other[300];
    log_set_level(LOG_LEVEL_ERROR);
    const char *dir = written();
    ck_assert_int_eq(chmod(path, 0666), 0);
    expect_ignored(dir);
    ck_assert_int_eq(chmod(path, 0600), 0);
    (void)snprintf(other, sizeof other, "%s.other", path);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
    expect_ignored(dir);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    expect_ignored(dir);
    ck_assert_int_eq(rmdir(path), 0);
    expect_ignored(dir); /* there is none */
    forecast_file_read("/nowhere", &file);
    ck_assert_ptr_null(file);
    learn(named("a"), 7, 5000);
    forecast_file_write(NULL, tenants, "/nowhere");
    tenant_destroy_all(&tenants);
    scratch_remove(folder);
}
END_TEST

SUITE_MAIN("forecast_file", each_tenant_gets_its_own_back, a_damaged_file_is_ignored,
           a_foreign_file_is_ignored)
