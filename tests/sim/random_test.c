/*
 * Random streams through the real front: clients that ask, workers that answer, refuse and die, and
 * time that passes. Each request is answered once at most, and nothing is left over at the end.
 * GPUD_STREAM_SEED=N plays one stream; GPUD_STREAM_RECORD=FILE writes what the front says, so that
 * two trees can be compared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/world.h"
#include "tests/unit/common/suite.h"

#define SEEDS 24
#define LINES 400u

static uint64_t state;

static unsigned pick(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 11) % below);
}

/* Requests of clients; %u stands for the number of a buffer. */
static const char *const asks[] = {
    "buffer_create dtype=10 ndim=1 d0=64 flags=1 label=\"zeros\"",
    "buffer_create dtype=10 ndim=1 d0=32",
    "buffer_create dtype=10 ndim=1 d0=16 flags=1 device=2",
    "submit steps=[{op=2 args=[{tag=1 handle=$%u} {tag=2 dtype=10 bits=7}]}]",
    "submit flags=1 steps=[{op=2 args=[{tag=1 handle=$%u} {tag=2 dtype=10 bits=7}]}]",
    "submit flags=1 steps=[{op=5 args=[{tag=1 handle=$%u}]}]",
    "submit flags=1 priority=2 steps=[{op=5 args=[{tag=1 handle=$%u count=4}]}]",
    "submit flags=1 steps=[{op=3 args=[{tag=1 handle=$%u count=8} {tag=1 handle=$%u count=8}]}]",
    "submit flags=8 steps=[{op=3 args=[{tag=1 handle=$%u count=8} {tag=1 handle=$%u count=8}]}]",
    "submit deadline_ns=300000000 steps=[{op=5 args=[{tag=1 handle=$%u}]}]",
    "submit flags=1 limit_ns=100000000 steps=[{op=5 args=[{tag=1 handle=$%u}]}]",
    "submit flags=5 steps=[{op=2 args=[{tag=1 handle=$%u} {tag=2 dtype=10 bits=9}]}]",
    "submit flags=1 steps=[{op=1 args=[{tag=1 handle=$%u count=1} {tag=3 access=1 dtype=10 ndim=1 "
    "d0=1 data=x'00000001'}]}]",
    "buffer_seal handle=$%u",
    "buffer_free handle=$%u",
    "buffer_info handle=$%u",
    "buffer_publish handle=$%u name=\"shared\" rights=3 linger_ns=1000000000",
    "buffer_open name=\"shared\"",
    "module_load name=\"m\" lang=1 source=\"x\" file=\"m.gk\"",
    "kernel_find name=\"fill\"",
};

static void ask(char *line, size_t size)
{
    char form[256];
    (void)snprintf(form, sizeof form, "next %u %s", 1 + pick(4),
                   asks[pick((unsigned)(sizeof asks / sizeof asks[0]))]);
    size_t used = 0;
    for (const char *at = form; *at != '\0' && used + 16 < size; at++) {
        if (at[0] == '%' && at[1] == 'u') {
            used += (size_t)snprintf(line + used, size - used, "%u", pick(12));
            at++;
        } else {
            line[used++] = *at;
        }
    }
    line[used] = '\0';
}

static void unnumbered(char *line, size_t size)
{
    unsigned n = pick(6);
    unsigned pipe = 1 + pick(4);
    unsigned number = 1 + pick(40);
    switch (n) {
    case 0:
        (void)snprintf(line, size, "%u wait timeout_ns=200000000", pipe);
        break;
    case 1:
        (void)snprintf(line, size, "%u wait timeout_ns=100000000 taken=%u", pipe, pick(4));
        break;
    case 2:
        (void)snprintf(line, size, "%u cancel job=%u", pipe, number);
        break;
    case 3:
        (void)snprintf(line, size, "%u cancel number=%u", pipe, number);
        break;
    case 4:
        (void)snprintf(line, size, "%u explain job=%u", pipe, number);
        break;
    default:
        (void)snprintf(line, size, "%u job_info job=%u", pipe, number);
        break;
    }
}

static void happen(char *line, size_t size)
{
    unsigned n = pick(100);
    if (n < 60) {
        (void)snprintf(line, size, "answer %u 0", pick(3) / 2);
    } else if (n < 63) {
        (void)snprintf(line, size, "answer %u %d", pick(2), pick(2) == 0 ? -31 : -17);
    } else if (n < 74) {
        (void)snprintf(line, size, "wait %u", 1 + pick(300));
    } else if (n < 89) {
        (void)snprintf(line, size, "beat");
    } else if (n < 90) {
        (void)snprintf(line, size, "die %u %u", pick(2), pick(2) == 0 ? 9u : 11u);
    } else if (n < 95) {
        (void)snprintf(line, size, "open");
    } else if (n < 98) {
        (void)snprintf(line, size, "build %d", pick(3) == 0 ? -29 : 0);
    } else {
        (void)snprintf(line, size, "reap");
    }
}

static void begin(void)
{
    static const char *const lines[] = {
        "listed",
        "open",
        "build 0",
        "answer 0 0",
        "answer 0 0",
        "connect 1 0",
        "connect 2 0",
        "connect 3 4242",
        "connect 4 5000",
        "1 hello major=0 minor=4 client_id=x'01'*16 resume=1 name=\"one\"",
        "2 hello major=0 minor=4 client_id=x'02'*16 resume=1 name=\"two\"",
        "3 hello major=0 minor=4 client_id=x'03'*16 resume=1 name=\"three\"",
        "4 hello major=0 minor=4 client_id=x'04'*16 resume=1 name=\"four\""};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        world_line(lines[i]);
    }
}

static void play(uint64_t seed, FILE *out)
{
    char line[512];
    ck_assert_ptr_nonnull(out);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    world_begin(out);
    begin();
    for (unsigned i = 0; i < LINES; i++) {
        unsigned n = pick(100);
        if (n < 40) {
            ask(line, sizeof line);
        } else if (n < 50) {
            unnumbered(line, sizeof line);
        } else {
            happen(line, sizeof line);
        }
        world_line(line);
        (void)fflush(out);
    }
    world_end();
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(a_random_stream_is_answered_once)
{
    const char *seed = getenv("GPUD_STREAM_SEED");
    const char *record = getenv("GPUD_STREAM_RECORD");
    if (seed != NULL && _i > 0) {
        return;
    }
    play(seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)_i + 1,
         fopen(record != NULL ? record : "/dev/null", "w"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random");
    TCase *tcase = tcase_create("random");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_random_stream_is_answered_once, 0, SEEDS);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
