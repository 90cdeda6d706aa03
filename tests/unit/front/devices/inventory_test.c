/* What a worker from before tells of itself, to a front that may not be the first to ask. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/workers/launcher_link.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker_frames.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static unsigned ends;

static void on_end(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
    ends++;
}

static void say_with(struct fake *k, const struct schema *schema, const void *msg, int fd)
{
    struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    struct bytes frame = capbuf_view(&out);
    ck_assert_int_eq(worker_frame(&k->f, &k->device[0], proto_kind(frame), frame, &fds, &e), 0);
    capbuf_finish(&out);
}

static void say(struct fake *k, const struct schema *schema, const void *msg)
{
    say_with(k, schema, msg, -1);
}

static void say_end(struct fake *k, uint64_t nonce)
{
    const struct msg_w_inventory_end end = {.nonce = nonce};
    say(k, &schema_msg_w_inventory_end, &end);
}

/* Nobody awaits its answer. */
static struct job *say_job(struct fake *k, uint64_t id, uint64_t limit_ns)
{
    const struct msg_record_job record = {.limit_ns = limit_ns};
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_record_job, &record, &out, NULL), 0);
    fake_given(k, 0, RECORD_JOB, id, capbuf_view(&out));
    const struct msg_w_inventory_job inventory = {.job = id};
    say(k, &schema_msg_w_inventory_job, &inventory);
    capbuf_finish(&out);
    struct job *j = fake_find(k, id);
    ck_assert_ptr_nonnull(j);
    return j;
}

static void say_started(struct fake *k, uint64_t id)
{
    const struct msg_w_started started = {.job = id};
    say(k, &schema_msg_w_started, &started);
}

/* Half of it went to a front that died: it is not all that the worker holds. */
START_TEST(the_end_of_an_older_inventory_is_none)
{
    struct fake *k = fake_create();
    k->f.hooks.inventory_end = on_end;
    k->device[0].inventory = 17;
    say_end(k, 16);
    ck_assert_uint_eq(ends, 0);
    say_end(k, 17);
    ck_assert_uint_eq(ends, 1);
    fake_destroy(k);
}
END_TEST

/* Who runs behind one that the front before was told of is not to blame for that one's time. */
START_TEST(what_ran_before_has_its_time_and_its_place)
{
    struct fake *k = fake_create();
    k->f.hooks.inventory_job = adopt_job;
    k->device[0].state = DEVICE_ADOPTING;
    struct job *first = say_job(k, 1, 30 * NS_PER_S);
    say_started(k, 1);
    struct job *second = say_job(k, 2, 5 * NS_PER_S);
    ck_assert_int_eq(first->state, JOB_RUNNING);
    ck_assert_uint_eq(job_overdue_ns(first), first->started_ns + 30 * NS_PER_S);
    say_started(k, 2);
    ck_assert_uint_eq(job_overdue_ns(second), NS_NEVER);
    fake_done(k, first, 0);
    ck_assert_uint_ge(job_overdue_ns(second), second->started_ns + 5 * NS_PER_S);
    ck_assert_uint_ne(job_overdue_ns(second), NS_NEVER);
    fake_done(k, second, 0);
    fake_destroy(k);
}
END_TEST

/* FAULT other: a front ends while a job runs whose client has a limit of its own
 * required: in the next front the client's limit ends the answer, and no worker that others use;
 *   the limit of the settings, or of the tenant, ends the worker
 * defence: `front/devices/adopt.c`: job_from
 * mutants: adopted-limit */
START_TEST(what_ran_before_has_the_limit_of_the_settings)
{
    struct fake *k = fake_create();
    k->f.hooks.inventory_job = adopt_job;
    k->device[0].state = DEVICE_ADOPTING;
    k->f.config.time_limit_ms = 30000;
    struct job *j = say_job(k, 1, 5 * NS_PER_S);
    ck_assert_uint_eq(job_limit_ns(j), 5 * NS_PER_S);
    ck_assert_uint_eq(j->ceiling_ns, 30 * NS_PER_S);
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

/* A worker says that a job started, paused and started again; a pause before the start is none. */
START_TEST(a_job_pauses_and_goes_on)
{
    struct fake *k = fake_create();
    k->f.hooks.inventory_job = adopt_job;
    k->device[0].state = DEVICE_ADOPTING;
    struct job *j = say_job(k, 1, 30 * NS_PER_S);
    const struct msg_w_paused paused = {.job = 1};
    say(k, &schema_msg_w_paused, &paused);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    say_started(k, 1);
    uint64_t first = j->clock.place;
    ck_assert_uint_ne(first, 0);
    say(k, &schema_msg_w_paused, &paused);
    ck_assert_int_eq(j->state, JOB_RUNNING);
    ck_assert_uint_eq(j->clock.place, 0);
    say_started(k, 1);
    ck_assert_int_eq(j->state, JOB_RUNNING);
    ck_assert_uint_gt(j->clock.place, first);
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

#define FREED_BY 7u /* number of the request */

/* As a front before wrote it down: freed while a job was to read it. */
static void say_freed(struct fake *k, uint64_t id)
{
    struct capbuf record;
    struct buffer *b = fake_buffer(k, 0, 64, true);
    buffer_own(b, k->session);
    k->session->buffers++;
    ck_assert(buffer_charge(b, &k->device[0], fake_now()));
    struct job *j = fake_job(k, 0);
    fake_reads(j, b, 0, 64);
    (void)fake_submit(k, j);
    fake_turn(k);
    b->freed_by = FREED_BY;
    buffer_drop(&k->f, b);
    ck_assert_uint_eq(fake_recorded(k, b).freed_by, FREED_BY);
    capbuf_init(&record, 4096);
    ck_assert_int_eq(record_encode_buffer(b, &record, NULL), 0);
    fake_given(k, 0, RECORD_BUFFER, id, capbuf_view(&record));
    const struct msg_w_inventory_buffer inventory = {.id = id, .size = 64};
    fake_done(k, j, 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    k->device[0].state = DEVICE_ADOPTING;
    say(k, &schema_msg_w_inventory_buffer, &inventory);
    capbuf_finish(&record);
}

static struct buffer *find_freed(struct fake *k)
{
    struct buffer *b = NULL;
    const uint64_t id = idmap_handle(99, 9);
    idmap_finish(&k->f.buffers);
    idmap_init(&k->f.buffers, 1024, 100);
    k->f.hooks.inventory_buffer = adopt_buffer;
    say_freed(k, id);
    ck_assert_int_eq(buffer_find(&k->f.buffers, id, k->tenant, &b, NULL), 0);
    return b;
}

/* Jobs of it that are sent again find it for a while; it is not its owner's again, who would not
 * know of it. */
START_TEST(what_was_freed_before_goes_once_nobody_asks_for_it)
{
    struct fake *k = fake_create();
    struct buffer *b = find_freed(k);
    ck_assert_ptr_null(b->owner);
    ck_assert_uint_eq(k->f.session_count, 0);
    ck_assert_uint_ne(b->linger_until_ns, NS_NEVER);
    sessions_watch(&k->f, b->linger_until_ns - 1);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    sessions_watch(&k->f, b->linger_until_ns);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 2);
    ck_assert_uint_eq(k->tenant->buffer_bytes, 0);
    fake_destroy(k);
}
END_TEST

/* A client that is there and has not sent again what it had sent before it freed the buffer may
 * take its time; until its session ends. */
static void restores_long(bool to_the_end)
{
    struct fake *k = fake_create();
    struct buffer *b = find_freed(k);
    struct session_key key;
    memset(&key, 0, sizeof key);
    struct session *s = sessions_obtain(&k->f, &key, k->tenant);
    ck_assert_ptr_nonnull(s);
    session_connect(&k->f, s, 1);
    for (s->order.expect = 1; s->order.expect <= FREED_BY; s->order.expect++) {
        k->f.wake_ns = NS_NEVER;
        sessions_watch(&k->f, b->linger_until_ns);
        ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
        ck_assert_uint_eq(k->f.wake_ns, b->linger_until_ns);
    }
    if (!to_the_end) {
        s->order.expect = FREED_BY;
        session_end(&k->f, s);
        ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    }
    sessions_watch(&k->f, b->linger_until_ns);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 2);
    ck_assert_uint_eq(k->tenant->buffer_bytes, 0);
    if (to_the_end) {
        session_end(&k->f, s);
    }
    fake_destroy(k);
}

START_TEST(what_was_freed_before_stays_while_its_client_restores)
{
    restores_long(true);
    restores_long(false);
}
END_TEST

enum outcome { RESTORED, BROKEN, WORKER_GONE };

static void awaits_restored(enum outcome outcome)
{
    struct fake *k = fake_create();
    struct memfd host = MEMFD_NONE;
    struct capbuf record;
    struct err e = ERR_INIT;
    const uint64_t id = idmap_handle(99, 9);
    struct buffer like = {.bytes = 64, .tenant = k->tenant, .owner = k->session};
    like.shape = (struct shape){.dtype = DTYPE_F32, .ndim = 1, .dim = {16}};
    spans_add(&like.defined, 0, 64);
    idmap_finish(&k->f.buffers);
    idmap_init(&k->f.buffers, 1024, 100);
    k->f.hooks.inventory_buffer = adopt_buffer;
    k->f.hooks.inventory_end = adopt_end;
    k->device[0].state = DEVICE_ADOPTING;
    k->device[0].proven = true;
    capbuf_init(&record, 4096);
    ck_assert_int_eq(record_encode_buffer(&like, &record, &e), 0);
    ck_assert_int_eq(memfd_create_sealed("host", 64, &host, &e), 0);
    fake_given(k, 0, RECORD_BUFFER, id, capbuf_view(&record));
    const struct msg_w_inventory_buffer inventory = {
        .id = id, .size = 64, .sealed = 1, .arriving = 1};
    say_with(k, &schema_msg_w_inventory_buffer, &inventory, host.fd);
    host.fd = -1;
    memfd_finish(&host);
    capbuf_finish(&record);
    struct buffer *b = idmap_get(&k->f.buffers, id);
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(b->state, BUFFER_RESTORING);
    void (*count)(struct front * f, struct device * d) = k->f.hooks.worker_ready;
    k->f.hooks.worker_ready = discover_ready;
    say_end(k, 0);
    k->f.hooks.worker_ready = count;
    ck_assert_int_eq(k->device[0].state, DEVICE_PROBING); /* it is not asked for again */
    ck_assert_uint_eq(k->device[0].restores, 1);
    if (outcome != WORKER_GONE) {
        const struct msg_w_buffer answer = {.id = id, .code = outcome == BROKEN ? ERR_IO : 0};
        buffer_answered(&k->f, &k->device[0], &answer);
        ck_assert_uint_eq(k->device[0].restores, 0);
        ck_assert_uint_eq(k->readies, 1);
        ck_assert_int_eq(b->state, outcome == BROKEN ? BUFFER_LOST : BUFFER_LIVE);
    } else {
        buffer_device_lost(&k->f, &k->device[0]);
        ck_assert_int_eq(b->state, BUFFER_RESTORING);
        ck_assert_int_ge(b->host_fd, 0);
    }
    session_end(&k->f, b->owner);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, id));
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE],
                      outcome == RESTORED); /* else no worker has it */
    fake_destroy(k);
}

/* The front before had asked for it, and did not live to hear the answer, which comes here; should
 * the worker end first, the host copy is there. */
START_TEST(what_is_being_restored_is_awaited)
{
    awaits_restored(RESTORED);
    awaits_restored(BROKEN);
    awaits_restored(WORKER_GONE);
}
END_TEST

/* An entry that cannot be read; without memory it is the same. */
START_TEST(a_worker_frees_a_buffer_that_cannot_be_taken_over)
{
    struct fake *k = fake_create();
    const uint64_t id = idmap_handle(99, 9);
    k->f.hooks.inventory_buffer = adopt_buffer;
    k->device[0].state = DEVICE_ADOPTING;
    fake_given(k, 0, RECORD_BUFFER, id, bytes_str("damaged"));
    const struct msg_w_inventory_buffer inventory = {.id = id, .size = 64};
    say(k, &schema_msg_w_inventory_buffer, &inventory);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, id));
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    fake_destroy(k);
}
END_TEST

#define LINGER_MS 100u

/* The worker has a buffer of the tenant, whose session this front does not know yet. */
static void take_over_buffer(struct fake *k)
{
    struct capbuf record;
    const uint64_t id = idmap_handle(99, 9);
    struct buffer like = {.bytes = 64, .tenant = k->tenant, .owner = k->session};
    like.shape = (struct shape){.dtype = DTYPE_F32, .ndim = 1, .dim = {16}};
    idmap_finish(&k->f.buffers);
    idmap_init(&k->f.buffers, 1024, 100);
    k->f.hooks.inventory_buffer = adopt_buffer;
    k->f.config.session_linger_ms = LINGER_MS;
    k->device[0].state = DEVICE_ADOPTING;
    capbuf_init(&record, 4096);
    ck_assert_int_eq(record_encode_buffer(&like, &record, NULL), 0);
    fake_given(k, 0, RECORD_BUFFER, id, capbuf_view(&record));
    const struct msg_w_inventory_buffer inventory = {.id = id, .size = 64};
    say(k, &schema_msg_w_inventory_buffer, &inventory);
    capbuf_finish(&record);
    ck_assert_ptr_nonnull(idmap_get(&k->f.buffers, id));
}

/* FAULT 22: front killed, a worker reports late, or memory is short
 * required: sessions linger from when clients can connect; a buffer that cannot be taken over
 *   is freed in its worker; no id of a job is given twice; a client learns of a new session
 *   also if its first WELCOME was lost
 * defence: `front/devices/adopt.c`: owner_of, forget; `front/workers/command.c`:
 *   command_job_id; `client/src/session/session.c`: hello_answered
 * also: `front_inventory_test`: a_worker_frees_a_buffer_that_cannot_be_taken_over;
 *   `front_admitted_test`: the_id_of_an_admitted_job_is_used_up; `test_client_session`:
 *   a_session_of_another_number_is_a_new_one
 * mutants: admitted-ids, adoption-linger, adoption-forget, welcome-lost */
/* Clients cannot connect before all workers have reported, however long that takes. */
START_TEST(a_session_lingers_from_the_end_of_the_adoption)
{
    struct fake *k = fake_create();
    take_over_buffer(k);
    sessions_watch(&k->f, front_now(&k->f) + 10 * LINGER_MS * NS_PER_MS);
    ck_assert_uint_eq(k->f.session_count, 1);
    adopt_over(&k->f);
    uint64_t until = k->f.sessions->lingers_until_ns;
    ck_assert_uint_le(until, front_now(&k->f) + LINGER_MS * NS_PER_MS);
    sessions_watch(&k->f, until - 1);
    ck_assert_uint_eq(k->f.session_count, 1);
    sessions_watch(&k->f, until);
    ck_assert_uint_eq(k->f.session_count, 0);
    fake_destroy(k);
}
END_TEST

static int memory(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* A record with a job that wrote outside itself, for request 9. */
static int record_with_job(void)
{
    static const uint8_t id[PROTO_CLIENT_ID_BYTES] = {7};
    const struct msg_record_job m = {.client_id = bytes_of(id, sizeof id),
                                     .uid = 1000,
                                     .tenant = bytes_str("uid:1000"),
                                     .seq = 9};
    struct record *r = NULL;
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(record_create(70, &r, NULL), 0);
    ck_assert_int_eq(proto_encode(&schema_msg_record_job, &m, &out, NULL), 0);
    ck_assert_uint_ne(record_put(r, 0, RECORD_JOB, 5, capbuf_view(&out)), 0);
    int fd = fcntl(record_fd(r), F_DUPFD_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    capbuf_finish(&out);
    record_destroy(r);
    return fd;
}

/* A worker, or with pid 0 the record of one, whose device has no place or name here. */
static void list_unknown(struct fake *k, pid_t pid)
{
    struct launcher_inventory inventory = {
        .id = 70, .pid = pid, .channel = -1, .fd = {-1, -1, record_with_job()}};
    if (pid != 0) {
        inventory.channel = memory();
        inventory.fd[WORKER_INPUT] = memory();
        inventory.fd[WORKER_OUTPUT] = memory();
    }
    adopt_worker(&k->f, &inventory);
}

/* They must not run again on another device. */
START_TEST(jobs_of_an_unknown_device_are_lost)
{
    for (pid_t pid = 0; pid < 2; pid++) {
        struct fake *k = fake_create();
        struct msg_error m;
        list_unknown(k, pid);
        ck_assert(!k->f.unadopted);
        struct session *s = k->f.sessions;
        ck_assert_ptr_nonnull(s);
        const struct op *o = op_find(s, 9);
        ck_assert(o != NULL && op_answered(o));
        struct bytes reply = bytes_of(o->reply, o->reply_size);
        ck_assert_int_eq(proto_decode(&schema_msg_error, reply, &m, NULL), 0);
        ck_assert_int_eq(m.code, ERR_WORKER_LOST);
        ck_assert_uint_eq(m.effects, ERR_EFFECTS_MAYBE);
        list_unknown(k, pid); /* told once */
        ck_assert_uint_eq(s->ops.count, 1);
        session_end(&k->f, s);
        k->f.listener = (struct listener *)k; /* clients have their answers */
        list_unknown(k, pid);
        ck_assert_ptr_null(k->f.sessions);
        k->f.listener = NULL;
        fake_destroy(k);
    }
}
END_TEST

/* A tenant that is trusted since has its buffers in a worker of all. A worker of its own
 * that has yet to end was taken over, too. */
START_TEST(a_tenant_is_where_it_has_something)
{
    struct fake *k = fake_create();
    k->tenant->apart = true;
    take_over_buffer(k);
    ck_assert(!k->tenant->apart);
    adopt_over(&k->f);
    sessions_watch(&k->f, k->f.sessions->lingers_until_ns);
    ck_assert_uint_eq(k->f.session_count, 0);
    fake_destroy(k);
}
END_TEST

/* So is what jobs wrote into it meanwhile: others that read it may be sent again. */
START_TEST(what_was_written_into_what_was_freed_is_told)
{
    struct fake *k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, false);
    ck_assert(buffer_charge(b, &k->device[0], fake_now()));
    struct job *writer = fake_job(k, 0);
    struct job *reader = fake_job(k, 0);
    fake_writes(writer, b, 0, 64);
    fake_reads(reader, b, 0, 64);
    (void)fake_submit(k, writer);
    (void)fake_submit(k, reader);
    fake_turn(k);
    buffer_drop(&k->f, b);
    ck_assert(fake_recorded(k, b).found && !fake_recorded(k, b).defined);
    fake_done(k, writer, 0);
    ck_assert(fake_recorded(k, b).defined);
    fake_done(k, reader, 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    fake_destroy(k);
}
END_TEST

/* A writer that did not run says nothing of the job behind it, which its worker did. The next front
 * hears from the worker that it is done, and must not tell its client so. */
START_TEST(what_read_too_old_content_is_told)
{
    struct fake *k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    ck_assert(buffer_charge(b, &k->device[0], fake_now()));
    struct job *first = fake_job(k, 0);
    struct job *second = fake_job(k, 0);
    fake_writes(first, b, 0, 64);
    fake_reads(second, b, 0, 64);
    (void)fake_submit(k, first);
    (void)fake_submit(k, second);
    fake_turn(k);
    ck_assert(!fake_tainted(k, second));
    fake_refused(k, first, ERR_DEADLINE);
    ck_assert(fake_tainted(k, second));
    fake_done(k, second, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(what_has_read_too_old_content_fails)
{
    struct fake *k = fake_create();
    const uint64_t id = 1;
    const struct msg_record_job record = {.limit_ns = NS_PER_S};
    const struct msg_w_inventory_job inventory = {.job = id};
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_record_job, &record, &out, NULL), 0);
    record_tainted(k->device[0].record,
                   record_put(k->device[0].record, 0, RECORD_JOB, id, capbuf_view(&out)));
    fake_given(k, 0, RECORD_JOB, id + 1, capbuf_view(&out));
    k->f.hooks.inventory_job = adopt_job;
    k->device[0].state = DEVICE_ADOPTING;
    say(k, &schema_msg_w_inventory_job, &inventory);
    capbuf_finish(&out);
    struct job *j = fake_find(k, id);
    ck_assert_ptr_nonnull(j);
    fake_done(k, j, 0);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_UNDEFINED);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("inventory", what_read_too_old_content_is_told, what_has_read_too_old_content_fails,
           the_end_of_an_older_inventory_is_none, what_ran_before_has_its_time_and_its_place,
           what_ran_before_has_the_limit_of_the_settings, a_job_pauses_and_goes_on,
           what_was_freed_before_goes_once_nobody_asks_for_it,
           what_was_freed_before_stays_while_its_client_restores, what_is_being_restored_is_awaited,
           a_worker_frees_a_buffer_that_cannot_be_taken_over,
           a_session_lingers_from_the_end_of_the_adoption, jobs_of_an_unknown_device_are_lost,
           a_tenant_is_where_it_has_something, what_was_written_into_what_was_freed_is_told)
