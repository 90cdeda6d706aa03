/*
 * What all commands share: the common options, the connection, messages, and the table of commands.
 * Commands write data to standard output and messages to standard error. Thread: one.
 */
#ifndef GPUCTL_CTL_CTL_H
#define GPUCTL_CTL_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/ctl/options.h"
#include "gpuctl/sheet/sheet.h"
#include "gpuctl/sheet/sheet_series.h"

/* Codes besides GPUD_ERR_* that end a command early and are no failures. */
#define CTL_HELP    (-1001)
#define CTL_VERSION (-1002)

struct command;

struct ctl {
    const char *url; /* NULL: the library's choice */
    enum sheet_format format;
    bool colour;                   /* standard output is a terminal that wants colours */
    bool progress;                 /* standard error is a terminal */
    gpud_client *client;           /* NULL before ctl_connect */
    const struct command *command; /* the command that runs; NULL: not found yet */
    uint64_t watch_ns;             /* -w: time between two rounds; 0: there is one */
    struct sheet_series series;    /* with -w: what was written so far */
    uint64_t answer_ns;            /* how long a brief command may have to wait besides */
};

enum command_kind {
    COMMAND_LONG = 0, /* takes as long as it takes */
    COMMAND_BRIEF,    /* the daemon answers at once: an answer has a time limit */
    COMMAND_LOOKS,    /* brief, and -w repeats it */
    COMMAND_SCREEN,   /* repeats itself; -w is its interval */
};

struct command {
    const char *name;             /* "ping"; "job show": two words */
    const char *words;            /* synopsis of what follows the name */
    const char *summary;          /* one line */
    const char *help;             /* options and examples; "": none */
    const struct option *options; /* its own; NULL: none */
    /* Reads its options and words and does its work. Returns 0; a GPUD_ERR_* code, CTL_USAGE,
     * CTL_HELP or CTL_VERSION with *e filled; or an exit code > 0 if the command has printed its
     * messages. */
    int (*run)(struct ctl *ctl, struct options *options, struct ctl_err *e);
    enum command_kind kind;
};

extern const struct option jobs_option_list[];
extern const struct option job_cancel_option_list[];
extern const struct option job_dump_option_list[];
extern const struct option record_start_option_list[];
extern const struct option replay_option_list[];
extern const struct option run_option_list[];
extern const struct option bench_option_list[];
extern const struct option demo_option_list[];
extern const struct option kernel_check_option_list[];
extern const struct option pool_option_list[];
extern const struct option trace_option_list[];
extern const struct option wait_option_list[];
extern const struct option drain_option_list[];
extern const struct option resume_option_list[];
extern const struct option logs_option_list[];
extern const struct option metrics_option_list[];
extern const struct option pool_snapshot_option_list[];

extern const struct command commands[]; /* ends with a NULL name */
/* The command of one or two words, NULL if there is none; second may be NULL. */
const struct command *command_find(const char *first, const char *second);
/* Do commands exist whose first word this is? */
bool command_is_group(const char *first);
/* The second words of a group, "show, cancel"; returns out. */
const char *command_seconds(const char *first, char *out, size_t size);
/* "; did you mean X?" for a message about an unknown command, "" if nothing is near. Returns out.
 */
const char *command_meant(const char *name, char *out, size_t size);
void commands_print(FILE *out);
void command_help(const struct command *command, FILE *out);

/* Reads the next option and handles the common ones. An id of `own`, OPTION_WORD,
 * OPTION_END, or OPTION_BAD with e->code CTL_USAGE, CTL_HELP or CTL_VERSION. */
int ctl_option(struct ctl *ctl, struct options *options, const struct option *own,
               const char **ret_value, struct ctl_err *e);
/* May -w repeat the command? Else a usage error. */
int ctl_may_watch(const struct command *command, struct ctl_err *e);
/* As ctl_option for a command without words: a word is an error, OPTION_BAD. */
int ctl_option_only(struct ctl *ctl, struct options *options, const struct option *own,
                    const char **ret_value, struct ctl_err *e);
/* For commands without options of their own: takes between min and max words. */
int ctl_words(struct ctl *ctl, struct options *options, unsigned min, unsigned max,
              const char **ret_words, struct ctl_err *e);
/* A job, session … number: decimal or hexadecimal. */
int ctl_number(const char *what, const char *text, uint64_t *ret_number, struct ctl_err *e);

/* $GPUD_TIMEOUT_MS in ns, 0 without it. */
int ctl_timeout(uint64_t *ret_ns, struct ctl_err *e);
/* The value of --device: GPUD_ON(id) for an id, 0 for "auto". */
int ctl_device(const char *value, uint64_t *ret_device, struct ctl_err *e);

/* Opens the connection, unless it is open; on failure the error text names a remedy. Blocks. */
int ctl_connect(struct ctl *ctl, struct ctl_err *e);
void ctl_disconnect(struct ctl *ctl);
/* May the URL be one of another host? */
bool ctl_other_host(const struct ctl *ctl);

/* Queries a table and writes the rows that `rows` (NULL: all) chooses. Blocks. */
int ctl_show(struct ctl *ctl, const char *what, const gpud_query_options *rows, struct ctl_err *e);
int ctl_write(struct ctl *ctl, const struct sheet *sheet, struct ctl_err *e);
int ctl_write_rows(struct ctl *ctl, const struct sheet_rows *rows, struct ctl_err *e);
int ctl_write_table(struct ctl *ctl, const gpud_table *table, struct ctl_err *e);
/* Is the output for people, not for programs? */
bool ctl_people(const struct ctl *ctl);
/* Reports the end of a command without a table of its own: `text` on standard error for people;
 * with -o json or csv a row {command, ok, text}. */
int ctl_done(struct ctl *ctl, const char *what, bool ok, const char *text, struct ctl_err *e);
/* Sends a control request; calls ctl_done with `done` if it succeeds. Blocks. */
int ctl_control(struct ctl *ctl, const char *what, const char *value, const char *done,
                struct ctl_err *e);

/* A message to standard error: "gpuctl: …". */
void ctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The commands; see commands.c. */
#define COMMAND(name) int name(struct ctl *ctl, struct options *options, struct ctl_err *e)
COMMAND(cmd_ping);
COMMAND(cmd_status);
COMMAND(cmd_doctor);
COMMAND(cmd_devices);
COMMAND(cmd_domains);
COMMAND(cmd_pool);
COMMAND(cmd_pool_snapshot);
COMMAND(cmd_pool_trim);
COMMAND(cmd_kernels);
COMMAND(cmd_buffers);
COMMAND(cmd_jobs);
COMMAND(cmd_sessions);
COMMAND(cmd_tenants);
COMMAND(cmd_trace);
COMMAND(cmd_logs);
COMMAND(cmd_metrics);
COMMAND(cmd_accounts);
COMMAND(cmd_accounts_reset);
COMMAND(cmd_job_show);
COMMAND(cmd_job_cancel);
COMMAND(cmd_job_dump);
COMMAND(cmd_explain);
COMMAND(cmd_wait);
COMMAND(cmd_top);
COMMAND(cmd_record_start);
COMMAND(cmd_record_stop);
COMMAND(cmd_record_status);
COMMAND(cmd_replay);
COMMAND(cmd_run);
COMMAND(cmd_bench);
COMMAND(cmd_demo);
COMMAND(cmd_kernel_check);
COMMAND(cmd_config_show);
COMMAND(cmd_config_check);
COMMAND(cmd_drain);
COMMAND(cmd_resume);
COMMAND(cmd_log_level);
COMMAND(cmd_reload);
COMMAND(cmd_session_kill);
COMMAND(cmd_token);
#undef COMMAND

#endif
