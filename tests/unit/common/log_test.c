#include "common/log.h"

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
    log_info("quiet");
    log_warn("loud %d", 1);
    log_set_level(LOG_LEVEL_INFO);
    log_info("more");
    ck_assert_str_eq(listen_end(), "prog: loud 1\nprog: more\n");
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

/* The journal's end of the next stream, with its first lines checked. */
static int journal_accept(int listening)
{
    static const char head[] = "prog\n\n6\n1\n0\n0\n0\n";
    char got[sizeof head] = "";
    int fd = accept(listening, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(recv(fd, got, sizeof head - 1, MSG_WAITALL), sizeof head - 1);
    ck_assert_str_eq(got, head);
    return fd;
}

/* FAULT other: a kernel that prints lines like the daemon's
 * required: front and launcher log by a stream of their own; workers and compilers have
 *   another, at level info under their own name
 * defence: `common/journal.c`; `common/log.c`; `launcher/spawn.c`: output_place;
 *   `SyslogLevelPrefix=no` in all units
 * also: `check_units`
 * mutants: journal */
START_TEST(the_journal_gets_levels_by_a_stream_of_its_own)
{
    static const char lines[] = "<3>a\n<7>b\n";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char dir[] = "/tmp/gpud-log-XXXXXX";
    char got[sizeof lines] = "";
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    ck_assert_int_eq(setenv("JOURNAL_STREAM", "1:2", 1), 0); /* of another process's stderr */
    log_open("prog", LOG_LEVEL_DEBUG);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/s", dir);
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    log_journal(addr.sun_path);
    int fd = journal_accept(listening);
    listen_begin();
    log_error("a");
    log_debug("b");
    ck_assert_int_eq(recv(fd, got, sizeof lines - 1, MSG_WAITALL), sizeof lines - 1);
    ck_assert_str_eq(got, lines);
    (void)close(fd); /* it goes away: the line is not lost */
    log_warn("c");
    ck_assert_str_eq(listen_end(), "c\n");
    log_journal(NULL);
    (void)close(listening);
    (void)unlink(addr.sun_path);
    (void)rmdir(dir);
}
END_TEST

START_TEST(nobody_forges_a_line)
{
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ck_assert_int_eq(unsetenv("GPUD_LOG"), 0);
    log_open("prog", LOG_LEVEL_INFO);
    listen_begin();
    log_info("label %s", "x\nprog: forged\r\033[2J");
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
        log_info("%s", lines[i][0]);
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
    log_info("%s", big);
    const char *line = listen_end();
    ck_assert_uint_lt(strlen(line), 1100);
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}
END_TEST

SUITE_MAIN("log", names_and_levels_agree, only_what_is_wanted_is_written,
           the_environment_says_how_much, the_journal_gets_levels_by_a_stream_of_its_own,
           nobody_forges_a_line, all_that_is_written_is_text, long_lines_are_cut)
