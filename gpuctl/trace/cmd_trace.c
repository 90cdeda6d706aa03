/* `gpuctl trace`: records jobs for a while, and writes a file that Perfetto opens. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "gpuctl/base/save.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/ctl/interrupt.h"
#include "gpuctl/input/spec.h"
#include "gpuctl/trace/trace.h"

#define PART_MS     50u /* between two parts */
#define SECONDS     5u  /* the default */
#define SECONDS_MAX 3600u
#define EVENTS_MAX  4000000u /* about a GiB of memory */

enum { OPT_FILE = 1, OPT_SECONDS, OPT_JOBS };

const struct option trace_option_list[] = {
    {"file", 'f', true, OPT_FILE},
    {"seconds", 0, true, OPT_SECONDS},
    {"jobs", 0, true, OPT_JOBS},
    {0},
};

struct request {
    const char *path;
    uint64_t seconds, jobs; /* 0: no limit */
};

static int options_read(struct ctl *ctl, struct options *options, struct request *r,
                        struct ctl_err *e)
{
    const char *value = NULL;
    int rc = 0;
    int id;
    while (rc == 0 &&
           (id = ctl_option_only(ctl, options, trace_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPT_FILE) {
            r->path = value;
        } else if (id == OPT_SECONDS) {
            rc = spec_number("--seconds", value, 1, SECONDS_MAX, &r->seconds, e);
        } else {
            rc = spec_number("--jobs", value, 1, EVENTS_MAX, &r->jobs, e);
        }
    }
    if (rc == 0 && r->path == NULL) {
        rc = ctl_err_usage(e, "say where to write the recording: -f FILE");
    }
    r->seconds = r->seconds == 0 && r->jobs == 0 ? SECONDS : r->seconds;
    return rc;
}

static int take_part(struct ctl *ctl, struct trace *t, uint32_t *ret_rows, struct ctl_err *e)
{
    gpud_table *table = NULL;
    int rc = gpud_query_with(ctl->client, "trace", NULL, &table);
    if (rc != 0) {
        return ctl_err_set(e, rc, "%s", gpud_last_error()->text);
    }
    *ret_rows = gpud_table_rows(table);
    rc = trace_add(t, table, e);
    gpud_table_free(table);
    return rc;
}

/* Until the time is over, there are enough jobs, or the user interrupts. The last part is what the
 * daemon has then. */
static int record(struct ctl *ctl, const struct request *r, struct trace *t, struct ctl_err *e)
{
    const struct timespec pause = {.tv_nsec = PART_MS * 1000000L};
    uint64_t begin = clock_now_ns();
    uint32_t rows = 0;
    int rc = take_part(ctl, t, &rows, e); /* begins it */
    bool over = false;
    while (rc == 0 && !over) {
        over = interrupt_seen() || t->count > EVENTS_MAX || (r->jobs > 0 && t->jobs >= r->jobs) ||
               (r->seconds > 0 && clock_now_ns() - begin >= r->seconds * NS_PER_S);
        if (!over && rows <= 1) {
            (void)nanosleep(&pause, NULL);
        }
        rc = take_part(ctl, t, &rows, e);
    }
    return rc;
}

static int write_file(struct save *save, const struct trace *t, struct ctl_err *e)
{
    char *data = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&data, &size);
    if (memory == NULL) {
        return ctl_err_errno(e, "the recording");
    }
    bool failed = !trace_write(t, memory);
    failed = fclose(memory) != 0 || failed;
    const struct save_part part = {.data = data, .size = size};
    int rc = failed ? ctl_err_set(e, GPUD_ERR_NOMEM, "the recording: out of memory")
                    : save_commit(save, &part, 1, e);
    free(data);
    return rc;
}

int cmd_trace(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct request r = {.path = NULL};
    struct save save = {.path = NULL};
    struct trace t = {.event = NULL};
    char done[96];
    int rc = options_read(ctl, options, &r, e);
    bool piped = rc == 0 && strcmp(r.path, "-") == 0;
    if (rc == 0) {
        rc = piped ? save_begin_stdout(&save, e) : save_begin(r.path, &save, e);
    }
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc == 0) {
        interrupt_catch();
        rc = record(ctl, &r, &t, e);
        interrupt_release();
    }
    rc = rc == 0 ? write_file(&save, &t, e) : rc;
    if (rc == 0 && t.lost > 0) {
        ctl_say("%llu records are missing: more jobs ended than gpuctl could fetch",
                (unsigned long long)t.lost);
    }
    if (rc == 0 && !piped) {
        (void)snprintf(done, sizeof done, "%u jobs; open the file in https://ui.perfetto.dev",
                       (unsigned)t.jobs);
        rc = ctl_done(ctl, "trace", true, done, e);
    }
    trace_finish(&t);
    save_finish(&save);
    return rc;
}
