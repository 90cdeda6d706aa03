#include "common/seqpacket.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static int ends[2];
static unsigned char frame[FRAME_MAX_BYTES];

static void pair_open(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(seqpacket_pair(ends, &e), 0);
}

static void pair_close(void)
{
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq(close(ends[1]), 0);
}

static int descriptors_open(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    ck_assert_int_eq(closedir(dir), 0);
    return count;
}

START_TEST(frames_arrive_whole_and_in_order)
{
    pair_open();
    size_t size = 0;
    struct err e = ERR_INIT;
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, &e),
                     SEQPACKET_AGAIN);
    ck_assert_int_eq(seqpacket_send(ends[0], "abc", 3, NULL, &e), 0);
    ck_assert_int_eq(seqpacket_send(ends[0], "de", 2, NULL, &e), 0);
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, &e), 0);
    ck_assert_uint_eq(size, 3);
    ck_assert_int_eq(memcmp(frame, "abc", 3), 0);
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, &e), 0);
    ck_assert_uint_eq(size, 2);
    pair_close();
}
END_TEST

START_TEST(the_largest_frame_passes)
{
    pair_open();
    static unsigned char sent[FRAME_MAX_BYTES];
    for (size_t i = 0; i < sizeof sent; i++) {
        sent[i] = (unsigned char)(i * 31);
    }
    size_t size = 0;
    ck_assert_int_eq(seqpacket_send(ends[0], sent, sizeof sent, NULL, NULL), 0);
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, NULL), 0);
    ck_assert_uint_eq(size, sizeof sent);
    ck_assert_int_eq(memcmp(sent, frame, sizeof sent), 0);
    pair_close();
}
END_TEST

START_TEST(what_is_no_frame_is_not_sent)
{
    pair_open();
    struct frame_fds fds = {.count = FRAME_MAX_FDS + 1};
    ck_assert_int_eq(seqpacket_send(ends[0], "", 0, NULL, NULL), ERR_INVALID);
    ck_assert_int_eq(seqpacket_send(ends[0], frame, FRAME_MAX_BYTES + 1, NULL, NULL), ERR_INVALID);
    ck_assert_int_eq(seqpacket_send(ends[0], "a", 1, &fds, NULL), ERR_INVALID);
    fds.count = -1;
    ck_assert_int_eq(seqpacket_send(ends[0], "a", 1, &fds, NULL), ERR_INVALID);
    size_t size = 0;
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, NULL),
                     SEQPACKET_AGAIN);
    pair_close();
}
END_TEST

START_TEST(a_full_socket_says_again)
{
    pair_open();
    int sent = 0;
    int rc = 0;
    while ((rc = seqpacket_send(ends[0], frame, sizeof frame, NULL, NULL)) == 0) {
        ck_assert_int_lt(++sent, 1000);
    }
    ck_assert_int_eq(rc, SEQPACKET_AGAIN);
    ck_assert_int_gt(sent, 0);
    size_t size = 0;
    for (int i = 0; i < sent; i++) {
        ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, NULL), 0);
        ck_assert_uint_eq(size, sizeof frame);
    }
    ck_assert_int_eq(seqpacket_send(ends[0], frame, sizeof frame, NULL, NULL), 0);
    pair_close();
}
END_TEST

START_TEST(descriptors_come_with_their_frame)
{
    pair_open();
    int before = descriptors_open();
    struct frame_fds out = {.count = FRAME_MAX_FDS};
    int files[2];
    ck_assert_int_eq(pipe(files), 0);
    for (int i = 0; i < FRAME_MAX_FDS; i++) {
        out.fd[i] = files[1];
    }
    ck_assert_int_eq(seqpacket_send(ends[0], "x", 1, &out, NULL), 0);
    struct frame_fds in = {.count = 0};
    size_t size = 0;
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, &in, NULL), 0);
    ck_assert_int_eq(in.count, FRAME_MAX_FDS);
    char byte = 'b';
    for (int i = 0; i < in.count; i++) {
        ck_assert_int_ne(fcntl(in.fd[i], F_GETFD) & FD_CLOEXEC, 0);
        ck_assert_int_eq(write(in.fd[i], &byte, 1), 1);
    }
    frame_fds_close(&in);
    ck_assert_int_eq(in.count, 0);
    ck_assert_int_eq(close(files[0]), 0);
    ck_assert_int_eq(close(files[1]), 0);
    ck_assert_int_eq(descriptors_open(), before);
    pair_close();
}
END_TEST

START_TEST(descriptors_nobody_asked_for_are_closed)
{
    pair_open();
    int before = descriptors_open();
    struct frame_fds out = {.fd = {STDERR_FILENO}, .count = 1};
    ck_assert_int_eq(seqpacket_send(ends[0], "x", 1, &out, NULL), 0);
    size_t size = 0;
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, NULL), 0);
    ck_assert_int_eq(descriptors_open(), before);
    pair_close();
}
END_TEST

/* What a hostile peer would send: as seqpacket_send, without its limit. */
static void send_fds(int count, const void *data, size_t size)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * 64)];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    size_t length = sizeof(int) * (size_t)count;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = CMSG_SPACE(length)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(length);
    for (int i = 0; i < count; i++) {
        int fd = STDERR_FILENO;
        memcpy(CMSG_DATA(c) + (size_t)i * sizeof fd, &fd, sizeof fd);
    }
    ck_assert_int_ge(sendmsg(ends[0], &msg, 0), 0);
}

START_TEST(a_flood_of_descriptors_is_refused_and_closed)
{
    pair_open();
    int before = descriptors_open();
    struct frame_fds in = {.count = 0};
    struct err e = ERR_INIT;
    size_t size = 77;
    for (int count = FRAME_MAX_FDS + 1; count <= 64; count++) {
        send_fds(count, "x", 1);
        ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, &in, &e),
                         ERR_PROTOCOL);
        ck_assert_int_eq(in.count, 0);
        ck_assert_uint_eq(size, 77);
        ck_assert_int_eq(descriptors_open(), before);
    }
    ck_assert_int_eq(seqpacket_send(ends[0], "ok", 2, NULL, NULL), 0);
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, &in, &e), 0);
    pair_close();
}
END_TEST

START_TEST(a_frame_that_is_too_long_is_refused)
{
    pair_open();
    int before = descriptors_open();
    unsigned char small[8];
    size_t size = 77;
    struct frame_fds in = {.count = 0};
    send_fds(2, "123456789", 9);
    ck_assert_int_eq(seqpacket_recv(ends[1], small, sizeof small, &size, &in, NULL), ERR_PROTOCOL);
    ck_assert_uint_eq(size, 77);
    ck_assert_int_eq(descriptors_open(), before);
    ck_assert_int_eq(seqpacket_send(ends[0], "12345678", 8, NULL, NULL), 0);
    ck_assert_int_eq(seqpacket_recv(ends[1], small, sizeof small, &size, &in, NULL), 0);
    ck_assert_uint_eq(size, 8);
    pair_close();
}
END_TEST

/* The limit of open files is this process's own affair: the peer may send the frame again. */
START_TEST(descriptors_without_a_place_are_no_fault_of_the_peer)
{
    pair_open();
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int before = descriptors_open();
    struct frame_fds in = {.count = 0};
    size_t size = 77;
    send_fds(2, "x", 1);
    const struct rlimit none = {.rlim_cur = 1, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = seqpacket_recv(ends[1], frame, sizeof frame, &size, &in, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(rc, ERR_BUSY);
    ck_assert_uint_eq(size, 77);
    ck_assert_int_eq(descriptors_open(), before);
    pair_close();
}
END_TEST

START_TEST(the_end_comes_after_what_was_sent)
{
    pair_open();
    size_t size = 0;
    ck_assert_int_eq(seqpacket_send(ends[0], "last", 4, NULL, NULL), 0);
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, NULL), 0);
    ck_assert_uint_eq(size, 4);
    ck_assert_int_eq(seqpacket_recv(ends[1], frame, sizeof frame, &size, NULL, NULL),
                     SEQPACKET_EOF);
    struct err e = ERR_INIT;
    ck_assert_int_lt(seqpacket_send(ends[1], "x", 1, NULL, &e), 0);
    ck_assert_int_eq(close(ends[1]), 0);
}
END_TEST

START_TEST(a_listener_is_reached_by_its_path_and_closed_to_others)
{
    char dir[] = "/tmp/gpud-seqpacket-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[64];
    (void)snprintf(path, sizeof path, "%s/s", dir);
    struct err e = ERR_INIT;
    int listener = -1;
    int client = -1;
    ck_assert_int_eq(seqpacket_connect(path, &client, &e), ERR_CONNECT);
    ck_assert_int_eq(seqpacket_listen(path, &listener, &e), 0);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    int other = -1;
    ck_assert_int_lt(seqpacket_listen(path, &other, &e), 0);
    ck_assert_int_eq(other, -1);

    ck_assert_int_eq(seqpacket_connect(path, &client, &e), 0);
    int served = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(served, 0);
    ck_assert_int_eq(seqpacket_send(client, "hi", 2, NULL, &e), 0);
    size_t size = 0;
    ck_assert_int_eq(seqpacket_recv(served, frame, sizeof frame, &size, NULL, &e), 0);
    ck_assert_uint_eq(size, 2);
    ck_assert_int_eq(close(client) + close(served) + close(listener), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* Many may come before the listener's process has its turn. */
START_TEST(a_crowd_gets_in)
{
    char dir[] = "/tmp/gpud-seqpacket-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[64];
    (void)snprintf(path, sizeof path, "%s/s", dir);
    struct err e = ERR_INIT;
    int listener = -1;
    int client[64];
    ck_assert_int_eq(seqpacket_listen(path, &listener, &e), 0);
    for (unsigned i = 0; i < 64; i++) {
        client[i] = -1;
        ck_assert_msg(seqpacket_connect(path, &client[i], &e) == 0, "%u: %s", i, e.text);
    }
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_int_eq(close(client[i]), 0);
    }
    ck_assert_int_eq(close(listener), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(a_path_that_does_not_fit_is_refused)
{
    char path[300];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    int fd = -5;
    int before = descriptors_open();
    ck_assert_int_eq(seqpacket_listen(path, &fd, NULL), ERR_INVALID);
    ck_assert_int_eq(seqpacket_connect(path, &fd, NULL), ERR_INVALID);
    ck_assert_int_eq(fd, -5);
    ck_assert_int_eq(descriptors_open(), before);
}
END_TEST

SUITE_MAIN("seqpacket", frames_arrive_whole_and_in_order, the_largest_frame_passes,
           what_is_no_frame_is_not_sent, a_full_socket_says_again,
           descriptors_come_with_their_frame, descriptors_nobody_asked_for_are_closed,
           a_flood_of_descriptors_is_refused_and_closed, a_frame_that_is_too_long_is_refused,
           descriptors_without_a_place_are_no_fault_of_the_peer, the_end_comes_after_what_was_sent,
           a_listener_is_reached_by_its_path_and_closed_to_others, a_crowd_gets_in,
           a_path_that_does_not_fit_is_refused)
