/* gpuctl record: begins, ends and shows the daemon's recording of jobs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/input/spec.h"

#define LOOK_MS    20u
#define PATIENCE_S 5u /* for the daemon's thread to make, or to end, its file */

enum { OPT_DATA = 1, OPT_SIZE };

const struct option record_start_option_list[] = {
    {"with-data", 0, false, OPT_DATA},
    {"file-size", 0, true, OPT_SIZE},
    {0},
};

struct look {
    char state[GPUD_NAME];
    char file[512];
    char why[GPUD_ERROR_TEXT];
};

static int look(struct ctl *ctl, struct look *ret_look, struct ctl_err *e)
{
    gpud_table *t = NULL;
    int rc = gpud_query(ctl->client, "record", NULL, &t);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "record");
    }
    bool any = gpud_table_rows(t) > 0;
    (void)snprintf(ret_look->state, sizeof ret_look->state, "%s",
                   any ? table_text_of(t, 0, "state") : "");
    (void)snprintf(ret_look->file, sizeof ret_look->file, "%s",
                   any ? table_text_of(t, 0, "file") : "");
    (void)snprintf(ret_look->why, sizeof ret_look->why, "%s",
                   any ? table_text_of(t, 0, "why") : "");
    gpud_table_free(t);
    return 0;
}

/* The daemon answers before its thread has been at the disk, which may be slow. */
static int await(struct ctl *ctl, const char *state, struct look *ret_look, struct ctl_err *e)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t until = clock_now_ns() + PATIENCE_S * NS_PER_S;
    int rc = look(ctl, ret_look, e);
    while (rc == 0 && strcmp(ret_look->state, state) == 0 && clock_now_ns() < until) {
        (void)nanosleep(&pause, NULL);
        rc = look(ctl, ret_look, e);
    }
    if (rc == 0 && strcmp(ret_look->state, "failed") == 0) {
        rc = ctl_err_set(e, GPUD_ERR_IO, "%s: %s", ret_look->file, ret_look->why);
    }
    return rc;
}

static int read_options(struct ctl *ctl, struct options *options, char *ret_value, size_t size,
                        struct ctl_err *e)
{
    const char *value = NULL;
    const char *name = NULL;
    const char *data = "";
    char bytes[40] = "";
    uint64_t number = 0;
    int id;
    while ((id = ctl_option(ctl, options, record_start_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPTION_WORD && name != NULL) {
            return ctl_err_usage(e, "%s: one name is enough", value);
        }
        if (id == OPTION_WORD) {
            name = value;
        } else if (id == OPT_DATA) {
            data = " data";
        } else if (spec_size("--file-size", value, 1, INT64_MAX, &number, e) != 0) {
            return e->code;
        } else {
            (void)snprintf(bytes, sizeof bytes, " bytes=%llu", (unsigned long long)number);
        }
    }
    if (name == NULL || strchr(name, ' ') != NULL) {
        return ctl_err_usage(e, "say how the recording is called: gpuctl record start NAME");
    }
    return (size_t)snprintf(ret_value, size, "%s%s%s", name, data, bytes) < size
               ? 0
               : ctl_err_usage(e, "the name is too long");
}

int cmd_record_start(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    char value[256];
    char done[700];
    struct look now;
    int rc = read_options(ctl, options, value, sizeof value, e);
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = gpud_control(ctl->client, "record-start", value);
    rc = rc == 0 ? await(ctl, "opening", &now, e)
                 : ctl_err_set(e, rc, "%s", gpud_last_error()->text);
    if (rc != 0) {
        return rc;
    }
    (void)snprintf(done, sizeof done, "%s: %s", now.state, now.file);
    return ctl_done(ctl, "record start", true, done, e);
}

int cmd_record_stop(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    char done[700];
    struct look now;
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = gpud_control(ctl->client, "record-stop", NULL);
    rc = rc == 0 ? await(ctl, "recording", &now, e)
                 : ctl_err_set(e, rc, "%s", gpud_last_error()->text);
    if (rc != 0) {
        return rc;
    }
    (void)snprintf(done, sizeof done, "%s: %s", now.state, now.file);
    return ctl_done(ctl, "record stop", true, done, e);
}

int cmd_record_status(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    return rc == 0 ? ctl_show(ctl, "record", NULL, e) : rc;
}
