/*
 * The log in the format of RMM's logging resource: Thread,Time,Action,Pointer,Size,Stream. Thread
 * is the device's id. Time is the wall clock at the stamp that follows the event. Pointer counts
 * from 256, because 0 stands for a failed allocation. Memory that is older than the log is shown as
 * allocated at the log's beginning, so that sums and replays are right.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuctl/pool/snapshot.h"

#define BASE 256u

static void line(const struct snapshot_device *d, uint64_t ns, const char *action, uint64_t pointer,
                 uint64_t size, unsigned stream, FILE *out)
{
    uint64_t ago = d->taken_ns > ns ? d->taken_ns - ns : 0;
    uint64_t wall = d->wall_ns > ago ? d->wall_ns - ago : 0;
    time_t seconds = (time_t)(wall / 1000000000u);
    struct tm day;
    char text[16] = "00:00:00";
    if (localtime_r(&seconds, &day) != NULL) {
        (void)strftime(text, sizeof text, "%H:%M:%S", &day);
    }
    fprintf(out, "%" PRIu64 ",%s.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%x\n", d->id, text,
            (unsigned)(wall / 1000 % 1000000), action, pointer, size, stream);
}

static int by_place(const void *a, const void *b)
{
    const struct snapshot_piece *x = a;
    const struct snapshot_piece *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The pieces that lived when the log began; freed by the caller. NULL: out of memory. */
static struct snapshot_piece *lived_before(const struct snapshot_device *d, uint32_t *ret_count)
{
    uint32_t count = 0;
    struct snapshot_piece *all = snapshot_live(d, &count);
    count = all != NULL ? snapshot_rewind(d, all, count, NULL) : UINT32_MAX;
    if (count == UINT32_MAX) {
        free(all);
        return NULL;
    }
    qsort(all, count, sizeof *all, by_place);
    *ret_count = count;
    return all;
}

static void events_write(const struct snapshot_device *d, FILE *out)
{
    for (uint32_t i = 0; i < d->event_count; i++) {
        const struct snapshot_event *v = &d->events[i];
        if (v->kind == SNAPSHOT_ALLOC || v->kind == SNAPSHOT_HIT) {
            line(d, v->before_ns, "allocate", v->at + BASE, v->size, v->stream, out);
        } else if (v->kind == SNAPSHOT_RELEASE) {
            line(d, v->before_ns, "free", v->at + BASE, v->size, v->stream, out);
        } else if (v->kind == SNAPSHOT_REFUSE) {
            line(d, v->before_ns, "allocate failure", 0, v->size, v->stream, out);
        }
    }
}

bool snapshot_write_rmm(const struct snapshot *snapshot, FILE *out)
{
    bool good = true;
    fputs("Thread,Time,Action,Pointer,Size,Stream\n", out);
    for (uint32_t i = 0; good && i < snapshot->device_count; i++) {
        const struct snapshot_device *d = &snapshot->devices[i];
        uint64_t begin = d->event_count > 0 ? d->events[0].before_ns : d->taken_ns;
        uint32_t count = 0;
        struct snapshot_piece *before = lived_before(d, &count);
        for (uint32_t k = 0; k < count; k++) {
            line(d, begin, "allocate", before[k].at + BASE, before[k].size, 0, out);
        }
        good = before != NULL;
        free(before);
        events_write(d, out);
    }
    return good;
}
