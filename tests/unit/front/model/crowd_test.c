/* The pause that refused jobs are asked for. */
#include "daemon/front/model/crowd.h"
#include "tests/unit/common/suite.h"

/* So many refusals in one moment; the last one's pause. */
static uint64_t refuse(struct crowd *c, uint64_t now_ns, unsigned count)
{
    uint64_t pause = 0;
    for (unsigned i = 0; i < count; i++) {
        pause = crowd_pause(c, now_ns);
    }
    return pause;
}

START_TEST(a_crowd_comes_again_later)
{
    struct crowd c = {0};
    uint64_t now = 5 * NS_PER_S;
    ck_assert_uint_eq(refuse(&c, now, CROWD_FEW - 1), CROWD_PAUSE_NS);
    ck_assert_uint_eq(refuse(&c, now, 3 * CROWD_FEW), 4 * CROWD_PAUSE_NS);
    now += CROWD_PAUSE_NS; /* the next few come behind the crowd */
    ck_assert_uint_eq(refuse(&c, now, 1), 4 * CROWD_PAUSE_NS);
    ck_assert_uint_eq(refuse(&c, now, 1000 * CROWD_FEW), CROWD_MAX_NS);
    now += 2 * CROWD_PAUSE_NS; /* the crowd is gone */
    ck_assert_uint_eq(refuse(&c, now, 1), CROWD_PAUSE_NS);
}
END_TEST

SUITE_MAIN("crowd", a_crowd_comes_again_later)
