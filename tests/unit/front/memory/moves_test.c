/* Buffers move to the device of the job that needs them: through the host, and the device that they
 * leave has them until the other one has. */
#include <stdio.h>
#include <string.h>

#include "common/memfd.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/memory/moves.h"
#include "daemon/front/model/op.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/evacuate.h"
#include "daemon/front/workers/frame_check.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define BYTES 64u

static struct fake *k;
static unsigned copies[FAKE_DEVICES], carried[FAKE_DEVICES], freed[FAKE_DEVICES];
static struct buffer *here, *far; /* on devices 0 and 1 */

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    unsigned at = l == (struct link *)&k->device[1] ? 1 : 0;
    copies[at] += schema == &schema_msg_f_buffer_seal;
    carried[at] += schema == &schema_msg_f_buffer_restore;
    freed[at] += schema == &schema_msg_f_buffer_free;
    return fake_send(l, schema, msg, fds, e);
}

static struct buffer *charged(unsigned device)
{
    struct buffer *b = fake_buffer(k, device, BYTES, true);
    b->losses = &k->device[device].losses;
    b->shown = device;
    buffer_set_state(b, BUFFER_LIVE);
    ck_assert(buffer_charge(b, &k->device[device], fake_now()));
    return b;
}

static void begin(void)
{
    k = fake_create();
    k->f.io.send = on_send;
    memset(copies, 0, sizeof copies);
    memset(carried, 0, sizeof carried);
    memset(freed, 0, sizeof freed);
    here = charged(0);
    far = charged(1);
}

static void turn(void)
{
    queue_awaiting_turn(&k->f);
    fake_turn(k);
}

/* The worker of the device answers for the buffer. */
static void answer(unsigned device, uint64_t id, int code)
{
    const struct msg_w_buffer m = {.id = id, .code = code};
    struct err e = ERR_INIT;
    ck_assert_int_eq(frame_check_buffer(&k->f, &k->device[device], &m, &e), 0);
    buffer_answered(&k->f, &k->device[device], &m);
    turn();
}

static struct job *reader(int device, bool of_here, bool of_far)
{
    struct job *j = fake_job(k, device);
    if (of_here) {
        fake_reads(j, here, 0, BYTES);
    }
    if (of_far) {
        fake_reads(j, far, 0, BYTES);
    }
    (void)fake_submit(k, j);
    turn();
    return j;
}

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    turn();
}

static void is_on(const struct buffer *b, unsigned device)
{
    unsigned other = 1 - device;
    ck_assert_uint_eq(b->device, device);
    ck_assert_uint_eq(b->shown, device);
    ck_assert_int_eq(b->move, MOVE_NONE);
    ck_assert_int_eq(b->copy, COPY_NONE);
    ck_assert_int_eq(buffer_state(b), BUFFER_LIVE);
    ck_assert_uint_eq(k->device[0].buffer_bytes + k->device[1].buffer_bytes,
                      buffer_state(here) == BUFFER_LOST ? BYTES : 2 * BYTES);
    ck_assert_uint_eq(k->tenant->device_bytes[other], k->device[other].buffer_bytes);
    ck_assert_uint_eq(k->f.evacuated_bytes, 0);
    ck_assert_uint_eq(k->f.moving, 0);
    ck_assert(!arrivals_has(&k->device[0], b->handle));
    ck_assert(!arrivals_has(&k->device[1], b->handle));
}

/* Buffers of two devices, for a job on device 0. */
START_TEST(the_other_one_comes_first)
{
    begin();
    struct job *j = reader(0, true, true);
    ck_assert_uint_eq(copies[1], 1);
    ck_assert_uint_eq(carried[0], 0);
    ck_assert_uint_eq(k->sent, 0);
    ck_assert_int_eq(j->wait, WAIT_RESTORE);
    answer(1, far->handle, 0);
    ck_assert_uint_eq(carried[0], 1);
    ck_assert_uint_eq(freed[1], 0); /* nothing is lost if device 0 has no room */
    ck_assert_uint_eq(far->device, 1);
    ck_assert_uint_eq(k->sent, 0);
    answer(0, far->handle, 0);
    ck_assert_uint_eq(freed[1], 1);
    is_on(far, 0);
    ck_assert_uint_eq(k->device[1].buffer_bytes, 0);
    ck_assert_uint_eq(k->f.count.moved, 1);
    ck_assert_uint_eq(k->f.count.moved_bytes, BYTES);
    ck_assert_uint_eq(k->sent, 1);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* It takes no room there, which copies for the time without a worker were promised. */
START_TEST(its_copy_is_none_of_the_launchers)
{
    begin();
    struct job *j = reader(0, true, true);
    ck_assert_int_eq(far->copy, COPY_ASKED);
    ck_assert_uint_eq(k->f.copies_coming, 0);
    answer(1, far->handle, 0);
    ck_assert_int_eq(far->copy, COPY_KEPT);
    ck_assert_uint_eq(k->f.copies_coming, 0);
    answer(0, far->handle, 0);
    finish(j);
    ck_assert(!far->passes);
    evacuate_begin(&k->f, &k->device[0]); /* these are to stay */
    ck_assert_uint_eq(k->f.copies_coming, 2);
    evacuate_cancel(&k->f, &k->device[0]);
    answer(0, here->handle, 0);
    answer(0, far->handle, 0);
    ck_assert_uint_eq(k->f.copies_coming, 0);
    fake_destroy(k);
}
END_TEST

/* The host has its content already. */
START_TEST(a_sealed_one_is_not_copied)
{
    begin();
    struct memfd host = MEMFD_NONE;
    ck_assert_int_eq(memfd_create_sealed("host", BYTES, &host, NULL), 0);
    far->sealed = true;
    far->host_fd = host.fd;
    host.fd = -1;
    memfd_finish(&host);
    struct job *j = reader(0, true, true);
    ck_assert_uint_eq(copies[1], 0);
    ck_assert_uint_eq(carried[0], 1);
    answer(0, far->handle, 0);
    is_on(far, 0);
    ck_assert(far->sealed && far->host_fd >= 0);
    finish(j);
    fake_destroy(k);
}
END_TEST

START_TEST(it_stays_while_jobs_have_it)
{
    begin();
    struct job *before = reader(1, false, true);
    struct job *j = reader(0, true, true);
    struct job *after = reader(1, false, true); /* runs beside the first one */
    ck_assert_uint_eq(k->sent, 2);
    ck_assert_uint_eq(copies[1], 0);
    finish(before);
    ck_assert_uint_eq(copies[1], 0);
    finish(after);
    ck_assert_uint_eq(copies[1], 1);
    answer(1, far->handle, 0);
    answer(0, far->handle, 0);
    ck_assert_uint_eq(k->sent, 3);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* Device 0 is served first, and the job for device 1 came first. */
START_TEST(the_line_decides)
{
    begin();
    struct job *j = fake_job(k, 1);
    fake_reads(j, here, 0, BYTES);
    (void)fake_submit(k, j);
    struct job *next = reader(0, true, false);
    ck_assert_uint_eq(k->sent, 0);
    ck_assert_uint_eq(copies[0], 1);
    answer(0, here->handle, 0);
    answer(1, here->handle, 0);
    is_on(here, 1);
    ck_assert_uint_eq(k->sent, 1);
    finish(j);
    answer(1, here->handle, 0);
    answer(0, here->handle, 0);
    is_on(here, 0);
    finish(next);
    fake_destroy(k);
}
END_TEST

/* It is where the first job in its line runs; the next one takes it back. */
START_TEST(no_job_gets_it_on_the_way)
{
    begin();
    struct job *j = reader(0, true, true);
    struct job *next = reader(1, false, true);
    ck_assert_uint_eq(k->sent, 0);
    answer(1, far->handle, 0);
    ck_assert_uint_eq(k->sent, 0);
    answer(0, far->handle, 0);
    ck_assert_uint_eq(k->sent, 1);
    ck_assert_int_eq(next->state, JOB_QUEUED);
    ck_assert_uint_eq(copies[0], 0);
    finish(j);
    ck_assert_uint_eq(copies[0], 1);
    answer(0, far->handle, 0);
    answer(1, far->handle, 0);
    is_on(far, 1);
    ck_assert_uint_eq(freed[0], 1);
    ck_assert_uint_eq(k->sent, 2);
    finish(next);
    fake_destroy(k);
}
END_TEST

/* _i: 0: the worker that has it cannot copy it, 1: the other one cannot take it. */
START_TEST(what_cannot_move_stays)
{
    begin();
    struct job *j = reader(0, true, true);
    uint64_t id = j->id;
    if (_i == 1) {
        answer(1, far->handle, 0);
    }
    answer(_i == 1 ? 0 : 1, far->handle, ERR_IO);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_IO);
    ck_assert_ptr_nonnull(strstr(k->error[id].text, "cannot move from device 1 to device 0"));
    is_on(far, 1);
    struct job *next = reader(1, false, true);
    ck_assert_uint_eq(k->sent, 1);
    finish(next);
    fake_destroy(k);
}
END_TEST

/* A second later, as that of another tenant may have gone then. */
START_TEST(without_memory_it_tries_again)
{
    begin();
    struct job *j = reader(0, true, true);
    uint64_t id = j->id;
    unsigned tries = 0;
    while (k->ends[id] == 0) {
        ck_assert_uint_lt(tries++, 20);
        answer(1, far->handle, 0);
        answer(0, far->handle, ERR_DEVICE_MEMORY);
        (void)queue_offer_awaiting(&k->f);
        turn();
        ck_assert_int_eq(far->move, MOVE_NONE);
        fake_pass(NS_PER_S);
        (void)queue_offer_awaiting(&k->f);
        turn();
    }
    ck_assert_uint_gt(tries, 1);
    ck_assert_int_eq(k->error[id].code, ERR_DEVICE_MEMORY);
    is_on(far, 1);
    fake_destroy(k);
}
END_TEST

START_TEST(a_tenant_without_room_is_told)
{
    begin();
    k->tenant->limits.hard.bytes = BYTES;
    struct job *j = reader(0, true, true);
    uint64_t id = j->id;
    answer(1, far->handle, 0);
    ck_assert_int_eq(k->error[id].code, ERR_LIMIT);
    ck_assert_uint_eq(carried[0], 0);
    is_on(far, 1);
    fake_destroy(k);
}
END_TEST

/* Nothing has happened to the buffer, and the next worker is asked. */
START_TEST(the_other_worker_ends)
{
    begin();
    struct job *j = reader(0, false, true);
    answer(1, far->handle, 0);
    ck_assert_uint_eq(carried[0], 1);
    fake_lose(k, 0, true);
    buffer_device_lost(&k->f, &k->device[0]);
    k->device[0].state = DEVICE_READY;
    ck_assert_uint_eq(far->device, 1);
    ck_assert_int_eq(buffer_state(far), BUFFER_LIVE);
    ck_assert(!arrivals_has(&k->device[0], far->handle));
    is_on(far, 1); /* jobs there may write it now, so that the copy would be old */
    (void)queue_offer_awaiting(&k->f);
    turn();
    ck_assert_uint_eq(copies[1], 2);
    answer(1, far->handle, 0);
    ck_assert_uint_eq(carried[0], 2);
    answer(0, far->handle, 0);
    is_on(far, 0);
    finish(j);
    fake_destroy(k);
}
END_TEST

enum leaving { YIELDS, DRAINS, HELD, KILLED, RESTS, LEAVINGS };

static void leave(unsigned device, enum leaving how, bool begin)
{
    struct device *d = &k->device[device];
    d->place.yields = begin && how == YIELDS;
    d->drain.state = begin && how == DRAINS ? DRAIN_HOLDS : DRAIN_NONE;
    d->recovery = begin && how == HELD;
    d->killed_ns = begin && how == KILLED ? 1 : 0;
    d->state = begin && how == RESTS ? DEVICE_RESTING : DEVICE_READY;
}

/* _i: which of the two, and how it leaves. */
START_TEST(none_moves_from_or_to_one_that_leaves)
{
    struct err e = ERR_INIT;
    unsigned device = (unsigned)_i % 2;
    enum leaving how = (enum leaving)(_i / 2);
    begin();
    leave(device, how, true);
    struct job *j = reader(0, true, true);
    ck_assert_int_eq(move_need(&k->f, far, &k->device[0], &e), 0);
    ck_assert_uint_eq(copies[1], 0);
    ck_assert_int_eq(far->move, MOVE_NONE);
    leave(device, how, false);
    ck_assert_int_eq(move_need(&k->f, far, &k->device[0], &e), 0);
    ck_assert_uint_eq(copies[1], 1);
    leave(device, how, true); /* it has the copy, and does not go on */
    answer(1, far->handle, 0);
    ck_assert_uint_eq(carried[0], 0);
    is_on(far, 1);
    leave(device, how, false);
    (void)queue_offer_awaiting(&k->f);
    turn();
    ck_assert_uint_eq(copies[1], 2);
    answer(1, far->handle, 0);
    answer(0, far->handle, 0);
    is_on(far, 0);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* Only the host has it: the device that it was on has no part. */
START_TEST(from_a_device_without_worker_it_moves)
{
    begin();
    struct memfd host = MEMFD_NONE;
    ck_assert_int_eq(memfd_create_sealed("host", BYTES, &host, NULL), 0);
    far->sealed = true;
    far->host_fd = host.fd;
    host.fd = -1;
    memfd_finish(&host);
    fake_lose(k, 1, true);
    buffer_device_lost(&k->f, &k->device[1]);
    k->device[1].state = DEVICE_RESTING;
    ck_assert_int_eq(buffer_state(far), BUFFER_RESTORING);
    struct job *j = reader(0, false, true);
    ck_assert_uint_eq(carried[0], 1);
    answer(0, far->handle, 0);
    is_on(far, 0);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* Its worker ended as idle while a seal waited for the job, which waits for the move. */
START_TEST(a_wanted_seal_does_not_keep_it_from_moving)
{
    begin();
    static struct op seal;
    evacuate_begin(&k->f, &k->device[1]);
    answer(1, far->handle, 0);
    fake_lose(k, 1, true);
    buffer_device_lost(&k->f, &k->device[1]);
    k->device[1].state = DEVICE_RESTING;
    ck_assert_int_eq(buffer_state(far), BUFFER_RESTORING);
    far->pending = &seal;
    far->sealed = far->seal_wanted = true;
    struct job *j = reader(0, false, true);
    ck_assert_uint_eq(carried[0], 1);
    far->pending = NULL; /* the seal is not what is tested */
    far->sealed = far->seal_wanted = false;
    answer(0, far->handle, 0);
    is_on(far, 0);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* Nothing of the buffer keeps the worker that has it. */
static bool may_leave(void)
{
    struct evacuation_load load = {.bytes = 0};
    bool may = evacuate_count(far, &load);
    ck_assert_int_eq(load.keeper, may ? KEEPER_NONE : KEEPER_REQUEST);
    return may;
}

/* Neither worker leaves before the buffer is on one of them. */
START_TEST(workers_stay_while_it_moves)
{
    begin();
    ck_assert(may_leave());
    struct job *j = reader(0, true, true);
    ck_assert(!may_leave());
    ck_assert(!arrivals_any(&k->device[0]));
    answer(1, far->handle, 0);
    ck_assert(!may_leave());
    ck_assert(arrivals_any(&k->device[0]));
    answer(0, far->handle, 0);
    ck_assert(may_leave());
    ck_assert(!arrivals_any(&k->device[0]));
    finish(j);
    fake_destroy(k);
}
END_TEST

/* The tenant got another buffer there meanwhile. */
START_TEST(without_room_it_does_not_arrive)
{
    begin();
    k->tenant->limits.hard.bytes = 2 * BYTES;
    struct job *j = reader(0, true, true);
    uint64_t id = j->id;
    answer(1, far->handle, 0);
    ck_assert_uint_eq(carried[0], 1);
    ck_assert(tenant_charge(k->tenant, 0, BYTES, fake_now()));
    answer(0, far->handle, 0);
    ck_assert_int_eq(k->error[id].code, ERR_LIMIT);
    ck_assert_uint_eq(freed[0], 1);
    tenant_discharge(k->tenant, 0, BYTES, fake_now());
    is_on(far, 1);
    fake_destroy(k);
}
END_TEST

/* Its line is empty for a moment, and the next job is of its own device. */
START_TEST(a_cancelled_job_leaves_it_on_its_way)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    begin();
    struct job *j = reader(0, true, true);
    answer(1, far->handle, 0);
    job_conclude(&k->f, j, JOB_CANCELLED, &cancelled);
    struct job *next = reader(1, false, true);
    ck_assert_uint_eq(k->sent, 0);
    answer(0, far->handle, 0);
    answer(0, far->handle, 0);
    answer(1, far->handle, 0);
    is_on(far, 1);
    ck_assert_uint_eq(k->sent, 1);
    finish(next);
    ck_assert(!far->roams);
    fake_destroy(k);
}
END_TEST

/* Its content was on the host: the next worker restores it. */
START_TEST(its_own_worker_ends_after_the_copy)
{
    begin();
    struct job *j = reader(0, false, true);
    answer(1, far->handle, 0);
    fake_lose(k, 1, true);
    buffer_device_lost(&k->f, &k->device[1]);
    ck_assert_int_eq(buffer_state(far), BUFFER_RESTORING);
    answer(0, far->handle, 0);
    is_on(far, 0);
    ck_assert_ptr_null(k->device[1].restoring);
    ck_assert_uint_eq(freed[1], 0); /* that worker has it no more */
    ck_assert_uint_eq(k->sent, 1);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* The content is lost with the copy. The job that waits for it hears so at once. */
START_TEST(its_own_worker_ends_before_the_copy)
{
    begin();
    struct job *j = reader(0, false, true);
    uint64_t id = j->id;
    fake_lose(k, 1, true);
    buffer_device_lost(&k->f, &k->device[1]);
    ck_assert_int_eq(buffer_state(far), BUFFER_LOST);
    turn();
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_BUFFER_LOST);
    ck_assert_uint_eq(k->f.moving, 0);
    fake_destroy(k);
}
END_TEST

/* The answer to the first request is none to a second one. */
START_TEST(a_freed_one_is_freed_where_it_comes)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    begin();
    struct job *j = reader(0, true, true);
    uint64_t id = far->handle;
    answer(1, id, 0);
    buffer_drop(&k->f, far);
    job_conclude(&k->f, j, JOB_CANCELLED, &cancelled);
    ck_assert_uint_eq(k->f.moving, 0);
    ck_assert_uint_eq(freed[1], 1);
    ck_assert_uint_eq(freed[0], 0);
    ck_assert(arrivals_has(&k->device[0], id));
    answer(0, id, 0);
    ck_assert_uint_eq(freed[0], 1);
    ck_assert(!arrivals_has(&k->device[0], id));
    fake_destroy(k);
}
END_TEST

START_TEST(without_its_job_the_copy_is_dropped)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    begin();
    struct job *j = reader(0, true, true);
    job_conclude(&k->f, j, JOB_CANCELLED, &cancelled);
    answer(1, far->handle, 0);
    ck_assert_uint_eq(carried[0], 0);
    is_on(far, 1);
    struct job *next = reader(1, false, true);
    ck_assert_uint_eq(k->sent, 1);
    finish(next);
    fake_destroy(k);
}
END_TEST

/* It was opened after the job was bound to a device, and is ordered behind it only. */
START_TEST(a_variable_elsewhere_is_not_waited_for)
{
    begin();
    far->flags |= BUFFER_FLAG_VARIABLE;
    struct job *j = reader(0, true, true);
    ck_assert_uint_eq(copies[1], 0);
    ck_assert_uint_eq(k->sent, 1);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* The front chose its device. _i: 0: the worker there lacks memory, 1: the host does. */
START_TEST(a_job_that_strays_goes_back)
{
    begin();
    if (_i == 1) {
        k->f.evacuated_bytes = UINT64_MAX / 2;
    }
    struct job *j = fake_job(k, 0);
    j->strays = true;
    k->device[0].jobs = 1;
    fake_reads(j, far, 0, BYTES);
    (void)fake_submit(k, j);
    turn();
    if (_i == 0) {
        ck_assert_uint_eq(copies[1], 1);
        answer(1, far->handle, 0);
        answer(0, far->handle, ERR_DEVICE_MEMORY);
    }
    k->f.evacuated_bytes = 0;
    ck_assert_ptr_eq(j->device, &k->device[1]);
    ck_assert_int_eq(j->work.device, 1);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    ck_assert(!j->strays);
    is_on(far, 1);
    ck_assert_uint_eq(k->device[0].line.bound, 0);
    ck_assert_uint_eq(k->device[0].jobs, 0);
    ck_assert_uint_eq(k->device[1].jobs, 1);
    finish(j);
    ck_assert(!far->roams);
    fake_destroy(k);
}
END_TEST

/* One buffer was on the device that it leaves, and no job took it from there before. */
START_TEST(a_job_that_goes_back_takes_the_others_along)
{
    begin();
    struct job *j = fake_job(k, 1);
    j->strays = true;
    k->device[1].jobs = 1;
    fake_reads(j, here, 0, BYTES);
    fake_reads(j, far, 0, BYTES);
    (void)fake_submit(k, j);
    turn();
    answer(0, here->handle, 0);
    answer(1, here->handle, ERR_DEVICE_MEMORY);
    ck_assert_ptr_eq(j->device, &k->device[0]);
    ck_assert_int_eq(far->move, MOVE_COPIES);
    struct job *next = reader(1, false, true);
    ck_assert_uint_eq(k->sent, 0);
    answer(1, far->handle, 0);
    answer(0, far->handle, 0);
    is_on(far, 0);
    ck_assert_uint_eq(k->sent, 1);
    finish(j);
    answer(0, far->handle, 0);
    answer(1, far->handle, 0);
    is_on(far, 1);
    ck_assert_uint_eq(k->sent, 2);
    finish(next);
    fake_destroy(k);
}
END_TEST

START_TEST(other_workers_say_nothing_of_it)
{
    struct err e = ERR_INIT;
    begin();
    const struct msg_w_buffer m = {.id = far->handle};
    ck_assert_int_eq(frame_check_buffer(&k->f, &k->device[0], &m, &e), ERR_PROTOCOL);
    fake_destroy(k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moves");
    TCase *tc = tcase_create("moves");
    tcase_add_test(tc, the_other_one_comes_first);
    tcase_add_test(tc, its_copy_is_none_of_the_launchers);
    tcase_add_test(tc, a_sealed_one_is_not_copied);
    tcase_add_test(tc, it_stays_while_jobs_have_it);
    tcase_add_test(tc, the_line_decides);
    tcase_add_test(tc, no_job_gets_it_on_the_way);
    tcase_add_loop_test(tc, what_cannot_move_stays, 0, 2);
    tcase_add_test(tc, without_memory_it_tries_again);
    tcase_add_test(tc, a_tenant_without_room_is_told);
    tcase_add_test(tc, the_other_worker_ends);
    tcase_add_test(tc, its_own_worker_ends_after_the_copy);
    tcase_add_test(tc, its_own_worker_ends_before_the_copy);
    tcase_add_test(tc, a_freed_one_is_freed_where_it_comes);
    tcase_add_test(tc, without_its_job_the_copy_is_dropped);
    tcase_add_test(tc, a_variable_elsewhere_is_not_waited_for);
    tcase_add_loop_test(tc, a_job_that_strays_goes_back, 0, 2);
    tcase_add_test(tc, a_job_that_goes_back_takes_the_others_along);
    tcase_add_test(tc, other_workers_say_nothing_of_it);
    tcase_add_loop_test(tc, none_moves_from_or_to_one_that_leaves, 0, 2 * LEAVINGS);
    tcase_add_test(tc, from_a_device_without_worker_it_moves);
    tcase_add_test(tc, a_wanted_seal_does_not_keep_it_from_moving);
    tcase_add_test(tc, workers_stay_while_it_moves);
    tcase_add_test(tc, without_room_it_does_not_arrive);
    tcase_add_test(tc, a_cancelled_job_leaves_it_on_its_way);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
