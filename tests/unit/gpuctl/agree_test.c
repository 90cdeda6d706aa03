/* What gpuctl takes, its --help, its manual page and its completion agree: each option and command
 * is in all of them, and nothing else is. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/doctor/doctor.h"
#include "tests/unit/common/suite.h"

#define MAN        SOURCE_DIR "/packaging/man/gpuctl.1.scd"
#define COMPLETION SOURCE_DIR "/packaging/completions/gpuctl"

static char text[65536];

static void read_stream(FILE *f)
{
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    ck_assert_uint_lt(n, sizeof text - 1);
    text[n] = '\0';
}

static void read_man(void)
{
    FILE *f = fopen(MAN, "re");
    read_stream(f);
    (void)fclose(f);
}

static void read_help(const struct command *command)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    command_help(command, f);
    rewind(f);
    read_stream(f);
    (void)fclose(f);
}

static bool in_list(const struct option *list, const char *name, size_t length)
{
    for (; list != NULL && list->name != NULL; list++) {
        if (strlen(list->name) == length && strncmp(list->name, name, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool in_any_list(const char *name, size_t length)
{
    bool found = in_list(options_common, name, length);
    for (const struct command *c = commands; c->name != NULL; c++) {
        found = found || in_list(c->options, name, length);
    }
    return found;
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '-') {
        n++;
    }
    return n;
}

/* Is the option in `text` as a word of its own? */
static bool mentioned(const char *name)
{
    char word[64];
    if (name[0] == '-') { /* all words that begin so */
        return strstr(text, name) != NULL;
    }
    snprintf(word, sizeof word, "--%s", name);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += 2) {
        if (word_length(at) == strlen(word)) {
            return true;
        }
    }
    return false;
}

/* Everything in `text` that looks like an option is one of this command (NULL: of any). */
static void only_known(const struct command *command, const char *where)
{
    for (const char *at = text; (at = strstr(at, "--")) != NULL;) {
        size_t n = word_length(at);
        const char *name = at + 2;
        bool known = n == 2 || (command == NULL ? in_any_list(name, n - 2)
                                                : in_list(options_common, name, n - 2) ||
                                                      in_list(command->options, name, n - 2));
        ck_assert_msg(known, "%s tells of %.*s, which gpuctl does not take", where, (int)n, at);
        at += n;
    }
}

static void all_told(const struct option *list, const char *where)
{
    for (; list != NULL && list->name != NULL; list++) {
        ck_assert_msg(mentioned(list->name), "%s does not have --%s", where, list->name);
    }
}

START_TEST(help_tells_of_every_option)
{
    for (const struct command *c = commands; c->name != NULL; c++) {
        read_help(c);
        all_told(c->options, c->name);
        all_told(options_common, c->name);
        only_known(c, c->name);
    }
}
END_TEST

START_TEST(manual_tells_of_everything)
{
    read_man();
    all_told(options_common, MAN);
    for (const struct command *c = commands; c->name != NULL; c++) {
        char bold[64];
        snprintf(bold, sizeof bold, "*%s*", c->name);
        ck_assert_msg(strstr(text, bold) != NULL, "%s does not have %s", MAN, c->name);
        all_told(c->options, MAN);
    }
    only_known(NULL, MAN);
}
END_TEST

/* ---- completion ----------------------------------------------------------------------------- */

/* What bash offers behind these words, one a line, in `text`. No daemon is asked. */
static void complete(const char *words)
{
    char command[1024];
    snprintf(command, sizeof command,
             "bash -c 'complete() { :; }; source %s; _gpuctl_column() { :; }; "
             "COMP_WORDS=(gpuctl %s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gpuctl; "
             "printf \"%%s\\n\" \"${COMPREPLY[@]}\"'",
             COMPLETION, words);
    FILE *f = popen(command, "re");
    read_stream(f);
    ck_assert_int_eq(pclose(f), 0);
}

/* Is it a line of `text`? */
static bool offered(const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        if ((at == text || at[-1] == '\n') && at[length] == '\n') {
            return true;
        }
    }
    return false;
}

static unsigned lines(void)
{
    unsigned n = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        n++;
    }
    return n;
}

START_TEST(completion_offers_every_option)
{
    for (const struct command *c = commands; c->name != NULL; c++) {
        char words[128];
        snprintf(words, sizeof words, "%s -", c->name);
        complete(words);
        all_told(c->options, COMPLETION);
        all_told(options_common, COMPLETION);
        only_known(c, c->name);
    }
}
END_TEST

START_TEST(completion_offers_every_command)
{
    complete("\"\"");
    unsigned first_words = 0;
    for (const struct command *c = commands; c->name != NULL; c++) {
        char word[64];
        size_t n = strcspn(c->name, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, c->name);
        ck_assert_msg(offered(word), "completion does not offer %s", word);
        bool again = false;
        for (const struct command *b = commands; b != c; b++) {
            again = again || (strncmp(b->name, word, n) == 0 && strchr(" ", b->name[n]) != NULL);
        }
        first_words += again ? 0 : 1;
    }
    ck_assert_uint_eq(lines(), first_words);
    for (const struct command *c = commands; c->name != NULL; c++) {
        const char *space = strchr(c->name, ' ');
        char words[128];
        if (space != NULL) {
            snprintf(words, sizeof words, "%.*s \"\"", (int)(space - c->name), c->name);
            complete(words);
            ck_assert_msg(offered(space + 1), "completion does not offer %s", c->name);
        }
    }
}
END_TEST

START_TEST(checks_are_told)
{
    for (const struct check *c = doctor_checks; c->name != NULL; c++) {
        char bold[64];
        complete("doctor \"\"");
        ck_assert_msg(offered(c->name), "completion does not offer the check %s", c->name);
        read_man();
        snprintf(bold, sizeof bold, "*%s*", c->name);
        ck_assert_msg(strstr(text, bold) != NULL, "%s does not have the check %s", MAN, c->name);
    }
}
END_TEST

/* An option's value is no word of the command line: what comes behind it is completed as without
 * it. */
static void values_are_skipped(const struct option *list)
{
    for (; list != NULL && list->name != NULL; list++) {
        char words[128];
        if (list->name[0] == '-') {
            continue;
        }
        snprintf(words, sizeof words, "--%s %s job \"\"", list->name, list->value ? "x" : "");
        complete(words);
        ck_assert_msg(offered("show") && lines() == 3, "completion is wrong behind --%s: %s",
                      list->name, text);
        if (list->letter != 0 && !(list->letter == 'f' && !list->value)) { /* see below */
            snprintf(words, sizeof words, "-%c %s job \"\"", list->letter, list->value ? "x" : "");
            complete(words);
            ck_assert_msg(offered("show") && lines() == 3, "completion is wrong behind -%c: %s",
                          list->letter, text);
        }
    }
}

START_TEST(completion_knows_which_take_values)
{
    values_are_skipped(options_common);
    for (const struct command *c = commands; c->name != NULL; c++) {
        values_are_skipped(c->options);
    }
}
END_TEST

/* -f is --file, with a value, and the logs' --follow, without one. */
START_TEST(completion_knows_what_follow_is)
{
    complete("logs -f -n 1 --le");
    ck_assert_msg(offered("--level"), "%s", text);
    complete("logs -f \"\"");
    ck_assert_str_eq(text, "\n"); /* no files */
}
END_TEST

SUITE_MAIN("agree", help_tells_of_every_option, manual_tells_of_everything,
           completion_offers_every_option, completion_offers_every_command, checks_are_told,
           completion_knows_which_take_values, completion_knows_what_follow_is)
