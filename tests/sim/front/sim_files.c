#include "tests/sim/front/sim_files.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/tenants/forecast_file.h"
#include "tests/sim/front/sim.h"

#define FILE_MOST 65536u

/* Another length: mostly one at which a line ends, as a disk that was full leaves it. */
static long shorter(const char *path, long size, struct chance *r)
{
    static char text[FILE_MOST];
    FILE *in = fopen(path, "re");
    size_t got = in != NULL ? fread(text, 1, sizeof text, in) : 0;
    long at = (long)chance_below(r, (uint64_t)size);
    if (in != NULL) {
        (void)fclose(in);
    }
    while (chance_percent(r, 99) && at > 0 && (size_t)at < got && text[at - 1] != '\n') {
        at--;
    }
    return at;
}

enum damage { DAMAGE_NONE, DAMAGE_CUT, DAMAGE_OPEN };

static enum damage damage(const char *path, struct chance *r)
{
    struct stat st;
    unsigned n = (unsigned)chance_below(r, 100);
    if (n >= 45 || stat(path, &st) != 0 || st.st_size == 0) {
        return DAMAGE_NONE;
    }
    if (n < 30) {
        return truncate(path, shorter(path, st.st_size, r)) == 0 ? DAMAGE_CUT : DAMAGE_NONE;
    }
    return chmod(path, n % 2 == 0 ? 0620 : 0602) == 0 ? DAMAGE_OPEN : DAMAGE_NONE;
}

/* What jobs take, as the former front knew it: a file that is whole, and that no other user can
 * write, is believed, and no other one. */
static void read_forecasts(struct sim *s)
{
    struct chance r = chance_of(s->course->seed + s->era, 60);
    char path[SIM_FOLDER + 16];
    (void)snprintf(path, sizeof path, "%s/forecasts", s->dir);
    bool there = s->f->config.cache_dir[0] != '\0' && access(path, F_OK) == 0;
    enum damage how = there ? damage(path, &r) : DAMAGE_NONE;
    memory_inside();
    forecast_file_read(s->f->config.cache_dir, &s->f->forecasts);
    memory_outside();
    bool read = s->f->forecasts != NULL;
    if (read && how != DAMAGE_NONE) {
        sim_fail(s, "forecasts: a file that %s is believed",
                 how == DAMAGE_CUT ? "was cut" : "others can write");
    }
    if (there && !read && how == DAMAGE_NONE && !memory_failed()) {
        sim_fail(s, "forecasts: the file that the front before left is not believed");
    }
    if (how != DAMAGE_NONE) { /* a front that learns nothing leaves the file as it is */
        (void)unlink(path);
    }
}

void files_read(struct sim *s)
{
    read_forecasts(s);
}
