/* Clients ask for what they may not have: work of others, tables about it, administration. Who may
 * is sim_roles.c's; rules/sim_rights.c judges the answers. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/front/sim_roles.h"

#define FLOOD 60u /* tables at once */
#define TRIES 12u

/* The values do nothing where the request is granted; what an administrator would do to the whole
 * world is asked for by ask_control. */
static void control(struct sim *s, struct sim_client *c, struct chance *r)
{
    static const struct {
        const char *what, *value;
    } some[] = {{"drain-device", "99"},  {"resume-device", "99"},   {"resume", ""},
                {"reload", ""},          {"log-level", "nonsense"}, {"session-kill", "nobody"},
                {"record-start", "a/b"}, {"record-start", "../b"},  {"pool-trim", ""},
                {"drain", ""},           {"accounts-reset", ""},    {"record-stop", ""}};
    unsigned n = (unsigned)chance_below(r, sizeof some / sizeof some[0]);
    bool whole = n >= 9;
    struct viewer v;
    viewer_of_client(s, c, &v);
    if (whole && viewer_may(s, &v, RIGHT_DRAIN)) {
        return;
    }
    struct msg_control m = {.what = bytes_str(some[n].what), .value = bytes_str(some[n].value)};
    (void)client_send(s, c, &schema_msg_control, &m);
}

static uint64_t some_job(struct sim *s, struct chance *r)
{
    uint64_t next = s->f != NULL ? s->f->next_job : 1;
    uint64_t back = chance_below(r, 30);
    return next > back + 1 ? next - 1 - back : 1;
}

static void query(struct sim *s, struct sim_client *c, struct chance *r)
{
    static const char *const what[] = {"jobs",    "timeline", "sessions", "tenants", "accounts",
                                       "domains", "buffers",  "program",  "record",  "kernels"};
    struct msg_query m = {.what = bytes_str(what[chance_below(r, sizeof what / sizeof what[0])]),
                          .job = some_job(s, r)};
    (void)client_send(s, c, &schema_msg_query, &m);
}

static void flood(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = 1 + (unsigned)chance_below(r, FLOOD);
    struct sim_client *other = &s->client[chance_below(r, s->clients)];
    struct msg_query m = {.what = bytes_str("jobs")};
    for (unsigned i = 0; i < count; i++) {
        (void)client_send(s, c, &schema_msg_query, &m);
    }
    if (other->state == CLIENT_ON && other->tenant != c->tenant) { /* it comes right behind */
        (void)client_send(s, other, &schema_msg_query, &m);
    }
}

static void of_job(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct msg_cancel m = {.job = some_job(s, r)};
    struct viewer v;
    unsigned n = (unsigned)chance_below(r, 3);
    viewer_of_client(s, c, &v);
    if (n == 0) {
        struct msg_job_info info = {.job = m.job};
        (void)client_send(s, c, &schema_msg_job_info, &info);
    } else if (n == 1) {
        struct msg_explain explain = {.job = m.job};
        (void)client_send(s, c, &schema_msg_explain, &explain);
    } else if (!viewer_may(s, &v, RIGHT_CANCEL)) {
        for (unsigned i = 0; i < s->jobs; i++) { /* its own tenant's are cancelled */
            struct sim_job *j = s->job[i];
            bool own = j->client->tenant == c->tenant && (j->id == m.job || j->id == 0);
            j->cancelled = j->cancelled || own;
        }
        (void)client_send(s, c, &schema_msg_cancel, &m);
    }
}

/* Mostly one of another session of the user. */
static const struct sim_buffer *some_buffer(struct sim *s, const struct sim_client *c,
                                            struct chance *r)
{
    const struct sim_buffer *b = NULL;
    for (unsigned i = 0; i < TRIES && s->buffers > 0; i++) {
        b = s->buffer[chance_below(r, s->buffers)];
        if (b->maker != c && b->maker->uid == c->uid && !b->freed && !b->known_lost) {
            return b;
        }
    }
    return b;
}

static void open_of(struct sim *s, struct sim_client *c, struct chance *r)
{
    char name[PROTO_NAME_MAX + 1];
    char owner[PROTO_NAME_MAX + 1] = "";
    const struct sim_client *other = &s->client[chance_below(r, s->clients)];
    const struct sim_buffer *b = chance_percent(r, 60) ? some_buffer(s, c, r) : NULL;
    if (b != NULL) {
        (void)snprintf(name, sizeof name, "#%#" PRIx64, b->handle);
    } else {
        (void)snprintf(name, sizeof name, "name%u", (unsigned)chance_below(r, 4));
        (void)snprintf(owner, sizeof owner, "nobody");
        if (chance_percent(r, 80)) {
            roles_tenant(s, other, owner);
        }
    }
    struct msg_buffer_open m = {
        .seq = ask_number(c), .name = bytes_str(name), .owner = bytes_str(owner)};
    (void)client_send(s, c, &schema_msg_buffer_open, &m);
}

void meddle(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 100);
    if (!ask_room(c)) {
        return;
    }
    if (n < 25) {
        control(s, c, r);
    } else if (n < 50) {
        query(s, c, r);
    } else if (n < 65) {
        of_job(s, c, r);
    } else if (n < 95) {
        open_of(s, c, r);
    } else {
        flood(s, c, r);
    }
}
