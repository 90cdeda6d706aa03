#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/front/modules/cache.h"
#include "tests/unit/front/scratch.h"

static char dir[SCRATCH_PATH];
static struct cache *cache;

static void open_cache(uint64_t bound)
{
    struct err e = ERR_INIT;
    ck_assert_msg(cache_create(scratch_path(dir, "cache"), bound, &cache, &e) == 0, "%s", e.text);
}

static void setup(void)
{
    scratch_make(dir);
    open_cache(1 << 20);
}

static void teardown(void)
{
    cache_destroy(cache);
    scratch_remove(dir);
}

static struct hash key_of(uint32_t number)
{
    return hash_of(&number, sizeof number);
}

static void put(uint32_t number, const char *text, size_t size)
{
    struct err e = ERR_INIT;
    uint8_t *data = calloc(1, size);
    (void)strncpy((char *)data, text, size - 1);
    ck_assert_msg(cache_store(cache, key_of(number), bytes_of(&number, sizeof number),
                              bytes_of(data, size), &e) == 0,
                  "%s", e.text);
    free(data);
}

/* What a load gives; the text of a hit goes to `text`. */
static int get(uint32_t number, char text[32])
{
    uint8_t *data = NULL;
    size_t size = 0;
    int rc = cache_load(cache, key_of(number), bytes_of(&number, sizeof number), &data, &size);
    if (rc == CACHE_HIT) {
        ck_assert_uint_ge(size, 1);
        (void)strncpy(text, (const char *)data, 31);
        text[31] = '\0';
        free(data);
    } else {
        ck_assert_ptr_null(data);
    }
    return rc;
}

/* The file of a key, which must be there. */
static const char *file_of(uint32_t number)
{
    char name[64];
    char text[HASH_TEXT_BYTES];
    (void)hash_text(key_of(number), text);
    (void)snprintf(name, sizeof name, "cache/%.2s/%s.bin", text, text);
    return scratch_path(dir, name);
}

START_TEST(what_was_stored_is_found)
{
    char text[32];
    struct stat st;
    ck_assert_int_eq(get(1, text), CACHE_MISS);
    put(1, "one", 100);
    put(2, "two", 100);
    ck_assert_int_eq(get(1, text), CACHE_HIT);
    ck_assert_str_eq(text, "one");
    put(1, "again", 50);
    ck_assert_int_eq(get(1, text), CACHE_HIT);
    ck_assert_str_eq(text, "again");
    ck_assert_int_eq(stat(file_of(1), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    uint64_t bytes = cache_bytes(cache);
    cache_destroy(cache);
    open_cache(1 << 20);
    ck_assert_uint_eq(cache_bytes(cache), bytes);
    ck_assert_int_eq(get(2, text), CACHE_HIT);
    ck_assert_str_eq(text, "two");
}
END_TEST

START_TEST(the_same_key_of_something_else_is_a_miss)
{
    uint8_t *data = NULL;
    size_t size = 0;
    char text[32];
    put(1, "one", 100);
    ck_assert_int_eq(cache_load(cache, key_of(1), bytes_str("somebody else's"), &data, &size),
                     CACHE_MISS);
    ck_assert_ptr_null(data);
    ck_assert_int_eq(get(1, text), CACHE_HIT);
}
END_TEST

START_TEST(any_damaged_byte_is_seen)
{
    char text[32];
    struct stat st;
    put(1, "one", 40);
    ck_assert_int_eq(stat(file_of(1), &st), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        uint8_t byte;
        put(1, "one", 40);
        int fd = open(file_of(1), O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 0x40;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        (void)close(fd);
        ck_assert_int_eq(get(1, text), CACHE_DAMAGED);
        ck_assert_int_eq(access(file_of(1), F_OK), -1);
        ck_assert_int_eq(get(1, text), CACHE_MISS);
    }
    ck_assert_uint_eq(cache_bytes(cache), 0);
}
END_TEST

START_TEST(a_file_cut_short_is_seen)
{
    char text[32];
    struct stat st;
    put(1, "one", 40);
    ck_assert_int_eq(stat(file_of(1), &st), 0);
    for (off_t size = 0; size < st.st_size; size++) {
        put(1, "one", 40);
        ck_assert_int_eq(truncate(file_of(1), size), 0);
        ck_assert_int_eq(get(1, text), CACHE_DAMAGED);
    }
}
END_TEST

START_TEST(the_least_recently_used_go_first)
{
    char text[32];
    cache_destroy(cache);
    open_cache(4000);
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    const struct timespec ago[2] = {{.tv_sec = 2000}, {.tv_sec = 2000}};
    put(1, "one", 1000);
    put(2, "two", 1000);
    put(3, "three", 1000);
    ck_assert_int_eq(utimensat(AT_FDCWD, file_of(1), long_ago, 0), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, file_of(2), ago, 0), 0);
    ck_assert_int_eq(get(1, text), CACHE_HIT); /* used now */
    put(4, "four", 1000);
    ck_assert_int_eq(get(2, text), CACHE_MISS);
    ck_assert_int_eq(get(1, text), CACHE_HIT);
    ck_assert_int_eq(get(3, text), CACHE_HIT);
    ck_assert_int_eq(get(4, text), CACHE_HIT);
    ck_assert_uint_le(cache_bytes(cache), 4000);
    cache_destroy(cache);
    open_cache(1500); /* a smaller bound holds at once */
    ck_assert_uint_le(cache_bytes(cache), 1500);
    struct err e = ERR_INIT;
    static uint8_t large[2000];
    ck_assert_int_eq(
        cache_store(cache, key_of(9), bytes_str("x"), bytes_of(large, sizeof large), &e),
        ERR_LIMIT);
}
END_TEST

START_TEST(what_an_interrupted_write_left_is_removed)
{
    cache_destroy(cache);
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};
    scratch_write(scratch_path(dir, "cache/new.1.1"), "x", 1);
    ck_assert_int_eq(utimensat(AT_FDCWD, scratch_path(dir, "cache/new.1.1"), old, 0), 0);
    open_cache(1 << 20);
    ck_assert_int_eq(access(scratch_path(dir, "cache/new.1.1"), F_OK), -1);
    ck_assert_uint_eq(cache_bytes(cache), 0);
}
END_TEST

/* Two daemons may share the folder, and numbers of processes come again. */
START_TEST(what_another_daemon_writes_stays)
{
    char name[64];
    char text[32];
    cache_destroy(cache);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "cache/new.%d.%u", (int)getpid(), i);
        scratch_write(scratch_path(dir, name), "x", 1);
    }
    open_cache(1 << 20);
    ck_assert_int_eq(access(scratch_path(dir, name), F_OK), 0);
    put(1, "one", 40);
    ck_assert_int_eq(get(1, text), CACHE_HIT);
    ck_assert_int_eq(access(scratch_path(dir, name), F_OK), 0);
}
END_TEST

START_TEST(links_are_not_followed)
{
    char text[32];
    put(1, "one", 40);
    ck_assert_int_eq(rename(file_of(1), scratch_path(dir, "elsewhere")), 0);
    ck_assert_int_eq(symlink(scratch_path(dir, "elsewhere"), file_of(1)), 0);
    ck_assert_int_eq(get(1, text), CACHE_MISS);
}
END_TEST

START_TEST(folders_that_cannot_be_used)
{
    struct err e = ERR_INIT;
    struct cache *other = NULL;
    scratch_write(scratch_path(dir, "file"), "x", 1);
    ck_assert_int_lt(cache_create(scratch_path(dir, "file"), 1000, &other, &e), 0);
    ck_assert_int_lt(cache_create(scratch_path(dir, "a/b"), 1000, &other, &e), 0);
    ck_assert_int_eq(mkdir(scratch_path(dir, "open"), 0700), 0);
    ck_assert_int_eq(chmod(scratch_path(dir, "open"), 0777), 0);
    ck_assert_int_eq(cache_create(scratch_path(dir, "open"), 1000, &other, &e), ERR_PERMISSION);
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(a_folder_that_takes_no_file)
{
    struct err e = ERR_INIT;
    uint64_t before = cache_bytes(cache);
    /* a file where the key's folder would be: even root cannot write behind it */
    char name[32];
    char text[HASH_TEXT_BYTES];
    (void)hash_text(key_of(1), text);
    (void)snprintf(name, sizeof name, "cache/%.2s", text);
    scratch_write(scratch_path(dir, name), "x", 1);
    ck_assert_int_eq(cache_store(cache, key_of(1), bytes_str("x"), bytes_str("y"), &e), ERR_IO);
    ck_assert_uint_eq(cache_bytes(cache), before);
    char got[32];
    ck_assert_int_eq(get(1, got), CACHE_MISS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *tc = tcase_create("cache");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_was_stored_is_found);
    tcase_add_test(tc, the_same_key_of_something_else_is_a_miss);
    tcase_add_test(tc, any_damaged_byte_is_seen);
    tcase_add_test(tc, a_file_cut_short_is_seen);
    tcase_add_test(tc, the_least_recently_used_go_first);
    tcase_add_test(tc, what_an_interrupted_write_left_is_removed);
    tcase_add_test(tc, what_another_daemon_writes_stays);
    tcase_add_test(tc, links_are_not_followed);
    tcase_add_test(tc, folders_that_cannot_be_used);
    tcase_add_test(tc, a_folder_that_takes_no_file);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
