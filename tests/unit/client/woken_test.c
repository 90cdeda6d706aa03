/* A client that its bell wakes (client/src/link/lane.h). */
#include <string.h>

#include "client/src/base/client.h"
#include "client/src/link/lane.h"
#include "client/src/session/wait.h"
#include "common/clock.h"
#include "tests/unit/common/suite.h"

static struct gpud_client c;
static struct lane_shared shared;
static _Alignas(RING_LINE) uint8_t data[1024];

/* The client sleeps, and its ring is empty. */
static struct ring_producer begin(void)
{
    struct ring_producer daemon;
    memset(&c, 0, sizeof c);
    memset(&shared, 0, sizeof shared);
    requests_init(&c.requests);
    c.conn.state = CONN_UP;
    c.conn.timer_ns = NS_NEVER;
    c.session.state = SESSION_READY;
    c.session.wait_ns = c.session.again_ns = c.session.attempt_ns = NS_NEVER;
    c.lane.state = LANE_UP;
    c.lane.daemon_bell = -1;
    c.lane.memory.data = (uint8_t *)&shared;
    ring_producer_init(&daemon, &shared.complete, data, sizeof data);
    ring_consumer_init(&c.lane.in, &shared.complete, data, sizeof data);
    ck_assert(ring_sleep(&c.lane.in));
    return daemon;
}

static bool publish(struct ring_producer *daemon)
{
    const uint8_t answer[] = {0x91, MSG_KIND_PONG};
    struct err e = ERR_INIT;
    ck_assert_int_eq(ring_put(daemon, 77, bytes_of(answer, 2), bytes_of(NULL, 0), &e), 1);
    return ring_publish(daemon);
}

/* The daemon publishes an answer, the client takes it and sleeps, and only then the daemon looks
 * whether the client sleeps, and rings. */
START_TEST(a_bell_for_what_was_taken_before_is_not_the_last)
{
    struct ring_producer daemon = begin();
    daemon.rung = atomic_load(&shared.complete.sleep);
    client_process(&c, false);
    ck_assert(publish(&daemon));
    requests_finish(&c.requests);
}
END_TEST

START_TEST(one_sleep_has_one_ring)
{
    struct ring_producer daemon = begin();
    ck_assert(publish(&daemon));
    ck_assert(!publish(&daemon));
    client_process(&c, false);
    ck_assert(publish(&daemon));
    requests_finish(&c.requests);
}
END_TEST

SUITE_MAIN("woken", a_bell_for_what_was_taken_before_is_not_the_last, one_sleep_has_one_ring)
