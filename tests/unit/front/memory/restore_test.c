/* Sealed buffers come back to another worker a few at a time, and their device serves once all are
 * there, but for those that it lacked memory for. */
#include <stdio.h>

#include "common/memfd.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/link.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define BUFFERS 100u
#define BESIDE  32u /* restores that are not answered */

static struct fake *k;
static uint64_t asked[2 * BUFFERS]; /* buffers, in this order */
static unsigned asked_count;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    if (schema == &schema_msg_f_buffer_restore) {
        const struct msg_f_buffer_restore *m = msg;
        ck_assert_int_eq(fds->count, 1);
        asked[asked_count++] = m->id;
    }
    return fake_send(l, schema, msg, fds, e);
}

static void on_changed(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

static void begin(void)
{
    k = fake_create();
    k->f.io.send = on_send;
    k->device[0].proven = true;
    k->f.hooks.worker_ready = discover_ready;
    k->f.hooks.device_changed = on_changed;
    asked_count = 0;
}

static struct buffer *charged(unsigned device)
{
    struct buffer *b = fake_buffer(k, device, 64, true);
    ck_assert(buffer_charge(b, &k->device[device], fake_now()));
    return b;
}

static struct buffer *sealed(unsigned device)
{
    struct memfd host = MEMFD_NONE;
    struct buffer *b = charged(device);
    ck_assert_int_eq(memfd_create_sealed("host", 64, &host, NULL), 0);
    b->sealed = true;
    b->host_fd = host.fd;
    host.fd = -1;
    memfd_finish(&host);
    return b;
}

static void next_worker(void)
{
    fake_lose(k, 0, true);
    buffer_device_lost(&k->f, &k->device[0]);
    k->device[0].state = DEVICE_OPENED;
    discover_ready(&k->f, &k->device[0]);
}

static void begin_many(void)
{
    begin();
    for (unsigned i = 0; i < BUFFERS; i++) {
        (void)sealed(i == 7 ? 1 : 0); /* one is another device's */
    }
    next_worker();
}

static void answer(uint64_t id)
{
    buffer_answered(&k->f, &k->device[0], &(const struct msg_w_buffer){.id = id});
}

START_TEST(each_answer_brings_the_next_one)
{
    begin_many();
    ck_assert_uint_eq(asked_count, BESIDE);
    for (unsigned i = 0; i < BUFFERS - 1; i++) {
        ck_assert_int_eq(k->device[0].state, DEVICE_PROBING);
        ck_assert(buffer_restoring(&k->device[0]));
        answer(asked[i]);
        ck_assert_uint_eq(asked_count, i + 1 + BESIDE < BUFFERS ? i + 1 + BESIDE : BUFFERS - 1);
    }
    ck_assert(!buffer_restoring(&k->device[0]));
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    fake_destroy(k);
}
END_TEST

/* No job waits for its answer, which comes all the same. */
START_TEST(so_does_one_that_is_let_go)
{
    begin_many();
    for (unsigned i = 0; i < BUFFERS - 1; i++) {
        struct buffer *b = idmap_get(&k->f.buffers, asked[i]);
        ck_assert_ptr_nonnull(b);
        buffer_drop(&k->f, b);
        answer(asked[i]);
    }
    ck_assert_uint_eq(asked_count, BUFFERS - 1);
    ck_assert_uint_eq(k->device[0].restores, 0);
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    fake_destroy(k);
}
END_TEST

START_TEST(a_worker_that_ends_meanwhile)
{
    begin_many();
    answer(asked[0]);
    asked_count = 0;
    next_worker();
    ck_assert_uint_eq(asked_count, BESIDE);
    for (unsigned i = 0; i < BUFFERS - 1; i++) {
        answer(asked[i]);
    }
    ck_assert(!buffer_restoring(&k->device[0]));
    fake_destroy(k);
}
END_TEST

static void refuse(uint64_t id, int code)
{
    buffer_answered(&k->f, &k->device[0], &(const struct msg_w_buffer){.id = id, .code = code});
}

/* A worker that lacks memory or descriptors is asked again after a pause. */
START_TEST(a_worker_that_lacks_something_is_asked_again)
{
    static const int lacks[] = {ERR_LIMIT, ERR_NOMEM, ERR_DEVICE_MEMORY};
    begin();
    struct buffer *b = sealed(0);
    next_worker();
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(asked_count, i + 1);
        refuse(b->handle, lacks[i]);
        buffer_restore_watch(&k->f);
        ck_assert_uint_eq(asked_count, i + 1);
        ck_assert_int_eq(k->device[0].state, DEVICE_READY); /* it serves meanwhile */
        ck_assert_int_eq(buffer_state(b), BUFFER_RESTORING);
        ck_assert_uint_le(k->f.wake_ns, fake_now() + 100 * NS_PER_MS);
        fake_pass(100 * NS_PER_MS);
        buffer_restore_watch(&k->f);
    }
    answer(b->handle);
    ck_assert_int_eq(buffer_state(b), BUFFER_LIVE);
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    fake_destroy(k);
}
END_TEST

/* But not for ever, since jobs wait for it; and the next worker begins anew. */
START_TEST(a_worker_that_always_lacks_something_loses_it)
{
    begin();
    struct buffer *b = sealed(0);
    next_worker();
    refuse(b->handle, ERR_LIMIT);
    asked_count = 0;
    next_worker();
    ck_assert_uint_eq(asked_count, 1);
    for (unsigned tries = 0; buffer_state(b) == BUFFER_RESTORING; tries++) {
        ck_assert_uint_le(tries, 30);
        refuse(b->handle, ERR_LIMIT);
        fake_pass(100 * NS_PER_MS);
        buffer_restore_watch(&k->f);
    }
    ck_assert_int_eq(buffer_state(b), BUFFER_LOST);
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    fake_destroy(k);
}
END_TEST

/* The last one is freed during the pause. */
START_TEST(one_that_is_freed_in_the_pause_is_not_asked_for)
{
    begin();
    struct buffer *b = sealed(0);
    next_worker();
    refuse(b->handle, ERR_NOMEM);
    buffer_drop(&k->f, b);
    fake_pass(100 * NS_PER_MS);
    buffer_restore_watch(&k->f);
    ck_assert_uint_eq(asked_count, 1);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 0); /* the worker never had it */
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    fake_destroy(k);
}
END_TEST

/* Refused ones do not delay the others, however often they are asked for again. */
START_TEST(refused_ones_are_behind_the_others)
{
    begin_many();
    for (unsigned i = 0; i < BESIDE; i++) {
        refuse(asked[i], ERR_DEVICE_MEMORY);
    }
    for (unsigned i = BESIDE; i < BUFFERS - 1; i++) {
        ck_assert_int_eq(k->device[0].state, DEVICE_PROBING);
        ck_assert_uint_gt(asked_count, i);
        answer(asked[i]);
    }
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    ck_assert_uint_eq(asked_count, BUFFERS - 1); /* the pause is not over */
    fake_pass(100 * NS_PER_MS);
    buffer_restore_watch(&k->f);
    ck_assert_uint_eq(asked_count, BUFFERS - 1 + BESIDE);
    fake_destroy(k);
}
END_TEST

/* A job that uses a refused one waits for it; others do not. _i: what becomes of it. 0: it comes,
 * 1: it is lost, 2: the job is cancelled. */
START_TEST(only_jobs_that_use_a_refused_one_wait)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    begin();
    struct buffer *b = sealed(0);
    next_worker();
    refuse(b->handle, ERR_DEVICE_MEMORY);
    struct job *user = fake_job(k, 0);
    fake_reads(user, b, 0, 64);
    (void)fake_submit(k, user);
    struct job *other = fake_job(k, 0);
    (void)fake_submit(k, other);
    uint64_t id = user->id;
    uint64_t other_id = other->id;
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 1);
    fake_done(k, other, 0);
    ck_assert_int_eq(k->state[other_id], JOB_DONE);
    ck_assert_int_eq(user->state, JOB_QUEUED);
    ck_assert_int_eq(user->wait, WAIT_RESTORE);
    if (_i == 2) {
        job_conclude(&k->f, user, JOB_CANCELLED, &cancelled);
        ck_assert_uint_eq(k->f.awaiting_count, 0);
    }
    fake_pass(100 * NS_PER_MS);
    buffer_restore_watch(&k->f);
    ck_assert_uint_eq(asked_count, 2);
    if (_i == 1) {
        refuse(b->handle, ERR_IO);
    } else {
        answer(b->handle);
    }
    queue_awaiting_turn(&k->f);
    fake_turn(k);
    ck_assert_uint_eq(k->sent, _i == 0 ? 2 : 1);
    if (_i == 0) {
        fake_done(k, user, 0);
    }
    static const enum job_state end[] = {JOB_DONE, JOB_FAILED, JOB_CANCELLED};
    static const int code[] = {0, ERR_BUFFER_LOST, ERR_CANCELLED};
    ck_assert_int_eq(k->state[id], end[_i]);
    ck_assert_int_eq(k->error[id].code, code[_i]);
    fake_destroy(k);
}
END_TEST

/* A buffer of a former front, whose memory the device refuses later. What a seal of that front has
 * come to is of no interest. */
START_TEST(one_that_the_worker_has_no_more_is_lost)
{
    begin();
    struct buffer *b = charged(0);
    struct msg_w_buffer m = {.id = b->handle, .code = ERR_DEVICE_MEMORY};
    buffer_answered(&k->f, &k->device[0], &m);
    ck_assert_int_eq(buffer_state(b), BUFFER_LIVE);
    m.gone = 1;
    buffer_answered(&k->f, &k->device[0], &m);
    ck_assert_int_eq(buffer_state(b), BUFFER_LOST);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 0);
    fake_destroy(k);
}
END_TEST

/* Its own end is on the way: it does not serve when the last one is let go. */
START_TEST(a_worker_that_is_being_ended_is_not_ready)
{
    begin();
    struct buffer *b = sealed(0);
    next_worker();
    ck_assert_uint_eq(asked_count, 1);
    k->device[0].killed_ns = 1;
    buffer_drop(&k->f, b);
    ck_assert_int_eq(k->device[0].state, DEVICE_PROBING);
    fake_destroy(k);
}
END_TEST

/* Nor is it asked again for what it refused. */
START_TEST(a_worker_that_is_being_ended_is_asked_for_nothing)
{
    begin();
    struct buffer *b = sealed(0);
    next_worker();
    refuse(b->handle, ERR_NOMEM);
    ck_assert_uint_eq(asked_count, 1);
    k->device[0].killed_ns = 1;
    fake_pass(100 * NS_PER_MS);
    buffer_restore_watch(&k->f);
    ck_assert_uint_eq(asked_count, 1);
    k->device[0].killed_ns = 0;
    next_worker();
    ck_assert_uint_eq(asked_count, 2); /* the next worker is */
    answer(b->handle);
    ck_assert_int_eq(buffer_state(b), BUFFER_LIVE);
    fake_destroy(k);
}
END_TEST

static struct job *reader(struct buffer *b)
{
    struct job *j = fake_job(k, 0);
    fake_reads(j, b, 0, 64);
    (void)fake_submit(k, j);
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 1);
    return j;
}

/* A job that names it runs again. _i: let go of 0: before its worker ended, 1: as it comes back,
 * 2: likewise, and the job is cancelled before that. */
START_TEST(one_that_was_freed_comes_back_for_its_job)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    begin();
    struct buffer *b = sealed(0);
    uint64_t handle = b->handle;
    struct job *j = reader(b);
    uint64_t id = j->id;
    if (_i == 0) {
        buffer_drop(&k->f, b);
    }
    next_worker();
    ck_assert_uint_eq(asked_count, 1);
    ck_assert_uint_eq(asked[0], handle);
    if (_i > 0) {
        buffer_drop(&k->f, b);
    }
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 1);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 0);
    ck_assert_int_eq(k->device[0].state, DEVICE_PROBING);
    if (_i == 2) {
        job_conclude(&k->f, j, JOB_CANCELLED, &cancelled);
    } else {
        answer(handle);
        fake_turn(k);
        ck_assert_uint_eq(k->sent, 2);
        fake_done(k, j, 0);
    }
    ck_assert_int_eq(k->device[0].state, DEVICE_READY);
    ck_assert_int_eq(k->state[id], _i == 2 ? JOB_CANCELLED : JOB_DONE);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    ck_assert_uint_eq(k->device[0].restores, 0);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 0);
    ck_assert_uint_eq(k->tenant->buffer_bytes, 0);
    fake_destroy(k);
}
END_TEST

/* What was not sealed is lost, and its job fails; a sealed one may not come back either. _i:
 * which. It is counted once. */
START_TEST(one_that_was_freed_is_lost_for_its_job)
{
    begin();
    struct buffer *b = _i == 0 ? charged(0) : sealed(0);
    struct job *j = reader(b);
    uint64_t id = j->id;
    uint64_t handle = b->handle;
    buffer_drop(&k->f, b);
    next_worker();
    if (_i == 1) {
        const struct msg_w_buffer failed = {.id = asked[0], .code = ERR_IO};
        ck_assert_uint_eq(asked_count, 1);
        buffer_answered(&k->f, &k->device[0], &failed);
    }
    fake_turn(k);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_BUFFER_LOST);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, handle));
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 0); /* the next worker never had it */
    ck_assert_uint_eq(k->device[0].buffer_bytes, 0);
    ck_assert_uint_eq(k->tenant->buffer_bytes, 0);
    fake_destroy(k);
}
END_TEST

/* Its handle is gone at once, for all who have it or its name. */
START_TEST(one_that_was_freed_is_found_by_nobody)
{
    begin();
    struct buffer *b = charged(0);
    struct buffer *found = NULL;
    struct err e = ERR_INIT;
    buffer_rename(b, "weights");
    struct job *j = reader(b);
    ck_assert_int_eq(buffer_find(&k->f.buffers, b->handle, k->tenant, &found, &e), 0);
    buffer_drop(&k->f, b);
    buffer_drop(&k->f, b); /* its time is over, too */
    ck_assert_uint_eq(k->tenant->buffer_bytes, 0);
    ck_assert_int_eq(buffer_find(&k->f.buffers, b->handle, k->tenant, &found, &e),
                     ERR_STALE_HANDLE);
    ck_assert_ptr_null(buffer_named(k->tenant, "weights"));
    fake_done(k, j, 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    fake_destroy(k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("restore");
    TCase *tc = tcase_create("restore");
    tcase_add_test(tc, each_answer_brings_the_next_one);
    tcase_add_test(tc, so_does_one_that_is_let_go);
    tcase_add_test(tc, a_worker_that_ends_meanwhile);
    tcase_add_test(tc, a_worker_that_lacks_something_is_asked_again);
    tcase_add_test(tc, a_worker_that_always_lacks_something_loses_it);
    tcase_add_test(tc, one_that_is_freed_in_the_pause_is_not_asked_for);
    tcase_add_test(tc, refused_ones_are_behind_the_others);
    tcase_add_loop_test(tc, only_jobs_that_use_a_refused_one_wait, 0, 3);
    tcase_add_test(tc, one_that_the_worker_has_no_more_is_lost);
    tcase_add_test(tc, a_worker_that_is_being_ended_is_not_ready);
    tcase_add_test(tc, a_worker_that_is_being_ended_is_asked_for_nothing);
    tcase_add_loop_test(tc, one_that_was_freed_comes_back_for_its_job, 0, 3);
    tcase_add_loop_test(tc, one_that_was_freed_is_lost_for_its_job, 0, 2);
    tcase_add_test(tc, one_that_was_freed_is_found_by_nobody);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
