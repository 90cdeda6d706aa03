/*
 * Plays worlds (sim.h) and says which rules they break. client_sim has the same options.
 *
 *   front_sim                     all files of tests/sim/seeds, then seeds 1 to 300
 *   front_sim --kept              the files only
 *   front_sim --seeds A-B[/STEP]  these seeds, or each STEPth of them
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
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_shrink.h"
#include "tests/sim/lanes.h"

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS_USUAL 100u /* it takes five times as long */
#else
#define SEEDS_USUAL 300u
#endif
#define TRIES_MAX 600u

static uint64_t play(uint64_t seed, FILE *log, char *report)
{
    struct course p;
    sim_report = report;
    course_make(seed, &p);
    uint64_t ns = sim_run(&p, log);
    course_finish(&p);
    return ns;
}

static bool shorten(uint64_t seed, struct verdict *v, FILE *out, unsigned *ret_before,
                    unsigned *ret_after)
{
    struct course p;
    struct verdict alone;
    course_make(seed, &p);
    *ret_before = p.count;
    course_try(&p, NULL, &alone);
    if (alone.broken) {
        course_shrink(&p, v, TRIES_MAX);
        (void)fprintf(out, "# %s\n", v->text);
        course_write(&p, out);
    }
    *ret_after = p.count;
    course_finish(&p);
    return alone.broken;
}

static bool play_file(FILE *in, FILE *log, struct verdict *ret_verdict)
{
    struct course p;
    bool read = course_read(in, &p);
    if (read) {
        course_try(&p, log, ret_verdict);
        course_finish(&p);
    }
    return read;
}

int main(int argc, char **argv)
{
    static const struct simulation simulation = {.folder = SEEDS_DIR,
                                                 .seeds = SEEDS_USUAL,
                                                 .play = play,
                                                 .play_file = play_file,
                                                 .shorten = shorten,
                                                 .clear = sim_clear};
    struct options o;
    (void)argc;
    options_read(argv, &o);
    return lanes_main(&simulation, &o);
}
