/* Places of a device for workers of single tenants: who waits, who leaves, and what becomes of what
 * they have. The launcher's and the workers' side are the test's. */
#include <string.h>

#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/op.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/places.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/worker.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define MIB     (UINT64_C(1) << 20)
#define PLACE_S 10u

static struct fake *k;
static struct device *base;
static unsigned kills;
static uint64_t copies[8]; /* buffers that workers were asked to copy to the host */
static unsigned copied;

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    (void)e;
    kills++;
    return 0;
}

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    if (schema == &schema_msg_f_buffer_seal) {
        copies[copied++] = ((const struct msg_f_buffer_seal *)msg)->id;
    }
    return fake_send(l, schema, msg, fds, e);
}

static void ignore(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

static void changed(struct front *f, struct device *d)
{
    d->pool_limit = budget_of(d, f->config.device_memory_max);
}

static void lost(struct front *f, struct device *d, bool external, const char *why)
{
    (void)external;
    (void)why;
    buffer_device_lost(f, d);
    domain_lost(f, d);
}

static void begin(void)
{
    k = fake_create();
    k->f.io.kill = on_kill;
    k->f.io.send = on_send;
    k->f.hooks.budget_changed = changed;
    k->f.hooks.device_removed = k->f.hooks.device_changed = ignore;
    k->f.hooks.worker_takes = buffer_device_ready;
    k->f.hooks.worker_lost = lost;
    k->f.next_worker = 100;
    k->f.config.domains_max = 2;
    k->f.config.domain_place_s = PLACE_S;
    k->f.config.domain_percent = 10;
    kills = copied = 0;
    base = &k->device[0];
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        struct device *d = &k->device[i];
        d->proven = true;
        d->memory = d->pool_limit = d->pool_default = 1000 * MIB;
        d->number = i;
    }
}

static struct tenant *apart(const char *name)
{
    struct tenant *t = tenant_named(&k->f.tenants, name);
    ck_assert_ptr_nonnull(t);
    t->apart = true;
    return t;
}

/* With work: without a job the wish would be dropped. */
static struct device *asks(const char *name)
{
    struct device *d = NULL;
    struct err e = ERR_INIT;
    int rc = domain_obtain(&k->f, apart(name), base, &d, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    d->jobs = 1;
    fake_pass(1);
    return d;
}

static void watch(void)
{
    domains_watch(&k->f, fake_now());
}

static void opens(struct device *d)
{
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    device_set_state(d, DEVICE_OPENED, NULL);
    device_set_state(d, DEVICE_PROBING, NULL);
    device_set_state(d, DEVICE_READY, "");
    d->link = (struct link *)d;
    d->streams = 2;
    d->epoch++;
    watch();
}

/* It has a place, and a job in flight. */
static struct device *serving(const char *name)
{
    struct device *d = asks(name);
    watch();
    opens(d);
    d->inflight_count = 1;
    return d;
}

static void ends(struct device *d)
{
    d->link = NULL; /* it is none */
    ck_assert(worker_ended(&k->f, d->worker, 9));
    watch();
}

static void passes(uint64_t ns)
{
    fake_pass(ns);
    watch();
}

static void finish(void)
{
    k->f.device_count = FAKE_DEVICES;
    struct device *d;
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned at = DEVICES_MAX; (d = front_next_device(&k->f, &at)) != NULL;) {
            d->jobs = d->inflight_count = 0;
            if (d->state == DEVICE_STARTING) {
                opens(d);
            }
        }
        passes(3600 * NS_PER_S);
        for (unsigned at = DEVICES_MAX; (d = front_next_device(&k->f, &at)) != NULL;) {
            if (d->worker != 0) {
                ends(d);
            }
        }
    }
    ck_assert_uint_eq(k->f.domain_count, 0);
    ck_assert_uint_eq(base->granted, 0);
    fake_destroy(k);
}

/* FAULT other: a device has as many workers of single tenants as it may, and all of them are always
 *   busy
 * required: a newcomer is not refused; it gets the place of the tenant that has had one longest,
 *   whose jobs in flight end and whose other jobs wait for a place as the newcomer did
 * defence: `front/workers/places.c`: longest, yield_go_on; `front/model/device.c`: device_takes
 * also: `test_system_domains`: busy_tenants_take_turns_with_places; `front_sim`;
 *   `front_places_test`: places_go_in_the_order_of_asking, a_place_is_kept_for_a_while
 * mutants: place-yields, place-takes, place-again, place-flying, place-order, place-least,
 *   place-kick */
START_TEST(the_longest_makes_room)
{
    begin();
    struct device *a = serving("a");
    passes(NS_PER_S);
    struct device *b = serving("b");
    struct device *c = asks("c");
    watch();
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    ck_assert_uint_eq(c->grant, 0); /* it keeps no memory while it waits */
    ck_assert(place_waits(&k->f, c));
    ck_assert_ptr_nonnull(strstr(c->reason, "the 2 places"));
    passes((PLACE_S - 2) * NS_PER_S);
    ck_assert(device_takes(a) && device_takes(b)); /* not before place_s */
    k->kicked = false;
    passes(NS_PER_S);
    ck_assert(!device_takes(a) && device_takes(b));
    ck_assert(k->kicked); /* jobs that stood behind those of a may go */
    ck_assert_str_eq(device_state_name(a), "yielding");
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_READY); /* its job in flight ends first */
    ck_assert(device_takes(b));               /* one is enough */
    a->inflight_count = 0;
    watch();
    ck_assert_int_eq(a->state, DEVICE_RESTING);
    ck_assert_uint_eq(kills, 1);
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    ends(a);
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    ck_assert(a->wanted && place_waits(&k->f, a)); /* for its job that waits */
    opens(c);
    c->inflight_count = 1;
    passes(NS_PER_S);
    ck_assert(!device_takes(b) && device_takes(c)); /* the next one */
    b->inflight_count = 0;
    watch();
    ends(b);
    ck_assert_int_eq(a->state, DEVICE_STARTING);
    finish();
}
END_TEST

START_TEST(places_go_in_the_order_of_asking)
{
    begin();
    k->f.config.domains_max = 1;
    struct device *a = serving("a");
    struct device *c = asks("c");
    struct device *e = asks("e");
    watch();
    ck_assert_ptr_nonnull(strstr(c->reason, "0 tenants wait before it"));
    ck_assert_ptr_nonnull(strstr(e->reason, "1 tenant waits before it"));
    passes(PLACE_S * NS_PER_S);
    a->inflight_count = 0;
    watch();
    ends(a);
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    ck_assert(place_waits(&k->f, e) && place_waits(&k->f, a));
    opens(c);
    passes(PLACE_S * NS_PER_S);
    ends(c);
    ck_assert_int_eq(e->state, DEVICE_STARTING); /* a asked again after it */
    finish();
}
END_TEST

/* The time counts from when the worker first serves, and not anew when it is replaced. */
START_TEST(a_place_is_kept_for_a_while)
{
    begin();
    k->f.config.domains_max = 1;
    struct device *a = asks("a");
    struct device *c = asks("c");
    watch();
    passes(2 * PLACE_S * NS_PER_S);
    opens(a);
    a->inflight_count = 1;
    passes((PLACE_S - 1) * NS_PER_S);
    ck_assert(device_takes(a));
    a->inflight_count = 0;
    ends(a);
    worker_watch(&k->f, fake_now(), 0);
    opens(a);
    passes(NS_PER_S);
    watch();
    ck_assert_int_eq(a->state, DEVICE_RESTING);
    ends(a);
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    finish();
}
END_TEST

static struct buffer *to_be_made(struct device *d)
{
    struct buffer *b = fake_buffer(k, 0, 64, false);
    b->device = d->index;
    b->losses = &d->losses;
    b->export_fd = -1;
    b->state = BUFFER_CREATING;
    buffer_ask(&k->f, b);
    return b;
}

/* One whose worker never opens the device keeps no place for that. */
START_TEST(one_that_never_serves_makes_room)
{
    begin();
    k->f.config.domains_max = 1;
    struct device *a = asks("a");
    struct device *c = asks("c");
    watch();
    ck_assert_int_eq(a->state, DEVICE_STARTING);
    passes(PLACE_S * NS_PER_S);
    ends(a);
    ck_assert_int_eq(a->state, DEVICE_WAITING);
    passes(NS_PER_S);
    watch();
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    ck_assert(place_waits(&k->f, a));
    finish();
}
END_TEST

/* Nothing waits any more: the domain goes on, and its worker is asked for nothing twice. */
START_TEST(a_wish_that_ends_costs_no_place)
{
    begin();
    k->f.config.domains_max = 1;
    struct device *a = serving("a");
    struct buffer *b = to_be_made(a);
    struct device *c = asks("c");
    passes(PLACE_S * NS_PER_S);
    ck_assert(!device_takes(a));
    c->jobs = 0;
    passes(2 * NS_PER_S);
    ck_assert_ptr_null(domain_of(apart("c"), base)); /* it has nothing any more */
    passes(NS_PER_S);
    ck_assert(device_takes(a));
    ck_assert_str_eq(a->reason, "");
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_CREATE], 1);
    buffer_answered(&k->f, a, &(const struct msg_w_buffer){.id = b->handle});
    buffer_drop(&k->f, b);
    a->inflight_count = 0;
    passes(PLACE_S * NS_PER_S);
    ck_assert_uint_eq(kills, 0);
    finish();
}
END_TEST

/* The look that finds the wish ended is the one at which an idle worker would leave for it. */
START_TEST(a_wish_that_has_just_ended_costs_no_place)
{
    begin();
    k->f.config.domains_max = 1;
    struct device *a = serving("a");
    passes(2 * NS_PER_S);
    struct device *c = asks("c");
    watch();
    c->jobs = a->jobs = 0;
    a->inflight_count = 0;
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_READY);
    ck_assert(device_takes(a));
    ck_assert_ptr_null(domain_of(apart("c"), base));
    finish();
}
END_TEST

/* What is asked of a worker that is to leave is done by the next one. */
START_TEST(requests_wait_for_the_next_worker)
{
    struct err e = ERR_INIT;
    begin();
    k->f.config.domains_max = 1;
    struct device *a = serving("a");
    struct device *c = asks("c");
    struct buffer *old = fake_movable(k, a);
    struct buffer *asked = to_be_made(a);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_CREATE], 1);
    passes(PLACE_S * NS_PER_S);
    a->jobs = 0;
    ck_assert_int_eq(domain_want(&k->f, a, &e), 0);
    struct buffer *late = to_be_made(a);
    old->sealed = old->seal_wanted = true;
    buffer_seal_next(&k->f, old);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_CREATE], 1);
    ck_assert_uint_eq(copied, 0);
    a->inflight_count = 0;
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_READY); /* its worker makes a buffer */
    buffer_answered(&k->f, a, &(const struct msg_w_buffer){.id = asked->handle});
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, 2); /* the one that was made, and the old one */
    for (unsigned i = 0; i < copied; i++) {
        buffer_answered(&k->f, a, &(const struct msg_w_buffer){.id = copies[i]});
    }
    watch();
    ends(a);
    ck_assert(a->wanted);
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    opens(c);
    passes(PLACE_S * NS_PER_S);
    ends(c);
    opens(a);
    buffer_device_ready(&k->f, a);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_CREATE], 2);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_RESTORE], 2);
    buffer_answered(&k->f, a, &(const struct msg_w_buffer){.id = late->handle});
    buffer_drop(&k->f, old);
    buffer_drop(&k->f, asked);
    buffer_drop(&k->f, late);
    finish();
}
END_TEST

/* A buffer that is on the host, as its worker has ended as idle. */
static struct buffer *on_the_host(struct device *d)
{
    struct buffer *b = fake_movable(k, d);
    d->jobs = d->inflight_count = 0;
    passes((k->f.config.domain_idle_s + 1) * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, 1);
    buffer_answered(&k->f, d, &(const struct msg_w_buffer){.id = b->handle});
    watch();
    ends(d);
    ck_assert_int_eq(buffer_state(b), BUFFER_RESTORING);
    ck_assert_uint_eq(d->worker, 0);
    return b;
}

/* b is to be sealed, which waits for so many jobs that write it. */
static void want_seal(struct buffer *b, unsigned writers)
{
    static struct op seal;
    b->pending = &seal;
    b->sealed = b->seal_wanted = true;
    b->writers = writers;
}

static void seal_is_over(struct buffer *b)
{
    b->pending = NULL;
    b->sealed = b->seal_wanted = b->sealing = false;
}

/* Its buffer waits for memory in the worker, and no job keeps that. */
START_TEST(a_seal_keeps_its_worker)
{
    struct err e = ERR_INIT;
    begin();
    struct device *a = serving("a");
    struct buffer *b = on_the_host(a);
    ck_assert_int_eq(domain_want(&k->f, a, &e), 0);
    watch();
    opens(a);
    buffer_device_ready(&k->f, a);
    buffer_answered(&k->f, a,
                    &(const struct msg_w_buffer){.id = b->handle, .code = ERR_DEVICE_MEMORY});
    ck_assert_int_eq(buffer_state(b), BUFFER_RESTORING);
    want_seal(b, 0);
    passes((k->f.config.domain_idle_s + 1) * NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_READY);
    seal_is_over(b);
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_RESTING);
    buffer_drop(&k->f, b);
    finish();
}
END_TEST

/* The last job that writes the buffer, on another device, ends when the worker has ended. */
START_TEST(a_seal_wants_the_next_worker)
{
    begin();
    struct device *a = serving("a");
    struct buffer *b = on_the_host(a);
    want_seal(b, 1);
    buffer_seal_left(&k->f, b);
    watch();
    ck_assert(!a->wanted); /* the job is to end first */
    b->writers = 0;
    buffer_seal_left(&k->f, b);
    watch();
    opens(a);
    buffer_device_ready(&k->f, a);
    uint64_t seals = k->frames[FRAME_KIND_F_BUFFER_SEAL];
    buffer_answered(&k->f, a, &(const struct msg_w_buffer){.id = b->handle});
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_SEAL], seals + 1);
    seal_is_over(b);
    buffer_drop(&k->f, b);
    finish();
}
END_TEST

/* FAULT other: tenants have buffers that cannot go to the host, and so keep their workers' places
 * required: other tenants make room before them; where none can, a newcomer is refused with the
 *   reason and the time of the next try
 * defence: `front/workers/places.c`: can_leave, places_kept; `front/workers/evacuate.c`:
 *   evacuate_keeper
 * also: `test_system_domains`: an_idle_worker_makes_room; `front_places_test`:
 *   idle_ones_end_as_copies_have_room, so_do_those_that_make_room
 * mutants: place-kept, place-settings, place-movable, idle-copies, place-copies */
START_TEST(what_cannot_leave_keeps_its_place)
{
    struct err err = ERR_INIT;
    struct device *none = NULL;
    begin();
    struct device *a = serving("a");
    struct device *b = serving("b");
    struct buffer *exported = fake_movable(k, a);
    struct buffer *variable = fake_movable(k, b);
    exported->flags = BUFFER_FLAG_EXPORT;
    struct device *c = asks("c");
    passes(PLACE_S * NS_PER_S);
    ck_assert(device_takes(a) && !device_takes(b));
    variable->flags = BUFFER_FLAG_VARIABLE; /* it has it not when it begins to leave */
    b->inflight_count = 0;
    passes(NS_PER_S);
    ck_assert(device_takes(b));
    passes(NS_PER_S);
    ck_assert_ptr_nonnull(strstr(c->reason, "1 by exported buffers, 1 by variables of modules"));
    ck_assert_int_eq(domain_obtain(&k->f, apart("e"), base, &none, &err), ERR_BUSY);
    ck_assert_uint_eq(err.retry_after_ns, NS_PER_S);
    ck_assert_ptr_null(none);
    ck_assert_ptr_null(domain_of(apart("e"), base));
    ck_assert_ptr_nonnull(strstr(err.text, "per_device_max"));
    ck_assert_ptr_nonnull(strstr(err.text, "1 by exported buffers, 1 by variables of modules"));
    k->f.config.domains_max = 3; /* the last look was for two places */
    struct device *e = asks("e");
    ck_assert_ptr_nonnull(e);
    k->f.config.domains_max = 2;
    ck_assert_int_eq(domain_obtain(&k->f, apart("g"), base, &none, &err), ERR_BUSY);
    exported->flags = 0;
    fake_pass(NS_PER_S);
    ck_assert_ptr_nonnull(asks("g"));
    buffer_drop(&k->f, exported);
    buffer_drop(&k->f, variable);
    finish();
}
END_TEST

/* The worker refuses a copy: its domain goes on with its jobs, and another one is next. */
START_TEST(a_copy_that_fails_keeps_the_place)
{
    begin();
    struct device *a = serving("a");
    passes(NS_PER_S);
    struct device *b = serving("b");
    struct buffer *kept = fake_movable(k, a);
    (void)asks("c");
    passes(PLACE_S * NS_PER_S);
    a->inflight_count = 0;
    watch();
    ck_assert_uint_eq(copied, 1);
    buffer_answered(
        &k->f, a,
        &(const struct msg_w_buffer){.id = copies[0], .code = ERR_NOMEM, .text = bytes_str("no")});
    watch();
    ck_assert(device_takes(a));
    passes(2 * NS_PER_S);
    ck_assert(device_takes(a) && !device_takes(b));
    buffer_drop(&k->f, kept);
    finish();
}
END_TEST

/* The launcher keeps one copy more: the second worker does not begin to end, and ends as soon as
 * its copy has room. room: others want places. */
static void end_one_by_one(bool room)
{
    begin();
    k->f.copies_max = 1;
    struct device *a = serving("a");
    struct device *b = serving("b");
    struct buffer *first = fake_movable(k, a);
    struct buffer *second = fake_movable(k, b);
    a->jobs = a->inflight_count = b->jobs = b->inflight_count = 0;
    if (room) {
        (void)asks("c");
        (void)asks("d");
    }
    uint64_t used_ns = place_used_ns(b);
    passes(room ? 2 * NS_PER_S : (k->f.config.domain_idle_s + 1) * NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_RESTING);
    ck_assert_int_eq(b->state, DEVICE_READY);
    passes(2 * NS_PER_S);
    ck_assert_int_eq(b->state, DEVICE_READY);
    ck_assert_uint_eq(place_used_ns(b), used_ns);
    ck_assert_uint_eq(copied, 1);
    buffer_drop(&k->f, first);
    passes(2 * NS_PER_S);
    ck_assert_int_eq(b->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, 2);
    buffer_drop(&k->f, second);
    finish();
}

START_TEST(idle_ones_end_as_copies_have_room)
{
    end_one_by_one(false);
}
END_TEST

START_TEST(so_do_those_that_make_room)
{
    end_one_by_one(true);
}
END_TEST

/* One moves there from another device, and another one away. */
START_TEST(it_stays_while_buffers_move)
{
    begin();
    k->f.config.domains_max = 1;
    struct device *a = serving("a");
    struct buffer *b = fake_movable(k, a);
    (void)asks("c");
    arrivals_add(a, 77, true);
    b->move = MOVE_ARRIVES;
    passes(PLACE_S * NS_PER_S);
    a->inflight_count = 0;
    passes(NS_PER_S);
    ck_assert(!device_takes(a));
    ck_assert_int_eq(a->state, DEVICE_READY);
    (void)arrivals_end(a, 77);
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_READY);
    b->move = MOVE_NONE;
    arrivals_add(a, 77, false);
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_READY);
    (void)arrivals_end(a, 77);
    passes(NS_PER_S);
    ck_assert_int_eq(a->state, DEVICE_RESTING);
    buffer_drop(&k->f, b);
    finish();
}
END_TEST

/* An idle one makes room sooner, however short it has had its place. */
START_TEST(idle_ones_leave_first)
{
    begin();
    struct device *a = serving("a");
    struct device *b = serving("b");
    b->jobs = b->inflight_count = 0;
    struct device *c = asks("c");
    watch();
    ck_assert(device_takes(b)); /* it may only pause between two requests */
    passes(NS_PER_S);
    ck_assert_int_eq(b->state, DEVICE_RESTING);
    ck_assert(device_takes(a));
    ends(b);
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    finish();
}
END_TEST

/* Memory is wanted for a newcomer: the worker of no tenant goes, and an idle tenant's stays. */
START_TEST(the_spare_one_leaves_first)
{
    begin();
    k->f.config.domains_max = 8;
    k->f.config.domain_spare = 1;
    k->f.device_count = 1;
    struct device *a = serving("a");
    a->jobs = a->inflight_count = 0;
    fake_pass(NS_PER_S);
    watch();
    watch();
    struct device *spare = base->domains;
    ck_assert(place_is_spare(&k->f, spare));
    opens(spare);
    spare->used_ns = fake_now(); /* later than the other one */
    ck_assert_int_eq(spare->state, DEVICE_READY);
    apart("c")->limits.guaranteed = (struct amount){.bytes = 960 * MIB};
    (void)asks("c");
    ck_assert_int_eq(spare->state, DEVICE_RESTING);
    ck_assert_int_eq(a->state, DEVICE_READY);
    k->f.config.domain_spare = 0;
    apart("c")->limits.guaranteed = (struct amount){.bytes = 0};
    ends(spare);
    finish();
}
END_TEST

/* A tenant waits for the place that the spare worker has. A newcomer waits behind it, and does not
 * become the spare one's owner. */
START_TEST(a_spare_one_whose_place_is_waited_for_is_no_newcomers)
{
    begin();
    k->f.device_count = 1;
    struct device *b = serving("b");
    b->jobs = b->inflight_count = 0;
    passes((k->f.config.domain_idle_s + 1) * NS_PER_S);
    ck_assert_int_eq(b->state, DEVICE_RESTING);
    b->jobs = 1; /* it stays for that */
    ends(b);
    struct device *a = serving("a");
    k->f.config.domain_spare = 1;
    passes(NS_PER_S);
    watch();
    struct device *spare = base->domains;
    ck_assert(place_is_spare(&k->f, spare));
    ck_assert_ptr_eq(asks("b"), b);
    struct device *c = asks("c");
    ck_assert_ptr_ne(c, spare);
    ck_assert(place_is_spare(&k->f, spare));
    watch();
    ends(spare);
    ck_assert_int_eq(b->state, DEVICE_STARTING);
    ck_assert_int_ne(c->state, DEVICE_STARTING);
    ck_assert(device_takes(a));
    k->f.config.domain_spare = 0;
    finish();
}
END_TEST

/* A query between the end of a worker and the next look would tell of memory of no worker. */
START_TEST(memory_comes_back_with_the_end_of_its_worker)
{
    begin();
    k->f.device_count = 1;
    struct device *d = serving("a");
    uint64_t grant = d->grant;
    d->jobs = d->inflight_count = 0;
    passes((k->f.config.domain_idle_s + 1) * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_ptr_eq(asks("a"), d); /* its next worker is to have it */
    d->link = NULL;
    ck_assert(worker_ended(&k->f, d->worker, 9));
    ck_assert_uint_gt(grant, 0);
    ck_assert_uint_eq(d->grant, grant);
    watch();
    opens(d);
    d->jobs = 0;
    passes((k->f.config.domain_idle_s + 1) * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    d->jobs = 1; /* it stays for that */
    d->link = NULL;
    ck_assert(worker_ended(&k->f, d->worker, 9));
    ck_assert_uint_eq(d->grant, 0);
    ck_assert_uint_eq(base->granted, 0);
    d->jobs = 0;
    finish();
}
END_TEST

/* The next front must know which requests have run. */
START_TEST(a_domain_stays_while_an_answer_is_not_acknowledged)
{
    begin();
    struct device *d = serving("a");
    d->jobs = d->inflight_count = 0;
    record_entry entry = record_put(d->record, 0, RECORD_JOB, 5, bytes_str("job"));
    ck_assert_uint_ne(entry, 0);
    passes(3600 * NS_PER_S);
    ends(d);
    passes(3600 * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(k->f.domain_count, 1);
    record_drop(d->record, entry);
    passes(3600 * NS_PER_S);
    ck_assert_uint_eq(k->f.domain_count, 0);
    finish();
}
END_TEST

/* There is room for so many domains of all devices. */
START_TEST(domains_are_limited)
{
    struct err e = ERR_INIT;
    struct device *none = NULL;
    char name[8];
    begin();
    for (unsigned i = 0; i < DOMAINS_MAX; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        (void)asks(name);
    }
    ck_assert_int_eq(domain_obtain(&k->f, apart("u"), base, &none, &e), ERR_BUSY);
    ck_assert_uint_eq(e.retry_after_ns, NS_PER_S);
    struct device *d;
    for (unsigned at = DEVICES_MAX; (d = front_next_device(&k->f, &at)) != NULL;) {
        d->jobs = 0;
    }
    finish();
}
END_TEST

SUITE_MAIN("places", the_longest_makes_room, places_go_in_the_order_of_asking,
           a_place_is_kept_for_a_while, one_that_never_serves_makes_room,
           a_wish_that_ends_costs_no_place, a_wish_that_has_just_ended_costs_no_place,
           requests_wait_for_the_next_worker, a_seal_keeps_its_worker, a_seal_wants_the_next_worker,
           what_cannot_leave_keeps_its_place, a_copy_that_fails_keeps_the_place,
           idle_ones_end_as_copies_have_room, so_do_those_that_make_room,
           it_stays_while_buffers_move, idle_ones_leave_first, the_spare_one_leaves_first,
           a_spare_one_whose_place_is_waited_for_is_no_newcomers,
           memory_comes_back_with_the_end_of_its_worker,
           a_domain_stays_while_an_answer_is_not_acknowledged, domains_are_limited)
