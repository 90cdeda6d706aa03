/*
 * What the front shows of its work, and to whom. A session asks for a table, without a connection:
 * it has a row for each element that the session may see, in the front's order, and no other row.
 * The answers that clients get over their connections are looked at, too.
 */
#include "tests/sim/front/rules/sim_views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/module.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/front/views/table_query.h"
#include "daemon/front/views/trace.h"

#define CONTENT_MOST (UINT64_C(3) << 20) /* bytes of contents in a table */
#define SCALARS_MOST 65536u              /* bytes of scalars, which do not count */
#define JOBS_FEW     256u                /* longer tables are seldom looked at */
#define TABLES       4u                  /* of a recording, until it is empty */
#define RECORDINGS   4u
#define STEPS_LOOKED 4u /* steps of one job in so many are compared */

/* A table, as a client reads it. */
struct sheet {
    struct capbuf bytes;
    struct msg_table m;
    struct proto_iter rows;
    struct proto_cell cell[PROTO_COLUMNS_MAX]; /* of the row */
    struct err error;                          /* instead of a table */
};

/* ---- tables ---------------------------------------------------------------------------------- */

static _Noreturn void blame(struct sim *s, const struct viewer *v, const char *table,
                            const char *text, uint64_t number)
{
    sim_fail(s, "view: %s, for uid %u of tenant %s: %s (%" PRIu64 ")", table, v->uid, v->tenant,
             text, number);
}

static unsigned column(struct sim *s, const struct sheet *t, const char *name)
{
    struct proto_iter it = proto_iter_of(t->m.columns);
    struct proto_column c;
    for (unsigned i = 0; proto_list_next(&it, &schema_column, &c); i++) {
        if (bytes_equal_str(c.name, name)) {
            return i;
        }
    }
    sim_fail(s, "view: a table without a column %s", name);
}

static bool has_column(const struct sheet *t, const char *name)
{
    struct proto_iter it = proto_iter_of(t->m.columns);
    struct proto_column c;
    while (proto_list_next(&it, &schema_column, &c)) {
        if (bytes_equal_str(c.name, name)) {
            return true;
        }
    }
    return false;
}

static bool next_row(struct sheet *t)
{
    struct proto_row row;
    if (!proto_list_next(&t->rows, &schema_row, &row)) {
        return false;
    }
    struct proto_iter it = proto_iter_of(row.cells);
    for (unsigned i = 0; i < PROTO_COLUMNS_MAX; i++) {
        if (!proto_list_next(&it, &schema_cell, &t->cell[i])) {
            t->cell[i] = (struct proto_cell){.value = 0};
        }
    }
    return true;
}

static const char *text_of(const struct proto_cell *c, char out[PROTO_TEXT_MAX + 1])
{
    (void)snprintf(out, PROTO_TEXT_MAX + 1, "%.*s", (int)c->text.size, (const char *)c->text.data);
    return out;
}

static void sheet_read(struct sim *s, struct bytes message, struct sheet *t)
{
    struct err e = ERR_INIT;
    if (proto_decode(&schema_msg_table, message, &t->m, &e) != 0) {
        sim_fail(s, "view: %s", e.text);
    }
    t->rows = proto_iter_of(t->m.rows);
}

/* Whether the front answers by a table. It is no work of a turn. */
static bool sheet_open(struct sim *s, struct session *x, const struct msg_query *q, struct sheet *t)
{
    const struct turn_work before = s->f->work;
    struct request r = {.kind = MSG_KIND_QUERY, .msg.query = *q};
    *t = (struct sheet){.error = ERR_INIT};
    capbuf_init(&t->bytes, PROTO_MESSAGE_MAX);
    struct request_context c = {.f = s->f, .s = x, .r = &r, .out = &t->bytes};
    s->f->work.budget = 0;
    int rc = request_query(&c, &t->error);
    s->f->work = before;
    if (rc == 0 && c.r == NULL) {
        sim_fail(s, "view: a table waits, and none is before it");
    }
    if (rc == 0) {
        sheet_read(s, capbuf_view(&t->bytes), t);
    }
    return rc == 0;
}

static void open_table(struct sim *s, struct session *x, const struct viewer *v, const char *what,
                       struct sheet *t)
{
    const struct msg_query q = {.what = bytes_str(what)};
    if (!sheet_open(s, x, &q, t)) {
        blame(s, v, what, t->error.text, 0);
    }
}

/* The next row is of this element. */
static void expect(struct sim *s, const struct viewer *v, struct sheet *t, unsigned at,
                   uint64_t value, const char *name, const char *table)
{
    if (!next_row(t)) {
        blame(s, v, table, name != NULL ? name : "a row is missing", value);
    }
    bool same = name != NULL ? bytes_equal_str(t->cell[at].text, name) : t->cell[at].value == value;
    if (!same) {
        blame(s, v, table, "a row is of another element than the one that is to follow",
              name != NULL ? 0 : value);
    }
}

static void expect_end(struct sim *s, const struct viewer *v, struct sheet *t, const char *table)
{
    if (next_row(t)) {
        blame(s, v, table, "there is a row too many", t->cell[0].value);
    }
    capbuf_finish(&t->bytes);
}

/* Clients know devices, not the workers of tenants. */
static void check_shown(struct sim *s, const struct viewer *v, const char *table, uint64_t device)
{
    if (device >= s->f->device_count) {
        blame(s, v, table, "there is no such device", device);
    }
}

/* ---- what jobs, sessions and tenants do ------------------------------------------------------ */

static const char *tenant_of(const struct job *j)
{
    return j->tenant != NULL ? j->tenant->name : "gpud";
}

static void check_jobs(struct sim *s, struct session *x, const struct viewer *v)
{
    struct sheet t;
    char text[PROTO_TEXT_MAX + 1];
    open_table(s, x, v, "jobs", &t);
    unsigned id = column(s, &t, "job");
    unsigned tenant = column(s, &t, "tenant");
    unsigned device = column(s, &t, "device");
    const struct job *j = s->f->jobs;
    unsigned rows = 0;
    j = j != NULL ? ELMT_FROM_HH(j->hh.tbl, j->hh.tbl->tail) : NULL;
    for (; j != NULL && rows < PROTO_ROWS_MAX; j = j->hh.prev) {
        if (viewer_sees(s, v, tenant_of(j))) {
            expect(s, v, &t, id, j->id, NULL, "jobs");
            rows++;
            if (!bytes_equal_str(t.cell[tenant].text, tenant_of(j))) {
                blame(s, v, "jobs", "it is of another tenant", j->id);
            }
            if (j->device != NULL) {
                check_shown(s, v, "jobs", strtoul(text_of(&t.cell[device], text), NULL, 10));
            }
        }
    }
    expect_end(s, v, &t, "jobs");
}

static void check_sessions(struct sim *s, struct session *x, const struct viewer *v)
{
    struct sheet t;
    open_table(s, x, v, "sessions", &t);
    unsigned id = column(s, &t, "session");
    for (const struct session *y = s->f->sessions; y != NULL; y = y->hh.next) {
        if (viewer_sees(s, v, y->tenant->name)) {
            expect(s, v, &t, id, y->id, NULL, "sessions");
        }
    }
    expect_end(s, v, &t, "sessions");
}

static void check_tenants(struct sim *s, struct session *x, const struct viewer *v)
{
    static const char *const word[] = {"drain", "reload", "see", "cancel"};
    struct sheet t;
    open_table(s, x, v, "tenants", &t);
    unsigned name = column(s, &t, "tenant");
    unsigned roles = column(s, &t, "roles");
    for (const struct tenant *y = s->f->tenants; y != NULL; y = y->hh.next) {
        char list[64] = "";
        for (unsigned i = 0; i < 4; i++) {
            bool has = (roles_of(s, y->name) >> i & 1) != 0;
            size_t used = strlen(list);
            (void)snprintf(list + used, sizeof list - used, "%s%s", has && used > 0 ? "," : "",
                           has ? word[i] : "");
        }
        if (viewer_sees(s, v, y->name)) {
            expect(s, v, &t, name, 0, y->name, "tenants");
            bool far = strncmp(y->name, "far", 3) == 0; /* reloads take their sections away */
            if (!far && !bytes_equal_str(t.cell[roles].text, list)) {
                blame(s, v, "tenants", list, 0);
            }
        }
    }
    expect_end(s, v, &t, "tenants");
}

static bool is_there(const struct front *f, const char *tenant)
{
    const struct tenant *t = f->tenants;
    while (t != NULL && strcmp(t->name, tenant) != 0) {
        t = t->hh.next;
    }
    return t != NULL;
}

/* Forgotten tenants are for those that see all. */
static void check_accounts(struct sim *s, struct session *x, const struct viewer *v)
{
    struct sheet t;
    const struct account *a;
    open_table(s, x, v, "accounts", &t);
    unsigned name = column(s, &t, "tenant");
    for (unsigned i = 0; (a = accounts_at(s->f->accounts, i)) != NULL; i++) {
        if (viewer_sees(s, v, is_there(s->f, a->name) ? a->name : "")) {
            expect(s, v, &t, name, 0, a->name, "accounts");
        }
    }
    expect_end(s, v, &t, "accounts");
}

static void check_domains(struct sim *s, struct session *x, const struct viewer *v)
{
    struct sheet t;
    const struct device *d;
    open_table(s, x, v, "domains", &t);
    unsigned name = column(s, &t, "tenant");
    unsigned device = column(s, &t, "device");
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        if (d->owner != NULL && viewer_sees(s, v, d->owner->name)) {
            expect(s, v, &t, name, 0, d->owner->name, "domains");
            check_shown(s, v, "domains", t.cell[device].value);
        }
    }
    expect_end(s, v, &t, "domains");
}

/* Kernels that clients loaded are for sessions of their tenant. */
static void check_kernels(struct sim *s, struct session *x, const struct viewer *v)
{
    struct sheet t;
    open_table(s, x, v, "kernels", &t);
    unsigned handle = column(s, &t, "handle");
    while (next_row(&t)) {
        const struct kernel *k = idmap_get(&s->f->kernels, t.cell[handle].value);
        const struct tenant *owner = k != NULL && k->module != NULL ? k->module->tenant : NULL;
        if (owner != NULL && strcmp(owner->name, v->tenant) != 0) {
            blame(s, v, "kernels", owner->name, t.cell[handle].value);
        }
    }
    capbuf_finish(&t.bytes);
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* A buffer that is published as a grant says to whom it is granted (sim_grants.c). */
static void check_grant(struct sim *s, const struct viewer *v, const struct buffer *b,
                        const struct proto_cell *granted)
{
    const struct sim_buffer *known = model_find(s, b->handle);
    bool grant = strncmp(b->name, "grant", 5) == 0 && known != NULL && known->granted;
    const char *other = strcmp(b->tenant->name, "twin0") == 0 ? "twin1" : "twin0";
    if (grant && !known->lied && !memory_failed() && !bytes_equal_str(granted->text, other)) {
        blame(s, v, "buffers", "it was granted to the other tenant", b->handle);
    }
}

static void check_buffers(struct sim *s, struct session *x, const struct viewer *v)
{
    struct sheet t;
    uint32_t cursor = 0;
    open_table(s, x, v, "buffers", &t);
    unsigned handle = column(s, &t, "buffer");
    unsigned granted = column(s, &t, "granted_to");
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        bool shared = b->name[0] != '\0' || b->openers > 0 || b->copy_of != NULL;
        if (!b->freed && shared && viewer_sees(s, v, b->tenant->name)) {
            expect(s, v, &t, handle, b->handle, NULL, "buffers");
            check_grant(s, v, b, &t.cell[granted]);
        }
    }
    expect_end(s, v, &t, "buffers");
}

/* ---- programs -------------------------------------------------------------------------------- */

/* A row of a program, as far as contents go. */
struct content {
    bool piece;  /* of the content before */
    bool secret; /* it is an array or a source */
    bool here, withheld;
    uint64_t bytes;
};

static struct content content_of(struct sim *s, const struct sheet *t)
{
    const struct bytes row = t->cell[column(s, t, "row")].text;
    const struct bytes what = t->cell[column(s, t, "what")].text;
    const struct bytes content = t->cell[column(s, t, "content")].text;
    return (struct content){
        .piece = bytes_equal_str(row, "content"),
        .secret = bytes_equal_str(what, work_arg_name(ARG_INLINE)) ||
                  bytes_equal_str(what, "source") || bytes_equal_str(what, "header"),
        .here = bytes_equal_str(content, "follows"),
        .withheld = bytes_equal_str(content, "withheld"),
        .bytes = t->cell[column(s, t, "bytes")].value,
    };
}

static const char *wrong_content(const struct content *c, bool may, uint64_t follows)
{
    return c->piece && c->bytes > follows    ? "a content is longer than it is said to be"
           : !c->piece && follows > 0        ? "a content is not whole"
           : !may && c->secret && c->here    ? "a content is shown"
           : may && c->withheld && !c->piece ? "a content is withheld"
                                             : NULL;
}

/* Contents: who gets them, that they are whole, and that all together have their limit. */
static void check_contents(struct sim *s, const struct viewer *v, struct sheet *t,
                           const struct job *j)
{
    bool may = viewer_content(v, tenant_of(j));
    uint64_t follows = 0;
    uint64_t sum = 0;
    while (next_row(t)) {
        const struct content c = content_of(s, t);
        const char *why = wrong_content(&c, may, follows);
        if (why != NULL) {
            blame(s, v, "program", why, j->id);
        }
        follows = c.piece ? follows - c.bytes : c.here ? c.bytes : 0;
        sum += c.piece ? c.bytes : 0;
    }
    if (sum > CONTENT_MOST + SCALARS_MOST) {
        blame(s, v, "program", "it has too many bytes of contents", sum);
    }
}

/* Mostly one that is not over, as these have their programs. */
static const struct job *some_job(struct sim *s, struct chance *r)
{
    const struct job *some = NULL;
    uint64_t seen = 0;
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        uint64_t weight = job_ended(j) ? 1 : 16;
        seen += weight;
        some = chance_below(r, seen) < weight ? j : some;
    }
    return some;
}

static void check_program(struct sim *s, struct session *x, const struct viewer *v,
                          const struct job *j)
{
    struct sheet t;
    if (j == NULL) {
        return;
    }
    const struct msg_query q = {.what = bytes_str("program"), .job = j->id};
    bool table = sheet_open(s, x, &q, &t);
    int wanted = !viewer_sees(s, v, tenant_of(j))    ? ERR_NOT_FOUND
                 : !viewer_reads(s, v, tenant_of(j)) ? ERR_PERMISSION
                 : j->request == NULL                ? ERR_STATE
                                                     : 0;
    if (t.error.code != wanted) {
        blame(s, v, "program", table ? "it is shown" : t.error.text, j->id);
    }
    if (table) {
        check_contents(s, v, &t, j);
    }
    capbuf_finish(&t.bytes);
}

/* ---- recordings ------------------------------------------------------------------------------ */

static struct {
    uint64_t session; /* 0: none */
    uint64_t read_ns;
    uint64_t ends; /* of jobs that it may see, since then */
} recordings[RECORDINGS];

/* A job that a recording has: it ends once. */
struct recorded {
    struct {
        uint64_t session, job;
    } key;
    UT_hash_handle hh;
};

static struct recorded *recorded;

static unsigned recording_of(const struct session *x)
{
    unsigned free_one = RECORDINGS;
    for (unsigned i = 0; i < RECORDINGS; i++) {
        if (recordings[i].session == x->id) {
            return i;
        }
        free_one = recordings[i].session == 0 ? i : free_one;
    }
    return free_one;
}

void views_front_ends(void)
{
    struct recorded *e;
    struct recorded *next;
    memset(recordings, 0, sizeof recordings);
    HASH_ITER(hh, recorded, e, next)
    {
        HASH_DEL(recorded, e);
        free(e);
    }
}

void views_job_ended(struct sim *s, const struct job *j)
{
    for (unsigned i = 0; i < RECORDINGS; i++) {
        const struct session *x = recordings[i].session != 0 ? s->f->sessions : NULL;
        while (x != NULL && x->id != recordings[i].session) {
            x = x->hh.next;
        }
        if (x != NULL) {
            struct viewer v;
            viewer_of_session(x, &v);
            recordings[i].ends += viewer_sees(s, &v, tenant_of(j));
        }
    }
}

static void note_recorded(struct sim *s, const struct session *x, const struct viewer *v,
                          uint64_t job)
{
    struct recorded key = {.key = {x->id, job}};
    struct recorded *e = NULL;
    HASH_FIND(hh, recorded, &key.key, sizeof key.key, e);
    if (e != NULL) {
        blame(s, v, "trace", "a job ends twice", job);
    }
    e = malloc(sizeof *e);
    if (e == NULL) {
        abort();
    }
    e->key = key.key;
    HASH_ADD(hh, recorded, key, sizeof e->key, e);
}

/* The step of a job has the name of its kernel, or of what it does. Some jobs are looked at. */
static void check_step(struct sim *s, const struct viewer *v, uint64_t job, uint64_t step,
                       const char *name)
{
    static const char *const names[] = {
        [OP_WRITE] = "write", [OP_FILL] = "fill", [OP_COPY] = "copy", [OP_READ] = "read"};
    const struct sim_job *j = NULL;
    for (unsigned i = 0; job % STEPS_LOOKED == 0 && i < s->jobs && j == NULL; i++) {
        j = s->job[i]->id == job ? s->job[i] : NULL;
    }
    if (j == NULL || step >= j->steps || j->request->sent_era != s->era || j->lied) {
        return;
    }
    unsigned op = j->step[step].op;
    bool plain = false;
    for (unsigned k = OP_WRITE; k < sizeof names / sizeof names[0]; k++) {
        plain = plain || (names[k] != NULL && strcmp(name, names[k]) == 0);
    }
    bool fits = op == OP_LAUNCH ? !plain : names[op] != NULL && strcmp(name, names[op]) == 0;
    if (!fits) {
        blame(s, v, "trace", name, job);
    }
}

/* Returns the ends of jobs that the table has. */
static uint64_t read_trace(struct sim *s, const struct session *x, const struct viewer *v,
                           struct sheet *t, uint64_t *ret_lost, unsigned *ret_rows)
{
    char text[PROTO_TEXT_MAX + 1];
    unsigned event = column(s, t, "event");
    unsigned job = column(s, t, "job");
    unsigned by = column(s, t, "by");
    unsigned device = column(s, t, "device");
    unsigned other = column(s, t, "other");
    unsigned name = column(s, t, "name");
    uint64_t ends = 0;
    while (next_row(t)) {
        const struct proto_cell *c = t->cell;
        ++*ret_rows;
        if (bytes_equal_str(c[event].text, "clock")) {
            *ret_lost = c[other].value;
        } else if (bytes_equal_str(c[event].text, "step")) {
            check_step(s, v, c[job].value, c[other].value, text_of(&c[name], text));
        } else if (bytes_equal_str(c[event].text, "job")) {
            ends++;
            note_recorded(s, x, v, c[job].value);
            if (!viewer_sees(s, v, text_of(&c[by], text))) {
                blame(s, v, "trace", text, c[job].value);
            }
            if (c[device].text.size == 0) {
                check_shown(s, v, "trace", c[device].value);
            }
        }
    }
    return ends;
}

/* A reader that is slow: more may end meanwhile than its recording has room for. */
static bool reads_later(const struct sim *s, unsigned at)
{
    bool slow = s->p.special == WORLD_TURNS || s->course->seed % 4 == 0;
    return slow && !s->settling && recordings[at].session != 0 &&
           s->now_ns - recordings[at].read_ns < TRACE_IDLE_NS * 2 / 3;
}

static void check_trace(struct sim *s, struct session *x, const struct viewer *v)
{
    const struct msg_query q = {.what = bytes_str("trace")};
    unsigned at = recording_of(x);
    if (s->p.watch == 0 || at == RECORDINGS || reads_later(s, at)) {
        return;
    }
    bool goes_on =
        recordings[at].session != 0 && s->now_ns - recordings[at].read_ns < TRACE_IDLE_NS;
    uint64_t wanted = recordings[at].ends;
    uint64_t ends = 0;
    uint64_t lost = 0;
    uint64_t all = 0;
    unsigned rows = TRACE_TABLE_ROWS;
    recordings[at].session = 0;
    for (unsigned i = 0; i < TABLES && rows >= TRACE_TABLE_ROWS; i++) {
        struct sheet t;
        rows = 0;
        if (!sheet_open(s, x, &q, &t)) {
            if (t.error.code != ERR_BUSY || goes_on) {
                blame(s, v, "trace", t.error.text, 0);
            }
            capbuf_finish(&t.bytes);
            return;
        }
        ends += read_trace(s, x, v, &t, &lost, &rows);
        all += rows;
        capbuf_finish(&t.bytes);
    }
    if (all > TRACE_RECORDS + TABLES) {
        blame(s, v, "trace", "it has more records than a recording keeps", all);
    }
    if (goes_on && rows < TRACE_TABLE_ROWS && ends + lost < wanted) {
        blame(s, v, "trace", "ends of jobs are missing", wanted - ends);
    }
    sim_log(s,
            "session %" PRIu64 " reads its recording: %" PRIu64 " jobs in %" PRIu64
            " rows, %" PRIu64 " lost",
            x->id, ends, all, lost);
    recordings[at].session = rows < TRACE_TABLE_ROWS ? x->id : 0;
    recordings[at].read_ns = s->now_ns;
    recordings[at].ends = 0;
}

/* The file of a recording has the work of all tenants. */
static void check_record(struct sim *s, struct session *x, const struct viewer *v)
{
    const struct msg_query q = {.what = bytes_str("record")};
    struct sheet t;
    bool table = sheet_open(s, x, &q, &t);
    if (table != viewer_admin(v) || (!table && t.error.code != ERR_PERMISSION)) {
        blame(s, v, "record", table ? "it is shown" : t.error.text, 0);
    }
    capbuf_finish(&t.bytes);
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Behind "no device serves: " too. */
static const char *find_device(const char *text)
{
    static const char word[] = "device ";
    const char *at = strstr(text, word);
    while (at != NULL && (at[sizeof word - 1] < '0' || at[sizeof word - 1] > '9')) {
        at = strstr(at + 1, word);
    }
    return at;
}

/* A drained device is no news beside one that fails. */
static void check_problem(struct sim *s, const char *problem)
{
    const char *at = find_device(problem);
    unsigned named = at != NULL ? (unsigned)strtoul(at + 7, NULL, 10) : UINT32_MAX;
    for (unsigned i = 0; named < s->f->device_count && strstr(at, " is ") != NULL &&
                         s->device[s->f->device[named]->number].drained && i < s->f->device_count;
         i++) {
        const struct device *d = s->f->device[i];
        bool fails = !device_serves(d) && !device_absent(d) && !device_drains(d);
        if (fails && device_drains(s->f->device[named]) && !device_serves(s->f->device[named])) {
            sim_fail(s, "state: device %u fails, and the problem is \"%s\"", i, problem);
        }
    }
}

/* As readiness is promised to balancers. */
static void check_state(struct sim *s)
{
    char problem[512];
    uint64_t serving = 0;
    bool ready = diagnosis_ready(s->f);
    bool takes = s->f->life != FRONT_DRAINING;
    for (unsigned i = 0; i < s->f->device_count; i++) {
        serving += device_serves(s->f->device[i]);
    }
    diagnosis_text(s->f, problem, sizeof problem);
    if (ready && (!takes || (serving == 0 && s->f->config.min_devices > 0))) {
        sim_fail(s, "state: the daemon is said to be ready: %s",
                 takes ? "no device serves" : "it takes no jobs");
    }
    if (!ready && takes && serving >= s->f->config.min_devices) {
        sim_fail(s, "state: the daemon is said not to be ready: %s", problem);
    }
    check_problem(s, problem);
}

/* ---- together -------------------------------------------------------------------------------- */

void views_answer(struct sim *s, const struct viewer *v, struct bytes message)
{
    struct sheet t = {.error = ERR_INIT};
    char text[PROTO_TEXT_MAX + 1];
    sheet_read(s, message, &t);
    if (!has_column(&t, "tenant")) {
        return;
    }
    unsigned tenant = column(s, &t, "tenant");
    while (next_row(&t)) {
        if (!viewer_sees(s, v, is_there(s->f, text_of(&t.cell[tenant], text)) ? text : "")) {
            blame(s, v, "answer", text, t.cell[0].value);
        }
    }
}

static struct session *some_session(struct sim *s, struct chance *r)
{
    uint64_t at = s->f->sessions != NULL ? chance_below(r, HASH_COUNT(s->f->sessions)) : 0;
    struct session *x = s->f->sessions;
    for (; at > 0; at--) {
        x = x->hh.next;
    }
    return x;
}

/* One that has a recording, which has to go on, or else mostly one that sees all; NULL: none. */
static struct session *recording_session(struct sim *s, struct chance *r)
{
    uint64_t id = recordings[chance_below(r, RECORDINGS)].session;
    bool all = id == 0 && chance_percent(r, 70);
    struct session *x = id != 0 || all ? s->f->sessions : NULL;
    while (x != NULL && (all ? x->key.uid != 0 : x->id != id)) {
        x = x->hh.next;
    }
    return x;
}

void views_check(struct sim *s)
{
    static void (*const check[])(struct sim * s, struct session * x, const struct viewer *v) = {
        check_jobs,    check_sessions, check_tenants, check_accounts, check_domains,
        check_kernels, check_buffers,  check_trace,   check_record,
    };
    const unsigned checks = sizeof check / sizeof check[0];
    struct chance r = chance_of(s->steps ^ s->course->seed, 77);
    check_state(s);
    struct session *x = some_session(s, &r);
    bool few = HASH_COUNT(s->f->jobs) + HASH_COUNT(s->f->tenants) + s->f->buffers.live < JOBS_FEW;
    bool busy = s->f->table_queries != NULL; /* another table would wait */
    if (x == NULL || busy || memory_failed()) {
        return;
    }
    struct viewer v;
    bool traces = s->p.watch != 0 && chance_percent(&r, 25);
    if (!few && !traces && !chance_one_in(&r, 16)) {
        return;
    }
    struct session *watcher = traces ? recording_session(s, &r) : NULL;
    x = watcher != NULL ? watcher : x;
    viewer_of_session(x, &v);
    unsigned n = (unsigned)chance_below(&r, checks + 3);
    if (traces) {
        check_trace(s, x, &v);
    } else if (n < checks) {
        check[n](s, x, &v);
    } else {
        check_program(s, x, &v, some_job(s, &r));
    }
}
