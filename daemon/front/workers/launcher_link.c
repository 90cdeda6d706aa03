#include "daemon/front/workers/launcher_link.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "daemon/front/settings/config.h"
#include "daemon/front/workers/launcher_start.h"
#include "daemon/front/workers/link.h"

#define SOCKET_NAME   CONFIG_LAUNCHER
#define START_NS      (5 * NS_PER_S)
#define HELLO_NS      (5 * NS_PER_S)
#define RETRY_NS      (5 * NS_PER_MS)
#define BUSY_RETRY_NS (20 * NS_PER_MS)
#define QUEUE_MAX     ((size_t)4 * 1024 * 1024)
#define HELLO_BYTES   512u /* more than a hello has */
#define ARGS_MAX      64u
#define WORKER_FDS    1
#define INVENTORY_FDS 4
#define STATUS_LIMIT  0xffffu

struct launcher_hello {
    char compiler[HASH_TEXT_BYTES];
    uint32_t worker_uid;
    uint32_t worker_gid;
    uint64_t lineage;
    unsigned copies;
};

struct launcher_link {
    struct link *link;
    struct launcher_hello hello;
    struct launcher_callbacks callbacks;
    void *data;
};

/* ---- frames from the launcher --------------------------------------------------------------- */

static int on_started(struct launcher_link *l, struct bytes frame, struct frame_fds *fds,
                      struct err *e)
{
    struct msg_l_started m;
    char text[PROTO_TEXT_MAX + 1];
    int rc = proto_decode(&schema_msg_l_started, frame, &m, e);
    if (rc != 0) {
        return rc;
    }
    if (!bytes_to_str(m.text, text, sizeof text)) {
        return err_set(e, ERR_PROTOCOL, "l_started: text with a NUL");
    }
    if (m.pid > INT_MAX || m.code > 0 || m.code < INT_MIN || fds->count > WORKER_FDS) {
        return err_set(e, ERR_PROTOCOL, "l_started: values out of range");
    }
    int fd = fds->count == WORKER_FDS ? fds->fd[0] : -1;
    fds->count = 0; /* the receiver owns it */
    l->callbacks.started(l->data, m.id, (pid_t)m.pid, fd, (int)m.code, text);
    return 0;
}

static int on_ended(struct launcher_link *l, struct bytes frame, struct err *e)
{
    struct msg_l_ended m;
    int rc = proto_decode(&schema_msg_l_ended, frame, &m, e);
    if (rc != 0) {
        return rc;
    }
    if (m.status > STATUS_LIMIT) {
        return err_set(e, ERR_PROTOCOL, "l_ended: status %llu", (unsigned long long)m.status);
    }
    l->callbacks.ended(l->data, m.id, (int)m.status, m.timed_out != 0);
    return 0;
}

static int on_inventory(struct launcher_link *l, struct bytes frame, struct frame_fds *fds,
                        struct err *e)
{
    struct msg_l_inventory m;
    int rc = proto_decode(&schema_msg_l_inventory, frame, &m, e);
    if (rc != 0) {
        return rc;
    }
    const int expected = m.pid != 0 ? INVENTORY_FDS : 1;
    if (fds->count != expected || m.pid > INT_MAX) {
        return err_set(e, ERR_PROTOCOL, "l_inventory: %d descriptors instead of %d", fds->count,
                       expected);
    }
    fds->count = 0; /* the receiver owns them */
    struct launcher_inventory inventory = {
        .id = m.id, .pid = (pid_t)m.pid, .device = m.device, .channel = -1, .fd = {-1, -1, -1}};
    if (m.pid != 0) {
        inventory.channel = fds->fd[0];
        memcpy(inventory.fd, fds->fd + 1, sizeof inventory.fd);
    } else {
        inventory.fd[WORKER_RECORD] = fds->fd[0];
    }
    l->callbacks.inventory(l->data, &inventory);
    return 0;
}

static int on_kept(struct launcher_link *l, struct bytes frame, struct frame_fds *fds,
                   struct err *e)
{
    struct msg_l_kept m;
    int rc = proto_decode(&schema_msg_l_kept, frame, &m, e);
    if (rc == 0 && fds->count != 1) {
        rc = err_set(e, ERR_PROTOCOL, "l_kept: %d descriptors instead of 1", fds->count);
    }
    if (rc == 0) {
        fds->count = 0; /* the receiver owns it */
        l->callbacks.kept(l->data, m.id, fds->fd[0]);
    }
    return rc;
}

static int on_listed(struct launcher_link *l, struct bytes frame, struct err *e)
{
    struct msg_l_listed m;
    int rc = proto_decode(&schema_msg_l_listed, frame, &m, e);
    if (rc == 0) {
        l->callbacks.listed(l->data, m.count);
    }
    return rc;
}

static int on_vacated(struct launcher_link *l, struct bytes frame, struct err *e)
{
    struct msg_l_vacated m;
    int rc = proto_decode(&schema_msg_l_vacated, frame, &m, e);
    if (rc == 0) {
        l->callbacks.vacated(l->data, m.id, m.left);
    }
    return rc;
}

static int dispatch(struct launcher_link *l, unsigned kind, struct bytes frame,
                    struct frame_fds *fds, struct err *e)
{
    switch (kind) {
    case FRAME_KIND_L_STARTED:
        return on_started(l, frame, fds, e);
    case FRAME_KIND_L_ENDED:
        return on_ended(l, frame, e);
    case FRAME_KIND_L_INVENTORY:
        return on_inventory(l, frame, fds, e);
    case FRAME_KIND_L_KEPT:
        return on_kept(l, frame, fds, e);
    case FRAME_KIND_L_LISTED:
        return on_listed(l, frame, e);
    case FRAME_KIND_L_VACATED:
        return on_vacated(l, frame, e);
    default:
        return err_set(e, ERR_PROTOCOL, "frame of kind %u", kind);
    }
}

/* A callback may close the link, so it comes last. */
static void on_frame(void *data, unsigned kind, struct bytes frame, struct frame_fds *fds)
{
    struct launcher_link *l = data;
    struct err e = ERR_INIT;
    if (dispatch(l, kind, frame, fds, &e) != 0) {
        (void)err_wrap(&e, "launcher");
        link_destroy(l->link);
        l->link = NULL;
        l->callbacks.lost(l->data, &e);
    }
}

static void on_broken(void *data, const struct err *e)
{
    struct launcher_link *l = data;
    struct err lost = *e;
    (void)err_wrap(&lost, "launcher");
    link_destroy(l->link);
    l->link = NULL;
    l->callbacks.lost(l->data, &lost);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void nap(uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    (void)nanosleep(&t, NULL);
}

static int hung_up(struct err *e)
{
    return err_set(e, ERR_BUSY, "the launcher already serves another gpud: end that gpud first");
}

/* Blocks until a frame arrives or the deadline passes. */
static int await_frame(int fd, uint64_t deadline, uint8_t *buffer, size_t size, size_t *ret_size,
                       struct err *e)
{
    for (;;) {
        int rc = seqpacket_recv(fd, buffer, size, ret_size, NULL, e);
        if (rc == SEQPACKET_EOF) {
            return hung_up(e);
        }
        if (rc != SEQPACKET_AGAIN) {
            return rc;
        }
        uint64_t now = clock_now_ns();
        if (now >= deadline) {
            return err_set(e, ERR_TIMEOUT, "the launcher did not answer in time");
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) < 0 && errno != EINTR) {
            return err_errno(e, ERR_IO, "waiting for the launcher");
        }
    }
}

static int say_hello(int fd, const char *build, struct err *e)
{
    struct msg_l_hello m = {.build = bytes_str(build), .pid = (uint64_t)getpid()};
    struct capbuf out;
    capbuf_init(&out, HELLO_BYTES);
    int rc = proto_encode(&schema_msg_l_hello, &m, &out, e);
    if (rc == 0) {
        rc = seqpacket_send(fd, out.data, out.size, NULL, e);
    }
    capbuf_finish(&out);
    if (rc > 0) {
        return err_set(e, ERR_IO, "the launcher does not read its frames");
    }
    return rc;
}

/* Exchanges hellos; a launcher of another build is refused. e: not NULL. */
static int greet(int fd, const char *build, struct launcher_hello *ret_hello, struct err *e)
{
    uint8_t buffer[HELLO_BYTES];
    size_t size = 0;
    if (!seqpacket_peer_trusted(fd)) { /* it gets workers' memory, and its reports are believed */
        return err_set(e, ERR_PERMISSION,
                       "the launcher is another user's process: is the runtime directory this "
                       "daemon's own?");
    }
    int rc = say_hello(fd, build, e);
    if (rc == ERR_IO && (e->vendor == EPIPE || e->vendor == ECONNRESET)) {
        return hung_up(e);
    }
    if (rc == 0) {
        rc = await_frame(fd, ns_add(clock_now_ns(), HELLO_NS), buffer, sizeof buffer, &size, e);
    }
    if (rc != 0) {
        return rc;
    }
    struct bytes frame = bytes_of(buffer, size);
    if (proto_kind(frame) != FRAME_KIND_L_HELLO) {
        return err_set(e, ERR_PROTOCOL, "the launcher does not begin with a hello");
    }
    struct msg_l_hello m;
    rc = proto_decode(&schema_msg_l_hello, frame, &m, e);
    if (rc != 0) {
        return rc;
    }
    if (!bytes_equal_str(m.build, build)) {
        return err_set(e, ERR_VERSION,
                       "the launcher (process %llu) is of build %.*s, this gpud is %s: end the "
                       "launcher, or start gpud again after the launcher has ended by itself",
                       (unsigned long long)m.pid, (int)m.build.size, (const char *)m.build.data,
                       build);
    }
    if (!bytes_to_str(m.compiler, ret_hello->compiler, HASH_TEXT_BYTES)) {
        return err_set(e, ERR_PROTOCOL, "the launcher sends no hash of its compiler");
    }
    ret_hello->worker_uid = (uint32_t)m.worker_uid;
    ret_hello->worker_gid = (uint32_t)m.worker_gid;
    ret_hello->lineage = m.lineage;
    ret_hello->copies = (unsigned)m.copies;
    return 0;
}

static int socket_path(const char *dir, char *out, size_t size, struct err *e)
{
    int n = snprintf(out, size, "%s/%s", dir, SOCKET_NAME);
    if (n < 0 || (size_t)n >= size) {
        return err_set(e, ERR_INVALID, "%s: too long for a socket in it", dir);
    }
    return 0;
}

static int connect_retrying(const char *path, uint64_t deadline, int *ret_fd, struct err *e)
{
    int rc = seqpacket_connect(path, ret_fd, e);
    while (rc != 0 && clock_now_ns() < deadline) {
        nap(RETRY_NS);
        rc = seqpacket_connect(path, ret_fd, e);
    }
    return rc;
}

/* A refused connection means that the socket's owner has ended. */
static int remove_stale(const char *path, const struct err *why, struct err *e)
{
    if (why->vendor == ENOENT) {
        return 0;
    }
    if (why->vendor != ECONNREFUSED) {
        *e = *why;
        return why->code;
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        return err_errno(e, ERR_IO, "removing the stale %s", path);
    }
    return 0;
}

static int reach(const struct launcher_options *options, int *ret_fd, struct err *e)
{
    char path[PATH_MAX];
    struct err why = ERR_INIT;
    struct err ignored = ERR_INIT;
    int rc = socket_path(options->runtime_dir, path, sizeof path, e);
    if (rc != 0) {
        return rc;
    }
    rc = seqpacket_connect(path, ret_fd, &why);
    if (rc == 0) {
        return 0;
    }
    if (!options->start) {
        return err_set(e, rc, "%s", why.text);
    }
    rc = remove_stale(path, &why, e != NULL ? e : &ignored);
    if (rc == 0) {
        rc = launcher_start(options->program, options->runtime_dir, e);
    }
    if (rc == 0) {
        rc = connect_retrying(path, ns_add(clock_now_ns(), START_NS), ret_fd, e);
    }
    return rc;
}

/* Retries while a launcher hangs up, because it still serves the former front or is about to
 * end. */
static int meet(const struct launcher_options *options, const char *build,
                struct launcher_hello *ret_hello, int *ret_fd, struct err *e)
{
    struct err why = ERR_INIT;
    uint64_t patience_ns = options->patience_ns != 0 ? options->patience_ns : START_NS;
    uint64_t deadline = ns_add(clock_now_ns(), patience_ns);
    for (;;) {
        int fd = -1;
        int rc = reach(options, &fd, &why);
        if (rc == 0) {
            rc = greet(fd, build, ret_hello, &why);
            if (rc == 0) {
                *ret_fd = fd;
                return 0;
            }
            (void)close(fd);
        }
        if (rc != ERR_BUSY || clock_now_ns() >= deadline) {
            if (e != NULL) {
                *e = why;
            }
            return rc;
        }
        nap(BUSY_RETRY_NS);
    }
}

int launcher_link_open(uv_loop_t *loop, const struct launcher_options *options, const char *build,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, struct err *e)
{
    static const struct link_callbacks link_callbacks = {.frame = on_frame, .broken = on_broken};
    struct launcher_link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for the launcher's link");
    }
    l->callbacks = *callbacks;
    l->data = data;
    int fd = -1;
    int rc = meet(options, build, &l->hello, &fd, e);
    if (rc == 0) {
        rc = link_create(loop, fd, QUEUE_MAX, &link_callbacks, l, &l->link, e);
    }
    if (rc != 0) {
        free(l);
        return rc;
    }
    *ret_link = l;
    return 0;
}

const char *launcher_compiler_hash(const struct launcher_link *l)
{
    return l->hello.compiler;
}

uint64_t launcher_lineage(const struct launcher_link *l)
{
    return l->hello.lineage;
}

uint32_t launcher_worker_uid(const struct launcher_link *l)
{
    return l->hello.worker_uid;
}

uint32_t launcher_worker_gid(const struct launcher_link *l)
{
    return l->hello.worker_gid;
}

unsigned launcher_copies(const struct launcher_link *l)
{
    return l->hello.copies;
}

void launcher_link_close(struct launcher_link *l)
{
    if (l != NULL) {
        link_destroy(l->link);
        free(l);
    }
}

/* ---- frames to the launcher ----------------------------------------------------------------- */

static int send_frame(struct launcher_link *l, const struct schema *schema, const void *msg,
                      const struct frame_fds *fds, struct err *e)
{
    if (l == NULL || l->link == NULL) {
        return err_set(e, ERR_CLOSED, "the launcher has ended");
    }
    return link_send(l->link, schema, msg, fds, e);
}

/* *ret_list points into `out`. */
static int words(const char *const *args, struct capbuf *out, struct proto_list *ret_list,
                 struct err *e)
{
    uint64_t count = 0;
    for (; args[count] != NULL; count++) {
        if (count == ARGS_MAX) {
            return err_set(e, ERR_LIMIT, "over %u arguments", ARGS_MAX);
        }
        struct proto_word word = {.text = bytes_str(args[count])};
        int rc = proto_list_add(&schema_word, &word, out, e);
        if (rc != 0) {
            return rc;
        }
    }
    *ret_list = proto_list_of(out, count);
    return 0;
}

int launcher_worker(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    struct msg_l_worker m = {.id = w->id, .device = w->device, .prepare = w->prepare};
    struct frame_fds fds = {.fd = {w->fd[0], w->fd[1], w->fd[2]}, .count = LAUNCHER_WORKER_FDS};
    struct capbuf space;
    capbuf_init(&space, FRAME_MAX_BYTES);
    int rc = words(w->args, &space, &m.args, e);
    if (rc == 0) {
        rc = send_frame(l, &schema_msg_l_worker, &m, &fds, e);
    }
    capbuf_finish(&space);
    return rc;
}

int launcher_device(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    struct msg_l_device m = {.id = id, .device = device};
    return send_frame(l, &schema_msg_l_device, &m, NULL, e);
}

int launcher_compiler(struct launcher_link *l, uint64_t id, const char *const *args,
                      const struct launcher_limits *limits, int request, int response,
                      struct err *e)
{
    struct msg_l_compiler m = {
        .id = id, .cpu_s = limits->cpu_s, .memory = limits->memory, .wall_ns = limits->wall_ns};
    struct frame_fds fds = {.fd = {request, response}, .count = 2};
    struct capbuf space;
    capbuf_init(&space, FRAME_MAX_BYTES);
    int rc = words(args, &space, &m.args, e);
    if (rc == 0) {
        rc = send_frame(l, &schema_msg_l_compiler, &m, &fds, e);
    }
    capbuf_finish(&space);
    return rc;
}

int launcher_monitor(struct launcher_link *l, uint64_t id, int page, struct err *e)
{
    struct msg_l_monitor m = {.id = id};
    struct frame_fds fds = {.fd = {page}, .count = 1};
    return send_frame(l, &schema_msg_l_monitor, &m, &fds, e);
}

int launcher_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    struct msg_l_kill m = {.id = id, .signal = (uint64_t)signal};
    if (signal < 0) {
        return err_set(e, ERR_INVALID, "signal %d", signal);
    }
    return send_frame(l, &schema_msg_l_kill, &m, NULL, e);
}

int launcher_keep(struct launcher_link *l, uint64_t id, uint64_t worker, int fd, struct err *e)
{
    struct msg_l_keep m = {.id = id, .worker = worker};
    struct frame_fds fds = {.fd = {fd}, .count = 1};
    return send_frame(l, &schema_msg_l_keep, &m, &fds, e);
}

int launcher_release(struct launcher_link *l, uint64_t id, struct err *e)
{
    struct msg_l_release m = {.id = id};
    return send_frame(l, &schema_msg_l_release, &m, NULL, e);
}

int launcher_vacate(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    struct msg_l_vacate m = {.id = id, .device = device};
    return send_frame(l, &schema_msg_l_vacate, &m, NULL, e);
}

int launcher_list(struct launcher_link *l, struct err *e)
{
    struct msg_l_list m = {0};
    return send_frame(l, &schema_msg_l_list, &m, NULL, e);
}

int launcher_quit(struct launcher_link *l, struct err *e)
{
    struct msg_l_quit m = {0};
    return send_frame(l, &schema_msg_l_quit, &m, NULL, e);
}
