/*
 * A real gpud in a directory of its own, for tests through the daemon. Every function fails the
 * running Check test instead of returning an error, except where its comment says otherwise.
 *
 * Processes: each test is a child that reaps everything the daemon leaves behind; what a failed
 * test leaves is ended by system_main after the last one. Thread: one.
 */
#ifndef SYSTEM_HARNESS_H
#define SYSTEM_HARNESS_H

#include <check.h>
#include <gpud/gpud.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DAEMON_ARGS_MAX 24
#define DAEMON_PATH     96
#define DAEMON_OUTPUT   65536
#define MS              UINT64_C(1000000)
#define SECOND          (1000 * MS)
/* Nothing here takes so long unless it hangs: 60 s, or GPUD_SYSTEM_PATIENCE of them, and
 * GPUD_TEST_PATIENCE times as long in a build with sanitizers. */
#define PATIENCE patience_ns()

struct daemon {
    pid_t pid; /* 0: not running */
    char dir[DAEMON_PATH];
    char url[DAEMON_PATH];
    char log[DAEMON_PATH];
    const char *args[DAEMON_ARGS_MAX]; /* not owned */
    unsigned arg_count;
    unsigned descriptors; /* at most so many, if not 0; to be set between prepare and spawn */
    bool refuses;         /* its workers are expected to be refused system calls */
};

/* Makes the directory, starts gpud with these options (the last one NULL) and waits until it is
 * ready. */
void daemon_start(struct daemon *d, const char *option, ...) __attribute__((sentinel));
/* The same with a client of it, and the end of both. */
gpud_client *daemon_begin(struct daemon *d, const char *option, ...) __attribute__((sentinel));
void daemon_end(struct daemon *d, gpud_client *c);
/* The end, and the double of the CUDA driver has nothing to complain of in the file "report". */
void daemon_end_clean(struct daemon *d, gpud_client *c);
/* The start in two parts: a directory and the options, then the process, without waiting. */
void daemon_prepare(struct daemon *d, const char *option, ...) __attribute__((sentinel));
void daemon_spawn(struct daemon *d);
void daemon_wait_ready(const struct daemon *d);
/* Whether it takes jobs: also while it is degraded, as without its cache. */
bool daemon_serves(const struct daemon *d);
/* SIGTERM; its exit status must be 0 and all its processes must end. */
void daemon_stop(struct daemon *d);
/* SIGKILL, reaped. */
void daemon_kill(struct daemon *d);
/* SIGUSR1; its exit status must be 0, and launcher and workers go on. */
void daemon_hand_over(struct daemon *d);
/* Waits for its end; the exit status, or 128 + the signal. */
int daemon_wait(struct daemon *d);
/* Whether its log holds this text. */
bool daemon_logged(const struct daemon *d, const char *text);

pid_t daemon_worker(const struct daemon *d, unsigned device); /* 0: none at the moment */
pid_t daemon_launcher(const struct daemon *d);                /* 0: none at the moment */
pid_t daemon_compiler(const struct daemon *d);                /* 0: none at the moment */
/* The launcher's children that run this program; how many, at most `max`. */
unsigned daemon_children(pid_t launcher, const char *program, pid_t *ret_pids, unsigned max);
/* Whether the device has a worker, and another one than `before`. */
bool daemon_has_another(const struct daemon *d, unsigned device, pid_t before);
/* Until the device's worker is another one and the daemon is ready. */
void daemon_wait_worker(const struct daemon *d, unsigned device, pid_t before);

gpud_client *client_open(const char *url);
gpud_kernel kernel_find(gpud_client *c, const char *name);
/* Until it is with a worker, or over. */
void job_await_dispatch(gpud_client *c, const gpud_job *job);
/* One cell of a table; rows are chosen by the text of their first column, NULL: the first row.
 * UINT64_MAX if there is no such row. */
uint64_t query_value(gpud_client *c, const char *table, const char *row, const char *column);
void query_text(gpud_client *c, const char *table, const char *row, const char *column, char *out,
                size_t size);

/* Runs gpuctl with these arguments (the last one NULL) and captures both outputs. Returns its exit
 * status. */
int gpuctl(const struct daemon *d, char *out, char *err, const char *argument, ...)
    __attribute__((sentinel));
int run_program(const char *const *argv, const char *stdout_file, const char *stderr_file);
/* The whole file, cut to the size with the NUL. */
void file_read(const char *path, char *out, size_t size);
void file_write(const char *path, const void *data, size_t size);

/* "tcp://127.0.0.1:PORT" with a port that is free. */
void tcp_url(char *out, size_t size);
uint64_t now_ns(void);
uint64_t patience_ns(void);
void pause_ms(unsigned ms); /* between two looks */
/* Children with results: runs work in a process of its own; it ends with what work returns, 1 on
 * a failed check. */
pid_t process_start(int (*work)(void *data), void *data);
int process_wait(pid_t pid); /* exit status, or 128 + the signal */

/* Each test has a case of its own, so that CK_RUN_CASE can choose it. The tests of a storm can also
 * be chosen by CK_INCLUDE_TAGS=storm. */
#define suite_add(suite, test)             suite_add_case((suite), #test, (test), 1)
#define suite_add_loop(suite, test, count) suite_add_case((suite), #test, (test), (count))
#define suite_add_storm(suite, test, count)                                                        \
    tcase_set_tags(suite_add_loop((suite), test, (count)), "storm")
TCase *suite_add_case(Suite *suite, const char *name, const TTest *test, int count);
/* Runs the suite; for main. */
int system_main(Suite *suite);

#define ck_gpud_ok(expression)                                                                     \
    do {                                                                                           \
        int ck_code = (expression);                                                                \
        ck_assert_msg(ck_code == 0, "%s: %s: %s", #expression, gpud_err_name(ck_code),             \
                      gpud_last_error()->text);                                                    \
    } while (0)

#define ck_gpud_err(expression, expected)                                                          \
    do {                                                                                           \
        int ck_code = (expression);                                                                \
        ck_assert_msg(ck_code == (expected), "%s: %s instead of %s: %s", #expression,              \
                      gpud_err_name(ck_code), gpud_err_name(expected), gpud_last_error()->text);   \
    } while (0)

/* Waits for a condition, at most PATIENCE. */
#define ck_until(condition)                                                                        \
    do {                                                                                           \
        uint64_t ck_end = now_ns() + PATIENCE;                                                     \
        while (!(condition)) {                                                                     \
            ck_assert_msg(now_ns() < ck_end, "never happened: %s", #condition);                    \
            pause_ms(10);                                                                          \
        }                                                                                          \
    } while (0)

/* The driver double's kernel fake_gate runs until the gate is opened. */
bool gate_shut(const struct daemon *d); /* it runs, and waits */
void gate_open(const struct daemon *d);

#endif
