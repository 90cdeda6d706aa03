/* CONTROL: changes that an operator can make while the daemon runs. */
#include <stdlib.h>

#include "common/log.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/reload.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/workers/command.h"

static void tell_all(struct front *f, unsigned kind)
{
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        (void)session_notice(s, f->config.tenant_notices_max, kind, 0);
        session_send_events(f, s, front_now(f));
    }
}

static int control_drain(struct front *f, const char *value, struct err *e)
{
    (void)value;
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

static int control_resume(struct front *f, const char *value, struct err *e)
{
    (void)value;
    if (f->life > FRONT_DRAINING) {
        return err_set(e, ERR_STATE, "the daemon is ending");
    }
    if (f->life == FRONT_DRAINING) {
        front_life_step(&f->life, FRONT_SERVING);
    }
    tell_all(f, NOTICE_RESUMED);
    return 0;
}

static int control_log_level(struct front *f, const char *value, struct err *e)
{
    int level = log_level_from_name(value);
    if (level < 0) {
        return err_set(e, ERR_INVALID, "log level %s: error, warn, info or debug", value);
    }
    f->config.log_level = level;
    log_set_level(level);
    return 0;
}

static int control_session_kill(struct front *f, const char *value, struct err *e)
{
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

static int control_pool_trim(struct front *f, const char *value, struct err *e)
{
    (void)value;
    (void)e;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        command_pool(d, true);
    }
    return 0;
}

static int control_accounts_reset(struct front *f, const char *value, struct err *e)
{
    (void)value;
    (void)e;
    if (f->accounts != NULL) {
        accounts_reset(f->accounts, front_now(f));
    }
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct front *f, const char *value, struct err *e);
    unsigned role; /* of a tenant that may ask for it; 0: only administrators may */
} controls[] = {
    {"drain", control_drain, ROLE_DRAIN}, {"resume", control_resume, ROLE_DRAIN},
    {"log-level", control_log_level, 0},  {"session-kill", control_session_kill, 0},
    {"pool-trim", control_pool_trim, 0},  {"accounts-reset", control_accounts_reset, 0},
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
    rc = controls[control].run(c->f, value, e);
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
