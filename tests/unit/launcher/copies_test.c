/* Copies of buffers that the launcher keeps, and the records that name them. */
#include "daemon/launcher/copies.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/seqpacket.h"
#include "daemon/launcher/children.h"
#include "daemon/launcher/front.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"

static int make(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static struct copies *create(unsigned max)
{
    struct copies *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    copies_init(c);
    ck_assert_uint_ge(c->max, 100);
    c->max = max;
    return c;
}

static unsigned count(const struct copies *c)
{
    uint32_t cursor = 0;
    unsigned n = 0;
    while (copies_next(c, &cursor) != NULL) {
        n++;
    }
    ck_assert_uint_eq(n, c->count);
    return n;
}

START_TEST(they_are_kept_until_they_are_released)
{
    struct copies *c = create(4);
    int fd[5];
    for (unsigned i = 0; i < 4; i++) { /* all in one bucket, or not */
        fd[i] = make();
        ck_assert(copies_keep(c, UINT64_C(1) << (32 + i), 7, fd[i]));
    }
    fd[4] = make();
    ck_assert(!copies_keep(c, 1, 7, fd[4])); /* one more than there may be */
    ck_assert(is_open(fd[4]));
    copies_release(c, 1);
    ck_assert_uint_eq(count(c), 4);
    ck_assert(copies_keep(c, UINT64_C(1) << 33, 7, fd[4])); /* instead of the one before */
    ck_assert(!is_open(fd[1]));
    ck_assert_uint_eq(count(c), 4);
    for (unsigned i = 0; i < 4; i++) {
        copies_release(c, UINT64_C(1) << (32 + i));
        copies_release(c, UINT64_C(1) << (32 + i));
    }
    ck_assert_uint_eq(count(c), 0);
    ck_assert(!is_open(fd[0]) && !is_open(fd[2]) && !is_open(fd[3]) && !is_open(fd[4]));
    for (unsigned i = 0; i < 3 * COPIES_MAX; i++) { /* places are used again */
        ck_assert(copies_keep(c, i, 7, make()));
        copies_release(c, i);
    }
    ck_assert_uint_le(c->used, 4);
    free(c);
}
END_TEST

/* Half of the descriptors are for all else. */
START_TEST(descriptors_are_left)
{
    struct rlimit before;
    struct copies *c = create(1);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = {.rlim_cur = 200, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    copies_init(c);
    ck_assert_uint_eq(c->max, 100);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(c);
}
END_TEST

/* A worker that has ended; its record is kept. */
static void departed(struct children *c, uint64_t id)
{
    struct child *child = children_add(c, CHILD_WORKER, id);
    ck_assert_ptr_nonnull(child);
    child->fd[CHILD_RECORD] = make();
    ck_assert(child_departed(child));
}

static bool has(const struct children *c, uint64_t id)
{
    bool any = false;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        any = any || (c->child[i].kind == CHILD_WORKER && c->child[i].id == id);
    }
    return any;
}

/* Records of ended workers make room for others, but for those that name copies. */
START_TEST(a_record_with_copies_stays)
{
    struct children *c = calloc(1, sizeof *c);
    ck_assert_ptr_nonnull(c);
    children_init(c);
    ck_assert(copies_keep(&c->copies, 55, 1, make()));
    for (unsigned id = 1; id <= CHILDREN_MAX + 2; id++) {
        departed(c, id);
    }
    ck_assert(has(c, 1));
    ck_assert(!has(c, 2) && !has(c, 3));
    copies_move(&c->copies, 1, 5); /* another worker got the record */
    departed(c, 1000);
    ck_assert(!has(c, 1));
    departed(c, 1001);
    departed(c, 1002);
    ck_assert(has(c, 5));
    copies_release(&c->copies, 55);
    departed(c, 1003);
    ck_assert(!has(c, 5));
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        child_remove(&c->child[i]);
    }
    free(c);
}
END_TEST

/* ---- frames ---------------------------------------------------------------------------------- */

static struct children all;
static struct front f;
static int far_end; /* the front's */

static void meet(void)
{
    struct err e = ERR_INIT;
    int pair[2];
    ck_assert_int_eq(seqpacket_pair(pair, &e), 0);
    far_end = pair[1];
    front_accept(&f, pair[0]);
}

static void leave(void)
{
    (void)close(far_end);
    front_close(&f);
}

static int say(const struct schema *schema, const void *msg, int fd)
{
    struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    ck_assert_int_eq(seqpacket_send(far_end, out.data, out.size, &fds, &e), 0);
    capbuf_finish(&out);
    int rc = front_read(&f, &e);
    return rc == 0 ? front_flush(&f, &e) : rc;
}

static void hear(const struct schema *schema, void *ret_msg, struct frame_fds *ret_fds)
{
    static uint8_t frame[FRAME_MAX_BYTES];
    struct err e = ERR_INIT;
    size_t size = 0;
    ck_assert_int_eq(seqpacket_recv(far_end, frame, sizeof frame, &size, ret_fds, &e), 0);
    ck_assert_int_eq(proto_decode(schema, bytes_of(frame, size), ret_msg, &e), 0);
}

static void hello(uint64_t copies)
{
    const struct msg_l_hello mine = {.build = bytes_str("test")};
    struct msg_l_hello theirs;
    ck_assert_int_eq(say(&schema_msg_l_hello, &mine, -1), 0);
    hear(&schema_msg_l_hello, &theirs, NULL);
    ck_assert_uint_eq(theirs.copies, copies);
}

/* The first bytes of the one copy that there is; "": there is none. */
static void list(uint64_t id, const char *bytes)
{
    const struct msg_l_list ask = {0};
    struct msg_l_listed listed;
    ck_assert_int_eq(say(&schema_msg_l_list, &ask, -1), 0);
    if (bytes[0] != '\0') {
        struct msg_l_kept kept;
        struct frame_fds fds = {.count = 0};
        char has[8] = "";
        hear(&schema_msg_l_kept, &kept, &fds);
        ck_assert_uint_eq(kept.id, id);
        ck_assert_int_eq(fds.count, 1);
        ck_assert_int_ge(pread(fds.fd[0], has, sizeof has - 1, 0), 0);
        ck_assert_str_eq(has, bytes);
        frame_fds_close(&fds);
    }
    hear(&schema_msg_l_listed, &listed, NULL);
    ck_assert_uint_eq(listed.count, 0);
}

static int memory(const char *bytes)
{
    int fd = memfd_create("copy", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
    return fd;
}

/* Each front gets all copies that those before it have left, until one releases them. */
START_TEST(copies_are_for_the_next_front)
{
    const struct programs programs = {.worker = -1, .compiler = -1, .monitor = -1};
    const struct msg_l_keep keep[] = {{.id = 5, .worker = 1}, {.id = 6, .worker = 1}};
    const struct msg_l_release release[] = {{.id = 5}, {.id = 6}};
    int first = memory("first");
    int second = memory("second");
    children_init(&all);
    all.copies.max = 2;
    ck_assert_int_eq(front_init(&f, &all, &programs, "test", NULL), 0);
    meet();
    hello(2);
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[0], first), 0);
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[1], first), 0);
    ck_assert_int_eq(say(&schema_msg_l_release, &release[0], -1), 0);
    for (unsigned i = 0; i < 2; i++) {
        leave();
        meet();
        hello(2);
        list(6, "first");
    }
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[1], second), 0); /* instead of it */
    list(6, "second");
    ck_assert_int_eq(say(&schema_msg_l_release, &release[1], -1), 0);
    list(0, "");
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[0], -1), ERR_PROTOCOL); /* without a copy */
    leave();
    ck_assert_uint_eq(all.copies.count, 0);
    (void)close(first);
    (void)close(second);
}
END_TEST

/* It is as if it had not come. The connection, and with it all workers, stay. */
START_TEST(a_copy_too_many_is_not_kept)
{
    const struct programs programs = {.worker = -1, .compiler = -1, .monitor = -1};
    const struct msg_l_keep keep[] = {{.id = 5, .worker = 1}, {.id = 6, .worker = 1}};
    const struct msg_l_release gone = {.id = 5};
    int first = memory("first");
    int second = memory("second");
    children_init(&all);
    all.copies.max = 1;
    ck_assert_int_eq(front_init(&f, &all, &programs, "test", NULL), 0);
    meet();
    hello(1);
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[0], first), 0);
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[1], second), 0);
    list(5, "first");
    ck_assert_int_eq(say(&schema_msg_l_release, &gone, -1), 0);
    ck_assert_int_eq(say(&schema_msg_l_keep, &keep[1], second), 0);
    list(6, "second");
    copies_release(&all.copies, 6);
    leave();
    (void)close(first);
    (void)close(second);
}
END_TEST

SUITE_MAIN("copies", a_copy_too_many_is_not_kept, copies_are_for_the_next_front,
           they_are_kept_until_they_are_released, descriptors_are_left, a_record_with_copies_stays)
