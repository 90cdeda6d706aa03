#include "gpuctl/ctl/progress.h"

#include <stdio.h>

#define BAR 40

static bool show(uint64_t done, uint64_t total, void *user)
{
    struct progress *p = user;
    if (total <= PROGRESS_BYTES) {
        return true;
    }
    int percent = (int)((double)done * 100.0 / (double)total);
    if (percent == p->percent) {
        return true;
    }
    p->percent = percent;
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++) {
        bar[i] = i * 100 < percent * BAR ? '#' : '.';
    }
    bar[BAR] = '\0';
    fprintf(stderr, "\r%-12.12s [%s] %3d %% of %.1f MiB", p->what, bar, percent,
            (double)total / (1 << 20));
    fflush(stderr);
    return true;
}

gpud_transfer progress_transfer(struct progress *progress, const char *what, bool terminal)
{
    *progress = (struct progress){.what = what, .percent = -1};
    return (gpud_transfer){
        .size = sizeof(gpud_transfer), .progress = terminal ? show : NULL, .user = progress};
}

void progress_finish(struct progress *progress)
{
    if (progress->percent >= 0) {
        fprintf(stderr, "\r\033[K");
        progress->percent = -1;
    }
}
