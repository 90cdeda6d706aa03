/*
 * Plays worlds around the worker (ward.h) and says which rules they break.
 *
 *   worker_sim                  seeds 1 to 200, and those of mended faults
 *   worker_sim --seeds A-B      these seeds
 *     --lanes N                 processes at once (1)
 *     --seconds N               no more worlds after that time
 *     --first                   ends at the first broken rule
 *     --log                     prints what happens in each world
 *
 * Ends with 1 if a rule was broken. The same seed and tree give the same world.
 */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/sim/worker/ward.h"

#define SEEDS_USUAL   200u
#define LANES_MAX     64u
#define WORLD_SECONDS 60u       /* of processor time */
#define HEAP_KEPT     (1 << 28) /* bytes: memory of the device comes and goes */

/* Seeds above SEEDS_USUAL that broke a rule before a mend, by rule: vain, content, verdict,
 * content, content, deadline, vain, vain. */
static const uint64_t KEPT[] = {241, 520, 609, 611, 647, 726, 969, 1074};

struct options {
    uint64_t first, last;
    unsigned lanes;
    uint64_t until_ns; /* of the real clock */
    bool one, log;
};

struct lane {
    pid_t pid; /* 0: none */
    uint64_t seed;
    uint64_t virtual_ns; /* of the world that it plays */
    char report[WARD_FAIL_BYTES];
};

struct sums {
    uint64_t worlds, virtual_ns;
    unsigned broken;
};

/* A world in a process of its own: a worker may end its process. */
static void play(struct lane *l, const struct options *o)
{
    const struct itimerval t = {.it_value = {.tv_sec = WORLD_SECONDS}};
    struct ward w;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setitimer(ITIMER_PROF, &t, NULL);
    ward_report = l->report;
    ward_make(l->seed, &w);
    if (o->log) {
        w.log = stdout;
        ward_params_write(&w, stdout);
    }
    l->virtual_ns = ward_run(&w);
    free(w.event);
    (void)fflush(NULL);
    _exit(0);
}

static void start(struct lane *l, const struct options *o, uint64_t seed)
{
    l->seed = seed;
    l->report[0] = '\0';
    l->virtual_ns = 0;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("worker_sim: fork");
        exit(2);
    }
    if (pid == 0) {
        play(l, o);
    }
    l->pid = pid;
}

static void ended(struct lane *l, int status, struct sums *s)
{
    l->pid = 0;
    s->worlds++;
    s->virtual_ns += l->virtual_ns;
    if (status == 0) {
        return;
    }
    s->broken++;
    if (l->report[0] != '\0') {
        (void)printf("seed %" PRIu64 ": %s\n", l->seed, l->report);
    } else if (WIFSIGNALED(status)) {
        (void)printf("seed %" PRIu64 ": %s: signal %d\n", l->seed,
                     WTERMSIG(status) == SIGPROF ? "hangs" : "signal", WTERMSIG(status));
    } else {
        (void)printf("seed %" PRIu64 ": status: %d\n", l->seed, WEXITSTATUS(status));
    }
}

static void play_seeds(const struct options *o, struct lane *lane, struct sums *s)
{
    uint64_t seed = o->first;
    unsigned running = 0;
    for (;;) {
        bool more = seed <= o->last && ward_real_ns() < o->until_ns && !(o->one && s->broken > 0);
        for (unsigned i = 0; more && i < o->lanes && seed <= o->last; i++) {
            if (lane[i].pid == 0) {
                start(&lane[i], o, seed++);
                running++;
            }
        }
        if (running == 0) {
            return;
        }
        int status = 0;
        pid_t pid = wait(&status);
        for (unsigned i = 0; i < o->lanes; i++) {
            if (lane[i].pid == pid) {
                ended(&lane[i], status, s);
                running--;
            }
        }
    }
}

static void usage(void)
{
    (void)fputs("worker_sim [--seeds A-B] [--lanes N] [--seconds N] [--first] [--log]\n", stderr);
    exit(2);
}

static const char *value_of(char **argv, int *at)
{
    if (argv[*at + 1] == NULL) {
        usage();
    }
    return argv[++*at];
}

static void read_options(char **argv, struct options *o)
{
    for (int i = 1; argv[i] != NULL; i++) {
        if (strcmp(argv[i], "--seeds") == 0) {
            if (sscanf(value_of(argv, &i), "%" SCNu64 "-%" SCNu64, &o->first, &o->last) != 2) {
                usage();
            }
        } else if (strcmp(argv[i], "--lanes") == 0) {
            o->lanes = (unsigned)strtoul(value_of(argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            o->until_ns = ward_real_ns() + strtoull(value_of(argv, &i), NULL, 10) * NS_PER_S;
        } else if (strcmp(argv[i], "--first") == 0) {
            o->one = true;
        } else if (strcmp(argv[i], "--log") == 0) {
            o->log = true;
        } else {
            usage();
        }
    }
    if (o->lanes < 1 || o->lanes > LANES_MAX) {
        usage();
    }
}

int main(int argc, char **argv)
{
    struct options o = {.lanes = 1, .until_ns = UINT64_MAX};
    struct sums s = {.worlds = 0};
    (void)argc;
    read_options(argv, &o);
    bool usual = o.last == 0;
    if (usual) {
        o.first = 1;
        o.last = SEEDS_USUAL;
    }
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    log_open("worker_sim", o.log ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR - 1);
    struct lane *lane = mmap(NULL, LANES_MAX * sizeof *lane, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lane == MAP_FAILED) {
        perror("worker_sim: mmap");
        return 2;
    }
    uint64_t began_ns = ward_real_ns();
    play_seeds(&o, lane, &s);
    for (size_t i = 0; usual && i < sizeof KEPT / sizeof KEPT[0]; i++) {
        o.first = o.last = KEPT[i];
        play_seeds(&o, lane, &s);
    }
    (void)printf("%" PRIu64 " worlds, %u broke a rule; %.1f s, %.1f hours in them\n", s.worlds,
                 s.broken, (double)(ward_real_ns() - began_ns) / 1e9,
                 (double)s.virtual_ns / 3.6e12);
    return s.broken > 0;
}
