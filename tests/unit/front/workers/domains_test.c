/* Domains: whose work is done where, when a worker of one's own is made and ended, and how the
 * device's memory and time are divided. The launcher's side is the test's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_end.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define MIB (UINT64_C(1) << 20)
#define ALL (1000 * MIB)

static struct fake *k;
static uint64_t started[8], killed[8];
static unsigned starts, kills;
static char limit_of[8][32]; /* --memory-limit of each that started */
static ino_t record_of[8];
static bool prepared[8]; /* whether a successor of each is to be prepared */
static struct {
    uint8_t bytes[128];
    size_t size;
} name_of[8]; /* what the launcher knows each by */

static int start_worker(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    (void)l;
    (void)e;
    ck_assert_uint_le(w->device.size, sizeof name_of[0].bytes);
    memcpy(name_of[starts].bytes, w->device.data, w->device.size);
    name_of[starts].size = w->device.size;
    for (unsigned i = 0; w->args[i] != NULL; i++) {
        if (strcmp(w->args[i], "--memory-limit") == 0) {
            (void)snprintf(limit_of[starts], sizeof limit_of[0], "%s", w->args[i + 1]);
        }
    }
    struct stat record = {.st_ino = 0};
    (void)fstat(w->fd[WORKER_RECORD], &record);
    record_of[starts] = record.st_ino;
    prepared[starts] = w->prepare;
    started[starts++] = w->id;
    return 0;
}

static int kill_worker(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)signal;
    (void)e;
    killed[kills++] = id;
    return 0;
}

static void changed(struct front *f, struct device *base)
{
    base->pool_limit = budget_of(base, f->config.device_memory_max);
}

static void ignore(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

static void lost(struct front *f, struct device *d, bool external, const char *why)
{
    (void)f;
    (void)d;
    (void)external;
    (void)why;
}

static void begin(void)
{
    k = fake_create();
    k->f.io.start_worker = start_worker;
    k->f.io.kill = kill_worker;
    k->f.hooks.budget_changed = changed;
    k->f.hooks.device_removed = k->f.hooks.device_changed = ignore;
    k->f.hooks.worker_lost = lost;
    k->f.next_worker = 100;
    k->f.config.domains_max = 2;
    starts = kills = 0;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        struct device *d = &k->device[i];
        d->proven = true;
        d->memory = d->pool_limit = d->pool_default = ALL;
        d->number = i;
    }
}

/* Another tenant, which is apart. */
static struct tenant *apart(const char *name)
{
    struct tenant *t = tenant_named(&k->f.tenants, name);
    ck_assert_ptr_nonnull(t);
    t->apart = true;
    return t;
}

static struct device *obtain(struct tenant *t, unsigned device)
{
    struct device *d = NULL;
    struct err e = ERR_INIT;
    int rc = domain_obtain(&k->f, t, &k->device[device], &d, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    return d;
}

/* Its worker opens the device. */
static void opens(struct device *d)
{
    device_set_state(d, DEVICE_OPENED, NULL);
    device_set_state(d, DEVICE_PROBING, NULL);
    device_set_state(d, DEVICE_READY, "");
}

static struct device *serving(struct tenant *t, unsigned device)
{
    struct device *d = obtain(t, device);
    unsigned begun = starts;
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    ck_assert(begun == starts || !prepared[begun]); /* it would be of one tenant */
    opens(d);
    d->link = (struct link *)d;
    d->streams = 2;
    d->epoch = 1;
    return d;
}

static void ends(struct device *d)
{
    d->link = NULL; /* it is none */
    ck_assert(worker_ended(&k->f, d->worker, 9));
}

static char named[65]; /* whose the worker is that name_worker was last asked about */
static int name_code;  /* what it returns */

static int name_worker(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    struct msg_record_worker m;
    (void)l;
    (void)id;
    ck_assert_int_eq(proto_decode(&schema_msg_record_worker, device, &m, NULL), 0);
    ck_assert(bytes_to_str(m.tenant, named, sizeof named));
    return name_code == 0 ? 0 : err_set(e, name_code, "no launcher");
}

static bool has_opened(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
    return true;
}

static void begin_spare(void)
{
    begin();
    k->f.io.name_worker = name_worker;
    k->f.hooks.worker_opened = has_opened;
    k->f.hooks.worker_takes = ignore;
    k->f.config.domain_spare = 1;
    k->f.config.domain_percent = 10;
    k->f.device_count = 1;
    named[0] = '\0';
    name_code = 0;
}

/* The spare domain of device 0, which serves. */
static struct device *spare(void)
{
    domains_watch(&k->f, fake_now());
    domains_watch(&k->f, fake_now());
    struct device *d = k->device[0].domains;
    ck_assert_ptr_nonnull(d);
    ck_assert_str_eq(d->owner->name, DOMAIN_SPARE);
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    opens(d);
    d->link = (struct link *)d;
    d->streams = 2;
    d->epoch = 1;
    return d;
}

static void spare_ends(struct device *d)
{
    k->f.config.domain_spare = 0;
    domains_watch(&k->f, fake_now());
    if (d->worker != 0) {
        ends(d);
    }
    k->f.device_count = FAKE_DEVICES;
}

/* All domains end and go. */
static void all_go(void)
{
    struct device *d;
    for (unsigned at = DEVICES_MAX; (d = front_next_device(&k->f, &at)) != NULL;) {
        if (d->state == DEVICE_STARTING) {
            opens(d);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        fake_pass(3600 * NS_PER_S);
        domains_watch(&k->f, fake_now());
        for (unsigned at = DEVICES_MAX; (d = front_next_device(&k->f, &at)) != NULL;) {
            if (d->worker != 0) {
                ends(d);
            }
        }
    }
    ck_assert_uint_eq(k->f.domain_count, 0);
    ck_assert_uint_eq(k->device[0].granted, 0);
}

static void finish(void)
{
    all_go();
    fake_destroy(k);
}

START_TEST(where_a_tenant_is)
{
    begin();
    struct tenant *a = apart("a");
    struct tenant *b = apart("b");
    ck_assert_ptr_eq(domain_of(NULL, &k->device[0]), &k->device[0]);
    ck_assert_ptr_eq(domain_of(k->tenant, &k->device[0]), &k->device[0]);
    ck_assert_ptr_null(domain_of(a, &k->device[0]));
    ck_assert(!domain_hope(&k->f, a) && domain_hope(&k->f, k->tenant));
    struct device *d = obtain(a, 1);
    struct device *x = obtain(b, 1);
    ck_assert_ptr_eq(domain_of(a, &k->device[1]), d);
    ck_assert_ptr_eq(domain_of(b, &k->device[1]), x);
    ck_assert_ptr_null(domain_of(a, &k->device[0]));
    ck_assert_ptr_eq(domain_of(k->tenant, &k->device[1]), &k->device[1]);
    ck_assert_ptr_eq(obtain(a, 1), d); /* the same again */
    ck_assert_uint_ge(d->index, DEVICES_MAX);
    ck_assert_uint_ne(d->index, x->index);
    ck_assert_uint_eq(device_shown(d), 1);
    ck_assert_ptr_eq(device_line(d), &k->device[1].line);
    struct device_set hopes = domain_hopes(&k->f, a, false);
    ck_assert(device_set_has(&hopes, d->index) && !device_set_has(&hopes, 1));
    hopes = domain_hopes(&k->f, k->tenant, false);
    ck_assert(device_set_has(&hopes, 0) && device_set_has(&hopes, 1));
    ck_assert(!device_set_has(&hopes, d->index));
    k->device[1].state = DEVICE_ABSENT; /* a domain that rests is no hope there */
    ck_assert(!domain_hope(&k->f, a));
    k->device[1].state = DEVICE_READY;
    struct device *each;
    unsigned count = 0;
    for (unsigned at = 0; (each = front_next_device(&k->f, &at)) != NULL;) {
        count++;
    }
    ck_assert_uint_eq(count, FAKE_DEVICES + 2);
    domains_watch(&k->f, fake_now());
    finish();
}
END_TEST

/* A domain waits for its device as requests do, and then has its back end and its number. */
START_TEST(a_worker_starts_when_the_device_has_proven_itself)
{
    begin();
    struct tenant *a = apart("a");
    k->device[1].proven = false;
    struct device *d = obtain(a, 1);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 0);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    (void)strcpy(k->device[1].pin, "uuid=x");
    k->device[1].proven = true;
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 1);
    ck_assert_uint_eq(d->worker, started[0]);
    ck_assert_str_eq(d->backend, "sim");
    ck_assert_str_eq(d->pin, "uuid=x");
    ck_assert_uint_eq(d->number, 1);
    ck_assert(d->proven && !d->wanted);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 1);
    finish();
}
END_TEST

START_TEST(memory_is_divided)
{
    begin();
    struct tenant *a = apart("a");
    struct tenant *b = apart("b");
    struct device *base = &k->device[0];
    k->f.config.domain_percent = 10;
    b->limits.guaranteed = (struct amount){.percent = 30};
    struct device *d = serving(a, 0);
    ck_assert_uint_eq(d->grant, 100 * MIB);
    ck_assert_str_eq(limit_of[0], "104857600");
    ck_assert_uint_eq(budget_of(d, 0), 100 * MIB);
    ck_assert_uint_eq(base->pool_limit, 900 * MIB);
    ck_assert_uint_eq(device_whole(base), ALL);
    ck_assert_uint_eq(device_whole(d), ALL);
    struct device *x = serving(b, 0);
    ck_assert_uint_eq(x->grant, 300 * MIB); /* what it is guaranteed */
    ck_assert_uint_eq(base->pool_limit + d->grant + x->grant, ALL);
    ck_assert_uint_eq(k->device[1].pool_limit, ALL);
    finish();
    begin();
    a = apart("a");
    a->limits.hard = (struct amount){.bytes = 20 * MIB}; /* it can use no more */
    ck_assert_uint_eq(domain_grant(&k->f, a, &k->device[0]), 20 * MIB);
    k->device[0].granted = ALL - 10 * MIB;
    k->device[0].pool_limit = 10 * MIB;
    ck_assert_uint_eq(domain_grant(&k->f, a, &k->device[0]), 0);
    k->device[0].granted = 0;
    finish();
}
END_TEST

/* An idle one makes room, the least used first, but none with a buffer that would be
 * lost. */
START_TEST(a_full_device_refuses_a_newcomer)
{
    begin();
    struct err e = ERR_INIT;
    struct device *d[2];
    struct device *none = NULL;
    struct buffer *b[2];
    struct tenant *c = apart("c");
    d[0] = serving(apart("a"), 0);
    fake_pass(NS_PER_S);
    d[1] = serving(apart("b"), 0);
    for (unsigned i = 0; i < 2; i++) {
        b[i] = fake_buffer(k, 0, 64, true);
        b[i]->device = d[i]->index;
        b[i]->losses = &d[i]->losses;
        b[i]->flags = BUFFER_FLAG_EXPORT; /* it cannot go to the host */
        buffer_set_state(b[i], BUFFER_LIVE);
    }
    ck_assert_int_eq(domain_obtain(&k->f, c, &k->device[0], &none, &e), ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(e.text, "tenant c needs a worker of its own on device 0"));
    ck_assert_uint_eq(kills, 0);
    ck_assert_ptr_nonnull(obtain(c, 1)); /* on another device there is room */
    for (unsigned i = 0; i < 2; i++) {
        b[i]->device = 1;
        b[i]->losses = &k->device[1].losses;
    }
    fake_pass(NS_PER_S);
    struct device *x = obtain(c, 0);
    x->jobs = 1;
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(kills, 1);
    ck_assert_uint_eq(killed[0], d[0]->worker);
    ck_assert_int_eq(d[0]->state, DEVICE_RESTING);
    ck_assert_int_eq(d[1]->state, DEVICE_READY);
    ck_assert_int_eq(x->state, DEVICE_RESTING); /* the other one has yet to end */
    ends(d[0]);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(x->state, DEVICE_STARTING);
    x->jobs = 0;
    finish();
}
END_TEST

static void idles(void)
{
    fake_pass((k->f.config.domain_idle_s + 1) * NS_PER_S);
    domains_watch(&k->f, fake_now());
}

/* Copies take long: a domain with a place and a grant does not wait for those of another domain. */
START_TEST(a_newcomer_does_not_wait_for_copies)
{
    begin();
    struct device *a = serving(apart("a"), 0);
    struct buffer *kept = fake_movable(k, a);
    idles();
    ck_assert_int_eq(a->evacuation.state, EVACUATION_COPIES);
    struct device *c = obtain(apart("c"), 0);
    ck_assert_uint_gt(c->grant, 0);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    ck_assert_int_eq(a->evacuation.state, EVACUATION_COPIES);
    buffer_drop(&k->f, kept);
    finish();
}
END_TEST

/* It had no grant, and gets what another worker leaves meanwhile. */
START_TEST(a_newcomer_gets_what_comes_back_during_copies)
{
    begin();
    k->f.config.domain_percent = 49;
    struct device *a = serving(apart("a"), 0);
    struct device *b = serving(apart("b"), 0);
    struct buffer *kept = fake_movable(k, a);
    idles();
    ck_assert_int_eq(b->state, DEVICE_RESTING);
    struct device *c = obtain(apart("c"), 0);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(c->grant, 0);
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    ck_assert_uint_eq(c->lease.wanted, 0); /* the memory comes back without a recall */
    ends(b);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    ck_assert_int_eq(a->evacuation.state, EVACUATION_COPIES);
    buffer_drop(&k->f, kept);
    finish();
}
END_TEST

/* A worker that is about to start again keeps its place. */
START_TEST(a_newcomer_waits_for_copies_without_a_place)
{
    begin();
    struct device *a = serving(apart("a"), 0);
    struct device *b = serving(apart("b"), 0);
    struct buffer *kept = fake_movable(k, a);
    b->jobs = 1;
    idles();
    ck_assert_int_eq(a->evacuation.state, EVACUATION_COPIES);
    ends(b);
    ck_assert_int_eq(b->state, DEVICE_WAITING);
    struct device *c = obtain(apart("c"), 0);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    ends(a);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    b->jobs = 0;
    buffer_drop(&k->f, kept);
    finish();
}
END_TEST

/* The first job of a tenant starts no process, and another spare one follows. */
START_TEST(a_newcomer_gets_the_spare_worker)
{
    begin_spare();
    struct device *base = &k->device[0];
    struct device *d = spare();
    uint64_t worker = d->worker;
    ck_assert_uint_eq(d->grant, 100 * MIB);
    struct tenant *a = apart("a");
    ck_assert_ptr_eq(obtain(a, 0), d);
    ck_assert_ptr_eq(domain_of(a, base), d);
    ck_assert_ptr_eq(d->owner, a);
    ck_assert_uint_eq(d->worker, worker);
    ck_assert_uint_eq(starts, 1);
    ck_assert_str_eq(named, "a");
    ck_assert_uint_eq(d->grant, 100 * MIB);
    ck_assert_uint_eq(record_lease(d->record), d->grant);
    ck_assert_uint_eq(base->granted, d->grant);
    ck_assert_uint_eq(a->domains, 1);
    ck_assert_uint_eq(k->f.spare->domains, 0);
    fake_pass(11 * NS_PER_S);
    domains_watch(&k->f, fake_now());
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 2);
    ck_assert_str_eq(base->domains->owner->name, DOMAIN_SPARE);
    opens(base->domains);
    spare_ends(base->domains);
    finish();
}
END_TEST

/* What a tenant begins with beyond that would be missing with others. */
START_TEST(a_spare_worker_with_too_little_is_no_newcomers)
{
    begin_spare();
    struct device *d = spare();
    struct tenant *a = apart("a");
    a->limits.guaranteed = (struct amount){.percent = 30};
    ck_assert_ptr_ne(obtain(a, 0), d);
    spare_ends(d);
    finish();
}
END_TEST

/* One that starts yet is taken, too; one whose launcher does not answer ends. */
START_TEST(a_spare_worker_that_starts_is_taken)
{
    begin_spare();
    domains_watch(&k->f, fake_now());
    domains_watch(&k->f, fake_now());
    struct device *d = k->device[0].domains;
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    ck_assert_ptr_eq(obtain(apart("a"), 0), d);
    ck_assert_uint_eq(starts, 1);
    opens(d);
    fake_pass(11 * NS_PER_S);
    struct device *x = spare();
    name_code = ERR_CLOSED;
    ck_assert_ptr_eq(obtain(apart("b"), 0), x);
    ck_assert_uint_eq(kills, 1);
    ck_assert_uint_eq(killed[0], x->worker);
    ends(x);
    spare_ends(d);
    finish();
}
END_TEST

/* It makes room before all others, for a place and for memory. */
START_TEST(a_spare_worker_ends_first)
{
    begin_spare();
    struct device *base = &k->device[0];
    struct device *a = serving(apart("a"), 0);
    struct device *d = spare();
    fake_pass(NS_PER_S);
    d->used_ns = fake_now();
    base->lease.wanted = MIB;
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_int_eq(a->state, DEVICE_READY);
    ck_assert_uint_eq(killed[0], d->worker);
    ends(d);
    base->lease.wanted = 0;
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 2); /* not at once */
    fake_pass(11 * NS_PER_S);
    domains_watch(&k->f, fake_now());
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 3);
    spare_ends(base->domains);
    finish();
}
END_TEST

/* A tenant that comes back has a domain, and needs a worker for that. */
static struct device *resting(struct tenant *t)
{
    struct device *d = serving(t, 0);
    fake_pass((k->f.config.domain_idle_s + 1) * NS_PER_S);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ends(d);
    d->jobs = 1; /* it stays for that */
    return d;
}

START_TEST(a_spare_worker_gives_its_place)
{
    begin_spare();
    k->f.config.domain_spare = 0;
    struct device *b = resting(apart("b"));
    struct device *a = serving(apart("a"), 0);
    k->f.config.domain_spare = 1;
    fake_pass(NS_PER_S);
    struct device *d = spare(); /* it is used last, and has the last place */
    ck_assert_ptr_eq(obtain(b->owner, 0), b);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(a->state, DEVICE_READY);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ends(d);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(b->state, DEVICE_STARTING);
    b->jobs = 0;
    opens(b);
    k->f.config.domain_spare = 0;
    k->f.device_count = FAKE_DEVICES;
    finish();
}
END_TEST

START_TEST(a_spare_worker_goes_when_places_become_fewer)
{
    begin_spare();
    struct device *a = serving(apart("a"), 0);
    struct device *d = spare();
    k->f.config.domains_max = 1;
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(a->state, DEVICE_READY);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    spare_ends(d);
    finish();
}
END_TEST

/* One that starts has the last place, and all others are busy. */
START_TEST(a_spare_worker_that_starts_refuses_no_tenant)
{
    begin_spare();
    k->f.config.domain_spare = 0;
    struct device *b = resting(apart("b"));
    struct device *a = serving(apart("a"), 0);
    a->jobs = 1;
    k->f.config.domain_spare = 1;
    fake_pass(NS_PER_S);
    domains_watch(&k->f, fake_now());
    domains_watch(&k->f, fake_now());
    struct device *d = k->device[0].domains;
    ck_assert_ptr_ne(d, b);
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    ck_assert_ptr_eq(obtain(b->owner, 0), b);
    domains_watch(&k->f, fake_now());
    ck_assert(b->wanted);
    opens(d);
    d->link = (struct link *)d;
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ends(d);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(b->state, DEVICE_STARTING);
    b->jobs = 0;
    opens(b);
    a->jobs = 0;
    k->f.config.domain_spare = 0;
    k->f.device_count = FAKE_DEVICES;
    finish();
}
END_TEST

START_TEST(no_spare_worker_without_free_memory)
{
    begin_spare();
    struct device *base = &k->device[0];
    base->pool.size = 950 * MIB;
    for (unsigned i = 0; i < 3; i++) {
        domains_watch(&k->f, fake_now());
        fake_pass(11 * NS_PER_S);
    }
    ck_assert_ptr_null(base->domains);
    base->pool.size = 850 * MIB;
    k->f.config.domain_spare = 0;
    domains_watch(&k->f, fake_now());
    ck_assert_ptr_null(base->domains);
    k->f.config.domain_spare = 1;
    k->f.config.domains_max = 1;
    struct device *a = serving(apart("a"), 0); /* all places are taken */
    fake_pass(11 * NS_PER_S);
    domains_watch(&k->f, fake_now());
    ck_assert_ptr_eq(base->domains, a);
    ck_assert_ptr_null(a->domain_next);
    k->f.config.domain_spare = 0;
    k->f.device_count = FAKE_DEVICES;
    finish();
}
END_TEST

/* No tenant waits for its next start. */
START_TEST(a_lost_spare_worker_is_replaced)
{
    begin_spare();
    struct device *d = spare();
    int kept = dup(record_fd(d->record)); /* by the launcher, under the name of that worker */
    ends(d);
    ck_assert_int_eq(d->state, DEVICE_WAITING);
    struct tenant *b = apart("b");
    struct device *x = obtain(b, 0); /* a worker of its own, at once */
    ck_assert_ptr_ne(x, d);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(x->state, DEVICE_STARTING);
    ck_assert_uint_eq(x->failures, 0);
    ck_assert_uint_eq(HASH_COUNT(b->strikes), 0);
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    ck_assert_str_eq(d->owner->name, DOMAIN_SPARE);
    ck_assert_uint_ne(record_of[starts - 1], record_of[0]);
    (void)close(kept);
    opens(d);
    opens(x);
    spare_ends(d);
    finish();
}
END_TEST

/* Jobs of a tenant keep its workers, also those that name no device. */
START_TEST(an_idle_worker_rests)
{
    begin();
    struct tenant *a = apart("a");
    struct device *d = serving(a, 0);
    uint64_t idle_ns = k->f.config.domain_idle_s * NS_PER_S;
    a->held[TENANT_JOBS] = 1;
    fake_pass(2 * idle_ns);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_READY);
    d->jobs = 1;
    fake_pass(2 * idle_ns);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_READY);
    d->jobs = 0;
    a->held[TENANT_JOBS] = 0;
    d->ran_ns = fake_now();
    fake_pass(idle_ns - 1);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_READY);
    fake_pass(NS_PER_S);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(kills, 1);
    ck_assert_uint_eq(k->device[0].pool_limit, 900 * MIB); /* the worker still has memory */
    ends(d);
    ck_assert_uint_eq(d->restarts, 0); /* this is no fault */
    ck_assert_str_eq(d->fault, "");
    ck_assert_ptr_eq(obtain(a, 0), d); /* it is wanted again before it went */
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    finish();
}
END_TEST

static struct job *ready(struct tenant *t, struct device *d, uint64_t id)
{
    struct job *j = calloc(1, sizeof *j);
    ck_assert_ptr_nonnull(j);
    *j = (struct job){.id = id,
                      .tenant = t,
                      .job_class = CLASS_INTERACTIVE,
                      .submitted_ns = fake_now() + id,
                      .deadline_ns = NS_NEVER,
                      .device = d};
    j->sched.rank = job_rank(j);
    ck_assert(shares_reserve(&k->f, t, j));
    shares_put(&k->f, j);
    return j;
}

/* Tenants of one device stand in one line, whatever worker they have. */
START_TEST(a_worker_that_is_away_holds_nobody_up)
{
    begin();
    struct tenant *a = apart("a");
    struct device *base = &k->device[0];
    struct device *d = serving(a, 0);
    struct job *first = ready(a, d, 1);
    struct job *second = ready(k->tenant, base, 2);
    struct job *any = ready(a, NULL, 3);
    k->tenant->share.stake[0]->of[CLASS_INTERACTIVE].served = 5;
    d->shut = true;
    ck_assert_ptr_eq(shares_head(&k->f, base), second);
    base->shut = true;
    ck_assert_ptr_null(shares_head(&k->f, base));
    d->shut = false;
    ck_assert_ptr_eq(shares_head(&k->f, base), first);
    shares_drop(&k->f, first);
    ck_assert_ptr_eq(shares_head(&k->f, base), any);
    ck_assert_ptr_null(shares_head(&k->f, &k->device[1])); /* it has no worker there */
    base->shut = false;
    shares_drop(&k->f, any);
    ck_assert_ptr_eq(shares_head(&k->f, base), second);
    shares_drop(&k->f, second);
    free(first);
    free(second);
    free(any);
    finish();
}
END_TEST

/* Wherever ended jobs are listed, they name the device when the domain is gone. */
START_TEST(ended_jobs_outlive_the_domain)
{
    begin();
    struct tenant *a = apart("a");
    struct device *d = serving(a, 0);
    struct job listed[3];
    for (unsigned i = 0; i < 3; i++) {
        listed[i] = (struct job){.id = i + 1, .tenant = a, .device = d, .epoch = d->epoch};
    }
    struct job other = {.id = 4, .tenant = k->tenant, .device = &k->device[1], .epoch = 7};
    listed[1].ended_next = &other;
    k->f.leaving = &listed[0];
    k->f.history = &listed[1];
    k->f.history_count = 2;
    a->kept = &listed[2];
    a->kept_count = 1;
    all_go();
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_eq(listed[i].device, &k->device[0]);
        ck_assert_uint_eq(listed[i].epoch, 0);
    }
    ck_assert_ptr_eq(other.device, &k->device[1]);
    ck_assert_uint_eq(other.epoch, 7);
    k->f.leaving = k->f.history = a->kept = NULL;
    k->f.history_count = a->kept_count = 0;
    fake_destroy(k);
}
END_TEST

/* Its grant is known before it reports, and whatever it reports. */
START_TEST(an_adopted_worker_keeps_its_grant)
{
    begin();
    struct tenant *t = tenant_named(&k->f.tenants, "a");
    struct device *base = &k->device[0];
    base->proven = false;
    struct device *d = domain_adopt(&k->f, t, base);
    ck_assert(base->proven); /* its next worker runs no first job beside those of this one */
    ck_assert(t->apart && domain_of(t, base) == d);
    domain_keep(&k->f, d, 30 * MIB);
    ck_assert_uint_eq(base->pool_limit, 970 * MIB);
    d->worker = 50;
    device_set_state(d, DEVICE_ADOPTING, NULL);
    d->pool_limit = ALL;
    ck_assert_uint_eq(budget_of(d, 0), 30 * MIB);
    domain_keep(&k->f, base, ALL); /* it is no domain */
    ck_assert_uint_eq(base->grant, 0);
    ck_assert_uint_eq(device_whole(base), ALL);
    ck_assert(worker_ended(&k->f, d->worker, 9)); /* the next one has the same limit */
    ck_assert_int_eq(d->state, DEVICE_WAITING);
    worker_start(&k->f, d);
    ck_assert_str_eq(limit_of[0], "31457280");
    finish();
}
END_TEST

/* The launcher keeps one record of a device, and a folder for what its driver compiles, by what the
 * front calls the device. */
START_TEST(a_worker_with_another_grant_is_of_the_same_device)
{
    begin();
    struct tenant *a = apart("a");
    struct device *d = serving(a, 0);
    fake_pass(2 * k->f.config.domain_idle_s * NS_PER_S);
    domains_watch(&k->f, fake_now());
    ends(d);
    k->f.config.domain_percent *= 2;
    ck_assert_ptr_eq(serving(a, 0), d);
    ck_assert_uint_eq(starts, 2);
    ck_assert_str_ne(limit_of[0], limit_of[1]);
    ck_assert_uint_eq(name_of[0].size, name_of[1].size);
    ck_assert_int_eq(memcmp(name_of[0].bytes, name_of[1].bytes, name_of[0].size), 0);
    finish();
}
END_TEST

/* Its lease is not known, so its next worker gets one as any that starts. */
START_TEST(without_its_record_an_adopted_domain_rests)
{
    begin();
    struct tenant *t = tenant_named(&k->f.tenants, "a");
    struct device *d = domain_adopt(&k->f, t, &k->device[0]);
    d->worker = 50;
    device_set_state(d, DEVICE_ADOPTING, NULL);
    worker_end(&k->f, d, NULL, "no record");
    domain_keep(&k->f, d, record_lease(d->record));
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_ptr_eq(obtain(t, 0), d);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 0); /* it has yet to end */
    ends(d);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 1);
    ck_assert_str_eq(limit_of[0], "104857600");
    finish();
}
END_TEST

/* A worker of a former front that ends keeps the one device waiting whose it was. */
START_TEST(a_departing_worker_has_an_owner)
{
    begin();
    struct tenant *a = apart("a");
    struct device *d = obtain(a, 0);
    (void)strcpy(d->backend, "sim");
    departing_add(&k->f, 7, "sim", 0, tenant_key(a));
    ck_assert(departing_has(&k->f, d));
    ck_assert(!departing_has(&k->f, &k->device[0]));
    departing_add(&k->f, 8, "sim", 0, 0);
    ck_assert(departing_has(&k->f, &k->device[0]));
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 0); /* its next worker waits for the end */
    ck_assert(departing_ended(&k->f, 7));
    ck_assert(!departing_has(&k->f, d));
    ck_assert(departing_ended(&k->f, 8));
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(starts, 1);
    finish();
}
END_TEST

SUITE_MAIN("domains", where_a_tenant_is, a_worker_starts_when_the_device_has_proven_itself,
           memory_is_divided, a_full_device_refuses_a_newcomer, a_newcomer_does_not_wait_for_copies,
           a_newcomer_gets_what_comes_back_during_copies,
           a_newcomer_waits_for_copies_without_a_place, an_idle_worker_rests,
           a_worker_that_is_away_holds_nobody_up, ended_jobs_outlive_the_domain,
           an_adopted_worker_keeps_its_grant, a_departing_worker_has_an_owner,
           a_worker_with_another_grant_is_of_the_same_device,
           without_its_record_an_adopted_domain_rests, a_newcomer_gets_the_spare_worker,
           a_spare_worker_with_too_little_is_no_newcomers, a_spare_worker_that_starts_is_taken,
           a_spare_worker_ends_first, no_spare_worker_without_free_memory,
           a_lost_spare_worker_is_replaced, a_spare_worker_gives_its_place,
           a_spare_worker_goes_when_places_become_fewer,
           a_spare_worker_that_starts_refuses_no_tenant)
