/* The access log: what is in a line, and what happens when a line cannot be written. */
#include "daemon/front/views/access_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"
#include "tests/unit/front/scratch.h"

static struct fake *k;
static struct job *j;
static struct access_log *l;
static char dir[SCRATCH_PATH];
static char text[65536];

static void begin(void)
{
    scratch_make(dir);
    k = fake_create();
    j = fake_job(k, 0);
    (void)fake_submit(k, j);
    fake_turn(k);
    ck_assert_int_eq(access_log_create(&l, NULL), 0);
    log_set_level(LOG_LEVEL_WARN);
}

static void end(void)
{
    access_log_destroy(l);
    fake_done(k, j, 0);
    fake_turn(k);
    fake_destroy(k);
    (void)unlink(scratch_path(dir, "a"));
    (void)unlink(scratch_path(dir, "b"));
    scratch_remove(dir);
}

static const char *content(const char *name)
{
    FILE *in = fopen(scratch_path(dir, name), "re");
    size_t n = in != NULL ? fread(text, 1, sizeof text - 1, in) : 0;
    text[n] = '\0';
    if (in != NULL) {
        (void)fclose(in);
    }
    return text;
}

static unsigned lines(const char *name)
{
    unsigned count = 0;
    for (const char *c = content(name); *c != '\0'; c++) {
        count += *c == '\n';
    }
    return count;
}

static void until(unsigned count, const char *name)
{
    while (lines(name) < count) {                 /* Check's time-out is the limit */
        ck_assert_uint_eq(access_log_lost(l), 0); /* it will not come */
        (void)usleep(1000);
    }
    ck_assert_uint_eq(lines(name), count);
}

START_TEST(a_line_has_what_the_job_did)
{
    struct device *d = j->device;
    struct device own = {.index = DEVICES_MAX, .base = d}; /* clients know d only */
    j->device = &own;
    (void)snprintf(j->label, sizeof j->label, "a \"b\"\nresult=done\x7f\\");
    j->to_device = 123;
    j->device_ns = 4567000;
    j->state = JOB_FAILED;
    j->error.code = ERR_DEADLINE;
    access_log_job(l, j); /* off: nothing */
    access_log_set(l, scratch_path(dir, "a"));
    access_log_job(l, j);
    until(1, "a");
    ck_assert_ptr_nonnull(strstr(text, " tenant=uid:1000 session="));
    ck_assert_msg(
        strstr(text, " label=\"a \\x22b\\x22\\x0aresult=done\\x7f\\x5c\" kernels=- device=0 ") !=
            NULL,
        "%s", text);
    ck_assert_ptr_nonnull(strstr(text, " device_us=4567 to_device=123 from_device=0 "));
    ck_assert_ptr_nonnull(strstr(text, " result=deadline error=DEADLINE\n"));
    j->device = d;
    j->counted = true; /* by an earlier front, which has written its line */
    access_log_job(l, j);
    j->counted = false;
    struct tenant *t = j->tenant;
    j->tenant = NULL; /* the daemon's own */
    access_log_job(l, j);
    j->tenant = t;
    access_log_set(l, "off");
    access_log_job(l, j);
    j->state = JOB_DISPATCHED;
    j->error.code = 0;
    ck_assert_uint_eq(access_log_lost(l), 0);
    access_log_set(l, scratch_path(dir, "b"));
    access_log_job(l, j);
    until(1, "b");
    ck_assert_uint_eq(lines("a"), 1);
}
END_TEST

/* Text of clients poses as no other field or line, and does not make the line too long. */
START_TEST(a_line_cannot_be_forged)
{
    struct work_step step[2] = {{.op = OP_LAUNCH}, {.op = OP_LAUNCH}};
    const struct work work = j->work;
    (void)snprintf(step[0].entry, sizeof step[0].entry, "a result=done\nb,\"");
    memset(step[1].entry, '\n', sizeof step[1].entry - 1);
    memset(j->label, '\1', sizeof j->label - 1);
    memset(j->session->name, '\1', sizeof j->session->name - 1);
    j->work.steps = step;
    j->work.step_count = 2;
    access_log_set(l, scratch_path(dir, "a"));
    access_log_job(l, j);
    j->work = work;
    until(1, "a");
    ck_assert_msg(strstr(text, " kernels=a\\x20result=done\\x0ab\\x2c\\x22,… device=0 ") != NULL,
                  "%s", text);
    unsigned escaped = 0;
    for (const char *at = text; (at = strstr(at, "\\x01")) != NULL; at++) {
        escaped++;
    }
    ck_assert_uint_eq(escaped, sizeof j->label - 1 + sizeof j->session->name - 1);
}
END_TEST

/* A job of a tenant's own worker names the device that clients know. */
START_TEST(a_line_names_the_device_of_a_domain)
{
    struct device *base = j->device;
    struct device domain = {.index = DEVICES_MAX + 1, .base = base};
    access_log_set(l, scratch_path(dir, "a"));
    j->device = &domain;
    access_log_job(l, j);
    j->device = base;
    until(1, "a");
    ck_assert_msg(strstr(text, " device=0 stream=0 ") != NULL, "%s", text);
}
END_TEST

/* A file that was renamed gets no more lines once it is opened anew; none is lost. */
START_TEST(a_file_is_rotated)
{
    access_log_set(l, scratch_path(dir, "a"));
    for (unsigned i = 0; i < 10; i++) {
        access_log_job(l, j);
    }
    until(10, "a");
    ck_assert_int_eq(rename(scratch_path(dir, "a"), scratch_path(dir, "b")), 0);
    access_log_job(l, j);
    until(11, "b");
    access_log_set(l, scratch_path(dir, "a"));
    for (unsigned i = 0; i < 10; i++) {
        access_log_job(l, j);
    }
    while (lines("a") + lines("b") < 21) {
        (void)usleep(1000);
    }
    access_log_job(l, j);
    while (lines("a") + lines("b") < 22) {
        (void)usleep(1000);
    }
    ck_assert_uint_gt(lines("a"), 0);
    ck_assert_uint_eq(access_log_lost(l), 0);
}
END_TEST

static void until_lost(uint64_t count)
{
    while (access_log_lost(l) < count) {
        (void)usleep(1000);
    }
    ck_assert_uint_eq(access_log_lost(l), count);
}

/* A full disk: lines are missing, and the next one that can be written says how many. */
START_TEST(a_full_disk_costs_lines)
{
    log_set_level(LOG_LEVEL_ERROR - 1);
    access_log_set(l, "/dev/full");
    for (unsigned i = 0; i < 7; i++) {
        access_log_job(l, j);
    }
    access_log_set(l, scratch_path(dir, "a"));
    access_log_job(l, j);
    while (lines("a") == 0) {
        (void)usleep(1000);
    }
    ck_assert_msg(strstr(text, "Z missing=7\n") != NULL, "%s", text); /* before the line */
    until_lost(7);
    while (lines("a") == 1) {
        (void)usleep(1000);
    }
    ck_assert_ptr_nonnull(strstr(text, "tenant="));
    access_log_set(l, scratch_path(dir, "none/a"));
    uint64_t lost = access_log_lost(l);
    while (access_log_lost(l) == lost) {
        access_log_job(l, j);
        (void)usleep(1000);
    }
}
END_TEST

/* More than there is room for, while nothing is written. */
START_TEST(room_has_an_end)
{
    log_set_level(LOG_LEVEL_ERROR - 1);
    access_log_set(l, scratch_path(dir, "a"));
    const unsigned count = 4 * ACCESS_ROOM / 128;
    for (unsigned i = 0; i < count; i++) {
        access_log_job(l, j);
    }
    access_log_destroy(l); /* all that found room is written */
    l = NULL;
    unsigned there = 0;
    uint64_t missing = 0;
    char line[ACCESS_LINE];
    FILE *in = fopen(scratch_path(dir, "a"), "re");
    ck_assert_ptr_nonnull(in);
    while (fgets(line, sizeof line, in) != NULL) {
        const char *note = strstr(line, " missing=");
        missing += note != NULL ? strtoull(note + 9, NULL, 10) : 0;
        there += note == NULL;
    }
    (void)fclose(in);
    ck_assert_uint_le(there + missing, count); /* a note needs a later line */
    ck_assert_uint_ge(there, 1024);
}
END_TEST

/* Lines are counted as well where memory or a thread is missing; a reload tries again. */
START_TEST(without_memory_lines_are_counted)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* need memory */
    struct rlimit all;
    log_set_level(LOG_LEVEL_ERROR - 1);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &all), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = all.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    access_log_set(l, scratch_path(dir, "a"));
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &all), 0);
    for (unsigned i = 0; i < 3; i++) {
        access_log_job(l, j);
    }
    ck_assert_uint_eq(access_log_lost(l), 3);
    access_log_set(l, scratch_path(dir, "a"));
    access_log_job(l, j);
    while (lines("a") < 2) {
        ck_assert_uint_eq(access_log_lost(l), 3);
        (void)usleep(1000);
    }
    ck_assert_ptr_nonnull(strstr(text, "Z missing=3\n"));
#endif
}
END_TEST

SUITE_MAIN_IN("access log", begin, end, a_line_has_what_the_job_did, a_line_cannot_be_forged,
              a_line_names_the_device_of_a_domain, a_file_is_rotated, a_full_disk_costs_lines,
              room_has_an_end, without_memory_lines_are_counted)
