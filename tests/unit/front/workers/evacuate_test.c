/* The buffers of an idle domain go to the host before its worker ends, and come back with the next
 * one. The worker's side is the test's. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/memfd.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/evacuate.h"
#include "daemon/front/workers/keep.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker.h"
#include "proto/limits.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define MIB     (UINT64_C(1) << 20)
#define BUFFERS 3u

static struct fake *k;
static struct tenant *owner;
static struct device *d;
static struct buffer *b[BUFFERS];
static uint64_t copies[64], restores[64]; /* buffers asked for, in this order */
static unsigned copied, restored, kills;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    if (schema == &schema_msg_f_buffer_seal) {
        const struct msg_f_buffer_seal *m = msg;
        ck_assert_uint_eq(m->lent, 1);
        copies[copied++] = m->id;
    } else if (schema == &schema_msg_f_buffer_restore) {
        const struct msg_f_buffer_restore *m = msg;
        ck_assert_uint_eq(m->lent, 1);
        ck_assert_int_eq(fds->count, 1);
        restores[restored++] = m->id;
    }
    return fake_send(l, schema, msg, fds, e);
}

/* A worker that is quick: it may freeze the copy before the front goes on. */
static int on_seal(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    if (schema == &schema_msg_f_buffer_seal) {
        ck_assert_int_eq(memfd_freeze(fds->fd[0], NULL), 0);
    }
    return fake_send(l, schema, msg, fds, e);
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    (void)e;
    kills++;
    return 0;
}

static void ignore(struct front *f, struct device *x)
{
    (void)f;
    (void)x;
}

static void lost(struct front *f, struct device *x, bool external, const char *why)
{
    (void)external;
    (void)why;
    buffer_device_lost(f, x);
}

static void opens(void)
{
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    device_set_state(d, DEVICE_OPENED, NULL);
    d->link = (struct link *)d;
    d->streams = 2;
    discover_ready(&k->f, d);
}

static void obtain(void)
{
    struct device *same = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(domain_obtain(&k->f, owner, &k->device[0], &same, &e) == 0, "%s", e.text);
    d = same;
}

static void begin(void)
{
    k = fake_create();
    k->f.io.send = on_send;
    k->f.io.kill = on_kill;
    k->f.hooks.budget_changed = k->f.hooks.device_removed = k->f.hooks.device_changed = ignore;
    k->f.hooks.worker_lost = lost;
    k->f.hooks.worker_ready = discover_ready;
    k->f.next_worker = 100;
    copied = restored = kills = 0;
    k->device[0].proven = true;
    k->device[0].pool_limit = k->device[0].pool_default = 1000 * MIB;
    owner = tenant_named(&k->f.tenants, "a");
    ck_assert_ptr_nonnull(owner);
    owner->apart = true;
    obtain();
    opens();
    for (unsigned i = 0; i < BUFFERS; i++) {
        b[i] = fake_buffer(k, 0, 64, true);
        b[i]->device = d->index;
        b[i]->losses = &d->losses;
        b[i]->export_fd = -1;
        buffer_set_state(b[i], BUFFER_LIVE);
        ck_assert(buffer_charge(b[i], d, fake_now()));
    }
}

static void idles(void)
{
    fake_pass((k->f.config.domain_idle_s + 1) * NS_PER_S);
    domains_watch(&k->f, fake_now());
}

static void answer(uint64_t id, int code)
{
    const struct msg_w_buffer m = {.id = id, .code = code, .text = bytes_str("no")};
    buffer_answered(&k->f, d, &m);
    domains_watch(&k->f, fake_now());
}

static void ends(void)
{
    d->link = NULL; /* it is none */
    ck_assert(worker_ended(&k->f, d->worker, 9));
    domains_watch(&k->f, fake_now());
}

static void goes(void)
{
    idles();
    for (unsigned i = 0; i < BUFFERS; i++) {
        answer(copies[i], 0);
    }
    ck_assert_uint_eq(kills, 1);
    ends();
}

static void finish(void)
{
    if (d->link != NULL) {
        ends();
    }
    ck_assert_uint_eq(k->f.evacuated_bytes, d->evacuation.bytes);
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (b[i] != NULL) {
            buffer_drop(&k->f, b[i]);
        }
    }
    ck_assert_uint_eq(k->f.evacuated_bytes, 0);
    fake_pass(3600 * NS_PER_S);
    for (unsigned i = 0; i < 3; i++) {
        domains_watch(&k->f, fake_now());
        fake_pass(3600 * NS_PER_S);
    }
    ck_assert_uint_eq(k->f.domain_count, 0);
    ck_assert_uint_eq(k->device[0].granted, 0);
    fake_destroy(k);
}

START_TEST(buffers_go_and_return)
{
    begin();
    idles();
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, BUFFERS);
    ck_assert_uint_eq(k->f.evacuated_bytes, BUFFERS * 64);
    for (unsigned i = 0; i < BUFFERS; i++) {
        ck_assert_uint_eq(kills, 0); /* not before all have gone */
        answer(copies[i], 0);
    }
    ck_assert_uint_eq(kills, 1);
    ends();
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(d->grant, 0);
    for (unsigned i = 0; i < BUFFERS; i++) {
        ck_assert_int_eq(buffer_state(b[i]), BUFFER_RESTORING);
        ck_assert_int_eq(buffer_wire_state(b[i]), 1);
    }
    obtain();
    opens();
    ck_assert_uint_eq(restored, BUFFERS);
    for (unsigned i = 0; i < BUFFERS; i++) {
        ck_assert_int_eq(d->state, DEVICE_PROBING);
        answer(restores[i], 0);
        ck_assert_int_eq(b[i]->state, BUFFER_LIVE);
        ck_assert_int_eq(b[i]->copy, COPY_NONE); /* jobs may write it: the copy is true no more */
        ck_assert_int_eq(b[i]->host_fd, -1);
    }
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_uint_eq(k->f.evacuated_bytes, 0);
    finish();
}
END_TEST

/* What was copied before may be written now: an unanswered copy is void. */
START_TEST(something_wants_it_meanwhile)
{
    begin();
    idles();
    answer(copies[0], 0);
    obtain();
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_int_eq(b[0]->copy, COPY_NONE);
    ck_assert_int_eq(b[1]->copy, COPY_VOID);
    ck_assert(!buffer_restorable(b[0]) && !buffer_restorable(b[1]));
    answer(copies[1], 0);
    answer(copies[2], 0);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(d->evacuation.asked, 0);
    ck_assert_uint_eq(k->f.evacuated_bytes, 0);
    idles();
    ck_assert_uint_eq(copied, 2 * BUFFERS);
    finish();
}
END_TEST

static void hold(unsigned reason)
{
    switch (reason) {
    case 0:
        b[1]->flags |= BUFFER_FLAG_EXPORT;
        break;
    case 1:
        b[1]->flags |= BUFFER_FLAG_VARIABLE;
        break;
    case 2:
        k->f.config.domain_host_bytes = MIB - 1;
        break;
    case 3:
        owner->limits.spilled = (struct amount){.bytes = BUFFERS * 64 - 1};
        break;
    default:
        d->jobs = 1;
        break;
    }
}

START_TEST(what_cannot_go_keeps_the_worker)
{
    for (unsigned reason = 0; reason < 5; reason++) {
        begin();
        hold(reason);
        idles();
        ck_assert_int_eq(d->state, DEVICE_READY);
        ck_assert_uint_eq(copied, 0);
        b[1]->flags = 0;
        d->jobs = 0;
        k->f.config.domain_host_bytes = 0;
        owner->limits.spilled = (struct amount){.bytes = BUFFERS * 64};
        goes();
        finish();
    }
}
END_TEST

/* The worker refuses a copy: its domain serves again, with all that it had. */
START_TEST(a_copy_fails)
{
    begin();
    idles();
    answer(copies[0], 0);
    answer(copies[1], ERR_NOMEM);
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_uint_eq(kills, 0);
    answer(copies[2], 0);
    for (unsigned i = 0; i < BUFFERS; i++) {
        ck_assert_int_eq(buffer_state(b[i]), BUFFER_LIVE);
        ck_assert_int_eq(b[i]->copy, COPY_NONE);
    }
    finish();
}
END_TEST

/* A new buffer, and a seal that waits for the end of its copy, come while the worker is to end. It
 * is asked for them once it stays, and domains that wait for its end are looked at. */
START_TEST(a_worker_that_stays_is_asked_for_what_came)
{
    begin();
    idles();
    struct buffer *late = fake_buffer(k, 0, 64, false);
    late->device = d->index;
    late->losses = &d->losses;
    late->export_fd = -1;
    late->state = BUFFER_CREATING;
    ck_assert(buffer_charge(late, d, fake_now()));
    buffer_ask(&k->f, late);
    answer(copies[0], 0);
    b[0]->sealed = b[0]->seal_wanted = true;
    buffer_seal_next(&k->f, b[0]);
    k->f.io.send = on_seal;
    uint64_t seals = k->frames[FRAME_KIND_F_BUFFER_SEAL];
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_CREATE], 0);
    buffer_answered(&k->f, d, &(const struct msg_w_buffer){.id = copies[1], .code = ERR_NOMEM});
    k->f.wake_ns = NS_NEVER;
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_uint_le(k->f.wake_ns, fake_now());
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_CREATE], 1);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_SEAL], seals + 1);
    ck_assert(b[0]->sealing && !b[0]->seal_wanted);
    answer(late->handle, 0);
    ck_assert_int_eq(buffer_state(late), BUFFER_LIVE);
    answer(b[0]->handle, 0);
    ck_assert(b[0]->sealed && !b[0]->sealing);
    buffer_drop(&k->f, late);
    finish();
}
END_TEST

/* Only the host has the content of a buffer that the worker lacked memory for: that copy stays. */
START_TEST(a_worker_that_stays_gets_what_it_lacked)
{
    begin();
    goes();
    obtain();
    opens();
    ck_assert_uint_eq(restored, BUFFERS);
    struct buffer *lacks = idmap_get(&k->f.buffers, restores[0]);
    answer(restores[0], ERR_DEVICE_MEMORY);
    answer(restores[1], 0);
    answer(restores[2], 0);
    ck_assert_int_eq(d->state, DEVICE_READY);
    idles();
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    obtain();
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_int_eq(lacks->copy, COPY_KEPT);
    ck_assert_int_ge(lacks->host_fd, 0);
    buffer_restore_watch(&k->f);
    buffer_device_ready(&k->f, d); /* worker_takes */
    ck_assert_uint_eq(restored, BUFFERS + 1);
    answer(restores[BUFFERS], 0);
    ck_assert_int_eq(buffer_state(lacks), BUFFER_LIVE);
    for (unsigned i = BUFFERS; i < copied; i++) { /* they are void */
        answer(copies[i], 0);
    }
    finish();
}
END_TEST

START_TEST(the_worker_ends_meanwhile)
{
    begin();
    idles();
    answer(copies[0], 0);
    ends();
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_int_eq(buffer_state(b[0]), BUFFER_RESTORING);
    ck_assert_int_eq(b[1]->state, BUFFER_LOST);
    ck_assert_int_eq(b[2]->state, BUFFER_LOST);
    ck_assert_uint_eq(k->f.evacuated_bytes, 64);
    ck_assert_uint_eq(d->grant, 0);
    ck_assert_ptr_nonnull(strstr(d->fault, "signal 9")); /* gpud did not ask for it */
    finish();
}
END_TEST

/* A worker that lives and does not copy is ended as one that hangs. */
START_TEST(it_does_not_answer)
{
    begin();
    idles();
    answer(copies[0], 0);
    fake_pass(evacuate_late_ns(d) - fake_now() - 1);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(kills, 0);
    fake_pass(1);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(kills, 1);
    ends();
    ck_assert_int_eq(b[1]->state, BUFFER_LOST);
    finish();
}
END_TEST

/* No answer comes for a buffer that is not there. */
START_TEST(a_buffer_is_freed_meanwhile)
{
    begin();
    idles();
    answer(copies[0], 0);
    answer(copies[1], 0);
    buffer_drop(&k->f, idmap_get(&k->f.buffers, copies[2]));
    b[2] = NULL;
    ck_assert_uint_eq(d->evacuation.asked, 0);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(kills, 1);
    buffer_drop(&k->f, b[0]);
    b[0] = NULL;
    ck_assert_uint_eq(k->f.evacuated_bytes, 64);
    finish();
}
END_TEST

/* As in BUFFER_SEAL: what is on the host comes back first. */
START_TEST(one_is_sealed_on_the_host)
{
    begin();
    goes();
    b[0]->sealed = b[0]->seal_wanted = true;
    buffer_seal_next(&k->f, b[0]);
    ck_assert_uint_eq(copied, BUFFERS);
    ck_assert(buffer_restorable(b[0]));
    obtain();
    opens();
    k->f.io.send = fake_send;
    answer(b[0]->handle, 0);
    ck_assert(b[0]->sealing && !b[0]->seal_wanted && b[0]->copy == COPY_NONE);
    answer(b[0]->handle, 0);
    ck_assert(b[0]->sealed && !b[0]->sealing && buffer_restorable(b[0]));
    finish();
}
END_TEST

static unsigned kept_as(const struct buffer *buffer)
{
    struct capbuf out;
    struct msg_record_buffer m;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(record_encode_buffer(buffer, &out, NULL), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_record_buffer, capbuf_view(&out), &m, NULL), 0);
    capbuf_finish(&out);
    return (unsigned)m.kept;
}

/* The launcher has the copies for the next front, as long as they are true. */
START_TEST(the_launcher_keeps_copies)
{
    begin();
    b[2]->sealed = true;
    b[2]->host_fd = memfd_create("sealed", MFD_CLOEXEC);
    for (unsigned i = 0; i < BUFFERS; i++) {
        command_buffer_note(&k->f, b[i]);
    }
    idles();
    ck_assert_uint_eq(fake_copies(), 1); /* the sealed one's, which is there already */
    ck_assert_uint_eq(kept_as(b[2]), RECORD_SEALED);
    answer(b[0]->handle, 0);
    ck_assert_uint_eq(fake_copies(), 2);
    ck_assert_uint_eq(kept_as(b[0]), RECORD_MOVED);
    ck_assert_uint_eq(kept_as(b[1]), RECORD_NOT_KEPT);
    answer(b[1]->handle, 0);
    ck_assert_uint_eq(fake_copies(), BUFFERS);
    ends();
    buffer_drop(&k->f, b[1]);
    b[1] = NULL;
    ck_assert_uint_eq(fake_copies(), 2);
    k->f.io.send = fake_send;
    obtain();
    opens();
    answer(b[0]->handle, 0);
    answer(b[2]->handle, 0);
    ck_assert_uint_eq(fake_copies(), 0);
    ck_assert_uint_eq(kept_as(b[0]), RECORD_NOT_KEPT);
    ck_assert_uint_eq(kept_as(b[2]), RECORD_NOT_KEPT);
    ck_assert_uint_eq(k->f.copies_kept, 0);
    finish();
}
END_TEST

/* FAULT other: gpud-launcher ends, and a device is drained before its next worker starts
 * required: the next launcher gets no copy of a buffer whose entry it does not have, as no later
 *   gpud would find the buffer; the log says that it does not survive a restart
 * defence: `front/workers/keep.c`: hand
 * mutants: keep-alone */
START_TEST(a_launcher_without_the_entries_keeps_no_copies)
{
    begin();
    for (unsigned i = 0; i < BUFFERS; i++) {
        command_buffer_note(&k->f, b[i]);
    }
    keep_orphaned(&k->f);
    goes();
    ck_assert_uint_eq(fake_copies(), 0);
    ck_assert_uint_eq(kept_as(b[0]), RECORD_NOT_KEPT);
    obtain();
    domains_watch(&k->f, fake_now());
    ck_assert(d->record_alone);
    ck_assert(worker_started(&k->f, d->worker, 1, -1, ERR_IO, "no"));
    ck_assert(d->record_alone);
    finish();
}
END_TEST

/* What the launcher does not keep would be lost with this front. */
START_TEST(the_launcher_keeps_so_many)
{
    begin();
    k->f.copies_max = BUFFERS - 1;
    idles();
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_uint_eq(copied, 0);
    k->f.copies_max = BUFFERS;
    idles();
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, BUFFERS);
    finish();
}
END_TEST

/* One with very many buffers takes half of what is left at most. */
START_TEST(others_find_copies_left)
{
    begin();
    struct evacuation_load load = {.buffers = 2000, .copies = 100};
    k->f.copies_max = 4199;
    ck_assert_int_eq(evacuate_keeper(&k->f, d, &load), KEEPER_COPIES);
    k->f.copies_max = 4200;
    ck_assert_int_eq(evacuate_keeper(&k->f, d, &load), KEEPER_NONE);
    load = (struct evacuation_load){.buffers = 1024};
    k->f.copies_max = 1024; /* so many in any case */
    ck_assert_int_eq(evacuate_keeper(&k->f, d, &load), KEEPER_NONE);
    finish();
}
END_TEST

SUITE_MAIN("evacuate", the_launcher_keeps_copies, others_find_copies_left,
           a_launcher_without_the_entries_keeps_no_copies, the_launcher_keeps_so_many,
           buffers_go_and_return, something_wants_it_meanwhile, what_cannot_go_keeps_the_worker,
           a_copy_fails, a_worker_that_stays_is_asked_for_what_came,
           a_worker_that_stays_gets_what_it_lacked, the_worker_ends_meanwhile, it_does_not_answer,
           a_buffer_is_freed_meanwhile, one_is_sealed_on_the_host)
