/* gpud-launcher as a process, with the test as its front and a helper as worker and compiler. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/memfd.h"
#include "common/seqpacket.h"
#include "proto/codec.h"

#define WAIT_MS 60000

struct bench {
    char dir[64];
    char socket[96];
    pid_t pid; /* the launcher's */
    int fd;    /* the connection, -1 */
    uint8_t frame[FRAME_MAX_BYTES];
    size_t size;
    struct frame_fds fds;
    char program_hash[HASH_TEXT_BYTES];
};

/* ---- the launcher --------------------------------------------------------------------------- */

static void wait_for(const char *path)
{
    struct err e = ERR_INIT;
    uint64_t until = clock_now_ns() + WAIT_MS * NS_PER_MS;
    int fd = -1;
    while (seqpacket_connect(path, &fd, &e) != 0) {
        ck_assert_msg(clock_now_ns() < until, "%s", e.text);
        (void)poll(NULL, 0, 5);
    }
    (void)close(fd);
}

static const char *worker_user; /* NULL: the launcher's own */

static pid_t launcher_start(struct bench *b, const char *program, const char *linger)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/gpud-launcher", GPUD_BIN_DIR);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setenv("SECRET_OF_THE_LAUNCHER", "1", 1);
        (void)setenv("GPUD_LOG", "info", 1);
        if (worker_user != NULL) {
            (void)execl(path, path, "--runtime-dir", b->dir, "--worker", program, "--compiler",
                        program, "--supervised", "--worker-user", worker_user, NULL);
        }
        (void)execl(path, path, "--runtime-dir", b->dir, "--worker", program, "--compiler", program,
                    linger != NULL ? "--linger" : "--supervised", linger, NULL);
        _exit(127);
    }
    return pid;
}

static void program_hash(const char *program, char out[HASH_TEXT_BYTES])
{
    struct hash hash;
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert(hash_file(fd, &hash));
    (void)close(fd);
    (void)hash_text(hash, out);
}

static void bench_start(struct bench *b, const char *program, const char *linger)
{
    memset(b, 0, sizeof *b);
    (void)snprintf(b->dir, sizeof b->dir, "/tmp/gpud-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    (void)snprintf(b->socket, sizeof b->socket, "%s/launcher.sock", b->dir);
    b->fd = -1;
    program_hash(program, b->program_hash);
    b->pid = launcher_start(b, program, linger);
    wait_for(b->socket);
}

static int launcher_reap(struct bench *b)
{
    int status = 0;
    ck_assert_int_eq(waitpid(b->pid, &status, 0), b->pid);
    b->pid = 0;
    return status;
}

static void bench_finish(struct bench *b)
{
    char path[128];
    if (b->pid > 0) {
        (void)kill(b->pid, SIGTERM);
        int status = launcher_reap(b);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    }
    if (b->fd >= 0) {
        (void)close(b->fd);
    }
    frame_fds_close(&b->fds);
    (void)unlink(b->socket);
    (void)snprintf(path, sizeof path, "%s/launcher.lock", b->dir);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(b->dir), 0);
}

/* ---- frames --------------------------------------------------------------------------------- */

static void send_msg(struct bench *b, const struct schema *schema, const void *msg,
                     const struct frame_fds *fds)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    ck_assert_int_eq(seqpacket_send(b->fd, out.data, out.size, fds, &e), 0);
    capbuf_finish(&out);
}

/* The next frame's kind, 0 at the end of the connection. */
static unsigned next(struct bench *b)
{
    struct err e = ERR_INIT;
    struct pollfd p = {.fd = b->fd, .events = POLLIN};
    frame_fds_close(&b->fds);
    ck_assert_msg(poll(&p, 1, WAIT_MS) > 0, "no frame came");
    int rc = seqpacket_recv(b->fd, b->frame, sizeof b->frame, &b->size, &b->fds, &e);
    ck_assert_msg(rc == 0 || rc == SEQPACKET_EOF, "%d %s", rc, e.text);
    return rc == 0 ? proto_kind(bytes_of(b->frame, b->size)) : 0;
}

static void expect(struct bench *b, unsigned kind, const struct schema *schema, void *ret_msg)
{
    struct err e = ERR_INIT;
    unsigned got = next(b);
    ck_assert_msg(got == kind, "frame %u instead of %u", got, kind);
    ck_assert_int_eq(proto_decode(schema, bytes_of(b->frame, b->size), ret_msg, &e), 0);
}

static void greet(struct bench *b)
{
    struct err e = ERR_INIT;
    struct msg_l_hello hello = {.build = bytes_str("test"), .pid = (uint64_t)getpid()};
    struct msg_l_hello answer;
    ck_assert_int_eq(seqpacket_connect(b->socket, &b->fd, &e), 0);
    send_msg(b, &schema_msg_l_hello, &hello, NULL);
    expect(b, FRAME_KIND_L_HELLO, &schema_msg_l_hello, &answer);
    ck_assert_int_eq((pid_t)answer.pid, b->pid);
    ck_assert_uint_gt(answer.build.size, 0);
    ck_assert(bytes_equal_str(answer.compiler, b->program_hash));
}

static struct proto_list word_list(const char *word, struct capbuf *space)
{
    struct proto_word w = {.text = bytes_str(word)};
    capbuf_init(space, 1024);
    ck_assert_int_eq(proto_list_add(&schema_word, &w, space, NULL), 0);
    return proto_list_of(space, 1);
}

/* Its channel; the pid in *ret_pid. */
static int worker_start(struct bench *b, uint64_t id, const char *mode, int in, int out,
                        pid_t *ret_pid)
{
    struct capbuf space;
    struct frame_fds fds = {.fd = {in, out, in}, .count = 3}; /* the last one is not handed on */
    struct msg_l_started started;
    struct msg_l_worker msg = {
        .id = id, .args = word_list(mode, &space), .device = bytes_str("device")};
    send_msg(b, &schema_msg_l_worker, &msg, &fds);
    capbuf_finish(&space);
    expect(b, FRAME_KIND_L_STARTED, &schema_msg_l_started, &started);
    ck_assert_msg(started.code == 0, "%.*s", (int)started.text.size, started.text.data);
    ck_assert_uint_eq(started.id, id);
    ck_assert_int_eq(b->fds.count, 1);
    b->fds.count = 0;
    *ret_pid = (pid_t)started.pid;
    return b->fds.fd[0];
}

static void compiler_start(struct bench *b, uint64_t id, const char *mode, int out,
                           struct msg_l_compiler limits)
{
    struct capbuf space;
    struct frame_fds fds = {.fd = {out, out}, .count = 2};
    struct msg_l_started started;
    limits.id = id;
    limits.args = word_list(mode, &space);
    send_msg(b, &schema_msg_l_compiler, &limits, &fds);
    capbuf_finish(&space);
    expect(b, FRAME_KIND_L_STARTED, &schema_msg_l_started, &started);
    ck_assert_int_eq((int)started.code, 0);
    ck_assert_int_eq(b->fds.count, 0);
}

static int expect_end(struct bench *b, uint64_t id, bool timed_out)
{
    struct msg_l_ended ended;
    expect(b, FRAME_KIND_L_ENDED, &schema_msg_l_ended, &ended);
    ck_assert_uint_eq(ended.id, id);
    ck_assert_uint_eq(ended.timed_out, timed_out);
    ck_assert_uint_gt(ended.pid, 0);
    return (int)ended.status;
}

static void check_echo(int channel)
{
    struct err e = ERR_INIT;
    char back[16];
    size_t size = 0;
    struct pollfd p = {.fd = channel, .events = POLLIN};
    ck_assert_int_eq(seqpacket_send(channel, "hello", 5, NULL, &e), 0);
    ck_assert_int_gt(poll(&p, 1, WAIT_MS), 0);
    ck_assert_int_eq(seqpacket_recv(channel, back, sizeof back, &size, NULL, &e), 0);
    ck_assert_uint_eq(size, 5);
}

static void check_closed(int channel)
{
    struct err e = ERR_INIT;
    char back[16];
    size_t size = 0;
    struct pollfd p = {.fd = channel, .events = POLLIN};
    ck_assert_int_gt(poll(&p, 1, WAIT_MS), 0);
    ck_assert_int_eq(seqpacket_recv(channel, back, sizeof back, &size, NULL, &e), SEQPACKET_EOF);
    (void)close(channel);
}

static int pidfd(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void check_ended(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "a process goes on");
    (void)close(fd);
}

static struct memfd memory(void)
{
    struct memfd m;
    struct err e = ERR_INIT;
    ck_assert_int_eq(memfd_create_sealed("test", 4096, &m, &e), 0);
    return m;
}

/* ---- tests ---------------------------------------------------------------------------------- */

START_TEST(a_worker_is_started_and_killed)
{
    struct bench b;
    struct memfd m = memory();
    pid_t pid = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 5, "echo", m.fd, m.fd, &pid);
    check_echo(channel);
    struct msg_l_kill msg = {.id = 5, .signal = SIGKILL};
    send_msg(&b, &schema_msg_l_kill, &msg, NULL);
    int status = expect_end(&b, 5, false);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_closed(channel);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

START_TEST(a_child_inherits_only_what_it_is_given)
{
    struct bench b;
    struct memfd m = memory();
    pid_t pid = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 1, "check", m.fd, m.fd, &pid);
    int status = expect_end(&b, 1, false);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "check %d", WEXITSTATUS(status));
    (void)close(channel);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* The second front is sent away; when the first is gone the next gets all ends of its worker. */
START_TEST(another_front_adopts)
{
    struct bench b;
    struct bench second;
    struct err e = ERR_INIT;
    struct memfd m = memory();
    struct memfd out = memory();
    struct msg_l_inventory inventory;
    struct msg_l_listed listed;
    struct msg_l_list list = {0};
    struct proto_word word;
    pid_t pid = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 7, "echo", m.fd, out.fd, &pid);
    memcpy(m.data, "input", 5);
    memcpy(out.data, "output", 6);

    second = b;
    ck_assert_int_eq(seqpacket_connect(b.socket, &second.fd, &e), 0);
    ck_assert_uint_eq(next(&second), 0);
    (void)close(second.fd);
    check_echo(channel);
    const struct msg_l_device named = {.id = 7, .device = bytes_str("a tenant's")};
    const struct msg_l_device ended = {.id = 8, .device = bytes_str("nobody's")};
    send_msg(&b, &schema_msg_l_device, &named, NULL);
    send_msg(&b, &schema_msg_l_device, &ended, NULL);

    (void)close(b.fd);
    (void)close(channel);
    memfd_finish(&m);
    memfd_finish(&out);
    greet(&b);
    send_msg(&b, &schema_msg_l_list, &list, NULL);
    expect(&b, FRAME_KIND_L_INVENTORY, &schema_msg_l_inventory, &inventory);
    ck_assert_uint_eq(inventory.id, 7);
    ck_assert_int_eq((pid_t)inventory.pid, pid);
    ck_assert(bytes_equal_str(inventory.device, "a tenant's"));
    struct proto_iter it = proto_iter_of(inventory.args);
    ck_assert(proto_list_next(&it, &schema_word, &word));
    ck_assert(bytes_equal_str(word.text, "echo"));
    ck_assert_int_eq(b.fds.count, 4);
    check_echo(b.fds.fd[0]);
    char bytes[6];
    ck_assert_int_eq(pread(b.fds.fd[1], bytes, 5, 0), 5);
    ck_assert_int_eq(memcmp(bytes, "input", 5), 0);
    ck_assert_int_eq(pread(b.fds.fd[2], bytes, 6, 0), 6);
    ck_assert_int_eq(memcmp(bytes, "output", 6), 0);
    ck_assert_int_eq(pread(b.fds.fd[3], bytes, 5, 0), 5); /* the record */
    ck_assert_int_eq(memcmp(bytes, "input", 5), 0);
    expect(&b, FRAME_KIND_L_LISTED, &schema_msg_l_listed, &listed);
    ck_assert_uint_eq(listed.count, 1);
    bench_finish(&b);
}
END_TEST

static void list_departed(struct bench *b, uint64_t id, const char *record)
{
    struct msg_l_inventory inventory;
    struct msg_l_listed listed;
    struct msg_l_list list = {0};
    char bytes[8] = "";
    send_msg(b, &schema_msg_l_list, &list, NULL);
    expect(b, FRAME_KIND_L_INVENTORY, &schema_msg_l_inventory, &inventory);
    ck_assert_uint_eq(inventory.id, id);
    ck_assert_uint_eq(inventory.pid, 0);
    ck_assert(bytes_equal_str(inventory.device, "device"));
    ck_assert_int_eq(b->fds.count, 1);
    ck_assert_int_ge(pread(b->fds.fd[0], bytes, sizeof bytes - 1, 0), 0);
    ck_assert_str_eq(bytes, record);
    expect(b, FRAME_KIND_L_LISTED, &schema_msg_l_listed, &listed);
    ck_assert_uint_eq(listed.count, 1);
}

/* The record of a worker that has ended is there until its device has another worker, whether a
 * front saw its end or not. */
START_TEST(an_ended_workers_record_is_kept)
{
    struct bench b;
    struct memfd first = memory();
    struct memfd second = memory();
    struct msg_l_ended ended;
    pid_t pid = 0;
    memcpy(first.data, "first", 5);
    memcpy(second.data, "second", 6);
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 7, "hang", first.fd, first.fd, &pid);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    expect(&b, FRAME_KIND_L_ENDED, &schema_msg_l_ended, &ended);
    (void)close(channel);
    list_departed(&b, 7, "first");
    (void)close(b.fd);
    greet(&b);
    list_departed(&b, 7, "first");

    channel = worker_start(&b, 8, "hang", second.fd, second.fd, &pid);
    int gone = pidfd(pid);
    (void)close(b.fd);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    check_ended(gone);
    (void)close(channel);
    greet(&b);
    list_departed(&b, 8, "second");
    bench_finish(&b);
    memfd_finish(&first);
    memfd_finish(&second);
}
END_TEST

/* Returns when the launcher has admitted the connection made last: a further one, which it takes
 * after that and refuses, has come to its end. */
static void admitted(const struct bench *b)
{
    struct err e = ERR_INIT;
    int fd = -1;
    ck_assert_int_eq(seqpacket_connect(b->socket, &fd, &e), 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
    (void)close(fd);
}

/* Ends between a front's admission and its hello are reported behind the launcher's hello. Earlier
 * ends are not reported: those processes are missing in the list that the front asks for. */
START_TEST(hello_comes_first)
{
    struct bench b;
    struct err e = ERR_INIT;
    struct memfd m = memory();
    struct memfd out = memory();
    struct msg_l_hello hello = {.build = bytes_str("test"), .pid = (uint64_t)getpid()};
    pid_t pid = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    (void)close(worker_start(&b, 7, "echo", m.fd, out.fd, &pid));
    (void)close(b.fd);
    ck_assert_int_eq(seqpacket_connect(b.socket, &b.fd, &e), 0);
    admitted(&b);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    for (unsigned i = 0; kill(pid, 0) == 0; i++) { /* until the launcher has collected it */
        ck_assert_uint_lt(i, WAIT_MS);
        (void)poll(NULL, 0, 1);
    }
    (void)poll(NULL, 0, 20);
    send_msg(&b, &schema_msg_l_hello, &hello, NULL);
    expect(&b, FRAME_KIND_L_HELLO, &schema_msg_l_hello, &hello);
    (void)expect_end(&b, 7, false);
    bench_finish(&b);
    memfd_finish(&m);
    memfd_finish(&out);
}
END_TEST

/* A compiler is ended at its wall time, together with the processes that it started. On a busy host
 * the time has to be long enough for one to be started. */
START_TEST(a_compiler_has_its_time)
{
    struct bench b;
    struct memfd m = memory();
    pid_t child = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    for (uint64_t ms = 200; child == 0; ms *= 2) {
        ck_assert_uint_lt(ms, WAIT_MS);
        compiler_start(&b, 3, "breed", m.fd, (struct msg_l_compiler){.wall_ns = ms * NS_PER_MS});
        int status = expect_end(&b, 3, true);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        memcpy(&child, m.data, sizeof child);
    }
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    if (fd >= 0) { /* killed but not yet collected */
        check_ended(fd);
    }
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

START_TEST(a_compiler_has_its_processor_time)
{
    struct bench b;
    struct memfd m = memory();
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    compiler_start(&b, 4, "spin", m.fd, (struct msg_l_compiler){.cpu_s = 1});
    int status = expect_end(&b, 4, false);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGXCPU);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* A hard limit that the launcher has itself is not raised, whichever user it runs as. */
START_TEST(a_lower_limit_of_processor_time_stays)
{
    const struct rlimit lower = {.rlim_cur = 6, .rlim_max = 6};
    struct bench b;
    struct memfd m = memory();
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &lower), 0);
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    compiler_start(&b, 4, "spin", m.fd, (struct msg_l_compiler){.cpu_s = 1000});
    int status = expect_end(&b, 4, false);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGXCPU);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* The helper goes up to each limit and beyond it, and says what did not end where it should. */
START_TEST(a_compiler_has_its_limits)
{
    struct bench b;
    struct memfd m = memory();
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    compiler_start(&b, 5, "limits", m.fd,
                   (struct msg_l_compiler){.cpu_s = 9, .memory = UINT64_C(512) << 20});
    int status = expect_end(&b, 5, false);
    ck_assert_msg(WIFEXITED(status), "%x", (unsigned)status);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    compiler_start(&b, 6, "write", m.fd, (struct msg_l_compiler){.cpu_s = 9});
    status = expect_end(&b, 6, false);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ, "%x", (unsigned)status);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* Also processes that ignore SIGTERM. */
START_TEST(quit_leaves_no_process)
{
    struct bench b;
    struct memfd m = memory();
    struct msg_l_quit quit = {0};
    pid_t pid[2];
    int channel[2];
    int ended[2];
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    for (unsigned i = 0; i < 2; i++) {
        channel[i] = worker_start(&b, i, i == 0 ? "echo" : "hang", m.fd, m.fd, &pid[i]);
        ended[i] = pidfd(pid[i]);
    }
    send_msg(&b, &schema_msg_l_quit, &quit, NULL);
    int status = launcher_reap(&b);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (unsigned i = 0; i < 2; i++) {
        check_ended(ended[i]);
        (void)close(channel[i]);
    }
    ck_assert_int_eq(access(b.socket, F_OK), -1);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* As proc(5) has it: S sleeps, T is stopped, Z has ended. */
static char state_of(pid_t pid)
{
    char path[64];
    char text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    ck_assert_ptr_nonnull(state);
    return state[2];
}

/* The front that asked for the end disconnects: the launcher does not spin until the children have
 * ended. */
START_TEST(a_launcher_that_ends_sleeps)
{
    struct bench b;
    struct memfd m = memory();
    struct msg_l_quit quit = {0};
    pid_t pid;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 1, "echo", m.fd, m.fd, &pid);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    while (state_of(pid) != 'T') { /* from then on only SIGKILL ends it */
        (void)poll(NULL, 0, 1);
    }
    send_msg(&b, &schema_msg_l_quit, &quit, NULL);
    (void)close(b.fd);
    b.fd = -1;
    admitted(&b); /* it has read that it is to end */
    char state;
    while ((state = state_of(b.pid)) != 'S') {
        ck_assert_msg(state != 'Z', "it has ended, and never slept");
        (void)poll(NULL, 0, 1);
    }
    int status = launcher_reap(&b);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)close(channel);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

START_TEST(workers_die_with_the_launcher)
{
    struct bench b;
    struct memfd m = memory();
    pid_t pid = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 1, "hang", m.fd, m.fd, &pid);
    int ended = pidfd(pid);
    ck_assert_int_eq(kill(b.pid, SIGKILL), 0);
    (void)launcher_reap(&b);
    check_ended(ended);
    check_closed(channel);
    /* the socket it left behind is taken over */
    b.pid = launcher_start(&b, GPUD_HELPER, NULL);
    wait_for(b.socket);
    (void)close(b.fd);
    greet(&b);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* A malformed frame ends the connection, nothing else. */
START_TEST(bad_frames_end_the_connection)
{
    struct bench b;
    struct err e = ERR_INIT;
    struct memfd m = memory();
    struct msg_l_list list = {0};
    struct msg_l_inventory inventory;
    pid_t pid = 0;
    static const uint8_t NOISE[] = {0x94, 0xcc, 193, 0xc1, 0xc1, 0xc1};
    bench_start(&b, GPUD_HELPER, NULL);
    greet(&b);
    int channel = worker_start(&b, 1, "echo", m.fd, m.fd, &pid);
    for (unsigned i = 0; i < 3; i++) {
        struct frame_fds fds = {.fd = {m.fd, m.fd, m.fd}, .count = 3};
        if (i == 0) {
            ck_assert_int_eq(seqpacket_send(b.fd, NOISE, sizeof NOISE, NULL, &e), 0);
        } else if (i == 1) { /* descriptors where none belong */
            send_msg(&b, &schema_msg_l_list, &list, &fds);
        } else { /* not greeted */
            (void)close(b.fd);
            ck_assert_int_eq(seqpacket_connect(b.socket, &b.fd, &e), 0);
            send_msg(&b, &schema_msg_l_list, &list, NULL);
        }
        ck_assert_uint_eq(next(&b), 0);
        (void)close(b.fd);
        greet(&b);
    }
    check_echo(channel);
    send_msg(&b, &schema_msg_l_list, &list, NULL);
    expect(&b, FRAME_KIND_L_INVENTORY, &schema_msg_l_inventory, &inventory);
    (void)close(channel);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

START_TEST(without_a_front_it_ends)
{
    struct bench b;
    struct memfd m = memory();
    pid_t pid = 0;
    bench_start(&b, GPUD_HELPER, "3"); /* it comes before that */
    greet(&b);
    int channel = worker_start(&b, 1, "echo", m.fd, m.fd, &pid);
    int ended = pidfd(pid);
    (void)close(b.fd);
    b.fd = -1;
    int status = launcher_reap(&b);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_ended(ended);
    (void)close(channel);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

START_TEST(a_second_launcher_gives_way)
{
    struct bench b;
    int status = 0;
    bench_start(&b, GPUD_HELPER, NULL);
    pid_t second = launcher_start(&b, GPUD_HELPER, NULL);
    ck_assert_int_eq(waitpid(second, &status, 0), second);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    greet(&b);
    bench_finish(&b);
}
END_TEST

#define STRANGER 65531u

static bool events(int fd)
{
    char buffer[4096];
    ssize_t n = read(fd, buffer, sizeof buffer);
    ck_assert(n > 0 || errno == EAGAIN);
    return n > 0;
}

/* A folder as PoCL makes it below HOME, with a watch for opens of it. */
static int kernels_watch(char *home)
{
    static const char *const folders[] = {"", "/.cache", "/.cache/pocl", "/.cache/pocl/kcache"};
    char path[96];
    ck_assert_ptr_nonnull(mkdtemp(home));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", home, folders[i]);
        ck_assert(i == 0 || mkdir(path, 0700) == 0);
        ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
    }
    ck_assert_int_eq(setenv("HOME", home, 1), 0);
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ck_assert_int_ge(inotify_add_watch(fd, path, IN_OPEN), 0);
    return fd;
}

/* Workers of the first launcher go back to kernels that the second one would remove. */
START_TEST(a_second_launcher_trims_no_kernels)
{
    if (geteuid() != 0) {
        return;
    }
    struct bench b;
    char home[] = "/tmp/gpud-test-home.XXXXXX";
    char path[96];
    int status = 0;
    int watch = kernels_watch(home);
    worker_user = "65531:65531";
    bench_start(&b, GPUD_HELPER, NULL);
    ck_assert(events(watch));
    pid_t second = launcher_start(&b, GPUD_HELPER, NULL);
    ck_assert_int_eq(waitpid(second, &status, 0), second);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    ck_assert(!events(watch));
    worker_user = NULL;
    (void)close(watch);
    bench_finish(&b);
    (void)snprintf(path, sizeof path, "%s/.cache/pocl/kcache", home);
    for (size_t left = 4; left > 0; left--) {
        ck_assert_int_eq(rmdir(path), 0);
        *strrchr(path, '/') = '\0';
    }
}
END_TEST

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    ck_assert(in >= 0 && out >= 0);
    while ((n = read(in, block, sizeof block)) > 0) {
        ck_assert_int_eq(write(out, block, (size_t)n), n);
    }
    (void)close(in);
    (void)close(out);
}

/* A file that replaces the program later does not run. */
START_TEST(an_upgrade_on_disk_mixes_nothing)
{
    struct bench b;
    struct memfd m = memory();
    char program[] = "/tmp/gpud-test-program.XXXXXX";
    pid_t pid = 0;
    (void)close(mkstemp(program));
    (void)unlink(program);
    copy_file(GPUD_HELPER, program);
    bench_start(&b, program, NULL);
    (void)unlink(program);
    copy_file("/bin/false", program);
    greet(&b);
    int channel = worker_start(&b, 1, "echo", m.fd, m.fd, &pid);
    check_echo(channel);
    (void)close(channel);
    (void)unlink(program);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

/* A file that is no program is reported, and leaves nothing behind. */
START_TEST(what_does_not_start_is_told)
{
    struct bench b;
    struct memfd m = memory();
    struct capbuf space;
    struct frame_fds fds = {.fd = {m.fd, m.fd, m.fd}, .count = 3};
    struct msg_l_started started;
    struct msg_l_worker msg = {.id = 1, .args = word_list("x", &space)};
    char path[64];
    char children[64];
    bench_start(&b, "/etc/passwd", NULL);
    greet(&b);
    for (unsigned i = 0; i < 2; i++) { /* the id is free again */
        send_msg(&b, &schema_msg_l_worker, &msg, &fds);
        expect(&b, FRAME_KIND_L_STARTED, &schema_msg_l_started, &started);
        ck_assert_int_eq((int)started.code, ERR_IO);
        ck_assert_uint_gt(started.text.size, 0);
        ck_assert_int_eq(b.fds.count, 0);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)b.pid, (int)b.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(read(fd, children, sizeof children), 0);
    (void)close(fd);
    capbuf_finish(&space);
    bench_finish(&b);
    memfd_finish(&m);
}
END_TEST

START_TEST(the_service_manager_is_told)
{
    struct bench b;
    char path[] = "/tmp/gpud-test-notify.XXXXXX";
    char text[64] = "";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)close(mkstemp(path));
    (void)unlink(path);
    memcpy(addr.sun_path, path, sizeof path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", path, 1), 0);
    bench_start(&b, GPUD_HELPER, NULL);
    ck_assert_int_gt(recv(fd, text, sizeof text - 1, 0), 0);
    ck_assert_str_eq(text, "READY=1");
    (void)close(fd);
    (void)unlink(path);
    bench_finish(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launcher");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 200);
    tcase_add_test(all, a_worker_is_started_and_killed);
    tcase_add_test(all, a_child_inherits_only_what_it_is_given);
    tcase_add_test(all, another_front_adopts);
    tcase_add_test(all, an_ended_workers_record_is_kept);
    tcase_add_test(all, hello_comes_first);
    tcase_add_test(all, a_compiler_has_its_time);
    tcase_add_test(all, a_compiler_has_its_processor_time);
    tcase_add_test(all, a_lower_limit_of_processor_time_stays);
    tcase_add_test(all, a_compiler_has_its_limits);
    tcase_add_test(all, quit_leaves_no_process);
    tcase_add_test(all, a_launcher_that_ends_sleeps);
    tcase_add_test(all, workers_die_with_the_launcher);
    tcase_add_test(all, bad_frames_end_the_connection);
    tcase_add_test(all, without_a_front_it_ends);
    tcase_add_test(all, a_second_launcher_gives_way);
    tcase_add_test(all, a_second_launcher_trims_no_kernels);
    tcase_add_test(all, an_upgrade_on_disk_mixes_nothing);
    tcase_add_test(all, what_does_not_start_is_told);
    tcase_add_test(all, the_service_manager_is_told);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
