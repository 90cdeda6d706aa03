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
#include <malloc.h>

#include "common/log.h"
#include "tests/sim/lanes.h"
#include "tests/sim/worker/ward_shrink.h"

#define SEEDS_USUAL 200u
#define TRIES_MAX   1500u
#define HEAP_KEPT   (1 << 28) /* bytes: memory of the device comes and goes */

static uint64_t play(uint64_t seed, FILE *log, char *report)
{
    struct ward_course c;
    ward_report = report;
    ward_course_make(seed, &c);
    if (log != NULL) {
        ward_course_write(&c, log);
    }
    uint64_t ns = ward_run(&c, log);
    ward_course_finish(&c);
    return ns;
}

static bool shorten(uint64_t seed, struct verdict *v, FILE *out, unsigned *ret_before,
                    unsigned *ret_after)
{
    struct ward_course c;
    struct verdict alone;
    ward_course_make(seed, &c);
    *ret_before = c.count;
    ward_try(&c, NULL, &alone);
    if (alone.broken) {
        ward_shrink(&c, v, TRIES_MAX);
        (void)fprintf(out, "# %s\n", v->text);
        ward_course_write(&c, out);
    }
    *ret_after = c.count;
    ward_course_finish(&c);
    return alone.broken;
}

static bool play_file(FILE *in, FILE *log, struct verdict *ret_verdict)
{
    struct ward_course c;
    bool read = ward_course_read(in, &c);
    if (read) {
        ward_try(&c, log, ret_verdict);
        ward_course_finish(&c);
    }
    return read;
}

int main(int argc, char **argv)
{
    static const struct simulation simulation = {.folder = SEEDS_DIR,
                                                 .seeds = SEEDS_USUAL,
                                                 .play = play,
                                                 .play_file = play_file,
                                                 .shorten = shorten};
    struct options o;
    (void)argc;
    options_read(argv, &o);
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    log_open("worker_sim", o.log ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR - 1);
    return lanes_main(&simulation, &o);
}
