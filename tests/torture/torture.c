/*
 * Every call fails once: the daemon, its processes and libgpud, while a recorded session is played.
 * README.md has the rest.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/torture/campaign.h"

#define DAY_S 86400

static struct options options = {
    .device = "sim", .role = ANY, .act = ANY, .kind = ANY, .last = UINT64_MAX, .slices = 1};

START_TEST(every_call_fails_once)
{
    static struct campaign c;
    c.o = options;
    c.h.device = options.device;
    const char *path = getenv(TORTURE_PAGE);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: no page", path);
    c.h.page = mmap(NULL, sizeof *c.h.page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    ck_assert_ptr_ne(c.h.page, MAP_FAILED);
    uint64_t failures = campaign_run(&c);
    ck_assert_msg(failures == 0, "%llu runs broke a promise", (unsigned long long)failures);
}
END_TEST

/* ---- options -------------------------------------------------------------------------------- */

static int usage(const char *wrong, const char *value)
{
    (void)fprintf(
        stderr,
        "torture: %s: %s\n"
        "usage: torture [--device sim|opencl|cuda] [--process NAME] [--act NAME]\n"
        "               [--kind NAME] [--n N[-N]] [--count 1|2|4|16|all]\n"
        "               [--slice N/SLICES|today/SLICES] [--seconds N] [--plan]\nprocesses:",
        wrong, value);
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        (void)fprintf(stderr, " %s", role_name((enum role)i));
    }
    (void)fprintf(stderr, "\nacts:");
    for (unsigned i = 0; i < ACT_COUNT; i++) {
        (void)fprintf(stderr, " %s", act_name((enum act)i));
    }
    (void)fprintf(stderr, "\nkinds:");
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        (void)fprintf(stderr, " %s", kind_name((enum kind)i));
    }
    (void)fputc('\n', stderr);
    return 2;
}

static bool number(const char *text, const char **ret_end, uint64_t *ret_value)
{
    char *end = NULL;
    *ret_value = strtoull(text, &end, 10);
    *ret_end = end;
    return text[0] >= '0' && text[0] <= '9';
}

static bool range(const char *text)
{
    bool ok = number(text, &text, &options.first);
    options.last = options.first;
    if (ok && *text == '-') {
        ok = number(text + 1, &text, &options.last);
    }
    return ok && *text == '\0';
}

/* "today/40": another slice each day. */
static bool slice(const char *text)
{
    bool today = strncmp(text, "today/", 6) == 0;
    bool ok = today || number(text, &text, &options.slice);
    text += today ? 5 : 0;
    ok = ok && *text == '/' && number(text + 1, &text, &options.slices) && *text == '\0' &&
         options.slices > 0;
    if (ok && today) {
        options.slice = (uint64_t)time(NULL) / DAY_S % options.slices;
    }
    return ok && options.slice < options.slices;
}

static bool find(const char *text, const char *(*name)(unsigned), unsigned count,
                 uint32_t *ret_value)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(text, name(i)) == 0) {
            *ret_value = i;
            return true;
        }
    }
    return false;
}

static const char *role_at(unsigned i)
{
    return role_name((enum role)i);
}

static const char *act_at(unsigned i)
{
    return act_name((enum act)i);
}

static const char *kind_at(unsigned i)
{
    return kind_name((enum kind)i);
}

static bool option_take(int option, const char *text)
{
    switch (option) {
    case 'd':
        options.device = text;
        return strcmp(text, "sim") == 0 || strcmp(text, "opencl") == 0 || strcmp(text, "cuda") == 0;
    case 'p':
        return find(text, role_at, ROLE_COUNT, &options.role);
    case 'a':
        return find(text, act_at, ACT_COUNT, &options.act);
    case 'k':
        return find(text, kind_at, KIND_COUNT, &options.kind);
    case 'n':
        return range(text);
    case 'c':
        options.count = WHOLE_ACT;
        return strcmp(text, "all") == 0 || (number(text, &text, &options.count) && *text == '\0');
    case 's':
        return slice(text);
    case 'l':
        options.plan = true;
        return true;
    default:
        return number(text, &text, &options.seconds) && *text == '\0';
    }
}

static int read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"device", required_argument, NULL, 'd'}, {"process", required_argument, NULL, 'p'},
        {"act", required_argument, NULL, 'a'},    {"kind", required_argument, NULL, 'k'},
        {"n", required_argument, NULL, 'n'},      {"count", required_argument, NULL, 'c'},
        {"slice", required_argument, NULL, 's'},  {"seconds", required_argument, NULL, 't'},
        {"plan", no_argument, NULL, 'l'},         {NULL, 0, NULL, 0}};
    int c = 0;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == '?') {
            return usage("no such option", argv[optind - 1]);
        }
        if (!option_take(c, optarg)) {
            return usage("no such value", optarg);
        }
    }
    return optind < argc ? usage("one word too many", argv[optind]) : 0;
}

/* ---- the shim ------------------------------------------------------------------------------- */

/* Starts this program anew with the shim: its own libgpud is under torture, and what it starts. */
static int begin_again(char **argv, char *page)
{
    int fd = mkstemp(page);
    if (fd < 0 || ftruncate(fd, sizeof(struct torture_page)) != 0 || fchmod(fd, 0666) != 0 ||
        close(fd) != 0) {
        perror(page);
        return EXIT_FAILURE;
    }
    (void)setenv(TORTURE_PAGE, page, 1);
    (void)setenv("LD_PRELOAD", TORTURE_SHIM, 1);
    (void)execv("/proc/self/exe", argv);
    perror("torture");
    return EXIT_FAILURE;
}

/* How to repeat it on another day. */
static void tell_options(int argc, char **argv)
{
    (void)printf("torture: repeat: test_torture");
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "today/", 6) == 0) {
            (void)printf(" %llu%s", (unsigned long long)options.slice, argv[i] + 5);
        } else {
            (void)printf(" %s", argv[i]);
        }
    }
    (void)printf("\n");
}

int main(int argc, char **argv)
{
    char page[] = "/tmp/gpud-torture-XXXXXX";
    int rc = read_options(argc, argv);
    if (rc != 0) {
        return rc;
    }
    if (getenv(TORTURE_PAGE) == NULL) {
        return begin_again(argv, page);
    }
    tell_options(argc, argv);
    (void)fflush(stdout);
    Suite *suite = suite_create("torture");
    tcase_set_timeout(suite_add(suite, every_call_fails_once), 0);
    rc = system_main(suite);
    (void)unlink(getenv(TORTURE_PAGE));
    return rc;
}
