/*
 * A storm that lasts: the real daemon, clients that check every result, and mishaps of all kinds at
 * once. scripts/storm.sh runs it.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/storm/storm.h"

#define QUIET_NEEDED (3 * SECOND) /* between two gusts: what hangs shows then */
#define HANG         (5 * SECOND)
#define SECONDS_MAX  (7u * 24 * 3600)
#define EVERY_MAX_MS 3600000u
#define LINGERS_MS   6500u /* longer than sessions and published buffers of clients that left */

static struct {
    uint64_t seed;
    uint64_t seconds;
    uint64_t every; /* ms between mishaps; 0: as the seed has it */
    const char *device;
    const char *only; /* kind of mishap; NULL: all */
    const char *keep; /* where the daemon's log goes in the end; NULL: nowhere */
} options = {.seed = 1, .seconds = 60, .device = "sim"};

/* ---- the daemon --------------------------------------------------------------------------- */

/* The mount is seen by this process and its children only, and ends with them. */
static bool mount_cache(const char *path)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("gpud-storm", path, "tmpfs", MS_NOSUID | MS_NODEV,
                 "mode=0700,size=" CACHE_BYTES) == 0;
}

static void start(struct storm *s)
{
    daemon_prepare(&s->d, "--backend", options.device, "--backend-options",
                   s->compiles ? "" : "devices=2,items=10000000", "--set",
                   "jobs.session_linger_ms=3000", "--set", s->args[0], "--config", s->config, NULL);
    (void)snprintf(s->config, sizeof s->config, "%s/gpud.conf", s->d.dir);
    (void)snprintf(s->cache, sizeof s->cache, "%s/cache", s->d.dir);
    (void)snprintf(s->args[0], sizeof s->args[0], "daemon.cache_dir=%s", s->cache);
    (void)snprintf(s->l->log, sizeof s->l->log, "%s", s->d.log);
    ck_assert_int_eq(mkdir(s->cache, 0700), 0);
    s->own_disk = mount_cache(s->cache);
    if (!s->own_disk) {
        (void)printf("storm: NO FULL DISK in this storm: a file system of its own for the cache "
                     "cannot be mounted here\n");
    }
    config_write(s, "[jobs]\nwindow = 0\n");
    s->heap = heap_begin(s->d.dir);
    daemon_spawn(&s->d);
    daemon_wait_ready(&s->d);
    s->tick_ns = now_ns();
}

/* ---- the course --------------------------------------------------------------------------- */

static void tick_ms(struct storm *s, unsigned ms)
{
    for (uint64_t end_ns = now_ns() + ms * MS; now_ns() < end_ns;) {
        storm_tick(s);
    }
}

/* Gusts of mishaps, and a pause after each until everything serves and has served for a while. */
static void blow(struct storm *s, uint64_t seconds)
{
    uint64_t end_ns = now_ns() + seconds * SECOND;
    while (now_ns() < end_ns) {
        uint64_t gust_ns = now_ns() + 4 * SECOND + chance_below(&s->chance, 6 * SECOND);
        while (now_ns() < gust_ns && now_ns() < end_ns) {
            storm_tick(s);
            mishaps_turn(s, true);
        }
        uint64_t quiet_ns = atomic_load(&s->l->quiet_ns) + QUIET_NEEDED;
        while (atomic_load(&s->l->quiet_ns) < quiet_ns) {
            storm_tick(s);
            mishaps_turn(s, false);
        }
    }
}

struct usages {
    struct usage front, launcher;
};

/* When clients have left and nothing lingers. After a full disk the daemon is degraded until it has
 * compiled again, which no client asks for any more. */
static struct usages settle(struct storm *s)
{
    while (s->d.pid == 0) {
        storm_tick(s);
    }
    ck_until(daemon_serves(&s->d));
    tick_ms(s, LINGERS_MS);
    struct usages u = {usage_of(s->d.pid), usage_of(storm_victim(s, VICTIM_LAUNCHER, 0))};
    u.front.heap = heap_of_front(s->heap);
    ledger_log(s->l, "settled: the front has %llu bytes of heap, %llu KiB of pages",
               (unsigned long long)u.front.heap, (unsigned long long)u.front.pages / 1024);
    return u;
}

/* Clients alone: how long calls take on this host, and what the daemon has when they left. */
static struct usages baseline(struct storm *s)
{
    for (unsigned i = 0; i < DEED_COUNT; i++) {
        atomic_store(&s->l->hang_ns[i], UINT64_MAX);
    }
    storm_clients_start(s);
    tick_ms(s, options.seconds > 32 ? (unsigned)options.seconds * 125 : 4000);
    storm_clients_stop(s);
    for (unsigned i = 0; i < DEED_COUNT; i++) {
        atomic_store(&s->l->hang_ns[i], HANG + 4 * atomic_load(&s->l->longest_ns[i]));
    }
    return settle(s);
}

static struct usages round_of(struct storm *s, uint64_t seconds, bool only_safe)
{
    s->only_safe = only_safe;
    storm_clients_start(s);
    blow(s, seconds);
    storm_clients_stop(s);
    return settle(s);
}

START_TEST(storm)
{
    static struct storm s;
    s = (struct storm){.l = ledger_create(),
                       .seed = options.seed,
                       .compiles = strcmp(options.device, "sim") != 0,
                       .devices = strcmp(options.device, "sim") == 0 ? 2 : 1,
                       .seconds = (unsigned)options.seconds,
                       .only = options.only,
                       .every_ns = options.every * 1000000,
                       .chance = {options.seed}};
    ck_assert_ptr_nonnull(s.l);
    start(&s);
    struct usages calm = baseline(&s);
    struct usages after = round_of(&s, options.seconds / 2, false);
    /* the same front and launcher through two equal rounds: the second must leave nothing more */
    pid_t front = s.d.pid;
    struct usages first = round_of(&s, options.seconds * 3 / 16, true);
    struct usages second = round_of(&s, options.seconds * 3 / 16, true);
    report_drift(&s, "front after the storm, against calm:", &calm.front, &after.front, false);
    report_drift(&s, "launcher after the storm, against calm:", &calm.launcher, &after.launcher,
                 false);
    report_drift(&s, "front after a second equal round:", &first.front, &second.front,
                 s.d.pid == front);
    report_drift(&s, "launcher after a second equal round:", &first.launcher, &second.launcher,
                 true);
    s.front_explained = true;
    daemon_stop(&s.d);
    report_all(&s);
    uint64_t broken = atomic_load(&s.l->broken_count);
    if (options.keep != NULL) {
        const char *const argv[] = {"cp", s.d.log, options.keep, NULL};
        (void)run_program(argv, "/dev/null", "/dev/null");
    }
    ck_assert_msg(broken == 0, "%llu broken promises, seed %llu, device %s",
                  (unsigned long long)broken, (unsigned long long)options.seed, options.device);
}
END_TEST

static int usage(const char *wrong, const char *value)
{
    (void)fprintf(stderr,
                  "storm: %s: %s\nusage: storm [--seconds N] [--seed N] [--device sim|opencl|cuda] "
                  "[--only MISHAP] [--every MS] [--keep LOG]\nmishaps:",
                  wrong, value);
    for (unsigned i = 0; i < MISHAP_COUNT; i++) {
        (void)fprintf(stderr, "%s '%s'", i > 0 ? "," : "", mishap_name((enum mishap_kind)i));
    }
    (void)fputc('\n', stderr);
    return 2;
}

static bool number(const char *text, uint64_t *ret_value)
{
    char *end = NULL;
    *ret_value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static int check_options(void)
{
    if (options.seconds == 0 || options.seconds > SECONDS_MAX) {
        return usage("no such time", "from 1 second to a week");
    }
    if (options.every > EVERY_MAX_MS) {
        return usage("no such pause between mishaps", "at most an hour");
    }
    if (strcmp(options.device, "sim") != 0 && strcmp(options.device, "opencl") != 0 &&
        strcmp(options.device, "cuda") != 0) {
        return usage("no such device", options.device);
    }
    if (strcmp(options.device, "cuda") == 0 && dlopen("libcuda.so.1", RTLD_LAZY) == NULL) {
        return usage("no CUDA driver (libcuda.so.1): install NVIDIA's, or take another device",
                     options.device);
    }
    return options.only == NULL || mishap_exists(options.only)
               ? 0
               : usage("no such mishap", options.only);
}

static int read_options(int argc, char **argv)
{
    static const struct option names[] = {{"seconds", required_argument, NULL, 's'},
                                          {"seed", required_argument, NULL, 'S'},
                                          {"device", required_argument, NULL, 'd'},
                                          {"only", required_argument, NULL, 'o'},
                                          {"keep", required_argument, NULL, 'k'},
                                          {"every", required_argument, NULL, 'e'},
                                          {NULL, 0, NULL, 0}};
    int c = 0;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        uint64_t *value = c == 's' ? &options.seconds : c == 'S' ? &options.seed : &options.every;
        const char **text = c == 'd' ? &options.device : c == 'o' ? &options.only : &options.keep;
        if (c == '?') {
            return usage("no such option", argv[optind - 1]);
        }
        if (strchr("dok", c) != NULL) {
            *text = optarg;
        } else if (!number(optarg, value)) {
            return usage("no number", optarg);
        }
    }
    return optind < argc ? usage("one word too many", argv[optind]) : check_options();
}

int main(int argc, char **argv)
{
    int rc = read_options(argc, argv);
    if (rc != 0) {
        return rc;
    }
    (void)printf("storm: %u s, seed %llu, device %s\n", (unsigned)options.seconds,
                 (unsigned long long)options.seed, options.device);
    (void)fflush(stdout);
    Suite *suite = suite_create("storm");
    tcase_set_timeout(suite_add(suite, storm), 0);
    return system_main(suite);
}
