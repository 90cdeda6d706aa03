/* What a front writes down for the next front, which reads it back. */
#include "daemon/front/workers/record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

#define CELL_BYTES 256u

static struct record *make(void)
{
    struct record *r = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(record_create(1, &r, &e), 0);
    return r;
}

/* As the next front gets it from the launcher. The first one is gone. */
static struct record *taken_over(struct record *r)
{
    struct record *next = NULL;
    struct err e = ERR_INIT;
    int fd = fcntl(record_fd(r), F_DUPFD_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    record_destroy(r);
    ck_assert_int_eq(record_adopt(1, fd, &next, &e), 0);
    return next;
}

static struct bytes fill(uint8_t *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(i * 7 + seed);
    }
    return bytes_of(data, size);
}

static bool has(struct record *r, enum record_kind kind, uint64_t id, struct bytes wanted)
{
    struct record_view view;
    bool taken = false;
    return record_find(r, kind, id, &view, &taken) && view.id == id &&
           view.bytes.size == wanted.size &&
           (wanted.size == 0 || memcmp(view.bytes.data, wanted.data, wanted.size) == 0);
}

/* FAULT 49: a worker that lies when another front adopts it: handles and jobs that it did not
 *   get or that are another device's, other sizes, copies that would end the reader
 * required: the former front's record names the owners of buffers and jobs; the launcher keeps
 *   it and no worker sees it. Ids without an entry are freed in the worker; a difference from
 *   the record ends the worker
 * defence: `front/workers/record.c`; `front/devices/adopt.c`: entry_of, check_inventory;
 *   `front/workers/command.c`: record_buffer, record_job
 * also: `test_system_front`: front_killed_under_load, adopted_writer; `front_record_test`;
 * `front_frame_check_test`: what_it_was_not_given_it_does_not_hold,
 *   what_it_was_given_is_as_it_was_given, the_record_says_whose_it_is; `fuzz_worker`;
 *   `replay_worker`
 * mutants: record-size, record-copy, adopted-buffers, adopted-jobs */
START_TEST(the_next_front_finds_what_was_written)
{
    static const size_t sizes[] = {0, 1, 223, 224, 225, 1000, 16384, RECORD_BYTES_MAX};
    static uint8_t data[RECORD_BYTES_MAX];
    struct record_view view;
    struct record *r = make();
    bool taken = true;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bytes bytes = fill(data, sizes[i], i);
        ck_assert_uint_ne(record_put(r, 0, RECORD_BUFFER, i + 1, bytes), 0);
        ck_assert_uint_ne(record_put(r, 0, RECORD_JOB, i + 1, bytes), 0);
    }
    ck_assert_uint_eq(record_put(r, 0, RECORD_JOB, 99, bytes_of(data, RECORD_BYTES_MAX + 1)), 0);
    record_note(r, RECORD_JOB, 99); /* the worker may have that one, too */
    r = taken_over(r);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bytes bytes = fill(data, sizes[i], i);
        ck_assert(has(r, RECORD_BUFFER, i + 1, bytes));
        ck_assert(has(r, RECORD_JOB, i + 1, bytes));
    }
    ck_assert(record_find(r, RECORD_JOB, 1, &view, &taken) && taken); /* a second time */
    ck_assert(!record_find(r, RECORD_JOB, 99, &view, &taken));
    ck_assert(!record_find(r, RECORD_BUFFER, UINT64_MAX, &view, &taken));
    ck_assert_uint_eq(record_last(r, RECORD_JOB), 99);
    record_destroy(r);
}
END_TEST

START_TEST(what_is_replaced_or_dropped_is_gone)
{
    struct record_view view;
    struct record *r = make();
    bool taken = false;
    record_entry a = record_put(r, 0, RECORD_BUFFER, 1, bytes_str("old"));
    record_entry b = record_put(r, 0, RECORD_JOB, 2, bytes_str("dropped"));
    record_entry c = record_put(r, 0, RECORD_JOB, 3, bytes_str("gone"));
    ck_assert_uint_ne(record_put(r, a, RECORD_BUFFER, 1, bytes_str("new")), 0);
    record_drop(r, b);
    record_staging_reused(r, c);
    record_ended(r, c, true);
    record_tainted(r, c);
    record_drop(r, record_put(r, 0, RECORD_JOB, 4, bytes_str("acknowledged")));
    record_note(r, RECORD_JOB, 4);
    record_note(r, RECORD_JOB, 3);
    record_drop(r, 0);
    record_drop(r, UINT64_C(2) << 32 | (uint32_t)c); /* of another record */
    record_drop(NULL, c);
    ck_assert_uint_eq(record_lease(r), 0);
    record_set_lease(r, UINT64_C(1) << 40);
    record_set_lease(NULL, 1);
    ck_assert_uint_eq(record_lease(NULL), 0);
    r = taken_over(r);
    ck_assert(has(r, RECORD_BUFFER, 1, bytes_str("new")));
    ck_assert(!record_find(r, RECORD_JOB, 2, &view, &taken));
    ck_assert(record_find(r, RECORD_JOB, 3, &view, &taken));
    ck_assert(view.staging_reused && view.ended && view.tainted && view.counted);
    ck_assert_uint_eq(record_last(r, RECORD_JOB), 4); /* no other job gets its id */
    ck_assert_uint_eq(record_lease(r), UINT64_C(1) << 40);
    record_settle(r);
    r = taken_over(r);
    ck_assert(has(r, RECORD_BUFFER, 1, bytes_str("new")));
    record_destroy(r);
}
END_TEST

START_TEST(what_no_worker_told_of_goes)
{
    struct record_view view;
    struct record *r = make();
    bool taken = false;
    (void)record_put(r, 0, RECORD_BUFFER, 1, bytes_str("held"));
    (void)record_put(r, 0, RECORD_BUFFER, 2, bytes_str("lost on the way"));
    r = taken_over(r);
    ck_assert(record_find(r, RECORD_BUFFER, 1, &view, &taken));
    record_settle(r);
    r = taken_over(r);
    ck_assert(record_find(r, RECORD_BUFFER, 1, &view, &taken));
    ck_assert(!record_find(r, RECORD_BUFFER, 2, &view, &taken));
    record_destroy(r);
}
END_TEST

static size_t size_of(const struct record *r)
{
    struct stat st;
    ck_assert_int_eq(fstat(record_fd(r), &st), 0);
    return (size_t)st.st_size;
}

/* Cells are used again; the memory is as large as what was there at once. */
START_TEST(it_takes_no_more_than_there_is)
{
    static record_entry entry[3000];
    uint8_t data[700];
    struct record *r = make();
    for (unsigned i = 0; i < 3000; i++) {
        entry[i] = record_put(r, 0, RECORD_JOB, i, fill(data, sizeof data, i));
        ck_assert_uint_ne(entry[i], 0);
    }
    size_t size = size_of(r);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 3000; i++) {
            record_drop(r, entry[i]);
            entry[i] = record_put(r, 0, RECORD_JOB, i, fill(data, sizeof data, i + round));
        }
    }
    ck_assert_uint_eq(size_of(r), size);
    r = taken_over(r);
    ck_assert(has(r, RECORD_JOB, 2999, fill(data, sizeof data, 2999 + 19)));
    ck_assert_uint_eq(size_of(r), size);
    record_destroy(r);
}
END_TEST

/* A front that ended between the two steps of a replacement left both; one whose memory was damaged
 * any nonsense: what is left out is left out, nothing is read outside. */
START_TEST(what_is_damaged_is_left_out)
{
    unsigned seed = (unsigned)_i + 1;
    struct record_view view;
    uint8_t data[900];
    struct record *r = make();
    bool taken = false;
    for (unsigned i = 1; i <= 40; i++) {
        (void)record_put(r, 0, i % 2 ? RECORD_JOB : RECORD_BUFFER, i, fill(data, i * 20, i));
    }
    size_t size = size_of(r);
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, record_fd(r), 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    for (unsigned i = 0; i < 200; i++) {
        size_t cell = (size_t)rand_r(&seed) % (size / CELL_BYTES);
        memory[cell * CELL_BYTES + (size_t)rand_r(&seed) % 28] ^= (uint8_t)(1 << rand_r(&seed) % 8);
    }
    ck_assert_int_eq(munmap(memory, size), 0);
    r = taken_over(r);
    for (unsigned i = 1; i <= 40; i++) {
        if (record_find(r, i % 2 ? RECORD_JOB : RECORD_BUFFER, i, &view, &taken)) {
            ck_assert_uint_le(view.bytes.size, RECORD_BYTES_MAX);
        }
    }
    record_settle(r);
    for (unsigned i = 100; i < 400; i++) {
        ck_assert_uint_ne(record_put(r, 0, RECORD_JOB, i, fill(data, 600, i)), 0);
    }
    r = taken_over(r);
    for (unsigned i = 100; i < 400; i++) {
        ck_assert(has(r, RECORD_JOB, i, fill(data, 600, i)));
    }
    record_destroy(r);
}
END_TEST

START_TEST(of_two_the_later_one_counts)
{
    struct record *r = make();
    (void)record_put(r, 0, RECORD_BUFFER, 1, bytes_str("first"));
    (void)record_put(r, 0, RECORD_BUFFER, 1,
                     bytes_str("second")); /* and the first was not dropped */
    r = taken_over(r);
    ck_assert(has(r, RECORD_BUFFER, 1, bytes_str("second")));
    record_settle(r);
    r = taken_over(r);
    ck_assert(has(r, RECORD_BUFFER, 1, bytes_str("second")));
    record_destroy(r);
}
END_TEST

/* The ids of the departed jobs, as decimal digits. */
static unsigned departed(struct record *r, bool present)
{
    struct record_view view;
    size_t cursor = 0;
    unsigned digits = 0;
    while (record_departed(r, present, &cursor, &view)) {
        digits = digits * 10 + (unsigned)view.id;
    }
    return digits;
}

/* Jobs stay when their worker ends, until they are dropped; another worker does not have them. */
START_TEST(jobs_outlive_their_worker)
{
    struct record_view view;
    bool again = false;
    struct record *r = make();
    record_begin(r);
    (void)record_put(r, 0, RECORD_JOB, 1, bytes_str("first"));
    record_entry second = record_put(r, 0, RECORD_JOB, 2, bytes_str("first"));
    record_entry third = record_put(r, 0, RECORD_JOB, 3, bytes_str("first"));
    (void)record_put(r, 0, RECORD_BUFFER, 1, bytes_str("first"));
    record_begin(r);
    (void)record_put(r, second, RECORD_JOB, 2, bytes_str("second"));
    record_drop(r, third);
    (void)record_put(r, 0, RECORD_JOB, 4, bytes_str("second"));
    (void)record_put(r, 0, RECORD_JOB, 5, bytes_str("second"));

    r = taken_over(r);
    ck_assert(record_adopting(r));
    ck_assert(!record_find(r, RECORD_JOB, 1, &view, &again));
    ck_assert(!record_find(r, RECORD_BUFFER, 1, &view, &again));
    ck_assert(has(r, RECORD_JOB, 2, bytes_str("second")));
    ck_assert_uint_eq(departed(r, false), 1);
    ck_assert_uint_eq(departed(r, true), 145); /* 2 was found */
    record_unfind(r, RECORD_JOB, 2);
    ck_assert_uint_eq(departed(r, true), 1245);
    record_settle(r);
    ck_assert(!record_adopting(r));

    r = taken_over(r); /* the worker that had them goes on */
    ck_assert_uint_eq(departed(r, false), 1);
    ck_assert(has(r, RECORD_JOB, 5, bytes_str("second")));
    record_settle(r);
    record_begin(r);

    r = taken_over(r);
    ck_assert_uint_eq(departed(r, false), 15);
    record_settle(r);
    ck_assert_uint_eq(record_used(r), 2);
    record_destroy(r);
}
END_TEST

START_TEST(what_is_no_record_is_refused)
{
    struct record *r = NULL;
    struct err e = ERR_INIT;
    int fd = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    ck_assert_int_ne(record_adopt(1, fd, &r, &e), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    ck_assert_int_ne(record_adopt(1, fd, &r, &e), 0);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *tc = tcase_create("record");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_next_front_finds_what_was_written);
    tcase_add_test(tc, what_is_replaced_or_dropped_is_gone);
    tcase_add_test(tc, what_no_worker_told_of_goes);
    tcase_add_test(tc, it_takes_no_more_than_there_is);
    tcase_add_loop_test(tc, what_is_damaged_is_left_out, 0, 50);
    tcase_add_test(tc, of_two_the_later_one_counts);
    tcase_add_test(tc, jobs_outlive_their_worker);
    tcase_add_test(tc, what_is_no_record_is_refused);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
