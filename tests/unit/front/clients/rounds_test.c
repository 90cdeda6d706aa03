/* Users and tenants take turns with requests: a flood of one, over many connections or rings, does
 * not hold up another one's request. What is counted is what goes before it. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/clients/lane_int.h"
#include "daemon/front/clients/listener_int.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "tests/unit/common/suite.h"

#define FLOOD       3000u
#define CONNECTIONS 10u

static struct listener l;
static struct user user[2];
static struct connection connection[CONNECTIONS + 1]; /* the last one is the other user's */

static void setup(void)
{
    memset(&l, 0, sizeof l);
    memset(user, 0, sizeof user);
    memset(connection, 0, sizeof connection);
    for (unsigned i = 0; i <= CONNECTIONS; i++) {
        connection[i].listener = &l;
        connection[i].user = &user[i == CONNECTIONS];
    }
}

static void put(unsigned number, unsigned value)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->peer.pipe = number;
    r->msg.ping.value = value;
    rounds_put(&connection[number], r);
}

static struct request *batch;

static bool take(unsigned *ret_number, uint64_t *ret_value)
{
    batch = batch == NULL ? rounds_take(&l) : batch;
    struct request *r = batch;
    if (r == NULL) {
        return false;
    }
    batch = r->next;
    *ret_number = r->peer.pipe;
    *ret_value = r->msg.ping.value;
    (void)atomic_fetch_sub(&connection[r->peer.pipe].undelivered, 1);
    free(r);
    return true;
}

START_TEST(a_flood_delays_another_user_by_a_few)
{
    unsigned number = 0;
    uint64_t value = 0;
    uint64_t last[CONNECTIONS + 1] = {0};
    unsigned before = 0;
    for (unsigned i = 1; i <= FLOOD; i++) {
        put(i % CONNECTIONS, i);
    }
    ck_assert(take(&number, &value)); /* a batch is under way when the other one comes */
    last[number] = value;
    put(CONNECTIONS, 1);
    for (bool seen = false; !seen; before++) {
        ck_assert(take(&number, &value));
        ck_assert_uint_gt(value, last[number]);
        last[number] = value;
        seen = number == CONNECTIONS;
    }
    ck_assert_uint_le(before, 10);
    while (take(&number, &value)) { /* all come, in the order of their connections */
        ck_assert_uint_gt(value, last[number]);
        last[number] = value;
        before++;
    }
    ck_assert_uint_eq(before, FLOOD);
    ck_assert_ptr_null(l.turns);
}
END_TEST

/* Its end does not wait for the requests of others. */
START_TEST(the_end_of_a_connection_comes_after_its_requests)
{
    unsigned number = 0;
    uint64_t value = 0;
    struct connection *other = &connection[CONNECTIONS];
    for (unsigned i = 1; i <= FLOOD; i++) {
        put(0, i);
    }
    put(CONNECTIONS, 1);
    DL_APPEND(l.ended_list, other);
    ck_assert_ptr_null(rounds_ended(&l));
    do {
        ck_assert(take(&number, &value));
    } while (number != CONNECTIONS);
    ck_assert_ptr_eq(rounds_ended(&l), other);
    ck_assert_ptr_null(l.ended_list);
    while (take(&number, &value)) {
    }
}
END_TEST

#define LANES 200u

static uint64_t *rounds_of(const struct session *s)
{
    return &s->tenant->lane_round;
}

START_TEST(the_rings_of_a_tenant_take_its_turns)
{
    uv_loop_t loop;
    struct tenant tenant[2] = {{.key = 1}, {.key = 2}};
    struct session session[LANES + 1];
    static struct lane lane[LANES + 1];
    struct lanes *lanes = NULL;
    struct err e = ERR_INIT;
    const struct lanes_options options = {.batch = 8};
    const struct lanes_callbacks tenants = {.rounds = rounds_of};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(lanes_create(&loop, &options, &tenants, NULL, &lanes, &e), 0);
    for (unsigned i = 0; i <= LANES; i++) {
        session[i] = (struct session){.tenant = &tenant[i == LANES]};
        lane[i] = (struct lane){.lanes = lanes, .session = &session[i]};
        lanes_wake(&lane[i]);
    }
    unsigned turns = 0;
    unsigned other = 0;
    unsigned had[LANES] = {0};
    for (; turns < 10 * LANES; turns++) { /* all have more to do, always */
        struct lane *first = lanes->ready;
        lane_unready(first);
        lanes->round = first->round;
        other += first == &lane[LANES];
        if (first != &lane[LANES]) {
            had[first - lane]++;
        }
        lanes_wake(first);
    }
    ck_assert_uint_ge(other, turns / 2 - 1);
    for (unsigned i = 0; i < LANES; i++) {
        ck_assert_uint_ge(had[i], 4); /* of 5 */
        lane_unready(&lane[i]);
    }
    lane_unready(&lane[LANES]);
    lanes_destroy(lanes);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

SUITE_MAIN_IN("rounds", setup, NULL, a_flood_delays_another_user_by_a_few,
              the_end_of_a_connection_comes_after_its_requests,
              the_rings_of_a_tenant_take_its_turns)
