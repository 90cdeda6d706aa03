/* A piece of memory that several streams still use: the device waits for all of them. On a
 * simulated device and on the CUDA driver's double, in this process. */
#include <check.h>

#include "tests/unit/worker/local.h"

#define MIB   ((uint64_t)1 << 20)
#define LIMIT (16 * MIB)
#define SIZE  (LIMIT / 4) /* of a piece */
#define FILLS 20u

static const struct {
    const char *backend, *options;
} ON[] = {{"sim", "bandwidth=1000000000,pages=on"}, {"cuda", ""}};

#define KINDS ((int)(sizeof ON / sizeof ON[0]))

static struct local t;
static struct err e;

static void fill(const struct memory_piece *piece, unsigned stream, uint8_t byte)
{
    ck_assert_msg(t.device.b->stream->fill(t.device.memory.stream[stream], piece->ref, &byte, 1,
                                           piece->pool.size, &e) == 0,
                  "%s", e.text);
}

static struct memory_piece taken(uint64_t size, unsigned stream)
{
    struct memory_piece piece = {.ref = {.block = NULL}};
    const struct memory_ask ask = {.size = size, .tenant = 1, .stream = stream};
    ck_assert_msg(memory_alloc(&t.device.memory, &ask, &piece, &e) == 0, "%s", e.text);
    memory_settle(&t.device.memory); /* it is mapped then */
    ck_assert_int_eq(memory_late(&t.device.memory, &piece), POOL_READY);
    memory_cleaned(&piece);
    return piece;
}

static enum backend_state state_of(struct backend_marker *marker)
{
    return t.device.b->marker->state(marker, &e);
}

START_TEST(the_device_waits_for_all_streams)
{
    struct memory_piece piece[2];
    struct backend_marker *marker[2];
    struct timeline_point point[2];
    struct memory *m = &t.device.memory;
    const unsigned slow = (unsigned)_i % 2;
    if (backend_find(ON[_i / 2].backend) == NULL) { /* is not built */
        return;
    }
    local_start(&t, ON[_i / 2].backend, ON[_i / 2].options, LIMIT, LIMIT);
    for (unsigned s = 0; s < 2; s++) {
        piece[s] = taken(SIZE, s);
        for (unsigned n = 0; n < (s == slow ? FILLS : 1); n++) {
            fill(&piece[s], s, 1);
        }
    }
    struct memory_piece rest = taken(LIMIT - 2 * SIZE, 0);
    for (unsigned s = 0; s < 2; s++) {
        ck_assert_int_eq(device_mark(&t.device, m->stream[s], &marker[s], &e), 0);
        memory_mark(m, s, marker[s], &point[s]);
        memory_free_at(m, &piece[s], &point[s]);
    }
    struct memory_piece joint = taken(2 * SIZE, memory_copies(m));
    ck_assert(joint.waits || state_of(marker[slow]) == BACKEND_DONE);
    fill(&joint, memory_copies(m), 2);
    local_wait(&t, m->stream[memory_copies(m)]);
    ck_assert_int_eq(state_of(marker[0]), BACKEND_DONE);
    ck_assert_int_eq(state_of(marker[1]), BACKEND_DONE);
    for (unsigned s = 0; s < 2; s++) {
        local_wait(&t, m->stream[s]);
        memory_passed(m, &point[s]);
        t.device.b->marker->release(marker[s]);
    }
    memory_free(m, &joint);
    memory_free(m, &rest);
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory that several streams use");
    TCase *c = tcase_create("joint");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, the_device_waits_for_all_streams, 0, 2 * KINDS);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
