#include "common/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static char said[8192];
static int saved = -1;
static int pipe_fd[2];

static void listen_begin(void)
{
    ck_assert_int_eq(pipe(pipe_fd), 0);
    saved = dup(STDERR_FILENO);
    ck_assert_int_ge(saved, 0);
    ck_assert_int_ge(dup2(pipe_fd[1], STDERR_FILENO), 0);
    ck_assert_int_eq(close(pipe_fd[1]), 0);
}

static const char *listen_end(void)
{
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    ck_assert_int_eq(close(saved), 0);
    ssize_t n = read(pipe_fd[0], said, sizeof said - 1);
    ck_assert_int_ge(n, 0);
    said[n] = '\0';
    ck_assert_int_eq(close(pipe_fd[0]), 0);
    return said;
}

START_TEST(names_and_levels_agree)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (size_t i = 0; i < 4; i++) {
        int level = log_level_from_name(names[i]);
        ck_assert_int_gt(level, 0);
        ck_assert_str_eq(log_level_name(level), names[i]);
    }
    ck_assert_int_eq(log_level_from_name("loud"), -1);
    ck_assert_int_eq(log_level_from_name(""), -1);
}
END_TEST

START_TEST(only_what_is_wanted_is_written)
{
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("prog", LOG_LEVEL_WARN);
    listen_begin();
    log_say(LOG_READY, "quiet");
    log_say(LOG_JOBS_LEFT, "loud %d", 1);
    log_set_level(LOG_LEVEL_INFO);
    log_say(LOG_READY, "more");
    ck_assert_str_eq(listen_end(),
                     "prog: loud 1; their clients must submit them again\nprog: more\n");
    ck_assert_int_eq(log_get_level(), LOG_LEVEL_INFO);
}
END_TEST

START_TEST(the_environment_says_how_much)
{
    ck_assert_int_eq(setenv("GPUD_LOG", "debug", 1), 0);
    log_open("prog", LOG_LEVEL_INFO);
    ck_assert_int_eq(log_get_level(), LOG_LEVEL_DEBUG);
    ck_assert_int_eq(setenv("GPUD_LOG", "error", 1), 0);
    log_open("prog", LOG_LEVEL_INFO);
    ck_assert_int_eq(log_get_level(), LOG_LEVEL_ERROR);
    log_set_level(LOG_LEVEL_WARN); /* the settings */
    ck_assert_int_eq(log_get_level(), LOG_LEVEL_WARN);
    ck_assert_int_eq(setenv("GPUD_LOG", "loud", 1), 0);
    log_open("prog", LOG_LEVEL_INFO);
    ck_assert_int_eq(log_get_level(), LOG_LEVEL_INFO);
}
END_TEST

static void expect_environment(const char *level, const char *format, const char *want)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(setenv("GPUD_LOG", level, 1), 0);
    ck_assert_int_eq(setenv("GPUD_LOG_FORMAT", format, 1), 0);
    ck_assert_int_eq(log_environment(&e), want[0] != '\0' ? ERR_INVALID : 0);
    ck_assert_str_eq(e.text, want);
}

/* FAULT other: the environment has an unknown log level or format
 * required: gpud and its launcher do not start, the launcher's processes warn; the line has the
 *   variable, its value and the values that exist
 * defence: `common/log.c`: log_environment
 * also: `check_config`
 * mutants: log-environment */
START_TEST(an_unknown_value_of_the_environment_is_reported)
{
    expect_environment("", "", "");
    expect_environment("warn", "text", "");
    expect_environment("error", "json", "");
    expect_environment("loud", "json", "GPUD_LOG = loud: not one of error, warn, info, debug");
    expect_environment("debug", "xml", "GPUD_LOG_FORMAT = xml: not one of text, json");
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    log_open("prog", LOG_LEVEL_INFO);
    listen_begin();
    log_environment_warn();
    ck_assert_str_eq(listen_end(),
                     "prog: GPUD_LOG_FORMAT = xml: not one of text, json; correct the "
                     "environment of gpud-launcher, then restart it\n");
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG_FORMAT"), 0);
    struct err e = ERR_INIT;
    ck_assert_int_eq(log_environment(&e), 0);
}
END_TEST

/* ---- the journal ----------------------------------------------------------------------------- */

/* A double of the journal: a socket that takes entries. */
struct journal {
    char dir[32];
    struct sockaddr_un addr;
    int fd;
};

static void journal_begin(struct journal *j)
{
    *j = (struct journal){.dir = "/tmp/gpud-log-XXXXXX", .addr.sun_family = AF_UNIX};
    ck_assert_ptr_nonnull(mkdtemp(j->dir));
    (void)snprintf(j->addr.sun_path, sizeof j->addr.sun_path, "%s/s", j->dir);
    j->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(j->fd, 0);
    ck_assert_int_eq(bind(j->fd, (struct sockaddr *)&j->addr, sizeof j->addr), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    ck_assert_int_eq(setenv("JOURNAL_STREAM", "1:2", 1), 0); /* of another process's stderr */
    log_open("prog", LOG_LEVEL_DEBUG);
    log_journal(j->addr.sun_path);
}

static void journal_end(struct journal *j)
{
    log_journal(NULL);
    (void)close(j->fd);
    (void)unlink(j->addr.sun_path);
    (void)rmdir(j->dir);
}

/* The next entry; NULL: there is none. */
static const char *journal_next(const struct journal *j, size_t *ret_size)
{
    ssize_t n = recv(j->fd, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    *ret_size = n > 0 ? (size_t)n : 0;
    return n > 0 ? said : NULL;
}

static void expect_entry(const struct journal *j, const char *want, size_t size)
{
    size_t got = 0;
    ck_assert_ptr_nonnull(journal_next(j, &got));
    ck_assert_uint_eq(got, size);
    ck_assert_mem_eq(said, want, size);
}

/* The id of a kind as its entry has it. */
static const char *id_of(enum log_kind kind)
{
    static const char *const ids[] = {
#define LOG_KIND(name, level, rate, id, hint, subject, what, todo) id,
#include "common/log_kinds.def"
#undef LOG_KIND
    };
    return ids[kind];
}

/* FAULT other: a kernel that prints lines like the daemon's
 * required: front and launcher log by a socket of their own; workers and compilers have a
 *   stream, at level info under their own name, and no socket for entries
 * defence: `common/journal.c`; `common/log.c`; `launcher/spawn.c`: output_place;
 *   `SyslogLevelPrefix=no` in all units
 * also: `check_units`; `confine_test`
 * mutants: journal */
START_TEST(the_journal_gets_fields_by_a_socket_of_its_own)
{
    struct journal j;
    char want[512];
    journal_begin(&j);
    listen_begin();
    log_about(
        LOG_DEVICE_READY,
        (struct log_about){.job = 12, .trace = 0xabc, .tenant = "vision", .device = LOG_ON(0)},
        "device %u", 0);
    log_say(LOG_READY, "ready");
    ck_assert_str_eq(listen_end(), "");
    int n = snprintf(want, sizeof want,
                     "MESSAGE=device 0\nPRIORITY=6\nSYSLOG_IDENTIFIER=prog\nMESSAGE_ID=%s\n"
                     "GPUD_KIND=DEVICE_READY\nGPUD_JOB=12\nGPUD_TENANT=vision\nGPUD_DEVICE=0\n"
                     "GPUD_TRACE=0000000000000abc\n",
                     id_of(LOG_DEVICE_READY));
    expect_entry(&j, want, (size_t)n);
    n = snprintf(want, sizeof want,
                 "MESSAGE=ready\nPRIORITY=6\nSYSLOG_IDENTIFIER=prog\nMESSAGE_ID=%s\n"
                 "GPUD_KIND=READY\n",
                 id_of(LOG_READY));
    expect_entry(&j, want, (size_t)n);
    journal_end(&j);
}
END_TEST

/* FAULT other: a tenant's name that has fields of the journal in it
 * required: the name is one field, whatever its bytes
 * defence: `common/journal.c`: field_put
 * mutants: journal-newline */
START_TEST(a_newline_makes_no_field)
{
    static const char field[] = "GPUD_TENANT\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n";
    struct journal j;
    size_t size = 0;
    journal_begin(&j);
    log_about(LOG_READY, (struct log_about){.tenant = "a\nPRIORITY=0"}, "x\nPRIORITY=1");
    const char *entry = journal_next(&j, &size);
    ck_assert_ptr_nonnull(entry);
    ck_assert_ptr_eq(strstr(entry, "MESSAGE=x PRIORITY=1\nPRIORITY=6\n"), entry);
    ck_assert_ptr_nonnull(memmem(entry, size, field, sizeof field - 1));
    journal_end(&j);
}
END_TEST

/* FAULT other: the journal takes no more lines
 * required: the daemon goes on; the next line says how many are missing
 * defence: `common/journal.c`: journal_send; `common/log.c`: deliver
 * mutants: journal-blocks */
START_TEST(a_full_journal_costs_lines_and_says_so)
{
    enum { LINES = 20000 };
    struct journal j;
    char want[64];
    size_t size = 0;
    unsigned got = 0;
    journal_begin(&j);
    listen_begin();
    for (unsigned i = 0; i < LINES; i++) {
        log_debug("line %u", i);
    }
    ck_assert_str_eq(listen_end(), "");
    while (journal_next(&j, &size) != NULL) {
        got++;
    }
    ck_assert_uint_gt(got, 0);
    ck_assert_uint_lt(got, LINES);
    log_say(LOG_READY, "again");
    (void)snprintf(want, sizeof want, "MESSAGE=%u lines before this one are missing", LINES - got);
    ck_assert_ptr_eq(strstr(journal_next(&j, &size), want), said);
    ck_assert_ptr_eq(strstr(journal_next(&j, &size), "MESSAGE=again\n"), said);
    ck_assert_ptr_null(journal_next(&j, &size));
    journal_end(&j);
}
END_TEST

START_TEST(a_journal_that_is_gone_costs_no_line)
{
    struct journal j;
    journal_begin(&j);
    (void)close(j.fd);
    listen_begin();
    log_say(LOG_READY, "c");
    ck_assert_str_eq(listen_end(), "prog: c\n");
    journal_end(&j);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

static uint64_t now = 1000;

static uint64_t clock_double(void)
{
    return now;
}

static void limits_begin(void)
{
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("p", LOG_LEVEL_INFO);
    log_clock(clock_double);
    listen_begin();
}

/* The lines that were heard, and the last one of them. */
static unsigned lines_heard(const char **ret_last)
{
    unsigned lines = 0;
    const char *next = listen_end();
    for (char *end; (end = strchr(next, '\n')) != NULL; next = end + 1) {
        lines++;
        *ret_last = next;
    }
    return lines;
}

/* FAULT other: a client floods the log
 * required: at most so many lines of a kind in ten seconds; those left out are counted and told;
 *   other kinds are not affected
 * defence: `common/log.c`: admit
 * mutants: log-flood */
START_TEST(a_flood_is_cut_and_told)
{
    static const char told[] =
        "p: 90 lines of kind CONTROL were left out in the last 11 s: at most 10 in 10 s are kept";
    const char *last = NULL;
    limits_begin();
    for (unsigned i = 0; i < 100; i++) {
        log_say(LOG_CONTROL, "flood");
    }
    ck_assert_uint_eq(lines_heard(&last), LOG_RATE_FEW);
    listen_begin();
    log_say(LOG_READY, "another");
    log_tend(); /* it is too early to tell */
    ck_assert_uint_eq(lines_heard(&last), 1);
    listen_begin();
    now += UINT64_C(11000000000);
    log_say(LOG_CONTROL, "later");
    ck_assert_uint_eq(lines_heard(&last), 2);
    ck_assert_ptr_eq(strstr(said, told), said);
    ck_assert_str_eq(last, "p: later\n");
    listen_begin();
    log_tend(); /* it has been told */
    ck_assert_uint_eq(lines_heard(&last), 0);
}
END_TEST

/* Of two threads the one that read the clock first may come second. */
START_TEST(a_window_that_began_later_goes_on)
{
    const char *last = NULL;
    limits_begin();
    for (unsigned i = 0; i < 3 * LOG_RATE_FEW; i++) {
        now = i % 2 == 0 ? 2000 : 1999;
        log_say(LOG_CONTROL, "flood");
    }
    ck_assert_uint_eq(lines_heard(&last), LOG_RATE_FEW);
}
END_TEST

START_TEST(what_was_left_out_is_told_without_a_later_line)
{
    const char *last = "";
    limits_begin();
    for (unsigned i = 0; i < LOG_RATE_FEW + 1; i++) {
        log_say(LOG_CONTROL, "flood");
    }
    ck_assert_uint_eq(lines_heard(&last), LOG_RATE_FEW);
    now += UINT64_C(10000000000);
    listen_begin();
    log_tend();
    ck_assert_uint_eq(lines_heard(&last), 1);
    ck_assert_ptr_eq(strstr(said, "p: 1 lines of kind CONTROL were left out"), said);
    listen_begin();
    for (unsigned i = 0; i < LOG_RATE_FEW + 2; i++) {
        log_say(LOG_CONTROL, "flood");
    }
    log_end();
    ck_assert_uint_eq(lines_heard(&last), LOG_RATE_FEW + 1);
    ck_assert_ptr_eq(strstr(last, "p: 2 lines of kind CONTROL were left out"), last);
}
END_TEST

/* ---- stderr ---------------------------------------------------------------------------------- */

START_TEST(a_reader_that_stopped_costs_lines_and_no_time)
{
    enum { LINES = 5000 };
    char text[65536];
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("p", LOG_LEVEL_DEBUG);
    listen_begin();
    for (unsigned i = 0; i < LINES; i++) {
        log_debug("%040u", i); /* more than a pipe holds */
    }
    ck_assert_int_gt(read(pipe_fd[0], text, sizeof text), 0);
    ck_assert_int_gt(fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK) + 1, 0);
    while (read(pipe_fd[0], text, sizeof text) > 0) {
    }
    log_say(LOG_READY, "again");
    const char *heard = listen_end();
    ck_assert_ptr_nonnull(strstr(heard, " lines before this one are missing"));
    ck_assert_ptr_nonnull(strstr(heard, "\np: again\n"));
}
END_TEST

START_TEST(json_is_chosen_by_the_environment)
{
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    ck_assert_int_eq(setenv("GPUD_LOG_FORMAT", "json", 1), 0);
    log_open("prog", LOG_LEVEL_INFO);
    listen_begin();
    log_about(LOG_DEVICE_READY, (struct log_about){.device = LOG_ON(1)}, "\"x\"\n");
    const char *line = listen_end();
    ck_assert_ptr_eq(strstr(line, "{\"time\":\"20"), line);
    ck_assert_ptr_nonnull(strstr(line, "\"level\":\"info\",\"program\":\"prog\",\"pid\":"));
    ck_assert_ptr_nonnull(strstr(line, "\"kind\":\"DEVICE_READY\""));
    ck_assert_ptr_nonnull(strstr(line, "\"device\":1,\"message\":\"\\\"x\\\"\\u000a\"}\n"));
}
END_TEST

/* What to do is never cut off. */
START_TEST(each_line_ends_with_what_to_do)
{
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("p", LOG_LEVEL_INFO);
    listen_begin();
    log_say(LOG_SETTINGS_BAD, "short");
    log_say(LOG_SETTINGS_BAD, "%s", big);
    const char *heard = listen_end();
    ck_assert_ptr_eq(strstr(heard, "p: short; correct it, then gpuctl reload\np: xx"), heard);
    ck_assert_ptr_nonnull(strstr(heard, "xx; correct it, then gpuctl reload\n"));
}
END_TEST

START_TEST(nobody_forges_a_line)
{
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("prog", LOG_LEVEL_INFO);
    listen_begin();
    log_say(LOG_READY, "label %s", "x\nprog: forged\r\033[2J");
    ck_assert_str_eq(listen_end(), "prog: label x prog: forged  [2J\n");
}
END_TEST

/* The journal hides a line with bytes that are no text. */
START_TEST(all_that_is_written_is_text)
{
    static const char *const lines[][2] = {
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xfe.", "??."},
        {"\xc0\xaf\xc1\xbf", "????"},
        {"\xe0\x9f\xbf\xed\xa0\x80", "??????"},
        {"\xf0\x8f\xbf\xbf\xf4\x90\x80\x80\xf5", "?????????"},
        {"\xc2\x85\xc2\xa0", "??\xc2\xa0"},
        {"cut \xe2\x82", "cut ??"},
        {"\xe2\xe2\x82\xac", "?\xe2\x82\xac"},
    };
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("p", LOG_LEVEL_INFO);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char want[100];
        (void)snprintf(want, sizeof want, "p: %s\n", lines[i][1]);
        listen_begin();
        log_say(LOG_READY, "%s", lines[i][0]);
        ck_assert_str_eq(listen_end(), want);
    }
}
END_TEST

START_TEST(long_lines_are_cut)
{
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    big[sizeof big - 1] = '\0';
    log_open("prog", LOG_LEVEL_INFO);
    listen_begin();
    log_say(LOG_READY, "%s", big);
    const char *line = listen_end();
    ck_assert_uint_lt(strlen(line), 1100);
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}
END_TEST

SUITE_MAIN("log", names_and_levels_agree, only_what_is_wanted_is_written,
           the_environment_says_how_much, an_unknown_value_of_the_environment_is_reported,
           the_journal_gets_fields_by_a_socket_of_its_own, a_newline_makes_no_field,
           a_full_journal_costs_lines_and_says_so, a_journal_that_is_gone_costs_no_line,
           a_flood_is_cut_and_told, a_window_that_began_later_goes_on,
           what_was_left_out_is_told_without_a_later_line,
           a_reader_that_stopped_costs_lines_and_no_time, json_is_chosen_by_the_environment,
           each_line_ends_with_what_to_do, nobody_forges_a_line, all_that_is_written_is_text,
           long_lines_are_cut)
