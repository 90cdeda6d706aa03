#include "common/memfd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static const struct memfd UNTOUCHED = {.fd = -7, .size = 7};

static int memfd_plain(size_t size, unsigned seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    if (seals != 0) {
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    return fd;
}

START_TEST(what_is_made_can_be_adopted)
{
    struct memfd made;
    struct memfd seen;
    struct err e = ERR_INIT;
    ck_assert_int_eq(memfd_create_sealed("test", 10000, &made, &e), 0);
    ck_assert_uint_eq(made.size, 10000);
    ck_assert_int_ne(fcntl(made.fd, F_GETFD) & FD_CLOEXEC, 0);
    memset(made.data, 0x42, made.size);

    int fd = dup(made.fd);
    ck_assert_int_eq(memfd_adopt(fd, 10000, true, &seen, &e), 0);
    ck_assert_uint_eq(seen.data[9999], 0x42);
    seen.data[0] = 1;
    ck_assert_uint_eq(made.data[0], 1);
    memfd_finish(&seen);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    memfd_finish(&made);
}
END_TEST

START_TEST(size_is_fixed)
{
    struct memfd m;
    ck_assert_int_eq(memfd_create_sealed("test", 4096, &m, NULL), 0);
    ck_assert_int_ne(ftruncate(m.fd, 0), 0);
    ck_assert_int_ne(ftruncate(m.fd, 8192), 0);
    ck_assert_int_ne(fcntl(m.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    memfd_finish(&m);
}
END_TEST

START_TEST(huge_pages_are_refused)
{
    struct memfd m = UNTOUCHED;
    struct err e = ERR_INIT;
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0) {
        return; /* the kernel has none */
    }
    ck_assert_int_eq(ftruncate(fd, 2 << 20), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    ck_assert_int_eq(memfd_adopt(fd, 4096, false, &m, &e), ERR_UNSUPPORTED);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(shrinkable_memory_is_refused)
{
    struct memfd m = UNTOUCHED;
    struct err e = ERR_INIT;
    int fd = memfd_plain(4096, F_SEAL_GROW);
    ck_assert_int_eq(memfd_adopt(fd, 1, false, &m, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "shrinking"));
    ck_assert_int_eq(m.fd, UNTOUCHED.fd);
    ck_assert_msg(fcntl(fd, F_GETFD) >= 0, "taken though it failed");
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(small_or_empty_memory_is_refused)
{
    struct memfd m = UNTOUCHED;
    int fd = memfd_plain(4096, F_SEAL_SHRINK);
    ck_assert_int_eq(memfd_adopt(fd, 4097, false, &m, NULL), ERR_INVALID);
    ck_assert_int_eq(memfd_adopt(fd, SIZE_MAX, false, &m, NULL), ERR_INVALID);
    ck_assert_int_eq(close(fd), 0);
    fd = memfd_plain(0, F_SEAL_SHRINK);
    ck_assert_int_eq(memfd_adopt(fd, 0, false, &m, NULL), ERR_INVALID);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(m.fd, UNTOUCHED.fd);
}
END_TEST

START_TEST(other_descriptors_are_refused)
{
    struct memfd m = UNTOUCHED;
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(memfd_adopt(fds[0], 1, false, &m, NULL), ERR_INVALID);
    ck_assert_int_eq(memfd_adopt(-1, 1, false, &m, NULL), ERR_INVALID);
    ck_assert_int_eq(close(fds[0]), 0);
    ck_assert_int_eq(close(fds[1]), 0);
    ck_assert_int_eq(m.fd, UNTOUCHED.fd);
}
END_TEST

START_TEST(memory_sealed_against_writing_maps_for_reading_only)
{
    struct memfd m = UNTOUCHED;
    int fd = memfd_plain(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
    ck_assert_int_lt(memfd_adopt(fd, 1, true, &m, NULL), 0);
    ck_assert_int_eq(memfd_adopt(fd, 1, false, &m, NULL), 0);
    memfd_finish(&m);
}
END_TEST

START_TEST(nothing_is_made_of_nothing)
{
    struct memfd m = UNTOUCHED;
    ck_assert_int_eq(memfd_create_sealed("test", 0, &m, NULL), ERR_INVALID);
    ck_assert_int_lt(memfd_create_sealed("test", SIZE_MAX, &m, NULL), 0);
    ck_assert_int_eq(m.fd, UNTOUCHED.fd);
}
END_TEST

START_TEST(finishing_twice_is_allowed)
{
    struct memfd m = MEMFD_NONE;
    memfd_finish(&m);
    ck_assert_int_eq(memfd_create_sealed("test", 1, &m, NULL), 0);
    memfd_finish(&m);
    int fd = dup(STDERR_FILENO);
    memfd_finish(&m);
    ck_assert_msg(fcntl(fd, F_GETFD) >= 0, "closed a descriptor that is somebody else's by now");
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(frozen_memory_is_written_by_nobody)
{
    struct memfd m = MEMFD_NONE;
    struct memfd again = MEMFD_NONE;
    struct err e = ERR_INIT;
    ck_assert_int_eq(memfd_create_freezable("test", 4096, &m, &e), 0);
    m.data[7] = 42;
    ck_assert(!memfd_frozen(m.fd));
    ck_assert_int_eq(memfd_freeze(m.fd, &e), ERR_BUSY); /* it is mapped for writing */
    int fd = dup(m.fd);
    memfd_finish(&m);
    ck_assert_int_eq(memfd_freeze(fd, &e), 0);
    ck_assert(memfd_frozen(fd));
    ck_assert_int_eq((int)pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_ne(memfd_adopt(fd, 4096, true, &again, &e), 0);
    ck_assert_int_eq(memfd_adopt(fd, 4096, false, &again, &e), 0);
    ck_assert_uint_eq(again.data[7], 42);
    memfd_finish(&again);
    ck_assert_int_eq(memfd_create_sealed("test", 4096, &m, &e), 0);
    ck_assert_int_eq(memfd_freeze(m.fd, &e), ERR_INVALID);
    memfd_finish(&m);
}
END_TEST

SUITE_MAIN("memfd", frozen_memory_is_written_by_nobody, what_is_made_can_be_adopted, size_is_fixed,
           huge_pages_are_refused, shrinkable_memory_is_refused, small_or_empty_memory_is_refused,
           other_descriptors_are_refused, memory_sealed_against_writing_maps_for_reading_only,
           nothing_is_made_of_nothing, finishing_twice_is_allowed)
