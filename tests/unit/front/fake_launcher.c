#include "tests/unit/front/fake_launcher.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/front/scratch.h"

struct fake {
    int listening;
    int far_end;
    const char *build;
    unsigned hangups;
};

static void await_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, -1), 1);
}

void fake_send(int far_end, const struct schema *schema, const void *msg,
               const struct frame_fds *fds)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    ck_assert_int_eq(seqpacket_send(far_end, out.data, out.size, fds, &e), 0);
    capbuf_finish(&out);
}

void fake_recv(int far_end, const struct schema *schema, void *ret_msg, struct frame_fds *ret_fds)
{
    static uint8_t buffer[FRAME_MAX_BYTES];
    size_t size = 0;
    struct err e = ERR_INIT;
    await_readable(far_end);
    ck_assert_int_eq(seqpacket_recv(far_end, buffer, sizeof buffer, &size, ret_fds, &e), 0);
    ck_assert_uint_eq(proto_kind(bytes_of(buffer, size)), schema->kind);
    ck_assert_int_eq(proto_decode(schema, bytes_of(buffer, size), ret_msg, &e), 0);
}

bool fake_has_frame(int far_end)
{
    struct pollfd p = {.fd = far_end, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

char fake_compiler_hash[HASH_TEXT_BYTES];

static void *greet(void *data)
{
    struct fake *fake = data;
    int fd = -1;
    for (unsigned i = 0; i <= fake->hangups; i++) {
        if (fd >= 0) {
            (void)close(fd);
        }
        await_readable(fake->listening);
        fd = accept4(fake->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        ck_assert_int_ge(fd, 0);
    }
    if (fake->build[0] == '\0') {
        (void)close(fd);
        return NULL;
    }
    struct msg_l_hello theirs;
    struct msg_l_hello hello = {
        .build = bytes_str(fake->build), .pid = 1, .compiler = bytes_str(fake_compiler_hash)};
    fake_recv(fd, &schema_msg_l_hello, &theirs, NULL);
    ck_assert_uint_eq(theirs.pid, (uint64_t)getpid());
    fake_send(fd, &schema_msg_l_hello, &hello, NULL);
    fake->far_end = fd;
    return NULL;
}

int fake_launcher_open(uv_loop_t *loop, const char *dir, const char *build,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, int *ret_far, struct err *e)
{
    return fake_launcher_busy(loop, dir, build, 0, callbacks, data, ret_link, ret_far, e);
}

int fake_launcher_busy(uv_loop_t *loop, const char *dir, const char *build, unsigned hangups,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, int *ret_far, struct err *e)
{
    struct fake fake = {.far_end = -1, .build = build, .hangups = hangups};
    struct launcher_options options = {
        .runtime_dir = dir, .start = false, .patience_ns = build[0] == '\0' ? 1 : UINT64_MAX};
    pthread_t thread;
    ck_assert_int_eq(seqpacket_listen(scratch_path(dir, "launcher.sock"), &fake.listening, e), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, greet, &fake), 0);
    int rc = launcher_link_open(loop, &options, FAKE_BUILD, callbacks, data, ret_link, e);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(fake.listening);
    (void)unlink(scratch_path(dir, "launcher.sock"));
    *ret_far = fake.far_end;
    return rc;
}
