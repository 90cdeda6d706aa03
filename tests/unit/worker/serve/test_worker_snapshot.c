/* Snapshots of the pool, requested from gpud-worker as a process: on simulated devices and on
 * OpenCL. */
#include <check.h>
#include <stdlib.h>

#include "daemon/backend/backend.h"
#include "proto/snapshot.h"
#include "tests/unit/worker/fake_front.h"

static const char *const BACKEND[] = {"opencl", "sim"};
#define BACKENDS ((int)(sizeof BACKEND / sizeof BACKEND[0]))

/* false: this back end was not built in, or has no device here. */
static bool start(struct fake *f, int which)
{
    if (backend_find(BACKEND[which]) == NULL) {
        return false;
    }
    fake_start(f, BACKEND[which], NULL);
    if (f->absent) {
        fake_finish(f);
        return false;
    }
    return true;
}

static void snapshot_get(struct fake *f, uint64_t nonce, bool detail, struct memfd *ret_memory,
                         struct snapshot_view *ret_view)
{
    struct msg_f_snapshot ask = {.nonce = nonce, .detail = detail};
    struct msg_w_snapshot msg;
    struct err e = ERR_INIT;
    fake_send(f, &schema_msg_f_snapshot, &ask, -1);
    fake_expect(f, FRAME_KIND_W_SNAPSHOT, &schema_msg_w_snapshot, &msg);
    ck_assert_int_eq(msg.code, 0);
    ck_assert_uint_eq(msg.nonce, nonce);
    ck_assert_int_eq(f->fds.count, 1);
    int rc = memfd_adopt(f->fds.fd[0], sizeof(struct snapshot_head), false, ret_memory, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    f->fds.count = 0;
    rc = snapshot_open(ret_memory->data, ret_memory->size, ret_view, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
}

/* Every buffer is in it, with its id; pieces cover the addresses without gap. */
START_TEST(a_snapshot_shows_every_buffer)
{
    struct fake f;
    struct memfd m = MEMFD_NONE;
    struct snapshot_view v;
    unsigned seen[41] = {0};
    if (!start(&f, _i)) {
        return;
    }
    for (unsigned i = 1; i <= 40; i++) {
        ck_assert_int_eq(fake_buffer(&f, i, i % 2 != 0 ? 300 * i : i << 17, true), 0);
    }
    snapshot_get(&f, 5, true, &m, &v);
    ck_assert_uint_eq(v.head.numbers.live, 40);
    ck_assert_uint_eq(v.head.pieces, v.head.pieces_all);
    uint64_t end = 0;
    uint64_t used = 0;
    for (uint32_t i = 0; i < v.head.pieces; i++) {
        struct snapshot_piece p = snapshot_piece(&v, i);
        ck_assert_uint_eq(p.at, end);
        end = p.at + p.size;
        used += p.state == 3 ? p.size : 0;
        if (p.kind == SNAPSHOT_BUFFER) {
            ck_assert(p.owner >= 1 && p.owner <= 40 && p.state == 3);
            ck_assert_uint_ge(p.size, p.owner % 2 != 0 ? 300 * p.owner : p.owner << 17);
            seen[p.owner]++;
        }
    }
    ck_assert_uint_eq(used, v.head.numbers.used);
    for (unsigned i = 1; i <= 40; i++) {
        ck_assert_uint_eq(seen[i], 1);
    }
    unsigned allocations = 0;
    for (uint32_t i = 0; i < v.head.events; i++) {
        allocations += snapshot_event(&v, i).kind <= 1;
    }
    ck_assert_uint_ge(allocations, 40);
    ck_assert_uint_eq(snapshot_event(&v, v.head.events - 1).kind, 13); /* the last one is a stamp */
    memfd_finish(&m);
    snapshot_get(&f, 6, false, &m, &v);
    ck_assert_uint_eq(v.head.pieces + v.head.events, 0);
    ck_assert_uint_eq(v.head.numbers.live, 40);
    ck_assert_uint_ge(v.head.meters, 4);
    memfd_finish(&m);
    fake_stop(&f);
}
END_TEST

/* Many at once: each is answered, the ones beyond the limit by a refusal. */
START_TEST(snapshots_come_one_after_the_other)
{
    struct fake f;
    struct msg_w_snapshot msg;
    unsigned made = 0;
    unsigned refused = 0;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 1000, false), 0);
    for (unsigned i = 0; i < 24; i++) {
        struct msg_f_snapshot ask = {.nonce = 100 + i, .detail = 1};
        fake_send(&f, &schema_msg_f_snapshot, &ask, -1);
    }
    for (unsigned i = 0; i < 24; i++) {
        fake_expect(&f, FRAME_KIND_W_SNAPSHOT, &schema_msg_w_snapshot, &msg);
        ck_assert_uint_lt(msg.nonce - 100, 24);
        ck_assert(msg.code == 0 || msg.code == ERR_BUSY);
        ck_assert_int_eq(f.fds.count, msg.code == 0 ? 1 : 0);
        made += msg.code == 0;
        refused += msg.code != 0;
        frame_fds_close(&f.fds);
    }
    ck_assert_uint_eq(made + refused, 24);
    ck_assert_uint_ge(made, 16);
    struct msg_f_snapshot ask = {.nonce = 1, .detail = 1};
    fake_send(&f, &schema_msg_f_snapshot, &ask, -1); /* the worker ends in the middle of it */
    struct msg_f_quit quit = {0};
    fake_send(&f, &schema_msg_f_quit, &quit, -1);
    ck_assert_int_eq(fake_reap(&f), 0);
    fake_finish(&f);
}
END_TEST

/* Buffers are freed and created while the snapshot is made. It shows what was there when it was
 * begun, and never names a new buffer. */
START_TEST(buffers_go_while_it_is_made)
{
    const uint64_t many = 3000;
    struct fake f;
    struct msg_w_snapshot msg;
    struct memfd m = MEMFD_NONE;
    struct snapshot_view v;
    struct err e = ERR_INIT;
    unsigned made = 0;
    if (!start(&f, _i)) {
        return;
    }
    for (uint64_t i = 1; i <= many; i++) {
        ck_assert_int_eq(fake_buffer(&f, i, 300, false), 0);
    }
    struct msg_f_snapshot ask = {.nonce = 3, .detail = 1};
    fake_send(&f, &schema_msg_f_snapshot, &ask, -1);
    for (uint64_t i = 1; i <= many; i++) {
        struct msg_f_buffer_free go = {.id = i};
        struct msg_f_buffer_create come = {.id = many + i, .size = 300};
        fake_send(&f, &schema_msg_f_buffer_free, &go, -1);
        if (i % 30 == 0) {
            fake_send(&f, &schema_msg_f_buffer_create, &come, -1);
            made++;
        }
    }
    bool seen = false;
    while (made > 0 || !seen) {
        unsigned kind = fake_next(&f);
        if (kind == FRAME_KIND_W_BUFFER) {
            made--;
            continue;
        }
        ck_assert_uint_eq(kind, FRAME_KIND_W_SNAPSHOT);
        ck_assert_int_eq(proto_decode(&schema_msg_w_snapshot, bytes_of(f.frame, f.size), &msg, &e),
                         0);
        ck_assert_int_eq(msg.code, 0);
        ck_assert_int_eq(memfd_adopt(f.fds.fd[0], 8, false, &m, &e), 0);
        f.fds.count = 0;
        seen = true;
    }
    ck_assert_int_eq(snapshot_open(m.data, m.size, &v, &e), 0);
    unsigned live = 0;
    for (uint32_t i = 0; i < v.head.pieces; i++) {
        struct snapshot_piece p = snapshot_piece(&v, i);
        live += p.state == 3;
        ck_assert(p.kind == SNAPSHOT_NOBODY || p.state == 3);
    }
    ck_assert_uint_eq(live, v.head.numbers.live);
    memfd_finish(&m);
    fake_stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot");
    TCase *tcase = tcase_create("snapshot");
    tcase_set_timeout(tcase, 90);
    tcase_add_loop_test(tcase, a_snapshot_shows_every_buffer, 0, BACKENDS);
    tcase_add_loop_test(tcase, snapshots_come_one_after_the_other, 0, BACKENDS);
    tcase_add_loop_test(tcase, buffers_go_while_it_is_made, 0, BACKENDS);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
