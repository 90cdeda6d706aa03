/* CONTROL: changes that an operator can make while the daemon runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/record/record.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/reload.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/workers/command.h"

struct control_call {
    struct front *f;
    const struct session *s;
    const char *value; /* "": none */
};

static void tell_all(struct front *f, unsigned kind)
{
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        (void)session_notice(s, f->config.tenant_notices_max, kind, 0);
        session_send_events(f, s, front_now(f));
    }
}

static int control_drain(const struct control_call *c, struct err *e)
{
    struct front *f = c->f;
    if (f->life == FRONT_HANDING_OVER) {
        return err_set(e, ERR_STATE,
                       "the daemon is handing over to its successor: try again in a moment");
    }
    if (f->life == FRONT_SERVING) {
        front_life_step(&f->life, FRONT_DRAINING);
    }
    tell_all(f, NOTICE_DRAINING);
    return 0;
}

static int control_resume(const struct control_call *c, struct err *e)
{
    struct front *f = c->f;
    if (f->life > FRONT_DRAINING) {
        return err_set(e, ERR_STATE, "the daemon is ending");
    }
    if (f->life == FRONT_DRAINING) {
        front_life_step(&f->life, FRONT_SERVING);
    }
    tell_all(f, NOTICE_RESUMED);
    return 0;
}

/* "1", or "1 finish". */
static int read_device(const char *value, uint64_t *ret_number, bool *ret_finish, struct err *e)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    bool finish = strcmp(end, " finish") == 0;
    if (value[0] < '0' || value[0] > '9' || errno != 0 || (*end != '\0' && !finish)) {
        return err_set(e, ERR_INVALID, "device %s: its number, and finish or nothing", value);
    }
    *ret_number = number;
    *ret_finish = finish;
    return 0;
}

static int control_drain_device(const struct control_call *c, struct err *e)
{
    uint64_t number = 0;
    bool finish = false;
    int rc = read_device(c->value, &number, &finish, e);
    if (rc == 0 && c->f->life > FRONT_DRAINING) {
        rc = err_set(e, ERR_STATE, "the daemon is ending: its successor drains the device");
    }
    return rc == 0 ? draining_begin(c->f, number, finish, c->s->tenant->name, e) : rc;
}

static int control_resume_device(const struct control_call *c, struct err *e)
{
    uint64_t number = 0;
    bool finish = false;
    int rc = read_device(c->value, &number, &finish, e);
    if (rc == 0 && finish) {
        rc = err_set(e, ERR_INVALID, "device %s: its number", c->value);
    }
    if (rc == 0 && c->f->life > FRONT_DRAINING) {
        rc = err_set(e, ERR_STATE, "the daemon is ending: its successor resumes the device");
    }
    return rc == 0 ? draining_end(c->f, number, e) : rc;
}

static int control_log_level(const struct control_call *c, struct err *e)
{
    int level = log_level_from_name(c->value);
    if (level < 0) {
        return err_set(e, ERR_INVALID, "log level %s: error, warn, info or debug", c->value);
    }
    c->f->config.log_level = level;
    log_set_level(level);
    return 0;
}

static int control_session_kill(const struct control_call *c, struct err *e)
{
    struct front *f = c->f;
    const char *value = c->value;
    char *end = NULL;
    unsigned long long id = strtoull(value, &end, 10);
    for (struct session *s = f->sessions; s != NULL && end != value; s = s->hh.next) {
        if (s->id == id) {
            session_kill(f, s);
            return 0;
        }
    }
    return err_set(e, ERR_NOT_FOUND, "there is no session %s", value);
}

static int control_pool_trim(const struct control_call *c, struct err *e)
{
    (void)e;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(c->f, &at)) != NULL;) {
        command_pool(d, true);
    }
    return 0;
}

static int control_accounts_reset(const struct control_call *c, struct err *e)
{
    (void)e;
    if (c->f->accounts != NULL) {
        accounts_reset(c->f->accounts, front_now(c->f));
    }
    return 0;
}

static int control_record_start(const struct control_call *c, struct err *e)
{
    return record_start(c->f, c->value, e);
}

static int control_record_stop(const struct control_call *c, struct err *e)
{
    return record_stop(c->f, e);
}

static const struct {
    const char *name;
    int (*run)(const struct control_call *c, struct err *e);
    unsigned role; /* of a tenant that may ask for it; 0: only administrators may */
} controls[] = {
    {"drain", control_drain, ROLE_DRAIN},
    {"resume", control_resume, ROLE_DRAIN},
    {"drain-device", control_drain_device, ROLE_DRAIN},
    {"resume-device", control_resume_device, ROLE_DRAIN},
    {"log-level", control_log_level, 0},
    {"session-kill", control_session_kill, 0},
    {"pool-trim", control_pool_trim, 0},
    {"accounts-reset", control_accounts_reset, 0},
    {"record-start", control_record_start, 0},
    {"record-stop", control_record_stop, 0},
    {"reload", NULL, ROLE_RELOAD},
};

/* The control without a function, reload, is answered later. */
static int run(struct request_context *c, unsigned control, const char *value, struct err *e)
{
    const struct msg_done done = {0};
    int rc;
    if (controls[control].run == NULL) {
        rc = reload_settings(c->f, c->r, e);
        c->r = rc == 0 ? NULL : c->r;
        return rc;
    }
    const struct control_call call = {.f = c->f, .s = c->s, .value = value};
    rc = controls[control].run(&call, e);
    return rc != 0 ? rc : proto_encode(&schema_msg_done, &done, c->out, e);
}

/* Roles of tenants that may ask for this; 0: none, or there is no such control. */
static unsigned role_for(struct bytes what)
{
    unsigned role = 0;
    for (unsigned i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        role |= bytes_equal_str(what, controls[i].name) ? controls[i].role : 0;
    }
    return role;
}

int request_control(struct request_context *c, struct err *e)
{
    const struct msg_control *m = &c->r->msg.control;
    char value[PROTO_TEXT_MAX + 1];
    unsigned role = role_for(m->what);
    if (!rights_may(&c->f->rights, c->s, role)) {
        return err_set(
            e, ERR_PERMISSION,
            "only root, the daemon's user and members of its admin_group%s%s may ask for %.*s",
            role == 0 ? "" : ", and tenants with roles = ",
            role == ROLE_DRAIN    ? "drain"
            : role == ROLE_RELOAD ? "reload"
                                  : "",
            (int)m->what.size, (const char *)m->what.data);
    }
    if (!bytes_to_str(m->value, value, sizeof value)) {
        return err_set(e, ERR_INVALID, "the value is not a text");
    }
    for (unsigned i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        if (bytes_equal_str(m->what, controls[i].name)) {
            log_about(LOG_CONTROL, about_session(c->s),
                      "%s%s%s: requested by session %llu (%s, process %d of uid %u)",
                      controls[i].name, value[0] != '\0' ? " " : "", value,
                      (unsigned long long)c->s->id, c->s->name, (int)c->s->client.pid,
                      (unsigned)c->s->key.uid);
            return run(c, i, value, e);
        }
    }
    return err_set(e, ERR_NOT_FOUND, "there is no control %.*s", (int)m->what.size,
                   (const char *)m->what.data);
}
