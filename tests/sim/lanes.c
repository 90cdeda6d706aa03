#include "tests/sim/lanes.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/sim/folder.h"

/* What a process that plays worlds tells its parent. */
struct lane {
    pid_t pid;     /* 0: none */
    uint64_t seed; /* that it plays */
    uint64_t worlds, virtual_ns;
    char report[VERDICT_BYTES];
};

/* The memory that all of them share. A lane takes the next seed when it has played one: the kinds
 * of worlds that take long are not evenly spread over the seeds. */
struct lanes {
    _Atomic uint64_t next; /* seed that no lane has taken */
    struct lane lane[LANES_MAX];
};

/* ---- seeds ----------------------------------------------------------------------------------- */

static bool take_seed(const struct options *o, struct lanes *all, struct lane *l)
{
    if (clock_now_ns() >= o->until_ns) {
        return false;
    }
    l->seed = atomic_fetch_add(&all->next, o->step);
    return l->seed <= o->last;
}

static void play(const struct simulation *x, const struct options *o, struct lanes *all,
                 struct lane *l)
{
    while (take_seed(o, all, l)) {
        world_limit();
        l->virtual_ns += x->play(l->seed, o->log ? stdout : NULL, l->report);
        l->worlds++;
    }
    (void)fflush(NULL);
    _exit(0);
}

static void lane_start(const struct simulation *x, const struct options *o, struct lanes *all,
                       struct lane *l)
{
    l->report[0] = '\0';
    pid_t pid = world_fork();
    if (pid == 0) {
        play(x, o, all, l);
    }
    l->pid = pid; /* the memory is shared */
}

static void lane_clear(const struct simulation *x, struct lane *l)
{
    if (x->clear != NULL) {
        x->clear(l->pid);
    }
    l->pid = 0;
}

static void keep(const struct simulation *x, const struct options *o, uint64_t seed,
                 struct verdict *v)
{
    char path[512];
    unsigned before = 0;
    unsigned after = 0;
    (void)snprintf(path, sizeof path, "%s/%" PRIu64 ".course", o->keep, seed);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        exit(2);
    }
    bool kept = x->shorten(seed, v, out, &before, &after);
    (void)fclose(out);
    if (kept) {
        (void)printf("  %u of %u events are left: %s\n  %s\n", after, before, path, v->text);
    } else {
        (void)unlink(path);
        (void)printf("  by itself the seed breaks no rule\n");
    }
}

/* Returns whether the lane has broken a rule. A world may end its process without that, as a worker
 * does whose device fails: the lane goes on behind it. */
static bool lane_ended(const struct simulation *x, const struct options *o, struct lanes *all,
                       struct lane *l, int status)
{
    struct verdict v;
    verdict_of(status, l->report, &v);
    lane_clear(x, l);
    if (v.broken) {
        (void)printf("seed %" PRIu64 ": %s\n", l->seed, v.text);
        if (o->keep != NULL) {
            keep(x, o, l->seed, &v);
        }
        (void)fflush(stdout);
    } else if (l->seed > o->last || clock_now_ns() >= o->until_ns) {
        return false;
    }
    l->worlds++;
    if (!(o->one && v.broken)) {
        lane_start(x, o, all, l);
    }
    return v.broken;
}

static unsigned stop(const struct simulation *x, struct lane *lane, unsigned lanes)
{
    unsigned stopped = 0;
    for (unsigned i = 0; i < lanes; i++) {
        if (lane[i].pid != 0) {
            (void)kill(lane[i].pid, SIGKILL);
            (void)waitpid(lane[i].pid, NULL, 0);
            lane_clear(x, &lane[i]);
            stopped++;
        }
    }
    return stopped;
}

static unsigned play_lanes(const struct simulation *x, const struct options *o, struct lanes *all)
{
    struct lane *lane = all->lane;
    unsigned running = o->lanes;
    unsigned broken = 0;
    atomic_init(&all->next, o->first);
    for (unsigned i = 0; i < o->lanes; i++) {
        lane_start(x, o, all, &lane[i]);
    }
    while (running > 0) {
        int status = 0;
        pid_t pid = wait(&status);
        for (unsigned i = 0; i < o->lanes; i++) {
            if (lane[i].pid == pid) {
                broken += lane_ended(x, o, all, &lane[i], status);
                running -= lane[i].pid == 0;
            }
        }
        running -= o->one && broken > 0 ? stop(x, lane, o->lanes) : 0;
    }
    return broken;
}

static unsigned play_seeds(const struct simulation *x, const struct options *o)
{
    struct lanes *all =
        mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        perror("sim: mmap");
        exit(2);
    }
    uint64_t began_ns = clock_now_ns();
    unsigned broken = play_lanes(x, o, all);
    uint64_t worlds = 0;
    uint64_t ns = 0;
    for (unsigned i = 0; i < o->lanes; i++) {
        worlds += all->lane[i].worlds;
        ns += all->lane[i].virtual_ns;
    }
    (void)printf("%" PRIu64 " worlds, %u broke a rule; %.1f s, %.1f hours in them\n", worlds,
                 broken, (double)(clock_now_ns() - began_ns) / 1e9, (double)ns / 3.6e12);
    (void)munmap(all, sizeof *all);
    return broken;
}

/* ---- files ----------------------------------------------------------------------------------- */

static unsigned play_file(const struct simulation *x, const char *path, FILE *log)
{
    struct verdict v = {.broken = false};
    FILE *in = fopen(path, "r");
    bool played = in != NULL && x->play_file(in, log, &v);
    if (in != NULL) {
        (void)fclose(in);
    }
    if (!played) {
        (void)fprintf(stderr, "%s: no course\n", path);
        return 1;
    }
    if (v.broken) {
        (void)printf("%s: %s\n", path, v.text);
    }
    return v.broken;
}

static unsigned play_kept(const void *data, const char *path)
{
    return play_file(data, path, NULL);
}

int lanes_main(const struct simulation *x, const struct options *o)
{
    struct options seeds = *o;
    unsigned broken = 0;
    for (unsigned i = 0; i < o->files; i++) {
        broken += play_file(x, o->file[i], o->files == 1 ? stdout : NULL);
    }
    if (o->files > 0) {
        return broken > 0;
    }
    if (o->last == 0) {
        broken += folder_play(x->folder, play_kept, x);
        seeds.first = 1;
        seeds.last = x->seeds;
    }
    broken += o->kept ? 0 : play_seeds(x, &seeds);
    return broken > 0;
}
