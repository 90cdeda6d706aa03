/*
 * What clients may ask for: the front's answers to requests that may be refused, judged by the
 * settings of the world (sim_roles.h). Nothing is learnt from a refusal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/modules/compiler.h"
#include "tests/sim/front/rules/sim_access.h"
#include "tests/sim/front/rules/sim_views.h"

/* Administrative requests, and the role that is enough; 0: none is. */
static const struct {
    const char *what;
    unsigned right;
} controls[] = {
    {"drain", RIGHT_DRAIN},
    {"resume", RIGHT_DRAIN},
    {"drain-device", RIGHT_DRAIN},
    {"resume-device", RIGHT_DRAIN},
    {"reload", RIGHT_RELOAD},
    {"log-level", 0},
    {"session-kill", 0},
    {"pool-trim", 0},
    {"accounts-reset", 0},
    {"record-start", 0},
    {"record-stop", 0},
};

static _Noreturn void blame(struct sim *s, const struct sim_client *c, const char *what,
                            const char *text)
{
    struct viewer v;
    viewer_of_client(s, c, &v);
    sim_fail(s, "rights: client %u of tenant %s, uid %u: %s: %s", c->index, v.tenant, c->uid, what,
             text);
}

/* The code of an answer; 0: it is no error. */
static int code_of(struct bytes message, char text[PROTO_TEXT_MAX + 1])
{
    struct msg_error m;
    text[0] = '\0';
    if (proto_kind(message) != MSG_KIND_ERROR ||
        proto_decode(&schema_msg_error, message, &m, NULL) != 0) {
        return 0;
    }
    (void)snprintf(text, PROTO_TEXT_MAX + 1, "%.*s", (int)m.text.size, (const char *)m.text.data);
    return (int)m.code;
}

static bool decode(const struct sim_request *q, const struct schema *schema, void *msg)
{
    return proto_decode(schema, bytes_of(q->data, q->size), msg, NULL) == 0;
}

/* The session of the connection is gone, or there is none yet. */
static bool no_session(int code, const char *text)
{
    return code == ERR_STATE && strstr(text, "HELLO") != NULL;
}

static void of_control(struct sim *s, const struct sim_request *q, struct bytes message)
{
    char text[PROTO_TEXT_MAX + 1];
    char what[PROTO_NAME_MAX + 1];
    struct msg_control m;
    struct viewer v;
    int code = code_of(message, text);
    unsigned right = 0;
    if (!decode(q, &schema_msg_control, &m) || !bytes_to_str(m.what, what, sizeof what)) {
        return;
    }
    for (unsigned i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        right = strcmp(what, controls[i].what) == 0 ? controls[i].right : right;
    }
    viewer_of_client(s, q->client, &v);
    bool may = viewer_may(s, &v, right);
    bool refused = code == ERR_PERMISSION;
    record_answered(s, q, code);
    if (may && refused) {
        blame(s, q->client, what, text);
    }
    if (!may && !refused && !no_session(code, text) && !memory_failed()) {
        blame(s, q->client, what, "it is not refused");
    }
}

/* CANCEL, JOB_INFO and EXPLAIN: of a job that the front has. */
static void of_job(struct sim *s, const struct sim_request *q, uint64_t id, bool cancels,
                   struct bytes message)
{
    char text[PROTO_TEXT_MAX + 1];
    struct viewer v;
    const struct job *j = id != 0 ? job_find(s->f->jobs, id) : NULL;
    int code = code_of(message, text);
    viewer_of_client(s, q->client, &v);
    if (j == NULL || j->tenant == NULL || no_session(code, text)) {
        return;
    }
    bool sees = viewer_sees(s, &v, j->tenant->name);
    bool own = strcmp(v.tenant, j->tenant->name) == 0;
    int wanted = !sees                                                 ? ERR_NOT_FOUND
                 : cancels && !own && !viewer_may(s, &v, RIGHT_CANCEL) ? ERR_PERMISSION
                                                                       : 0;
    bool hidden = code == ERR_PERMISSION || code == ERR_NOT_FOUND;
    if (code != ERR_NOMEM && (wanted != 0 || hidden) && code != wanted) {
        blame(s, q->client, wanted == 0 ? "a job that is there" : "a job of others", text);
    }
}

/* ---- buffers of others ----------------------------------------------------------------------- */

/* Removes a word that the client asked with. */
static void strip(char *text, const char *word)
{
    size_t length = strlen(word);
    for (char *at = strstr(text, word); length > 0 && at != NULL; at = strstr(at + 1, word)) {
        bool whole = (at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
        if (whole) {
            memmove(at, at + length, strlen(at + length) + 1);
        }
    }
}

/* A tenant to which nothing is granted hears the same of all tenants, those that do not exist
 * included. */
static void of_owner(struct sim *s, const struct sim_request *q, const char *owner,
                     const char *name, struct bytes message)
{
    char text[PROTO_TEXT_MAX + 1];
    static char first[PROTO_TEXT_MAX + 1]; /* what the first one heard */
    struct viewer v;
    int code = code_of(message, text);
    bool later = code == ERR_BUSY || code == ERR_NOMEM || code == ERR_STATE;
    viewer_of_client(s, q->client, &v);
    if (client_twin(q->client) || strcmp(owner, v.tenant) == 0 || later || memory_failed()) {
        return; /* twins grant each other buffers: sim_grants.c */
    }
    strip(text, name);
    strip(text, owner);
    strip(text, v.tenant);
    if (first[0] == '\0') {
        (void)snprintf(first, sizeof first, "%s", text);
    }
    if (code != ERR_NOT_FOUND || strcmp(text, first) != 0) {
        blame(s, q->client, "a buffer that is not granted to it", code == 0 ? "it gets it" : text);
    }
}

/* A buffer is opened by its handle by the user who made it. */
static void of_handle(struct sim *s, const struct sim_request *q, const char *name,
                      struct bytes message)
{
    const struct sim_buffer *b = model_find(s, strtoull(name + 1, NULL, 16));
    const struct sim_client *c = q->client;
    if (proto_kind(message) == MSG_KIND_ERROR || b == NULL) {
        return;
    }
    bool same = b->maker->uid == c->uid && b->maker->tenant == c->tenant;
    if (!same || client_far(c)) {
        blame(s, c, name, "it opens a buffer of another user");
    }
}

static void of_open(struct sim *s, const struct sim_request *q, struct bytes message)
{
    struct msg_buffer_open m;
    char name[PROTO_NAME_MAX + 1];
    char owner[PROTO_NAME_MAX + 1];
    if (!decode(q, &schema_msg_buffer_open, &m) || !bytes_to_str(m.name, name, sizeof name) ||
        !bytes_to_str(m.owner, owner, sizeof owner)) {
        return;
    }
    if (owner[0] != '\0') {
        of_owner(s, q, owner, name, message);
    } else if (name[0] == '#') {
        of_handle(s, q, name, message);
    }
}

/* A buffer that no session has published is another one's by its handle: that may read it. */
void rights_result(struct sim *s, const struct sim_job *j)
{
    for (unsigned i = 0; i < j->steps && s->p.roles != 0; i++) {
        const struct sim_buffer *b = j->step[i].to;
        bool other = b->maker != j->client && b->publishes == 0 && b->copy_of == NULL;
        if (other && step_writes(&j->step[i])) {
            blame(s, j->client, "a buffer of another session", "it writes it");
        }
    }
}

/* Binaries are kept apart by tenants: a source is compiled for a tenant that has loaded it. */
void rights_compile(struct sim *s, const struct compiler_request *r)
{
    char tenant[PROTO_NAME_MAX + 1];
    bool loaded = false;
    for (const struct sim_request *q = s->requests; q != NULL; q = q->next) {
        struct msg_module_load m;
        bool same = q->kind == MSG_KIND_MODULE_LOAD && decode(q, &schema_msg_module_load, &m) &&
                    m.source.size == r->source.size &&
                    memcmp(m.source.data, r->source.data, m.source.size) == 0;
        loaded = loaded || same;
        if (same) {
            roles_tenant(s, q->client, tenant);
            if (strcmp(tenant, r->owner) == 0) {
                return;
            }
        }
    }
    if (loaded) {
        sim_fail(s, "compile: a source is compiled for %s, which has not loaded it", r->owner);
    }
}

/* ---- together -------------------------------------------------------------------------------- */

/* The front has answered the HELLO of the connection. */
static bool greeted(const struct sim *s, const struct sim_parcel *p)
{
    for (uint64_t i = s->parcels; i > 0; i--) {
        if (s->parcel[i].pipe == p->pipe && s->parcel[i].request->kind == MSG_KIND_HELLO) {
            return s->parcel[i].over;
        }
    }
    return false;
}

static void of_query(struct sim *s, const struct sim_parcel *p, struct bytes message)
{
    const struct sim_request *q = p->request;
    struct viewer v;
    if (proto_kind(message) != MSG_KIND_TABLE) {
        return;
    }
    if (client_far(q->client) && !greeted(s, p)) {
        blame(s, q->client, "before its token", "it gets a table");
    }
    viewer_of_client(s, q->client, &v);
    views_answer(s, &v, message);
}

void rights_answer(struct sim *s, const struct sim_parcel *p, struct bytes message)
{
    const struct sim_request *q = p->request;
    struct msg_cancel cancel;
    struct msg_job_info info;
    struct msg_explain explain;
    if (q->kind == MSG_KIND_CONTROL) {
        of_control(s, q, message);
    } else if (q->kind == MSG_KIND_QUERY) {
        of_query(s, p, message);
    } else if (q->kind == MSG_KIND_BUFFER_OPEN) {
        of_open(s, q, message);
    } else if (q->kind == MSG_KIND_CANCEL && decode(q, &schema_msg_cancel, &cancel)) {
        of_job(s, q, cancel.job, true, message);
    } else if (q->kind == MSG_KIND_JOB_INFO && decode(q, &schema_msg_job_info, &info)) {
        of_job(s, q, info.job, false, message);
    } else if (q->kind == MSG_KIND_EXPLAIN && decode(q, &schema_msg_explain, &explain)) {
        of_job(s, q, explain.job, false, message);
    }
}
