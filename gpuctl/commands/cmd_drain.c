/* drain and resume: of the daemon, or of one device, whose release drain can wait for. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/ctl/interrupt.h"
#include "gpuctl/input/spec.h"

#define PAUSE_NS   (200 * NS_PER_MS) /* between two looks at the device */
#define WAIT_MAX_S (7u * 24 * 3600)

enum { OPT_DEVICE = 1, OPT_FINISH, OPT_WAIT };

const struct option drain_option_list[] = {
    {"device", 0, true, OPT_DEVICE},
    {"finish", 0, false, OPT_FINISH},
    {"wait", 0, true, OPT_WAIT},
    {0},
};

const struct option resume_option_list[] = {
    {"device", 0, true, OPT_DEVICE},
    {0},
};

struct wish {
    bool one; /* else the whole daemon */
    uint64_t device;
    bool finish;
    bool waits;
    uint64_t wait_s;
};

static int take(int id, const char *value, struct wish *w, struct ctl_err *e)
{
    switch (id) {
    case OPT_DEVICE:
        w->one = true;
        return spec_number("--device", value, 0, UINT32_MAX, &w->device, e);
    case OPT_FINISH:
        w->finish = true;
        return 0;
    default:
        w->waits = true;
        return spec_number("--wait", value, 0, WAIT_MAX_S, &w->wait_s, e);
    }
}

static int read_wish(struct ctl *ctl, struct options *options, const struct option *own,
                     struct wish *ret_wish, struct ctl_err *e)
{
    struct wish w = {.one = false};
    const char *value = NULL;
    int id;
    int rc = 0;
    while (rc == 0 && (id = ctl_option_only(ctl, options, own, &value, e)) != OPTION_END) {
        rc = id == OPTION_BAD ? e->code : take(id, value, &w, e);
    }
    if (rc == 0 && !w.one && (w.finish || w.waits)) {
        return ctl_err_usage(e, "--%s is for one device: --device ID is missing",
                             w.finish ? "finish" : "wait");
    }
    *ret_wish = w;
    return rc;
}

/* ---- the device ------------------------------------------------------------------------------ */

struct shown {
    char state[GPUD_NAME];
    char reason[1024];
};

/* "" for a device that is not there: the daemon's refusal says so. */
static int look(struct ctl *ctl, uint64_t device, struct shown *ret_shown, struct ctl_err *e)
{
    gpud_table *t = NULL;
    struct shown s = {.state = ""};
    int rc = gpud_query(ctl->client, "devices", NULL, &t);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "devices");
    }
    for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
        if (table_value_of(t, r, "device") == device) {
            (void)snprintf(s.state, sizeof s.state, "%s", table_text_of(t, r, "state"));
            (void)snprintf(s.reason, sizeof s.reason, "%s", table_text_of(t, r, "reason"));
        }
    }
    gpud_table_free(t);
    *ret_shown = s;
    return 0;
}

static bool is_drained(const struct shown *s)
{
    return strcmp(s->state, "drained") == 0;
}

static bool drains(const struct shown *s)
{
    return is_drained(s) || strcmp(s->state, "draining") == 0;
}

/* The daemon's refusal has its own text. */
static int control(struct ctl *ctl, const char *what, const char *value, struct ctl_err *e)
{
    int rc = gpud_control(ctl->client, what, value);
    return rc == 0 ? 0 : ctl_err_set(e, rc, "%s", gpud_last_error()->text);
}

static int await(struct ctl *ctl, const struct wish *w, struct shown *s, struct ctl_err *e)
{
    uint64_t until = clock_now_ns() + w->wait_s * NS_PER_S;
    int rc = 0;
    while (rc == 0 && !is_drained(s) && drains(s) && clock_now_ns() < until) {
        uint64_t next = clock_now_ns() + PAUSE_NS;
        if (!interrupt_sleep_until(next < until ? next : until, false)) {
            return ctl_err_set(e, CTL_INTERRUPTED, "interrupted; the drain goes on");
        }
        rc = look(ctl, w->device, s, e);
    }
    return rc;
}

static int say(struct ctl *ctl, const char *what, const struct wish *w, const char *state,
               const char *more, struct ctl_err *e)
{
    char text[sizeof((struct shown *)0)->reason + 128];
    (void)snprintf(text, sizeof text, "device %llu %s%s%s", (unsigned long long)w->device, state,
                   more[0] != '\0' ? ": " : "", more);
    return ctl_done(ctl, what, true, text, e);
}

static int drain_one(struct ctl *ctl, const struct wish *w, struct ctl_err *e)
{
    char value[64];
    struct shown s;
    (void)snprintf(value, sizeof value, "%llu%s", (unsigned long long)w->device,
                   w->finish ? " finish" : "");
    int rc = look(ctl, w->device, &s, e);
    bool before = rc == 0 && is_drained(&s);
    rc = rc == 0 ? control(ctl, "drain-device", value, e) : rc;
    rc = rc == 0 ? look(ctl, w->device, &s, e) : rc;
    if (rc == 0 && w->waits) {
        interrupt_catch();
        rc = await(ctl, w, &s, e);
        interrupt_release();
    }
    if (rc != 0) {
        return rc;
    }
    if (!drains(&s)) {
        return ctl_err_set(e, GPUD_ERR_STATE, "device %llu was resumed meanwhile, and is %s",
                           (unsigned long long)w->device, s.state);
    }
    if (w->waits && !is_drained(&s)) {
        return ctl_err_set(e, GPUD_ERR_TIMEOUT,
                           "device %llu is not released after %llu s: %s\nThe drain goes on: "
                           "gpuctl devices -o wide; gpuctl resume --device %llu gives it up.",
                           (unsigned long long)w->device, (unsigned long long)w->wait_s, s.reason,
                           (unsigned long long)w->device);
    }
    return say(ctl, "drain", w,
               before           ? "was drained already"
               : is_drained(&s) ? "is drained"
                                : "is draining",
               s.reason, e);
}

static int resume_one(struct ctl *ctl, const struct wish *w, struct ctl_err *e)
{
    char value[24];
    struct shown s;
    (void)snprintf(value, sizeof value, "%llu", (unsigned long long)w->device);
    int rc = look(ctl, w->device, &s, e);
    rc = rc == 0 ? control(ctl, "resume-device", value, e) : rc;
    if (rc != 0) {
        return rc;
    }
    return drains(&s) ? say(ctl, "resume", w, "is opened again", "", e)
                      : say(ctl, "resume", w, "was not drained, and is", s.state, e);
}

/* ---- the commands ---------------------------------------------------------------------------- */

int cmd_drain(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct wish w;
    int rc = read_wish(ctl, options, drain_option_list, &w, e);
    if (rc != 0 || !w.one) {
        return rc != 0 ? rc : ctl_control(ctl, "drain", NULL, "draining: no new jobs are taken", e);
    }
    rc = ctl_connect(ctl, e);
    return rc == 0 ? drain_one(ctl, &w, e) : rc;
}

int cmd_resume(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct wish w;
    int rc = read_wish(ctl, options, resume_option_list, &w, e);
    if (rc != 0 || !w.one) {
        return rc != 0 ? rc : ctl_control(ctl, "resume", NULL, "jobs are taken again", e);
    }
    rc = ctl_connect(ctl, e);
    return rc == 0 ? resume_one(ctl, &w, e) : rc;
}
