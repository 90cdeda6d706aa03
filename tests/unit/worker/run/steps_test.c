/* A job that must wait for others and whose steps cannot be remembered until then. In this process,
 * on a simulated device. */
#include <check.h>
#include <stdlib.h>

#include "common/seqpacket.h"
#include "daemon/worker/serve/serve_int.h"
#include "tests/unit/worker/local.h"

#define MIB ((uint64_t)1 << 20)

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool fails; /* once */

void *__wrap_calloc(size_t count, size_t size)
{
    bool none = fails;
    fails = false;
    return none ? NULL : __real_calloc(count, size);
}

static struct local t;
static struct server s;
static unsigned ended;

static void on_done(void *data, struct job *j)
{
    (void)data;
    (void)j;
    ended++;
}

static void start(void)
{
    local_start(&t, "sim", "speed=0", 16 * MIB, 0);
    s.executor = (struct executor){.scope = {.device = &t.device, .buffers = &t.buffers},
                                   .ledger = &s.ledger,
                                   .copies = &t.copies};
    batch_init(&s.executor.batch, &t.device, &s.ledger);
    completion_init(&s.completion, &s.executor, (struct completion_callbacks){.done = on_done},
                    NULL);
    ended = 0;
}

static void frame_of(uint64_t id, uint64_t after, struct capbuf *frame)
{
    struct err e = ERR_INIT;
    const struct proto_jobref before = {.job = after};
    const struct proto_wtemp temp = {.size = MIB};
    const struct proto_ref ref = {.tag = REF_TEMP, .size = MIB};
    struct proto_wstep step = {.op = OP_FILL, .pattern = bytes_of("x", 1)};
    struct msg_f_job msg = {.job = id, .tenant = 1, .deadline_ns = UINT64_MAX};
    struct capbuf list[4];
    for (unsigned i = 0; i < 4; i++) {
        capbuf_init(&list[i], FRAME_MAX_BYTES);
    }
    ck_assert_int_eq(proto_list_add(&schema_wtemp, &temp, &list[0], &e), 0);
    ck_assert_int_eq(proto_list_add(&schema_ref, &ref, &list[1], &e), 0);
    step.args = proto_list_of(&list[1], 1);
    ck_assert_int_eq(proto_list_add(&schema_wstep, &step, &list[2], &e), 0);
    ck_assert_int_eq(proto_list_add(&schema_jobref, &before, &list[3], &e), 0);
    msg.temps = proto_list_of(&list[0], 1);
    msg.steps = proto_list_of(&list[2], 1);
    msg.after = proto_list_of(&list[3], after != 0);
    capbuf_init(frame, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(&schema_msg_f_job, &msg, frame, &e), 0);
    for (unsigned i = 0; i < 4; i++) {
        capbuf_finish(&list[i]);
    }
}

/* Gets device memory and starts; the process has no memory left when it is to be enqueued. */
static struct job *start_without_memory(uint64_t id, uint64_t after)
{
    struct err e = ERR_INIT;
    struct capbuf frame;
    struct msg_f_job msg;
    struct job *j = NULL;
    frame_of(id, after, &frame);
    struct bytes bytes = bytes_of(frame.data, frame.size);
    ck_assert_int_eq(proto_decode(&schema_msg_f_job, bytes, &msg, &e), 0);
    ck_assert_msg(job_create(&s.executor.scope, &msg, &j, &e) == 0, "%s", e.text);
    ck_assert_int_eq(ledger_after(&s.ledger, j, &e), 0);
    ck_assert_msg(spill_acquire(&t.spill, j, &e) == 0, "%s", e.text);
    ledger_add(&s.ledger, j);
    fails = true;
    server_job_start(&s, j, &msg, bytes);
    ck_assert(!fails);
    capbuf_finish(&frame);
    return j;
}

/* A job that comes after it waits for it alone: it must not end before its predecessors. */
START_TEST(its_end_waits_for_those_before_it)
{
    const struct msg_f_job msg = {.job = 1, .tenant = 1};
    struct job *before = job_refused(&msg);
    start();
    ledger_add(&s.ledger, before);
    struct job *j = start_without_memory(2, 1);
    ck_assert_int_eq(j->e.code, ERR_NOMEM);
    ck_assert(j->state == JOB_GIVEN_UP && ended == 0);
    ck_assert_uint_eq(j->piece_count, 0); /* it keeps no memory that it does not use */
    completion_poll(&s.completion, 1);
    ck_assert(j->state == JOB_GIVEN_UP && ended == 0);
    job_set_state(before, JOB_STARTED);
    job_set_state(before, JOB_FINISHED);
    completion_poll(&s.completion, 2);
    ck_assert(j->state == JOB_FINISHED && ended == 1);
    ledger_finish(&s.ledger);
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker steps");
    TCase *tc = tcase_create("steps");
    tcase_add_test(tc, its_end_waits_for_those_before_it);
    suite_add_tcase(suite, tc);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
