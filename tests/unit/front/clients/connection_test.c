/* The steps of a connection: those of the table are made, and change nothing but its list; others
 * are not made. */
#include "daemon/front/clients/listener_int.h"
#include "tests/unit/common/suite.h"

#define TO(state) (1u << (state))

/* The table, written down once more. */
static const unsigned steps[CONNECTION_STATES] = {
    [CONNECTION_NEW] = TO(CONNECTION_GREETING),
    [CONNECTION_GREETING] =
        TO(CONNECTION_SILENT) | TO(CONNECTION_SILENT_HALF) | TO(CONNECTION_CLOSING),
    [CONNECTION_SILENT] = TO(CONNECTION_SILENT_HALF) | TO(CONNECTION_OPEN) | TO(CONNECTION_CLOSING),
    [CONNECTION_SILENT_HALF] = TO(CONNECTION_SILENT) | TO(CONNECTION_HALF) | TO(CONNECTION_CLOSING),
    [CONNECTION_OPEN] = TO(CONNECTION_HALF) | TO(CONNECTION_CLOSING),
    [CONNECTION_HALF] = TO(CONNECTION_HALF) | TO(CONNECTION_OPEN) | TO(CONNECTION_CLOSING),
    [CONNECTION_CLOSING] = TO(CONNECTION_ENDED),
    [CONNECTION_ENDED] = TO(CONNECTION_REPORTED),
};

/* The steps from new to each state, the last one first. */
static const enum connection_state before[CONNECTION_STATES] = {
    [CONNECTION_GREETING] = CONNECTION_NEW,       [CONNECTION_SILENT] = CONNECTION_GREETING,
    [CONNECTION_SILENT_HALF] = CONNECTION_SILENT, [CONNECTION_OPEN] = CONNECTION_SILENT,
    [CONNECTION_HALF] = CONNECTION_OPEN,          [CONNECTION_CLOSING] = CONNECTION_HALF,
    [CONNECTION_ENDED] = CONNECTION_CLOSING,      [CONNECTION_REPORTED] = CONNECTION_ENDED,
};

static void bring(struct connection *c, enum connection_state to)
{
    struct listener *l = c->listener;
    if (to == CONNECTION_NEW) {
        return;
    }
    bring(c, before[to]);
    ck_assert(connection_step(c, to));
    if (to == CONNECTION_ENDED) { /* the loop takes them */
        l->batch_ended = l->ended_list;
        l->ended_list = NULL;
    }
}

/* In how many lists of the listener it is. */
static unsigned lists_of(const struct listener *l)
{
    const struct connection *first[] = {l->slow, l->half, l->ended_list, l->batch_ended};
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof first / sizeof first[0]; i++) {
        count += first[i] != NULL;
    }
    return count;
}

static bool listed(enum connection_state state)
{
    return state != CONNECTION_NEW && state != CONNECTION_OPEN && state != CONNECTION_CLOSING &&
           state != CONNECTION_REPORTED;
}

START_TEST(steps_are_those_of_the_table)
{
    enum connection_state from = (enum connection_state)(_i / CONNECTION_STATES);
    enum connection_state to = (enum connection_state)(_i % CONNECTION_STATES);
    struct listener l = {.options = {.handshake_ns = 1, .stall_ns = 1}};
    struct connection c = {.listener = &l};
    bool allowed = (steps[from] & TO(to)) != 0;
    bring(&c, from);
    ck_assert_int_eq(c.state, from);
    ck_assert_int_eq(connection_step(&c, to), allowed);
    ck_assert_int_eq(c.state, allowed ? to : from);
    ck_assert_uint_eq(lists_of(&l), listed(c.state));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connection");
    TCase *tcase = tcase_create("connection");
    tcase_add_loop_test(tcase, steps_are_those_of_the_table, 0,
                        CONNECTION_STATES * CONNECTION_STATES);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
