/*
 * Plays worlds around the worker (ward.h) and says which rules they break.
 *
 *   worker_sim                  all files of tests/sim/worker/seeds, then seeds 1 to 200
 *   worker_sim --kept           the files only
 *   worker_sim --seeds A-B      these seeds
 *   worker_sim --file FILE...   courses; with one file, what happens in it is printed
 *     --lanes N                 processes at once (1)
 *     --seconds N               no more worlds after that time
 *     --first                   ends at the first broken rule
 *     --keep FOLDER             shortens courses that break a rule, and writes them there
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
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/sim/folder.h"
#include "tests/sim/options.h"
#include "tests/sim/worker/ward_shrink.h"

#define SEEDS_USUAL 200u
#define TRIES_MAX   1500u
#define HEAP_KEPT   (1 << 28) /* bytes: memory of the device comes and goes */

/* What a process that plays worlds tells its parent. */
struct lane {
    pid_t pid;     /* 0: none */
    uint64_t seed; /* that it plays; all before it are done */
    uint64_t step; /* between two seeds */
    uint64_t worlds, virtual_ns;
    char report[WARD_FAIL_BYTES];
};

static void play(struct lane *l, const struct options *o)
{
    ward_report = l->report;
    for (; l->seed <= o->last && ward_real_ns() < o->until_ns; l->seed += l->step) {
        struct ward_course c;
        ward_course_make(l->seed, &c);
        world_limit();
        if (o->log) {
            ward_course_write(&c, stdout);
        }
        l->virtual_ns += ward_run(&c, o->log ? stdout : NULL);
        l->worlds++;
        ward_course_finish(&c);
    }
    (void)fflush(NULL);
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
    struct ward_course c;
    struct verdict alone;
    ward_course_make(seed, &c);
    ward_try(&c, NULL, &alone);
    if (!alone.broken) {
        (void)printf("  by itself the seed breaks no rule\n");
        ward_course_finish(&c);
        return;
    }
    unsigned before = c.count;
    ward_shrink(&c, v, TRIES_MAX);
    (void)snprintf(path, sizeof path, "%s/%" PRIu64 ".course", o->keep, seed);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        exit(2);
    }
    (void)fprintf(out, "# %s\n", v->text);
    ward_course_write(&c, out);
    (void)fclose(out);
    (void)printf("  %u of %u events are left: %s\n  %s\n", c.count, before, path, v->text);
    ward_course_finish(&c);
}

/* Returns whether the lane has broken a rule. A worker whose device fails ends the process, which
 * is no broken rule: the lane goes on behind that world. */
static bool lane_ended(struct lane *l, int status, const struct options *o)
{
    struct verdict v;
    verdict_of(status, l->report, &v);
    l->pid = 0;
    if (v.broken) {
        (void)printf("seed %" PRIu64 ": %s\n", l->seed, v.text);
        if (o->keep != NULL) {
            keep(o, l->seed, &v);
        }
        (void)fflush(stdout);
    } else if (l->seed > o->last || ward_real_ns() >= o->until_ns) {
        return false;
    }
    l->worlds++;
    l->seed += l->step;
    if (l->seed <= o->last && !(o->one && v.broken)) {
        lane_start(l, o);
    }
    return v.broken;
}

static unsigned stop(struct lane *lane, unsigned lanes)
{
    unsigned stopped = 0;
    for (unsigned i = 0; i < lanes; i++) {
        if (lane[i].pid != 0) {
            (void)kill(lane[i].pid, SIGKILL);
            (void)waitpid(lane[i].pid, NULL, 0);
            lane[i].pid = 0;
            stopped++;
        }
    }
    return stopped;
}

static unsigned play_lanes(const struct options *o, struct lane *lane)
{
    unsigned running = o->lanes;
    unsigned broken = 0;
    for (unsigned i = 0; i < o->lanes; i++) {
        lane[i] = (struct lane){.seed = o->first + i, .step = o->lanes};
        lane_start(&lane[i], o);
    }
    while (running > 0) {
        int status = 0;
        pid_t pid = wait(&status);
        for (unsigned i = 0; i < o->lanes; i++) {
            if (lane[i].pid == pid) {
                broken += lane_ended(&lane[i], status, o);
                running -= lane[i].pid == 0;
            }
        }
        running -= o->one && broken > 0 ? stop(lane, o->lanes) : 0;
    }
    return broken;
}

static unsigned play_seeds(const struct options *o)
{
    struct lane *lane = mmap(NULL, LANES_MAX * sizeof *lane, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lane == MAP_FAILED) {
        perror("worker_sim: mmap");
        exit(2);
    }
    uint64_t began_ns = ward_real_ns();
    unsigned broken = play_lanes(o, lane);
    uint64_t worlds = 0;
    uint64_t ns = 0;
    for (unsigned i = 0; i < o->lanes; i++) {
        worlds += lane[i].worlds;
        ns += lane[i].virtual_ns;
    }
    (void)printf("%" PRIu64 " worlds, %u broke a rule; %.1f s, %.1f hours in them\n", worlds,
                 broken, (double)(ward_real_ns() - began_ns) / 1e9, (double)ns / 3.6e12);
    (void)munmap(lane, LANES_MAX * sizeof *lane);
    return broken;
}

/* ---- files ----------------------------------------------------------------------------------- */

static unsigned play_file(const char *path, FILE *log)
{
    struct ward_course c;
    struct verdict v;
    FILE *in = fopen(path, "r");
    bool read = in != NULL && ward_course_read(in, &c);
    if (in != NULL) {
        (void)fclose(in);
    }
    if (!read) {
        (void)fprintf(stderr, "%s: no course\n", path);
        return 1;
    }
    ward_try(&c, log, &v);
    if (v.broken) {
        (void)printf("%s: %s\n", path, v.text);
    }
    ward_course_finish(&c);
    return v.broken;
}

int main(int argc, char **argv)
{
    struct options o;
    int file = options_read(argv, &o);
    unsigned broken = 0;
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    log_open("worker_sim", o.log ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR - 1);
    for (int i = file; file > 0 && i < argc; i++) {
        broken += play_file(argv[i], argc - file == 1 ? stdout : NULL);
    }
    if (file > 0) {
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
