/*
 * Accounts of tenants are exact: they have what jobs were charged, each end of a job once, over all
 * fronts of the world, also where a front is killed and writes nothing at its end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/tenants/accounts.h"
#include "tests/sim/front/rules/sim_access.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/rules/sim_views.h"
#include "tests/sim/front/sim.h"

/* A job whose end was seen. Another front may give its number to another job. */
struct sim_ended {
    struct {
        uint64_t id, submitted_ns;
    } key;
    UT_hash_handle hh;
};

static struct sim *world;

static bool seen_before(struct sim *s, const struct job *j)
{
    struct sim_ended *e = NULL;
    struct sim_ended key = {.key = {j->id, j->submitted_ns}};
    HASH_FIND(hh, s->charged.ended, &key.key, sizeof key.key, e);
    if (e != NULL) {
        return true;
    }
    memory_outside();
    e = malloc(sizeof *e);
    if (e == NULL) {
        abort();
    }
    e->key = key.key;
    HASH_ADD(hh, s->charged.ended, key, sizeof e->key, e);
    memory_inside();
    return false;
}

static void on_job_ended(struct front *f, struct job *j)
{
    struct sim *s = world;
    memory_outside();
    charge_ended(s, j);
    memory_inside();
    if (j->tenant != NULL) {
        bool before = seen_before(s, j);
        if (before != j->counted) {
            sim_fail(s, "accounts: job %" PRIu64 " ends%s, and its front takes it for %s", j->id,
                     before ? " again" : "", j->counted ? "counted" : "new");
        }
        s->charged.ends += !before;
        s->charged.device_ns += j->device_ns;
    }
    views_job_ended(s, j);
    access_job_ended(s, j);
    s->charged.job_ended(f, j);
}

static uint64_t unfinished_ns(const struct front *f)
{
    uint64_t ns = 0;
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        ns += j->tenant != NULL && !job_ended(j) ? j->device_ns : 0;
    }
    return ns;
}

static uint64_t ends_of(const struct account *a)
{
    return a->jobs[ACCOUNT_DONE] + a->jobs[ACCOUNT_FAILED] + a->jobs[ACCOUNT_CANCELLED] +
           a->jobs[ACCOUNT_LOST] + a->jobs[ACCOUNT_DEADLINE];
}

static void path_of(const struct sim *s, const char *name, char out[SIM_FOLDER + 16])
{
    (void)snprintf(out, SIM_FOLDER + 16, "%s/%s", s->dir, name);
}

void accounts_follow(struct sim *s)
{
    struct err e = ERR_INIT;
    world = s;
    if (accounts_create(s->dir, NULL, &s->f->accounts, &e) != 0) {
        sim_fail(s, "accounts: %s", e.text);
    }
    s->charged.job_ended = s->f->hooks.job_ended;
    s->f->hooks.job_ended = on_job_ended;
}

static void copy(const struct sim *s, const char *from, const char *to)
{
    char path[SIM_FOLDER + 16];
    char part[4096];
    size_t n;
    path_of(s, from, path);
    FILE *in = fopen(path, "re");
    path_of(s, to, path);
    FILE *out = fopen(path, "we");
    if (in == NULL || out == NULL) {
        abort();
    }
    while ((n = fread(part, 1, sizeof part, in)) > 0) {
        (void)fwrite(part, 1, n, out);
    }
    (void)fclose(in);
    (void)fclose(out);
}

/* A tenant for which there was no memory has no place in the file. */
static void own_is_lost(struct sim *s)
{
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        if (t->account == &t->own) {
            s->charged.device_ns -= t->own.device_ns;
            s->charged.ends -= ends_of(&t->own);
        }
    }
}

void accounts_front_ends(struct sim *s, bool killed)
{
    s->charged.device_ns += unfinished_ns(s->f);
    s->charged.killed = killed;
    views_front_ends();
    if (killed) {
        own_is_lost(s);
        copy(s, "accounts", "accounts.kept");
    }
}

void accounts_front_ended(struct sim *s)
{
    char from[SIM_FOLDER + 16];
    char to[SIM_FOLDER + 16];
    path_of(s, "accounts.kept", from);
    path_of(s, "accounts", to);
    if (s->charged.killed && rename(from, to) != 0) {
        abort();
    }
}

static void check(struct sim *s, const char *what, uint64_t counted, uint64_t there)
{
    if (counted != there) {
        sim_fail(s, "accounts: %s: %" PRIu64 " in accounts, %" PRIu64 " of jobs", what, counted,
                 there);
    }
}

void accounts_check(struct sim *s)
{
    const struct account *a;
    uint64_t device_ns = 0;
    uint64_t ends = 0;
    for (unsigned i = 0; (a = accounts_at(s->f->accounts, i)) != NULL; i++) {
        device_ns += a->device_ns;
        ends += ends_of(a);
    }
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        device_ns += t->own.device_ns;
        ends += ends_of(&t->own);
        check(s, "bytes of buffers", t->account->held_bytes, t->buffer_bytes);
    }
    check(s, "device time", device_ns, s->charged.device_ns + unfinished_ns(s->f));
    check(s, "ends", ends, s->charged.ends);
}

void accounts_finish(struct sim *s)
{
    struct sim_ended *e;
    struct sim_ended *next;
    HASH_ITER(hh, s->charged.ended, e, next)
    {
        HASH_DEL(s->charged.ended, e);
        free(e);
    }
}
