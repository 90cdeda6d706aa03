#include "tests/sim/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"

#define SEED_MAX    UINT64_C(1000000000000)
#define SECONDS_MAX UINT64_C(1000000)
#define ALONE       "--file has courses behind it, and no other option beside it"

static const char usage[] =
    "usage: %1$s [--kept] [--seeds A-B[/STEP]] [--lanes N] [--seconds N] [--first] [--keep FOLDER] "
    "[--log]\n"
    "       %1$s --file FILE...\n"
    "  %1$s                               the kept courses, then the usual seeds\n"
    "  %1$s --seeds 1-10000 --lanes 2     these seeds, in two processes\n"
    "  %1$s --seeds 8-1000/96             every 96th of them\n"
    "  %1$s --seeds 453-453 --log         what happens in one world\n"
    "  %1$s --seeds 1-1000 --keep /tmp    writes shortened courses that break a rule\n"
    "  %1$s --file /tmp/453.course        plays a course\n";

static _Noreturn void refuse(const char *program, const char *option, const char *given,
                             const char *valid)
{
    const char *name = strrchr(program, '/');
    name = name != NULL ? name + 1 : program;
    if (given != NULL) {
        (void)fprintf(stderr, "%s: %s %s: %s\n", name, option, given, valid);
    } else {
        (void)fprintf(stderr, "%s: %s: %s\n", name, option, valid);
    }
    (void)fprintf(stderr, usage, name);
    exit(2);
}

/* Digits only, up to one of `ends`, or to the end of the text. */
static bool number(const char *text, const char *ends, uint64_t most, uint64_t *ret_number,
                   const char **ret_rest)
{
    char *rest = NULL;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    uint64_t n = strtoull(text, &rest, 10);
    if (errno != 0 || (*rest != '\0' && strchr(ends, *rest) == NULL) || n < 1 || n > most) {
        return false;
    }
    *ret_number = n;
    *ret_rest = rest;
    return true;
}

static bool range(const char *text, struct options *o)
{
    const char *rest = NULL;
    return number(text, "-", SEED_MAX, &o->first, &rest) && *rest == '-' &&
           number(rest + 1, "/", SEED_MAX, &o->last, &rest) && o->first <= o->last &&
           (*rest == '\0' || number(rest + 1, "", SEED_MAX, &o->step, &rest));
}

/* An option that takes a value. false: it is wrong. */
static bool take(const char *option, const char *value, struct options *o, const char **ret_valid)
{
    const char *rest = NULL;
    uint64_t n = 0;
    bool good = true;
    if (strcmp(option, "--seeds") == 0) {
        *ret_valid = "give two numbers, 1 <= A <= B <= 1000000000000, as in --seeds 1-300, "
                     "and perhaps a step, as in --seeds 8-1000/96";
        good = range(value, o);
    } else if (strcmp(option, "--lanes") == 0) {
        *ret_valid = "give a number from 1 to 64";
        good = number(value, "", LANES_MAX, &n, &rest);
        o->lanes = (unsigned)n;
    } else if (strcmp(option, "--seconds") == 0) {
        *ret_valid = "give a number from 1 to 1000000";
        good = number(value, "", SECONDS_MAX, &n, &rest);
        o->until_ns = ns_add(clock_now_ns(), n * NS_PER_S);
    } else {
        struct stat st;
        *ret_valid = "give a folder that exists";
        good = stat(value, &st) == 0 && S_ISDIR(st.st_mode);
        o->keep = value;
    }
    return good;
}

static bool takes_value(const char *option)
{
    return strcmp(option, "--seeds") == 0 || strcmp(option, "--lanes") == 0 ||
           strcmp(option, "--seconds") == 0 || strcmp(option, "--keep") == 0;
}

static void take_flag(const char *program, const char *option, struct options *o)
{
    if (strcmp(option, "--first") == 0) {
        o->one = true;
    } else if (strcmp(option, "--kept") == 0) {
        o->kept = true;
    } else if (strcmp(option, "--log") == 0) {
        o->log = true;
    } else {
        refuse(program, option, NULL, "no such option");
    }
}

/* All that follows --file are files. */
static void take_files(char **argv, int i, struct options *o)
{
    if (argv[i + 1] == NULL) {
        refuse(argv[0], argv[i], NULL, "give the name of a course");
    }
    o->file = &argv[i + 1];
    for (; o->file[o->files] != NULL; o->files++) {
        if (strncmp(o->file[o->files], "--", 2) == 0) {
            refuse(argv[0], argv[i], o->file[o->files], ALONE);
        }
    }
    if (i > 1) {
        refuse(argv[0], argv[1], NULL, ALONE);
    }
}

void options_read(char **argv, struct options *ret_options)
{
    struct options o = {.step = 1, .lanes = 1, .until_ns = UINT64_MAX};
    for (int i = 1; argv[i] != NULL && o.files == 0; i++) {
        const char *valid = NULL;
        if (strcmp(argv[i], "--file") == 0) {
            take_files(argv, i, &o);
        } else if (!takes_value(argv[i])) {
            take_flag(argv[0], argv[i], &o);
        } else if (argv[i + 1] == NULL) {
            (void)take(argv[i], "", &o, &valid);
            refuse(argv[0], argv[i], NULL, valid);
        } else if (!take(argv[i], argv[i + 1], &o, &valid)) {
            refuse(argv[0], argv[i], argv[i + 1], valid);
        } else {
            i++;
        }
    }
    *ret_options = o;
}
