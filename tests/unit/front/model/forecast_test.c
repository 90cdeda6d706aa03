/* What is learnt of the times of jobs. */
#include "daemon/front/model/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/common/suite.h"

static struct forecast table;

static uint64_t at_random(uint64_t below)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void learn(uint64_t key, uint64_t ns, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        forecast_learn(&table, key, ns);
    }
}

static double off(uint64_t key, uint64_t ns)
{
    return fabs((double)forecast_find(&table, key).ns / (double)ns - 1);
}

START_TEST(a_time_is_known_after_some_jobs)
{
    ck_assert_uint_eq(forecast_find(&table, 7).ns, 0);
    learn(7, 5000, FORECAST_SURE - 1);
    ck_assert_uint_eq(forecast_find(&table, 7).ns, 5000);
    ck_assert(!forecast_find(&table, 7).sure);
    learn(7, 5000, 1);
    ck_assert(forecast_find(&table, 7).sure);
    ck_assert_uint_eq(forecast_find(&table, 8).ns, 0);
    learn(0, 5000, 100); /* nothing has this key */
    ck_assert_uint_eq(forecast_find(&table, 0).ns, 0);
    forecast_finish(&table);
}
END_TEST

START_TEST(one_outlier_changes_little)
{
    for (unsigned i = 0; i < 1000; i++) {
        learn(7, 80000 + at_random(40001), 1);
    }
    double before = off(7, 100000);
    learn(7, 100000000, 1);
    ck_assert_msg(before < 0.1 && off(7, 100000) < 0.2, "%f, then %f", before, off(7, 100000));
    ck_assert(forecast_find(&table, 7).sure);
    forecast_finish(&table);
}
END_TEST

START_TEST(what_has_changed_is_learnt_anew)
{
    learn(7, 1000000, 100);
    learn(7, 3000000, 40);
    ck_assert_msg(off(7, 3000000) < 0.05, "%f", off(7, 3000000));
    learn(7, 100000, 60);
    ck_assert_msg(off(7, 100000) < 0.05, "%f", off(7, 100000));
    forecast_finish(&table);
}
END_TEST

START_TEST(what_varies_is_not_sure)
{
    for (unsigned i = 0; i < 200; i++) {
        learn(7, i % 2 == 0 ? 1000 : 1000000, 1);
    }
    ck_assert_uint_gt(forecast_find(&table, 7).ns, 0);
    ck_assert(!forecast_find(&table, 7).sure);
    forecast_finish(&table);
}
END_TEST

/* However many kinds there are, the table keeps its size, and those in use stay. */
START_TEST(old_kinds_give_way)
{
    static uint64_t kept[64];
    for (unsigned i = 0; i < 64; i++) {
        kept[i] = forecast_key(1 + i, 99);
        learn(kept[i], 1000 + i, 10);
    }
    for (uint64_t i = 0; i < 100000; i++) {
        learn(forecast_key(1000 + i, 99), 5, 1);
        if (i % 50 == 0) {
            learn(kept[i / 50 % 64], 1000 + i / 50 % 64, 1);
        }
    }
    unsigned found = 0;
    for (unsigned i = 0; i < FORECAST_SETS * FORECAST_WAYS; i++) {
        found += table.entry[i].key != 0;
    }
    ck_assert_uint_eq(found, FORECAST_SETS * FORECAST_WAYS);
    forecast_finish(&table);
    learn(kept[0], 1000, 10); /* the entry that was used last stays beside three others */
    for (uint64_t i = 0, others = 0; others < 1000; i++) {
        uint64_t key = forecast_key(1000 + i, 99);
        if ((key >> 32) % FORECAST_SETS == (kept[0] >> 32) % FORECAST_SETS) {
            learn(key, 5, 1);
            ck_assert_uint_eq(forecast_find(&table, kept[0]).ns, 1000);
            others++;
        }
    }
    forecast_finish(&table);
}
END_TEST

START_TEST(unsound_entries_are_not_restored)
{
    struct forecast_entry x = {.key = 7, .mean_ns = 5000, .drift_ns = 10, .count = 100};
    forecast_restore(&table, &x);
    ck_assert(forecast_find(&table, 7).sure);
    x.mean_ns = 9000;
    forecast_restore(&table, &x);
    ck_assert_uint_eq(forecast_find(&table, 7).ns, 5000);
    const struct forecast_entry bad[] = {{.key = 0, .mean_ns = 1, .count = 1},
                                         {.key = 8, .mean_ns = NAN, .count = 1},
                                         {.key = 8, .mean_ns = INFINITY, .count = 1},
                                         {.key = 8, .mean_ns = -1, .count = 1},
                                         {.key = 8, .mean_ns = 1, .drift_ns = -1, .count = 1},
                                         {.key = 8, .mean_ns = 1, .count = 0}};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        forecast_restore(&table, &bad[i]);
        ck_assert_uint_eq(forecast_find(&table, bad[i].key).ns, 0);
    }
    forecast_finish(&table);
}
END_TEST

START_TEST(keys_tell_devices_apart)
{
    uint64_t device = forecast_device("cuda", 0, "GPU");
    ck_assert_uint_ne(device, forecast_device("cuda", 1, "GPU"));
    ck_assert_uint_ne(device, forecast_device("cuda", 0, "other"));
    ck_assert_uint_ne(device, forecast_device("sim", 0, "GPU"));
    ck_assert_uint_ne(forecast_key(5, device), forecast_key(5, device + 1));
    ck_assert_uint_eq(forecast_key(0, device), 0);
}
END_TEST

SUITE_MAIN("forecast", a_time_is_known_after_some_jobs, one_outlier_changes_little,
           what_has_changed_is_learnt_anew, what_varies_is_not_sure, old_kinds_give_way,
           unsound_entries_are_not_restored, keys_tell_devices_apart)
