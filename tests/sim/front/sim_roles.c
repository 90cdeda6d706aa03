/* Clients and their tenants in a world, and the rights that its settings give them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_roles.h"

#define USERS_FIRST 1000u
#define TEAM_USERS  2u
#define TEAMS_MAX   100u
#define TEAM_NONE   UINT32_MAX

/* ---- what a world draws ---------------------------------------------------------------------- */

static uint64_t draw(const struct sim *s, const char *what)
{
    uint64_t sum = s->course->seed;
    for (const char *c = what; *c != '\0'; c++) {
        sum = chance_mix(sum ^ (unsigned char)*c);
    }
    return chance_mix(sum);
}

unsigned roles_of(const struct sim *s, const char *tenant)
{
    uint64_t r = draw(s, tenant);
    bool section = strncmp(tenant, "uid:", 4) != 0 && tenant[0] != '\0';
    return s->p.roles == 0 || !section || r % 3 == 0 ? 0 : (unsigned)(r / 3 % 16);
}

bool roles_look_all(const struct sim *s)
{
    return s->p.roles != 0 && draw(s, "look") % 5 == 0;
}

static bool others_refused(const struct sim *s)
{
    return s->p.roles != 0 && draw(s, "others") % 5 == 0;
}

/* Two users of a team have one section, in most teams. */
static uint32_t team_of(const struct sim *s, uint32_t uid)
{
    char name[32];
    uint32_t team = uid >= USERS_FIRST ? (uid - USERS_FIRST) / TEAM_USERS : TEAM_NONE;
    if (s->p.roles == 0 || uid == SIM_STRANGER || team >= TEAMS_MAX) {
        return TEAM_NONE;
    }
    (void)snprintf(name, sizeof name, "has%u", team);
    return draw(s, name) % 4 == 0 ? TEAM_NONE : team;
}

/* ---- clients --------------------------------------------------------------------------------- */

void roles_user(const struct sim *s, struct sim_client *c)
{
    uint32_t team = team_of(s, c->uid);
    c->gid = c->uid;
    if (s->p.roles != 0 && c->uid == SIM_STRANGER && draw(s, "group") % 2 == 0) {
        c->uid = c->tenant = USERS_FIRST; /* a user of the workers' group */
        return;
    }
    if (client_twin(c) && s->p.roles != 0 && c->index / 2 == 1) {
        c->uid = 0; /* root of a container, say */
    } else if (c->tenant == c->uid && team != TEAM_NONE) {
        c->tenant = USERS_FIRST + TEAM_USERS * team;
    }
}

void roles_tenant(const struct sim *s, const struct sim_client *c,
                  char ret_name[PROTO_NAME_MAX + 1])
{
    uint32_t team = team_of(s, c->uid);
    char own[SIM_LABEL];
    if (load_name(s, c, own)) {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "%s", own);
    } else if (client_twin(c)) {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "twin%u", c->tenant - SIM_TWINS);
    } else if (client_far(c)) {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "%s", tokens_tenant(c->tenant - SIM_FARS));
    } else if (team != TEAM_NONE) {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "team%u", team);
    } else {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "uid:%u", c->uid);
    }
}

bool roles_barred(const struct sim *s, const struct sim_client *c)
{
    bool named = client_twin(c) || client_far(c) || team_of(s, c->uid) != TEAM_NONE;
    bool kernel = c->uid == SIM_STRANGER || c->gid == SIM_STRANGER;
    return kernel || (others_refused(s) && !named && c->uid != 0 && c->uid != getuid());
}

void viewer_of_client(const struct sim *s, const struct sim_client *c, struct viewer *ret_viewer)
{
    ret_viewer->uid = c->uid;
    ret_viewer->socket = client_listener(c);
    ret_viewer->local = !client_far(c);
    roles_tenant(s, c, ret_viewer->tenant);
}

void viewer_of_session(const struct session *x, struct viewer *ret_viewer)
{
    ret_viewer->uid = (uint32_t)x->key.uid;
    ret_viewer->socket = x->key.listener;
    ret_viewer->local = x->client.local;
    (void)snprintf(ret_viewer->tenant, sizeof ret_viewer->tenant, "%s", x->tenant->name);
}

bool viewer_admin(const struct viewer *v)
{
    return v->local && v->socket == 0 && (v->uid == 0 || v->uid == getuid());
}

bool viewer_may(const struct sim *s, const struct viewer *v, unsigned rights)
{
    return viewer_admin(v) || (v->local && (roles_of(s, v->tenant) & rights) != 0);
}

bool viewer_reads(const struct sim *s, const struct viewer *v, const char *tenant)
{
    return strcmp(v->tenant, tenant) == 0 || viewer_may(s, v, RIGHT_SEE | RIGHT_CANCEL);
}

bool viewer_sees(const struct sim *s, const struct viewer *v, const char *tenant)
{
    return roles_look_all(s) || viewer_reads(s, v, tenant);
}

bool viewer_content(const struct viewer *v, const char *tenant)
{
    return strcmp(v->tenant, tenant) == 0 || viewer_admin(v);
}

/* ---- settings -------------------------------------------------------------------------------- */

void roles_line(const struct sim *s, const char *tenant, FILE *out)
{
    unsigned roles = roles_of(s, tenant);
    if (roles != 0) {
        (void)fprintf(out, "roles =%s%s%s%s\n", (roles & RIGHT_DRAIN) != 0 ? " drain" : "",
                      (roles & RIGHT_RELOAD) != 0 ? " reload" : "",
                      (roles & RIGHT_SEE) != 0 ? " see" : "",
                      (roles & RIGHT_CANCEL) != 0 ? " cancel" : "");
    }
}

void roles_line_others(const struct sim *s, FILE *out)
{
    if (others_refused(s)) {
        (void)fprintf(out, "connect = no\n");
    }
}

void roles_write(const struct sim *s, FILE *out,
                 void (*begin)(const struct sim *s, const char *tenant, FILE *out))
{
    uint32_t users =
        s->p.tenants < TEAM_USERS * TEAMS_MAX ? (uint32_t)s->p.tenants : TEAM_USERS * TEAMS_MAX;
    for (uint32_t uid = USERS_FIRST; uid < USERS_FIRST + users; uid += TEAM_USERS) {
        uint32_t team = team_of(s, uid);
        char name[PROTO_NAME_MAX + 1];
        if (team != TEAM_NONE) {
            (void)snprintf(name, sizeof name, "team%u", team);
            begin(s, name, out);
            (void)fprintf(out, "users = %u, %u\n", uid, uid + 1);
        }
    }
}
