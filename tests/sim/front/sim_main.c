/*
 * Plays worlds (sim.h) and says which rules they break. client_sim has the same options.
 *
 *   front_sim                     all files of tests/sim/seeds, then seeds 1 to 300
 *   front_sim --kept              the files only
 *   front_sim --seeds A-B         these seeds
 *   front_sim --file FILE...      courses; with one file, what happens in it is printed
 *     --lanes N                   processes at once (1)
 *     --seconds N                 no more worlds after that time
 *     --first                     ends at the first broken rule
 *     --keep FOLDER               shortens courses that break a rule, and writes them there
 *     --log                       prints what happens in each world
 *
 * Ends with 1 if a rule was broken, with 2 if an option is wrong. The same seed, tree and kind of
 * build give the same world.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/sim/folder.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_shrink.h"
#include "tests/sim/options.h"

#define SEEDS_USUAL 300u
#define TRIES_MAX   600u

/* What a process that plays worlds tells its parent. */
struct lane {
    pid_t pid;
    uint64_t seed; /* that it plays; all before it are done */
    uint64_t step; /* between two seeds */
    uint64_t worlds, virtual_ns;
    bool over;
    char report[SIM_FAIL_BYTES];
};

static void play(struct lane *l, const struct options *o)
{
    sim_report = l->report;
    for (; l->seed <= o->last && clock_now_ns() < o->until_ns; l->seed += l->step) {
        struct course p;
        course_make(l->seed, &p);
        world_limit();
        l->virtual_ns += sim_run(&p, o->log ? stdout : NULL);
        l->worlds++;
        course_finish(&p);
    }
    _exit(0);
}

static void lane_start(struct lane *l, const struct options *o)
{
    l->report[0] = '\0';
    pid_t pid = world_fork();
    if (pid == 0) {
        play(l, o);
    }
    l->pid = pid; /* the memory is shared */
}

static void keep(const struct options *o, uint64_t seed, struct verdict *v)
{
    char path[512];
    struct course p;
    course_make(seed, &p);
    unsigned before = p.count;
    course_shrink(&p, v, TRIES_MAX);
    (void)snprintf(path, sizeof path, "%s/%" PRIu64 ".course", o->keep, seed);
    FILE *out = fopen(path, "w");
    if (out != NULL) {
        (void)fprintf(out, "# %s\n", v->text);
        course_write(&p, out);
        (void)fclose(out);
    }
    (void)printf("  %u of %u events are left: %s\n", p.count, before, path);
    (void)printf("  %s\n", v->text);
    course_finish(&p);
}

/* true: the lane has broken a rule. */
static bool lane_ended(struct lane *l, int status, const struct options *o)
{
    struct verdict v;
    verdict_of(status, l->report, &v);
    sim_clear(l->pid);
    if (!v.broken) {
        l->over = true;
        return false;
    }
    (void)printf("seed %" PRIu64 ": %s\n", l->seed, v.text);
    if (o->keep != NULL) {
        keep(o, l->seed, &v);
    }
    l->worlds++;
    l->seed += l->step;
    if (l->seed > o->last || o->one) {
        l->over = true;
    } else {
        lane_start(l, o);
    }
    return true;
}

static unsigned play_seeds(const struct options *o)
{
    struct lane *lane = mmap(NULL, LANES_MAX * sizeof *lane, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned broken = 0;
    unsigned running = o->lanes;
    if (lane == MAP_FAILED) {
        perror("front_sim: mmap");
        exit(2);
    }
    uint64_t worlds = 0;
    uint64_t ns = 0;
    uint64_t began_ns = clock_now_ns();
    for (unsigned i = 0; i < o->lanes; i++) {
        lane[i] = (struct lane){.seed = o->first + i, .step = o->lanes};
        lane_start(&lane[i], o);
    }
    while (running > 0) {
        int status = 0;
        pid_t pid = wait(&status);
        for (unsigned i = 0; i < o->lanes; i++) {
            if (lane[i].pid == pid && !lane[i].over) {
                broken += lane_ended(&lane[i], status, o);
                running -= lane[i].over;
            }
        }
        for (unsigned i = 0; o->one && broken > 0 && i < o->lanes; i++) {
            if (!lane[i].over) {
                (void)kill(lane[i].pid, SIGKILL);
                (void)waitpid(lane[i].pid, NULL, 0);
                sim_clear(lane[i].pid);
                lane[i].over = true;
                running--;
            }
        }
    }
    for (unsigned i = 0; i < o->lanes; i++) {
        worlds += lane[i].worlds;
        ns += lane[i].virtual_ns;
    }
    double seconds = (double)(clock_now_ns() - began_ns) / 1e9;
    (void)printf("%" PRIu64 " worlds, %u broke a rule; %.1f s, %.1f hours in them\n", worlds,
                 broken, seconds, (double)ns / 3.6e12);
    (void)munmap(lane, LANES_MAX * sizeof *lane);
    return broken;
}

static unsigned play_file(const char *path, FILE *log)
{
    struct course p;
    struct verdict v;
    FILE *in = fopen(path, "r");
    if (in == NULL || !course_read(in, &p)) {
        (void)fprintf(stderr, "%s: no course\n", path);
        return 1;
    }
    (void)fclose(in);
    course_try(&p, log, &v);
    if (v.broken) {
        (void)printf("%s: %s\n", path, v.text);
    }
    course_finish(&p);
    return v.broken;
}

int main(int argc, char **argv)
{
    struct options o;
    int file = options_read(argv, &o);
    unsigned broken = 0;
    if (file > 0) {
        for (int i = file; i < argc; i++) {
            broken += play_file(argv[i], argc - file == 1 ? stdout : NULL);
        }
        return broken > 0;
    }
    if (o.last == 0) {
        broken += folder_play(SEEDS_DIR, play_file);
        o.first = 1;
        o.last = SEEDS_USUAL;
    }
    broken += o.kept ? 0 : play_seeds(&o);
    return broken > 0;
}
