/* The client's bell, which is read seldom: however late it was rung, there is room in it for every
 * ring to come. The daemon's side of the ring is the test's. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/src/session/client.h"
#include "client/src/session/lane.h"
#include "tests/unit/common/suite.h"

#define PIPE_BYTES 4096

static struct gpud_client client;
static struct ring_producer producer;
static int ringing; /* the daemon's end of the bell */

static void setup(void)
{
    struct lane *l = &client.lane;
    struct err e = ERR_INIT;
    int pipe_fd[2];
    client = (struct gpud_client){0};
    ck_assert_int_eq(lane_init(l, &e), 0);
    ck_assert_int_eq(memfd_create_sealed("lane", LANE_BYTES, &l->memory, &e), 0);
    ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_eq(fcntl(pipe_fd[1], F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
    l->bell = pipe_fd[0];
    ringing = pipe_fd[1];
    struct lane_shared *shared = (struct lane_shared *)(void *)l->memory.data;
    uint8_t *data = l->memory.data + LANE_DATA_OFFSET + LANE_SUBMIT_BYTES;
    ring_producer_init(&producer, &shared->complete, data, LANE_COMPLETE_BYTES);
    ring_consumer_init(&l->in, &shared->complete, data, LANE_COMPLETE_BYTES);
    ck_assert(ring_sleep(&l->in));
    l->state = LANE_UP;
}

static void teardown(void)
{
    memfd_finish(&client.lane.memory);
    (void)close(client.lane.bell);
    (void)close(ringing);
}

/* An answer to nobody comes, and the client takes it and sleeps. */
static void rung_and_taken(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(ring_put(&producer, 1, bytes_of("answer", 6), (struct bytes){0}, &e), 1);
    ck_assert(ring_publish(&producer));
    ck_assert_int_eq(write(ringing, "", 1), 1);
    ck_assert(lane_take(&client));
    ck_assert_int_eq(client.lane.state, LANE_UP);
}

START_TEST(each_ring_finds_room)
{
    setup();
    for (unsigned i = 0; i < LANE_BELL_UNREAD; i++) {
        rung_and_taken();
    }
    ck_assert_int_eq(write(ringing, "", 1), 1); /* late: just after it was read */
    for (unsigned i = 0; i < 4 * LANE_BELL_UNREAD; i++) {
        rung_and_taken();
    }
    teardown();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_ring_finds_room};
    return suite_run("bell", tests, sizeof tests / sizeof tests[0]);
}
