/* A worker that lies: what it says is checked against what the front gave it, and nothing of others
 * changes. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker_frames.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define LIAR   0u
#define HONEST 1u

static unsigned calls;

static int say_fd(struct fake *k, const struct schema *schema, const void *msg, int fd)
{
    struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    struct bytes frame = capbuf_view(&out);
    int rc = worker_frame(&k->f, &k->device[LIAR], proto_kind(frame), frame, &fds, &e);
    capbuf_finish(&out);
    return rc;
}

static int say(struct fake *k, const struct schema *schema, const void *msg)
{
    return say_fd(k, schema, msg, -1);
}

static struct job *running(struct fake *k, unsigned device)
{
    struct job *j = fake_job(k, (int)device);
    (void)fake_submit(k, j);
    fake_turn(k);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    return j;
}

static int say_done(struct fake *k, uint64_t job, int64_t code, unsigned timings)
{
    struct msg_w_done m = {.job = job, .code = code, .step = -1, .arg = -1};
    struct capbuf list;
    capbuf_init(&list, FRAME_MAX_BYTES);
    for (unsigned i = 0; i < timings; i++) {
        const struct proto_timing t = {.step = i};
        ck_assert_int_eq(proto_list_add(&schema_timing, &t, &list, NULL), 0);
    }
    m.timings = proto_list_of(&list, timings);
    int rc = say(k, &schema_msg_w_done, &m);
    capbuf_finish(&list);
    return rc;
}

static struct fake *begin(void)
{
    struct fake *k = fake_create();
    k->f.hooks.worker_done = completion_done;
    k->f.hooks.worker_buffer = buffer_answered;
    calls = 0;
    return k;
}

/* The second word would be read with the first one's count. */
START_TEST(an_end_is_told_once)
{
    struct fake *k = begin();
    struct job *j = running(k, LIAR);
    uint64_t id = j->id;
    ck_assert_int_eq(say_done(k, id, ERR_KERNEL_FAULT, 256), 0);
    ck_assert_ptr_eq(k->device[LIAR].culprit, j);
    ck_assert_uint_eq(j->timing_count, 256);
    ck_assert_int_eq(say_done(k, id, ERR_KERNEL_FAULT, 1), ERR_PROTOCOL);
    const struct msg_w_done again = {.job = id, .code = 0, .step = -1, .arg = -1};
    completion_done(&k->f, &k->device[LIAR], &again); /* and if it were believed */
    ck_assert_uint_eq(k->ends[id], 1);
    ck_assert_uint_eq(j->timing_count, 0);
    fake_destroy(k);
}
END_TEST

/* A job that ends while its worker is being ended for it is soon forgotten. */
START_TEST(a_culprit_does_not_outlive_its_job)
{
    struct fake *k = begin();
    struct job *j = running(k, LIAR);
    struct job *other = running(k, LIAR);
    k->device[LIAR].culprit = j;
    ck_assert_int_eq(say_done(k, j->id, 0, 0), 0);
    ck_assert_ptr_null(k->device[LIAR].culprit);
    fake_lose(k, LIAR, true);
    fake_turn(k);
    fake_done(k, other, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(a_result_is_one_of_the_list)
{
    static const int64_t codes[] = {1, INT64_MIN, -(INT64_C(1) << 32), -99999, INT64_MAX};
    struct fake *k = begin();
    struct job *j = running(k, LIAR);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        ck_assert_int_eq(say_done(k, j->id, codes[i], 0), ERR_PROTOCOL);
        const struct msg_w_snapshot snapshot = {.code = codes[i]};
        ck_assert_int_eq(say(k, &schema_msg_w_snapshot, &snapshot), ERR_PROTOCOL);
    }
    const struct msg_w_done blame = {.job = j->id, .code = ERR_RANGE, .step = INT64_C(1) << 32};
    ck_assert_int_eq(say(k, &schema_msg_w_done, &blame), ERR_PROTOCOL);
    const struct msg_w_done arg = {.job = j->id, .code = ERR_RANGE, .arg = -2};
    ck_assert_int_eq(say(k, &schema_msg_w_done, &arg), ERR_PROTOCOL);
    ck_assert_uint_eq(k->ends[j->id], 0);
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(jobs_of_another_device_are_not_its_own)
{
    struct fake *k = begin();
    struct job *j = running(k, HONEST);
    const struct msg_w_started started = {.job = j->id};
    const struct msg_w_paused paused = {.job = j->id};
    const struct msg_w_waiting waiting = {.job = j->id, .waits = 1};
    ck_assert_int_eq(say_done(k, j->id, 0, 0), ERR_PROTOCOL);
    ck_assert_int_eq(say(k, &schema_msg_w_started, &started), ERR_PROTOCOL);
    ck_assert_int_eq(say(k, &schema_msg_w_paused, &paused), ERR_PROTOCOL);
    ck_assert_int_eq(say(k, &schema_msg_w_waiting, &waiting), ERR_PROTOCOL);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    ck_assert_int_eq(j->wait, WAIT_NOTHING);
    fake_done(k, j, 0);
    ck_assert_int_eq(say_done(k, j->id, 0, 0), 0); /* too late is no lie */
    ck_assert_int_eq(say_done(k, 999, 0, 0), 0);
    fake_destroy(k);
}
END_TEST

static void on_exported(struct front *f, struct device *d, const struct msg_w_exported *m, int fd)
{
    (void)f;
    (void)d;
    (void)m;
    (void)fd;
    calls++;
}

START_TEST(buffers_of_another_device_are_not_its_own)
{
    struct fake *k = begin();
    struct buffer *b = fake_buffer(k, HONEST, 64, true);
    struct buffer *own = fake_buffer(k, LIAR, 64, true);
    k->f.hooks.worker_exported = on_exported;
    buffer_set_state(b, BUFFER_RESTORING);
    const struct msg_w_buffer lost = {.id = b->handle, .code = ERR_DEVICE_LOST};
    const struct msg_w_exported exported = {.id = b->handle, .bytes = 64};
    const struct msg_w_exported unasked = {.id = own->handle, .bytes = 64};
    ck_assert_int_eq(say(k, &schema_msg_w_buffer, &lost), ERR_PROTOCOL);
    ck_assert_int_eq(say(k, &schema_msg_w_exported, &exported), ERR_PROTOCOL);
    ck_assert_int_eq(say(k, &schema_msg_w_exported, &unasked), ERR_PROTOCOL);
    ck_assert_uint_eq(calls, 0);
    ck_assert_int_eq(b->state, BUFFER_RESTORING);
    fake_destroy(k);
}
END_TEST

static void on_module(struct front *f, struct device *d, const struct msg_w_module *m)
{
    (void)f;
    (void)d;
    (void)m;
    calls++;
}

/* A word about another's module would make it fail on all devices of the kind. */
START_TEST(modules_are_answered_for_when_they_are_asked_for)
{
    struct fake *k = begin();
    k->f.hooks.worker_module = on_module;
    struct module *module = calloc(1, sizeof *module);
    ck_assert_ptr_nonnull(module);
    module->id = idmap_add(&k->f.modules, module);
    const struct msg_w_module m = {.module = module->id, .code = ERR_DEVICE_LOST};
    device_set_put(&module->loading, HONEST);
    ck_assert_int_eq(say(k, &schema_msg_w_module, &m), ERR_PROTOCOL);
    ck_assert_uint_eq(calls, 0);
    device_set_put(&module->loading, LIAR);
    ck_assert_int_eq(say(k, &schema_msg_w_module, &m), 0);
    ck_assert_uint_eq(calls, 1);
    (void)idmap_remove(&k->f.modules, module->id);
    module_destroy(module);
    fake_destroy(k);
}
END_TEST

static void on_absent(struct front *f, struct device *d, const struct err *e)
{
    (void)f;
    (void)d;
    (void)e;
    calls++;
}

static bool on_opened(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
    calls++;
    return false;
}

START_TEST(a_worker_introduces_itself_once)
{
    static const enum device_state states[] = {DEVICE_PROBING, DEVICE_READY, DEVICE_WAITING,
                                               DEVICE_ABSENT, DEVICE_STUCK};
    struct fake *k = begin();
    struct device *d = &k->device[LIAR];
    k->f.hooks.worker_absent = on_absent;
    k->f.hooks.worker_opened = on_opened;
    d->link = NULL;
    const struct msg_w_ready ready = {.build = bytes_str(k->f.build), .name = bytes_str("other")};
    const struct msg_w_absent absent = {.code = ERR_NO_DEVICE};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        d->state = states[i];
        ck_assert_int_eq(say(k, &schema_msg_w_ready, &ready), ERR_PROTOCOL);
        ck_assert_int_eq(say(k, &schema_msg_w_absent, &absent), ERR_PROTOCOL);
    }
    d->state = DEVICE_OPENED; /* it was taken over, or has said it before */
    ck_assert_int_eq(say(k, &schema_msg_w_ready, &ready), ERR_PROTOCOL);
    ck_assert_uint_eq(calls, 0);
    ck_assert_str_eq(d->name, "");
    d->state = DEVICE_STARTING;
    ck_assert_int_eq(say(k, &schema_msg_w_ready, &ready), 0);
    ck_assert_int_eq(say(k, &schema_msg_w_ready, &ready), ERR_PROTOCOL);
    ck_assert_uint_eq(calls, 1);
    d->link = (struct link *)d;
    fake_destroy(k);
}
END_TEST

START_TEST(an_alignment_is_a_power_of_two)
{
    struct fake *k = begin();
    const struct msg_w_arena m = {.arena = 1, .align = 3};
    ck_assert_int_eq(say(k, &schema_msg_w_arena, &m), ERR_PROTOCOL);
    fake_destroy(k);
}
END_TEST

/* ---- a worker that is taken over ------------------------------------------------------------- */

static struct fake *begin_adopting(void)
{
    struct fake *k = begin();
    k->f.hooks.inventory_buffer = adopt_buffer;
    k->f.hooks.inventory_job = adopt_job;
    k->device[LIAR].state = DEVICE_ADOPTING;
    k->device[LIAR].link = NULL; /* what it has and was not given is freed there */
    idmap_finish(&k->f.buffers);
    idmap_init(&k->f.buffers, 1024, 100);
    return k;
}

static void end_adopting(struct fake *k)
{
    k->device[LIAR].link = (struct link *)&k->device[LIAR];
    fake_destroy(k);
}

static void give_buffer(struct fake *k, unsigned device, uint64_t id)
{
    struct capbuf record;
    struct buffer like = {.bytes = 64, .tenant = k->tenant, .owner = NULL, .linger_ns = NS_PER_S};
    like.shape = (struct shape){.dtype = DTYPE_F32, .ndim = 1, .dim = {16}};
    capbuf_init(&record, 4096);
    ck_assert_int_eq(record_encode_buffer(&like, &record, NULL), 0);
    fake_given(k, device, RECORD_BUFFER, id, capbuf_view(&record));
    capbuf_finish(&record);
}

/* A handle of a slot far up, one of another device, and jobs with the last ids there are. With one
 * that runs it is ended: nothing says what the job uses. */
START_TEST(what_it_was_not_given_it_does_not_hold)
{
    struct fake *k = begin_adopting();
    const uint64_t far = idmap_handle(IDMAP_MAX - 1, 9);
    const uint64_t others = idmap_handle(5, 9);
    give_buffer(k, HONEST, others);
    const struct msg_w_inventory_buffer buffer = {.id = far, .size = 64};
    const struct msg_w_inventory_buffer stolen = {.id = others, .size = 64};
    const struct msg_w_inventory_job job = {.job = UINT64_MAX};
    const struct msg_w_inventory_job ended = {.job = UINT64_MAX - 1, .finished = 1};
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_buffer, &buffer), 0);
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_buffer, &stolen), 0);
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_job, &job), ERR_NOMEM);
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_job, &ended), 0);
    ck_assert_uint_eq(k->f.buffers.live, 0);
    ck_assert_uint_eq(k->f.buffers.used, 0);
    ck_assert_uint_eq(k->f.job_count, 0);
    ck_assert_uint_eq(k->f.next_job, 1);
    end_adopting(k);
}
END_TEST

static int memory_of(unsigned flags, size_t size, int seals)
{
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd >= 0) {
        ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    return fd;
}

START_TEST(what_it_was_given_is_as_it_was_given)
{
    struct fake *k = begin_adopting();
    const uint64_t id = idmap_handle(9, 9);
    give_buffer(k, LIAR, id);
    const struct msg_w_inventory_buffer larger = {.id = id, .size = 65};
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_buffer, &larger), ERR_PROTOCOL);
    for (int i = 0; i < 4; i++) {
        const struct msg_w_inventory_buffer sealed = {.id = id, .size = 64, .sealed = 1};
        int fd = i == 0   ? memory_of(0, 64, F_SEAL_GROW)
                 : i == 1 ? memory_of(0, 63, F_SEAL_SHRINK)
                 : i == 2 ? memory_of(MFD_HUGETLB, 2 << 20, F_SEAL_SHRINK)
                          : -1; /* and none at all */
        give_buffer(k, LIAR, id);
        ck_assert_int_eq(say_fd(k, &schema_msg_w_inventory_buffer, &sealed, fd), ERR_PROTOCOL);
        ck_assert(fd < 0 || fcntl(fd, F_GETFD) < 0);
    }
    ck_assert_uint_eq(k->f.buffers.live, 0);
    end_adopting(k);
}
END_TEST

/* Its owner, its size and its request are the record's, and it comes once. */
START_TEST(the_record_says_whose_it_is)
{
    struct fake *k = begin_adopting();
    const uint64_t id = idmap_handle(9, 9);
    give_buffer(k, LIAR, id);
    const struct msg_w_inventory_buffer inventory = {.id = id, .size = 64};
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_buffer, &inventory), 0);
    ck_assert_int_eq(say(k, &schema_msg_w_inventory_buffer, &inventory), 0);
    const struct buffer *b = idmap_get(&k->f.buffers, id);
    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(k->f.buffers.live, 1);
    ck_assert_ptr_eq(b->tenant, k->tenant);
    ck_assert_uint_eq(b->bytes, 64);
    ck_assert_uint_eq(b->device, LIAR);
    ck_assert_uint_ne(b->record, 0);
    end_adopting(k);
}
END_TEST

SUITE_MAIN("frame_check", an_end_is_told_once, a_culprit_does_not_outlive_its_job,
           a_result_is_one_of_the_list, jobs_of_another_device_are_not_its_own,
           buffers_of_another_device_are_not_its_own,
           modules_are_answered_for_when_they_are_asked_for, a_worker_introduces_itself_once,
           an_alignment_is_a_power_of_two, what_it_was_not_given_it_does_not_hold,
           what_it_was_given_is_as_it_was_given, the_record_says_whose_it_is)
