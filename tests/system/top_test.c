/* `gpuctl top` in a real terminal: tmux. Skipped where it is not installed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

static char server[160]; /* the socket of tmux, in the daemon's folder */
static char screen[16384];

/* Runs tmux with up to five words. Returns its exit status. */
static int tmux(const char *output, const char *const *words)
{
    const char *argv[12] = {"tmux", "-S", server, "-f", "/dev/null"};
    for (unsigned i = 0; words[i] != NULL && i < 6; i++) {
        argv[5 + i] = words[i];
    }
    return run_program(argv, output, "/dev/null");
}
#define TMUX(...) ck_assert_int_eq(tmux("/dev/null", (const char *const[]){__VA_ARGS__, NULL}), 0)

static bool has_tmux(void)
{
    bool has = tmux("/dev/null", (const char *const[]){"-V", NULL}) == 0;
    if (!has) {
        (void)printf("skipped: tmux is not installed\n");
    }
    return has;
}

/* Starts top in a terminal of 80x24. */
static void start(const struct daemon *d, const char *environment)
{
    char command[512];
    (void)snprintf(server, sizeof server, "%s/tmux", d->dir);
    (void)snprintf(command, sizeof command,
                   "env %s %s/gpuctl -u %s top -w 0.1; echo \"ended $?\"; exec sleep 300",
                   environment, SYSTEM_BIN, d->url);
    const char *argv[] = {"tmux", "-S", server, "-f", "/dev/null", "new-session", "-d",
                          "-x",   "80", "-y",   "24", command,     NULL};
    ck_assert_int_eq(run_program(argv, "/dev/null", "/dev/null"), 0);
}

/* Reads the screen; does it have the text? */
static bool shows(const struct daemon *d, const char *text)
{
    char file[160];
    (void)snprintf(file, sizeof file, "%s/screen", d->dir);
    (void)unlink(file);
    if (tmux(file, (const char *const[]){"capture-pane", "-p", NULL}) != 0) {
        return false;
    }
    file_read(file, screen, sizeof screen);
    return strstr(screen, text) != NULL;
}

static void key(const char *name)
{
    TMUX("send-keys", name);
}

static void resize(const char *width, const char *height)
{
    TMUX("resize-window", "-x", width, "-y", height);
}

/* The longest line, in bytes. */
static size_t width_of(const char *text)
{
    size_t most = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        most = n > most ? n : most;
        text += n + (text[n] == '\n');
    }
    return most;
}

static gpud_job *fill(gpud_client *c, uint32_t items, const char *label)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, items), 0, NULL, &b));
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    gpud_submit_options o = {.size = sizeof o, .label = label};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &o, &job));
    return job;
}

/* Ends tmux and what runs in it; they are children of this process then. */
static void end_of_tmux(const struct daemon *d)
{
    char file[160];
    int pids[2] = {0, 0};
    (void)snprintf(file, sizeof file, "%s/pids", d->dir);
    ck_assert_int_eq(
        tmux(file, (const char *const[]){"display-message", "-p", "#{pid} #{pane_pid}", NULL}), 0);
    file_read(file, screen, sizeof screen);
    ck_assert_int_eq(sscanf(screen, "%d %d", &pids[0], &pids[1]), 2);
    TMUX("kill-server");
    (void)kill(pids[1], SIGKILL); /* where SIGHUP is ignored it would go on */
    for (unsigned i = 0; i < 2; i++) {
        (void)waitpid(pids[i], NULL, 0);
    }
}

START_TEST(keys_do_what_they_say)
{
    struct daemon d;
    if (!has_tmux()) {
        return;
    }
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.window=1", NULL);
    gpud_job *runs = fill(c, 60000, "running"); /* for a minute */
    gpud_job *waits = fill(c, 10, "waiting");
    job_await_dispatch(c, runs);
    ck_until(gpud_job_id(waits) != 0);
    start(&d, "TERM=vt100 LC_ALL=C");
    ck_until(shows(&d, "its turn") && strstr(screen, "[4 jobs]") != NULL);
    ck_assert_msg(strstr(screen, "gpud ready") != NULL && strstr(screen, "h help") != NULL, "%s",
                  screen);
    ck_until(shows(&d, "@] 100 %")); /* without UTF-8 the bars are letters */
    ck_assert_msg(width_of(screen) <= 80, "%s", screen);
    for (const char *at = screen; *at != '\0'; at++) {
        ck_assert_msg((unsigned char)*at < 0x80, "%s", screen);
    }

    key("e");
    ck_until(shows(&d, "any key goes back") && strstr(screen, "waits for its turn") != NULL);
    key("x");
    ck_until(shows(&d, "h help"));
    key("/");
    TMUX("send-keys", "RUNNING", "Enter");
    ck_until(shows(&d, "/RUNNING") && strstr(screen, "its turn") == NULL &&
             strstr(screen, "running") != NULL);
    key("Escape");
    ck_until(shows(&d, "its turn"));
    key(">");
    ck_until(shows(&d, "by JOB, down"));
    key("r");
    ck_until(shows(&d, "by JOB, up"));
    key("1");
    ck_until(shows(&d, "[1 devices]") && strstr(screen, "BACKEND") != NULL);
    key("Right");
    ck_until(shows(&d, "[2 tenants]"));
    key("3");
    ck_until(shows(&d, "[3 sessions]") && strstr(screen, "gpuctl") != NULL);
    key("5");
    ck_until(shows(&d, "[5 pool]") && strstr(screen, "LARGEST FREE") != NULL);
    key("h");
    ck_until(shows(&d, "reverse the order"));
    key("x");

    key("4"); /* sorted upwards: the job that waits is the last */
    ck_until(shows(&d, "its turn"));
    TMUX("send-keys", "G", "c");
    ck_until(shows(&d, "cancel job"));
    key("n");
    ck_until(shows(&d, "h help"));
    ck_assert_uint_eq(query_value(c, "status", NULL, "cancelled"), 0);
    TMUX("send-keys", "c", "y");
    ck_until(query_value(c, "status", NULL, "cancelled") == 1);
    ck_assert_int_eq(gpud_wait(waits, PATIENCE), GPUD_ERR_CANCELLED);
    key("q");
    ck_until(shows(&d, "ended 0"));
    end_of_tmux(&d);
    gpud_job_free(runs);
    gpud_job_free(waits);
    gpud_close(c);
    daemon_kill(&d);
}
END_TEST

/* Any size will do, and a daemon that goes away and comes again. */
START_TEST(sizes_and_daemons_change)
{
    static const char *const sizes[][2] = {{"40", "10"}, {"5", "2"}, {"1", "1"}, {"300", "80"}};
    struct daemon d;
    if (!has_tmux()) {
        return;
    }
    daemon_start(&d, "--backend", "sim", NULL);
    start(&d, "TERM=screen-256color LC_ALL=C.UTF-8");
    ck_until(shows(&d, "first kernel"));
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        resize(sizes[i][0], sizes[i][1]);
    }
    ck_until(shows(&d, "ERROR"));
    resize("40", "10");
    ck_until(shows(&d, "[4 job") && strstr(screen, "ERROR") == NULL);
    ck_assert_msg(width_of(screen) <= 40, "%s", screen);
    resize("80", "24");
    daemon_kill(&d);
    ck_until(shows(&d, "no answer"));
    key("h"); /* keys go on meanwhile */
    ck_until(shows(&d, "reverse the order"));
    key("x");
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_until(shows(&d, "gpud ready"));
    key("C-c");
    ck_until(shows(&d, "ended 0"));
    end_of_tmux(&d);
    daemon_stop(&d);
}
END_TEST

START_TEST(what_is_no_terminal_is_refused)
{
    struct daemon d;
    static char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT];
    daemon_start(&d, "--backend", "sim", NULL);
    ck_assert_int_eq(gpuctl(&d, out, err, "top", NULL), 2);
    ck_assert_msg(strstr(err, "-w 2 writes lines") != NULL, "%s", err);
    if (has_tmux()) {
        start(&d, "TERM=nothing");
        ck_until(shows(&d, "ended 1"));
        ck_assert_msg(strstr(screen, "'nothing' is not known") != NULL, "%s", screen);
        end_of_tmux(&d);
    }
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("top");
    suite_add(suite, keys_do_what_they_say);
    suite_add(suite, sizes_and_daemons_change);
    suite_add(suite, what_is_no_terminal_is_refused);
    return system_main(suite);
}
