#include "daemon/front/views/table_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/round.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/views/table_view.h"

static const struct table_view *const views[] = {
    &view_status,   &view_devices,  &view_pool,    &view_kernels,  &view_jobs,
    &view_timeline, &view_sessions, &view_tenants, &view_accounts, &view_config,
    &view_domains,  &view_trace,    &view_buffers, &view_program,  &view_record,
};

/* ERR_INVALID unless it is empty or the name of a state of jobs. */
static int check_state(struct bytes state, struct err *e)
{
    char names[128] = "";
    bool known = state.size == 0;
    for (int i = 0; i < JOB_STATES && !known; i++) {
        const char *name = job_state_name((enum job_state)i);
        size_t used = strlen(names);
        known = bytes_equal_str(state, name);
        (void)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return known ? 0
                 : err_set(e, ERR_INVALID, "state \"%.*s\": the states of jobs are %s",
                           (int)state.size, (const char *)state.data, names);
}

static void query_destroy(struct table_query *q)
{
    if (q->begun) {
        table_finish(&q->table);
    }
    request_destroy(q->r);
    free(q);
}

/* false: the turn is over before the table is complete. */
static bool query_run(struct table_query *q)
{
    if (!q->begun) {
        q->begun = true;
        table_init(&q->table, q->view->name);
        q->table.filter = q->query->filter;
        q->view->begin(q);
    }
    bool more = q->view->next != NULL;
    while (more) {
        if (!turn_take(q->f, 1)) {
            return false;
        }
        more = q->view->next(q);
    }
    return true;
}

/* Behind the first, which is under way, tenants take turns. */
static void stand(struct front *f, struct table_query *q)
{
    struct table_query *at = f->table_queries != NULL ? f->table_queries->next : NULL;
    q->round = q->s != NULL ? round_next(&q->s->tenant->table_round, f->table_round) : UINT64_MAX;
    while (at != NULL && at->round <= q->round) {
        turn_count(f, 1);
        at = at->next;
    }
    if (at != NULL) {
        DL_PREPEND_ELEM(f->table_queries, at, q);
    } else {
        DL_APPEND(f->table_queries, q);
    }
}

/* A long table waits for those before it. */
static int query_start(struct request_context *c, const struct table_view *view, struct err *e)
{
    struct table_query *q = calloc(1, sizeof *q);
    if (q == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a table");
    }
    int rc = 0;
    *q = (struct table_query){.f = c->f, .s = c->s, .query = &c->r->msg.query, .view = view};
    bool waits = view->next != NULL && c->f->table_queries != NULL;
    if (!waits && query_run(q)) {
        rc = table_encode(&q->table, c->out, e);
        query_destroy(q);
        return rc;
    }
    q->r = c->r;
    c->r = NULL;
    stand(c->f, q);
    c->f->hooks.kick(c->f);
    return 0;
}

int request_query(struct request_context *c, struct err *e)
{
    const struct bytes what = c->r->msg.query.what;
    int rc = check_state(c->r->msg.query.state, e);
    if (rc != 0) {
        return rc;
    }
    for (unsigned i = 0; i < sizeof views / sizeof views[0]; i++) {
        if (!bytes_equal_str(what, views[i]->name)) {
            continue;
        }
        if (c->s == NULL && !views[i]->before_hello) {
            return err_set(e, ERR_STATE, "the connection needs a HELLO first");
        }
        return query_start(c, views[i], e);
    }
    return err_set(e, ERR_NOT_FOUND, "there is no view %.*s", (int)what.size,
                   (const char *)what.data);
}

static void query_answer(struct table_query *q)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    int rc = table_encode(&q->table, &out, &e);
    if (rc == 0) {
        reply_plain(q->f, q->r, capbuf_view(&out));
    } else {
        reply_error(q->f, q->r, &e);
        q->r = NULL;
    }
    capbuf_finish(&out);
}

void table_queries_run(struct front *f)
{
    while (f->table_queries != NULL && turn_has_room(f)) {
        struct table_query *q = f->table_queries;
        f->table_round = q->round < UINT64_MAX ? q->round : f->table_round;
        if (!query_run(q)) {
            return;
        }
        DL_DELETE(f->table_queries, q);
        query_answer(q);
        query_destroy(q);
    }
}

void table_queries_skip(struct front *f, const void *element, const void *next)
{
    struct table_query *q = f->table_queries; /* only the first table is under way */
    if (q != NULL && q->at == element) {
        q->at = next;
    }
}

void table_queries_cancel(struct front *f, const struct session *s)
{
    struct table_query *q;
    struct table_query *next;
    DL_FOREACH_SAFE(f->table_queries, q, next)
    {
        turn_count(f, 1);
        if (s == NULL || q->s == s) {
            DL_DELETE(f->table_queries, q);
            reply_none(f, q->r);
            q->r = NULL;
            query_destroy(q);
        }
    }
}
