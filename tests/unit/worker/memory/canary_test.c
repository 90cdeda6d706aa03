/* Memory that a worker's tenants left must not be read by others. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/fake_front.h"

#define CANARY_BYTES 900000u
#define CANARY_KEPT  16u

static const char *const SOURCES[] = {"speed=0,pages=on", "speed=0,pages=off"};
static const unsigned CANARY_ROUNDS[] = {2500, 1000};

/* A tenant's byte or zero, nothing else. */
static void check_canary(const struct fake *f, uint64_t from, uint64_t bytes, unsigned round)
{
    const uint8_t *at = f->output.data + from;
    uint64_t i = 0;
    while (i < bytes && (at[i] == 0 || at[i] == f->tenant)) {
        i++;
    }
    ck_assert_msg(i == bytes, "round %u: tenant %u reads %u at %u of %u", round,
                  (unsigned)f->tenant, at[i], (unsigned)i, (unsigned)bytes);
}

/* Checks a new buffer and a new temporary, then leaves the tenant's mark in all of them. */
static void canary_job(struct fake *f, unsigned round, uint64_t bytes, uint64_t temp)
{
    struct job_draft d;
    const uint8_t mark = (uint8_t)f->tenant;
    draft_init(&d, round, round % 2);
    uint64_t t = draft_temp(&d, temp);
    draft_move(&d, OP_READ, ref_buffer(round, 0, bytes), 0);
    draft_move(&d, OP_READ, ref_temp(t, temp), CANARY_BYTES);
    draft_fill(&d, ref_buffer(round, 0, bytes), &mark, 1);
    draft_fill(&d, ref_temp(t, temp), &mark, 1);
    draft_send(&d, f);
    ck_assert_int_eq(fake_done(f, round, NULL), 0);
    struct msg_f_retire msg = {.job = round};
    fake_send(f, &schema_msg_f_retire, &msg, -1);
    check_canary(f, 0, bytes, round);
    check_canary(f, CANARY_BYTES, temp, round);
}

/* FAULT other: memory that another tenant used
 * required: zeroed, in the order of streams, before its new tenant's commands; memory that
 *   cannot be zeroed stays unused
 * defence: `worker/memory/memory.c`: memory_clear, memory_free; `pool/tenancy.c`
 * mutants: tenant-clear */
/* Tenants take turns on a device with so little memory that each gets what others left after some
 * ten rounds: it sees zeros or bytes of its own. */
START_TEST(nothing_crosses_tenants)
{
    static const uint64_t BYTES[] = {64, 70000, 1000, 5000, 200000, 40000, 130, 300000};
    struct fake f;
    const char *args[] = {"--options", SOURCES[_i], "--memory-limit", "6291456", NULL};
    unsigned seed = 7;
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    for (unsigned round = 1; round <= CANARY_ROUNDS[_i]; round++) {
        seed = seed * 1103515245u + 12345u;
        uint64_t bytes =
            round % 500 == 0 ? CANARY_BYTES : BYTES[seed >> 16 & 7] + (seed >> 20 & 63);
        f.tenant = 1 + round % 3;
        memset(f.output.data, 0xa5, (size_t)bytes);
        ck_assert_int_eq(fake_buffer(&f, round, bytes, false), 0);
        canary_job(&f, round, bytes, 1 + (seed >> 8 & 0xffff));
        if (round > CANARY_KEPT) {
            struct msg_f_buffer_free msg = {.id = round - CANARY_KEPT};
            fake_send(&f, &schema_msg_f_buffer_free, &msg, -1);
        }
    }
    fake_stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("canary");
    TCase *tenants = tcase_create("tenants");
    tcase_set_timeout(tenants, 300);
    tcase_add_loop_test(tenants, nothing_crosses_tenants, 0, 2);
    suite_add_tcase(suite, tenants);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
