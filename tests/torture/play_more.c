/* What a session does: tables, modules, settings, and processes that end. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/torture/session.h"

#define ITEMS 64u

/* ---- tables --------------------------------------------------------------------------------- */

void play_tables(struct session *s)
{
    static const char *const tables[] = {"status",   "devices",  "pool",    "kernels",
                                         "jobs",     "sessions", "tenants", "config",
                                         "timeline", "accounts", "trace",   "buffers"};
    gpud_limits_desc limits = {.size = sizeof limits};
    gpud_device_desc device = {.size = sizeof device};
    (void)said(s, gpud_limits(s->c, &limits), "gpud_limits");
    (void)said(s, gpud_device_info(s->c, 0, &device), "gpud_device_info");
    for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        gpud_query_options o = {.size = sizeof o, .limit = 8};
        gpud_table *t = NULL;
        if (said(s, gpud_query_with(s->c, tables[i], &o, &t), tables[i])) {
            gpud_table_free(t);
        }
    }
}

static void snapshot(struct session *s)
{
    gpud_table *t = NULL;
    gpud_table *pieces = NULL;
    gpud_pool_options o = {.size = sizeof o, .flags = GPUD_POOL_DETAIL};
    if (!said(s, gpud_pool_take(s->c, &o, &t), "gpud_pool_take")) {
        return;
    }
    int column = gpud_table_find(t, "picture");
    uint64_t picture = column >= 0 ? gpud_table_value(t, 0, (uint32_t)column) : 0;
    gpud_table_free(t);
    int code = gpud_pool_read(s->c, picture, 0, GPUD_POOL_PIECES, 0, 16, &pieces);
    if (s->clean ? said(s, code, "gpud_pool_read") : code == 0) {
        gpud_table_free(pieces);
    }
}

/* ---- settings ------------------------------------------------------------------------------- */

static void ended_by_another(struct session *s)
{
    char number[32];
    gpud_limits_desc limits = {.size = sizeof limits};
    struct session other = {.h = s->h, .clean = s->clean, .famine = s->famine};
    if (session_open(&other) && said(&other, gpud_limits(other.c, &limits), "gpud_limits")) {
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)limits.session);
        (void)said(s, gpud_control(s->c, "session-kill", number), "session-kill");
        other.clean = false;
        (void)said(&other, gpud_ping(other.c, NULL), "gpud_ping of an ended session");
    }
    session_close(&other);
    s->failed += other.failed;
    if (other.problem[0] != '\0') {
        wrong(s, "%s", other.problem);
    }
}

/* Whatever fails, the daemon takes jobs again in the end. */
static void drained(struct session *s)
{
    float y[ITEMS] = {0};
    gpud_arg args[] = {gpud_f32(1), gpud_host_out(y, ITEMS, GPUD_F32)};
    if (said(s, gpud_control(s->c, "drain", NULL), "drain")) {
        int code = gpud_call(s->c, s->fill, args, 2, NULL);
        if (code == 0) {
            wrong(s, "a job runs in a drained daemon");
        } else if (code == GPUD_ERR_TIMEOUT && !s->famine) {
            wrong(s, "a job is not refused by a drained daemon");
        }
    }
    (void)said(s, gpud_control(s->c, "resume", NULL), "resume");
}

void play_control(struct session *s)
{
    snapshot(s);
    (void)said(s, gpud_control(s->c, "reload", NULL), "reload");
    drained(s);
    (void)said(s, gpud_control(s->c, "log-level", "info"), "log-level");
    (void)said(s, gpud_control(s->c, "pool-trim", NULL), "pool-trim");
    ended_by_another(s);
}

/* ---- modules -------------------------------------------------------------------------------- */

static bool load(struct session *s, unsigned number, gpud_module *ret_module)
{
    char source[256];
    static uint64_t run; /* the cache outlives this process */
    run = run != 0 ? run : now_ns();
    gpud_module_options o = {.size = sizeof o, .name = "torture", .options = "-DN=1"};
    (void)snprintf(source, sizeof source,
                   "//@kernel times<T: f32>(inout T x[n]) over n\n{\n    x[i] = x[i] * %u;\n}\n"
                   "// %llu\n",
                   number, (unsigned long long)run);
    return said(s,
                gpud_module_load(s->c, GPUD_LANG_DIALECT, source, strlen(source), &o, ret_module),
                "gpud_module_load");
}

static void times(struct session *s, gpud_module m, unsigned number)
{
    float x[ITEMS];
    gpud_kernel k = {0};
    for (unsigned i = 0; i < ITEMS; i++) {
        x[i] = (float)i;
    }
    gpud_arg args[] = {gpud_host_inout(x, ITEMS, GPUD_F32)};
    if (!said(s, gpud_module_kernel(s->c, m, "times", &k), "gpud_module_kernel") ||
        !said(s, gpud_call(s->c, k, args, 1, NULL), "gpud_call of a module's kernel")) {
        return;
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        if (x[i] != (float)(i * number)) {
            wrong(s, "%u times %u is %g", i, number, (double)x[i]);
            return;
        }
    }
}

void play_module(struct session *s)
{
    static unsigned serial;
    static const char bad[] = "//@kernel bad<T: f32>(inout T x[n]) over n\n{\n    x[i] = y;\n}\n";
    unsigned number = 2 + serial++ % 5000;
    gpud_module m = {0};
    for (unsigned i = 0; i < 2; i++) { /* compiled, then from the cache */
        if (load(s, number, &m)) {
            times(s, m, number);
            (void)said(s, gpud_module_unload(s->c, m), "gpud_module_unload");
        }
    }
    if (s->brief) {
        return;
    }
    int code = gpud_module_load(s->c, GPUD_LANG_DIALECT, bad, sizeof bad - 1, NULL, &m);
    if (s->clean ? code != GPUD_ERR_COMPILE : code == 0) {
        wrong(s, "a module that does not compile: %s", gpud_err_name(code));
    }
}

/* ---- processes that end --------------------------------------------------------------------- */

/* The worker is killed beside a job; what is sealed comes back. */
void play_death(struct session *s)
{
    gpud_buffer sealed = {0};
    gpud_job *job = NULL;
    float y[ITEMS] = {0};
    bool has = numbers_make(s, ITEMS, 70, &sealed) &&
               said(s, gpud_buffer_seal(s->c, sealed), "gpud_buffer_seal");
    gpud_arg args[] = {gpud_f32(4), gpud_host_out(y, ITEMS, GPUD_F32)};
    pid_t worker = house_process(s->h, ROLE_WORKER);
    if (worker > 0) {
        (void)kill(worker, SIGKILL);
    }
    (void)said(s, gpud_launch(s->c, s->fill, args, 2, NULL, NULL, &job), "gpud_launch");
    if (job != NULL && said(s, gpud_wait(job, patience_of(s)), "gpud_wait") && y[0] != 4) {
        wrong(s, "a job beside a death: %g", (double)y[0]);
    }
    gpud_job_free(job);
    if (has) {
        (void)numbers_check(s, sealed, ITEMS, 70, "gpud_read after a death");
    }
    if (sealed.id != 0) {
        (void)said(s, gpud_buffer_free(s->c, sealed), "gpud_buffer_free");
    }
}

/* What the client has is there after another front came. */
void play_adopt(struct session *s)
{
    gpud_buffer b = {0};
    gpud_module m = {0};
    bool has = numbers_make(s, ITEMS, 90, &b);
    bool loaded = house_compiles(s->h) && load(s, 3, &m);
    if (!house_lives(s->h)) {
        return;
    }
    (void)kill(s->h->d.pid, SIGUSR1);
    int status = house_wait(s->h);
    if (status != 0) {
        wrong(s, "gpud ended with %d instead of handing over", status);
        return;
    }
    daemon_spawn(&s->h->d);
    if (house_await(s->h, s->famine ? FAMINE_START : PATIENCE) >
        0) { /* a start that fails is tried again, as by the service manager */
        house_disarm(s->h);
        daemon_spawn(&s->h->d);
    }
    (void)said(s, gpud_ping(s->c, NULL), "gpud_ping");
    if (has) {
        (void)numbers_check(s, b, ITEMS, 90, "gpud_read after another front came");
    }
    if (loaded) {
        times(s, m, 3);
    }
}
