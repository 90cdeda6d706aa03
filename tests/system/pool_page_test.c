/* The page of `gpuctl pool snapshot --html` in headless Chromium: it renders, has no errors, and
 * answers clicks. Skipped where there is no Chromium or no Python. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define SKIPPED 77

static char out[DAEMON_OUTPUT];
static char err[DAEMON_OUTPUT];
static char chromium[512];
static char python[512];

/* A program of the path; "" without it. */
static void find(const char *const *names, char *ret_path, size_t size)
{
    const char *path = getenv("PATH");
    ret_path[0] = '\0';
    for (; *names != NULL && ret_path[0] == '\0'; names++) {
        for (const char *at = path; at != NULL && ret_path[0] == '\0';) {
            const char *end = strchr(at, ':');
            int length = (int)(end != NULL ? end - at : (long)strlen(at));
            (void)snprintf(ret_path, size, "%.*s/%s", length, at, *names);
            if (access(ret_path, X_OK) != 0) {
                ret_path[0] = '\0';
            }
            at = end != NULL ? end + 1 : NULL;
        }
    }
}

/* Buffers that stay, buffers that go, and jobs with temporaries between them. */
static void work(gpud_client *c)
{
    gpud_buffer passing[8] = {{0}};
    for (unsigned i = 0; i < 60; i++) {
        char label[64];
        gpud_buffer b = {0};
        (void)snprintf(label, sizeof label, i == 7 ? "</script><b>weights & \"more\"" : "layer %u",
                       i);
        ck_gpud_ok(
            gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1000 + (2000u << i % 9)), 0, label, &b));
        if (i >= 8) {
            ck_gpud_ok(gpud_buffer_free(c, passing[i % 8]));
        }
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 100 + 5000 * i), 0, "passing",
                                      &passing[i % 8]));
    }
}

START_TEST(the_page_renders_and_answers)
{
    char page[160];
    char script[256];
    char log[160];
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", _i == 0 ? "sim" : "opencl", NULL);
    work(c);
    (void)snprintf(page, sizeof page, "%s/pool.html", d.dir);
    (void)snprintf(log, sizeof log, "%s/page.log", d.dir);
    (void)snprintf(script, sizeof script, "%s/pool_page.py", SYSTEM_SOURCE);
    int status = gpuctl(&d, out, err, "pool", "snapshot", "--html", page, NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    const char *const argv[] = {python, script, chromium, page, "</script><b>weights & \"more\"",
                                NULL};
    status = run_program(argv, "/dev/null", log);
    file_read(log, err, sizeof err);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    daemon_end(&d, c);
}
END_TEST

/* Of a daemon that has done nothing. */
START_TEST(an_empty_pool_has_a_page)
{
    char page[160];
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    (void)snprintf(page, sizeof page, "%s/pool.html", d.dir);
    int status = gpuctl(&d, out, err, "pool", "snapshot", "--html", page, NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    file_read(page, out, sizeof out);
    ck_assert_msg(strstr(out, "<!doctype html>") == out && strstr(out, "@DATA@") == NULL, "%s",
                  page);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    static const char *const browsers[] = {"chromium-headless-shell", "chromium",
                                           "chromium-browser", "google-chrome", NULL};
    static const char *const pythons[] = {"python3", NULL};
    find(browsers, chromium, sizeof chromium);
    find(pythons, python, sizeof python);
    if (chromium[0] == '\0' || python[0] == '\0') {
        fprintf(stderr, "skipped: no chromium or no python3\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("pool page");
    suite_add_loop(suite, the_page_renders_and_answers, 2);
    suite_add(suite, an_empty_pool_has_a_page);
    return system_main(suite);
}
