/* gpuctl: shows the state of gpud, controls it and runs kernels. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/ctl/watch.h"

static void print_help(const struct command *command)
{
    if (command != NULL) {
        command_help(command, stdout);
    } else {
        commands_print(stdout);
    }
}

/* Prints the outcome and returns the exit code. */
static int finish(const struct command *command, int rc, const struct ctl_err *e)
{
    if (rc == CTL_HELP) {
        print_help(command);
        return EXIT_OK;
    }
    if (rc == CTL_VERSION) {
        printf("gpuctl %s\n", gpud_version());
        return EXIT_OK;
    }
    if (rc >= 0) {
        return rc;
    }
    ctl_say("%s%s%s", command != NULL ? command->name : "", command != NULL ? ": " : "", e->text);
    if (rc == CTL_USAGE) {
        fprintf(stderr, "Try: gpuctl %s%s--help\n", command != NULL ? command->name : "",
                command != NULL ? " " : "");
    }
    return ctl_exit_code(rc);
}

/* Reads the second word of a group's command; *ret_second is NULL without one. On CTL_HELP
 * *ret_command is the command to describe. */
static int find_second(struct ctl *ctl, struct options *options, const char *first,
                       const struct command **ret_command, const char **ret_second,
                       struct ctl_err *e)
{
    const struct options before = *options;
    const char *second = NULL;
    int id = ctl_option(ctl, options, NULL, &second, e);
    if (id != OPTION_BAD) {
        *ret_second = id == OPTION_WORD ? second : NULL;
        return 0;
    }
    const struct command *alone = command_find(first, NULL);
    if (alone != NULL && e->code == CTL_USAGE) {
        *options = before; /* it is an option of the command `first`, which reads it again */
        return 0;
    }
    *ret_command = alone;
    return e->code;
}

/* Reads the options up to the command's name and finds the command. */
static int find(struct ctl *ctl, struct options *options, const struct command **ret_command,
                struct ctl_err *e)
{
    const char *first = NULL;
    const char *second = NULL;
    int id = ctl_option(ctl, options, NULL, &first, e);
    if (id == OPTION_END) {
        return ctl_err_usage(e, "a command is missing");
    }
    if (id != OPTION_WORD) {
        return e->code;
    }
    int rc =
        command_is_group(first) ? find_second(ctl, options, first, ret_command, &second, e) : 0;
    if (rc != 0) {
        return rc;
    }
    *ret_command = command_find(first, second);
    if (*ret_command != NULL) {
        return 0;
    }
    if (second == NULL && command_is_group(first)) {
        char words[128];
        return ctl_err_usage(e, "'%s' needs a second word: %s", first,
                             command_seconds(first, words, sizeof words));
    }
    char name[64];
    char meant[96];
    snprintf(name, sizeof name, "%s%s%s", first, second != NULL ? " " : "",
             second != NULL ? second : "");
    return ctl_err_usage(e, "there is no command '%s'%s", name,
                         command_meant(name, meant, sizeof meant));
}

/* Flushes standard output; an error is printed and fails a command that succeeded. Returns the exit
 * code. */
static int output_end(int code)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed || code != EXIT_OK) {
        return code; /* a command that failed has printed its reason */
    }
    ctl_say("writing the output: %s", errno != 0 ? strerror(errno) : "the output is incomplete");
    return EXIT_FAILED;
}

/* Keeps the numbers of closed standard descriptors unusable: reading or writing them fails.
 * Otherwise the next file that gpuctl opens would get the number, and messages would go to that
 * file. */
static void standard_keep(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* Runs the command; with -w again and again. */
static int run(struct ctl *ctl, struct options *options, const struct command *command,
               struct ctl_err *e)
{
    const struct options begin = *options;
    int rc = ctl->watch_ns > 0 ? ctl_may_watch(command, e) : 0; /* it stood before the command */
    if (rc != 0) {
        return rc;
    }
    ctl->command = command;
    rc = command->run(ctl, options, e);
    return ctl->watch_ns == 0 || command->kind != COMMAND_LOOKS ? rc
                                                                : watch_repeat(ctl, &begin, rc, e);
}

int main(int argc, char **argv)
{
    standard_keep();
    setlocale(LC_CTYPE, "");
    const char *no_colour = getenv("NO_COLOR");
    struct ctl ctl = {
        .colour = isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0'),
        .progress = isatty(STDERR_FILENO) == 1,
    };
    struct options options;
    options_init(&options, argc > 0 ? argc - 1 : 0, argv + 1);
    struct ctl_err e = {0};
    const struct command *command = NULL;
    int rc = find(&ctl, &options, &command, &e);
    if (rc == 0) {
        rc = run(&ctl, &options, command, &e);
    }
    ctl_disconnect(&ctl);
    return output_end(finish(command, rc, &e));
}
