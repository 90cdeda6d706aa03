/* What a session does while the stream of jobs is recorded. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/torture/session.h"

#define ITEMS 64u
#define JOBS  3u /* of some_jobs */

/* A recording that has just ended may still be written to its end. */
static int start(struct session *s, const char *value)
{
    uint64_t end_ns = now_ns() + patience_of(s);
    int code = gpud_control(s->c, "record-start", value);
    while (code == GPUD_ERR_BUSY && now_ns() < end_ns) {
        pause_ms(2);
        code = gpud_control(s->c, "record-start", value);
    }
    return code;
}

/* With an array that is recorded, and with a buffer that is written and read. */
static void some_jobs(struct session *s)
{
    gpud_buffer b = {0};
    float y[ITEMS] = {0};
    gpud_arg args[] = {gpud_f32(3), gpud_host_out(y, ITEMS, GPUD_F32)};
    if (said(s, gpud_call(s->c, s->fill, args, 2, NULL), "gpud_call") && y[ITEMS - 1] != 3) {
        wrong(s, "a recorded job: %g", (double)y[ITEMS - 1]);
    }
    if (numbers_make(s, ITEMS, 30, &b)) {
        (void)numbers_check(s, b, ITEMS, 30, "gpud_read of a recorded job");
        (void)said(s, gpud_buffer_free(s->c, b), "gpud_buffer_free");
    }
}

/* Whether all is in the file, and the recording has ended as asked. */
static bool is_whole(struct session *s)
{
    gpud_table *t = NULL;
    if (!said(s, gpud_query(s->c, "record", NULL, &t), "the table of recordings")) {
        return false;
    }
    int jobs = gpud_table_find(t, "jobs");
    int lost = gpud_table_find(t, "lost");
    int state = gpud_table_find(t, "state");
    bool row = gpud_table_rows(t) == 1 && jobs >= 0 && lost >= 0 && state >= 0;
    bool whole = row && gpud_table_value(t, 0, (uint32_t)jobs) == JOBS &&
                 gpud_table_value(t, 0, (uint32_t)lost) == 0 &&
                 strcmp(gpud_table_text(t, 0, (uint32_t)state), "stopped") == 0;
    gpud_table_free(t);
    return whole;
}

static void look(struct session *s)
{
    uint64_t end_ns = now_ns() + patience_of(s);
    while (!is_whole(s) && s->clean && s->problem[0] == '\0') {
        if (now_ns() > end_ns) {
            wrong(s, "the recording does not end with all jobs");
        }
        pause_ms(2);
    }
}

void play_record(struct session *s)
{
    static unsigned serial;
    char name[64];
    char value[80];
    char path[sizeof s->h->cache + sizeof name + 32];
    (void)snprintf(name, sizeof name, "torture-%d-%u", (int)getpid(), serial++);
    (void)snprintf(value, sizeof value, "%s data", name);
    (void)snprintf(path, sizeof path, "%s/recordings/%s.jsonl", s->h->cache, name);
    bool on = said(s, start(s, value), "record-start");
    some_jobs(s);
    bool off = said(s, gpud_control(s->c, "record-stop", NULL), "record-stop");
    if (on && off) {
        look(s);
    }
    (void)unlink(path);
}
