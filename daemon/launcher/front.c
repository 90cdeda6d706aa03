#include "daemon/launcher/front.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/seqpacket.h"
#include "daemon/launcher/launch.h"
#include "proto/codec.h"

#define FRAMES_A_TURN  64
#define COMPILER_FILE  (256ull * 1024 * 1024) /* bytes of a file that a compiler writes */
#define COMPILER_FILES 256                    /* descriptors */
#define COMPILER_NICE  10 /* a tenth of the processor time that a worker has beside it */

int front_init(struct front *f, struct children *children, const struct programs *programs,
               const char *build, struct err *e)
{
    *f = (struct front){.fd = -1, .children = children, .programs = *programs, .build = build};
    f->workers = (struct workers){.children = children, .program = programs->worker};
    return getrandom(&f->lineage, sizeof f->lineage, 0) == (ssize_t)sizeof f->lineage
               ? 0
               : err_errno(e, ERR_IO, "random bytes");
}

void front_accept(struct front *f, int fd)
{
    f->fd = fd;
    f->greeted = false;
    f->owes_hello = false;
    f->owes_listed = false;
    f->owes_copies = false;
    f->wants_write = false;
}

void front_close(struct front *f)
{
    if (f->fd >= 0) {
        (void)close(f->fd);
        f->fd = -1;
    }
    children_orphan(f->children);
}

/* ---- out ------------------------------------------------------------------------------------ */

/* Like seqpacket_send: 0, SEQPACKET_AGAIN or an error. */
static int send_msg(struct front *f, const struct schema *schema, const void *msg,
                    const struct frame_fds *fds, struct err *e)
{
    struct capbuf out;
    capbuf_init(&out, FRAME_MAX_BYTES);
    int rc = proto_encode(schema, msg, &out, e);
    if (rc == 0) {
        rc = seqpacket_send(f->fd, out.data, out.size, fds, e);
    }
    capbuf_finish(&out);
    return rc;
}

static int send_hello(struct front *f, struct err *e)
{
    struct msg_l_hello msg = {.build = bytes_str(f->build),
                              .pid = (uint64_t)getpid(),
                              .compiler = bytes_str(f->programs.compiler_hash),
                              .worker_uid = f->stranger.uid,
                              .worker_gid = f->stranger.uid != 0 ? f->stranger.gid : 0,
                              .lineage = f->lineage,
                              .copies = f->children->copies.max};
    return send_msg(f, &schema_msg_l_hello, &msg, NULL, e);
}

static int send_started(struct front *f, const struct child *child, struct err *e)
{
    struct msg_l_started msg = {.id = child->id,
                                .pid = (uint64_t)child->number,
                                .code = child->code,
                                .text = bytes_str(child->text)};
    struct frame_fds fds = {.count = 0};
    if (child->fd[CHILD_CHANNEL] >= 0) {
        fds.fd[fds.count++] = child->fd[CHILD_CHANNEL];
    }
    return send_msg(f, &schema_msg_l_started, &msg, &fds, e);
}

static int send_ended(struct front *f, const struct child *child, struct err *e)
{
    struct msg_l_ended msg = {.id = child->id,
                              .pid = (uint64_t)child->number,
                              .status = (uint64_t)child->status,
                              .timed_out = child->timed_out};
    return send_msg(f, &schema_msg_l_ended, &msg, NULL, e);
}

static int send_inventory(struct front *f, const struct child *child, struct err *e)
{
    struct msg_l_worker asked;
    int rc = proto_decode(&schema_msg_l_worker, child->frame, &asked, e);
    if (rc != 0) {
        return rc;
    }
    struct msg_l_inventory msg = {
        .id = child->id, .pid = (uint64_t)child->pid, .args = asked.args, .device = child->device};
    struct frame_fds fds = {.count = CHILD_FDS};
    memcpy(fds.fd, child->fd, sizeof child->fd);
    if (child->pid == 0) {
        fds = (struct frame_fds){.fd = {child->fd[CHILD_RECORD]}, .count = 1};
    }
    return send_msg(f, &schema_msg_l_inventory, &msg, &fds, e);
}

static int flush_copies(struct front *f, struct err *e)
{
    const struct copy *copy;
    uint32_t at = f->copies_cursor;
    while ((copy = copies_next(&f->children->copies, &at)) != NULL) {
        struct msg_l_kept msg = {.id = copy->id};
        struct frame_fds fds = {.fd = {copy->fd}, .count = 1};
        int rc = send_msg(f, &schema_msg_l_kept, &msg, &fds, e);
        if (rc != 0) {
            return rc;
        }
        f->copies_cursor = at;
    }
    f->owes_copies = false;
    return 0;
}

static int flush_child(struct front *f, struct child *child, struct err *e)
{
    static const struct {
        unsigned bit;
        int (*send)(struct front *f, const struct child *child, struct err *e);
    } SEND[] = {
        {OWED_STARTED, send_started}, {OWED_INVENTORY, send_inventory}, {OWED_ENDED, send_ended}};
    for (size_t i = 0; i < sizeof SEND / sizeof SEND[0]; i++) {
        if ((child->owed & SEND[i].bit) == 0) {
            continue;
        }
        int rc = SEND[i].send(f, child, e);
        if (rc != 0) {
            return rc;
        }
        child->owed &= ~SEND[i].bit;
    }
    if (child->pid == 0) {
        child_ended(child);
    }
    return 0;
}

static int flush_all(struct front *f, struct err *e)
{
    if (!f->greeted) {
        return 0; /* no frame goes out before L_HELLO */
    }
    if (f->owes_hello) {
        int rc = send_hello(f, e);
        if (rc != 0) {
            return rc;
        }
        f->owes_hello = false;
    }
    if (f->owes_copies) { /* the front has them when it reads the records */
        int rc = flush_copies(f, e);
        if (rc != 0) {
            return rc;
        }
    }
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &f->children->child[i];
        int rc = child->kind != CHILD_FREE && child->owed != 0 ? flush_child(f, child, e) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    if (f->owes_listed) {
        struct msg_l_listed msg = {.count = f->listed};
        int rc = send_msg(f, &schema_msg_l_listed, &msg, NULL, e);
        if (rc != 0) {
            return rc;
        }
        f->owes_listed = false;
    }
    return 0;
}

int front_flush(struct front *f, struct err *e)
{
    int rc = flush_all(f, e);
    f->wants_write = rc == SEQPACKET_AGAIN;
    return rc < 0 ? rc : 0;
}

/* ---- in ------------------------------------------------------------------------------------- */

static int refuse(struct front *f, uint64_t id, int code, const char *text, struct err *e)
{
    struct msg_l_started msg = {.id = id, .code = code, .text = bytes_str(text)};
    int rc = send_msg(f, &schema_msg_l_started, &msg, NULL, e);
    return rc == SEQPACKET_AGAIN ? err_set(e, ERR_LIMIT, "the front does not read its frames") : rc;
}

static struct child *child_for(struct front *f, enum child_kind kind, uint64_t id, int *ret_rc,
                               struct err *e)
{
    if (children_find(f->children, id) != NULL) {
        *ret_rc = refuse(f, id, ERR_EXISTS, "a child process with this id runs already", e);
        return NULL;
    }
    struct child *child = children_add(f->children, kind, id);
    if (child == NULL && workers_yield(&f->workers)) {
        child = children_add(f->children, kind, id);
    }
    if (child == NULL) {
        *ret_rc = refuse(f, id, ERR_LIMIT, "too many child processes", e);
    } else { /* the monitor runs no code of users, so it runs as the user whom the front trusts */
        child->identity = kind == CHILD_MONITOR ? &f->own : &f->stranger;
    }
    return child;
}

static int on_worker(struct front *f, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_l_worker msg;
    int rc = proto_decode(&schema_msg_l_worker, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    struct child *child = child_for(f, CHILD_WORKER, msg.id, &rc, e);
    if (child == NULL) {
        return rc;
    }
    struct err why = ERR_INIT;
    rc = workers_start(&f->workers, child, &msg, frame, fds, &why);
    if (rc != 0) {
        child_remove(child);
        return refuse(f, msg.id, rc, why.text, e);
    }
    return 0;
}

/* Without memory the old device stays, which the next front takes for a spare worker, and ends. */
static int on_device(struct front *f, struct bytes frame, struct err *e)
{
    struct msg_l_device msg;
    int rc = proto_decode(&schema_msg_l_device, frame, &msg, e);
    struct child *child = rc == 0 ? children_find(f->children, msg.id) : NULL;
    if (child == NULL || child->kind != CHILD_WORKER) {
        return rc; /* it has ended */
    }
    if (child_keep(&child->device, msg.device) == 0) {
        children_replace(f->children, child);
    } else {
        log_say(LOG_JOB_UNRECORDED, "worker %d: no memory to note that it is a tenant's now",
                (int)child->pid);
    }
    return 0;
}

static int on_compiler(struct front *f, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_l_compiler msg;
    int rc = proto_decode(&schema_msg_l_compiler, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    struct child *child = child_for(f, CHILD_COMPILER, msg.id, &rc, e);
    if (child == NULL) {
        return rc;
    }
    struct spawn s = {.program = f->programs.compiler,
                      .name = "gpud-compile",
                      .fd = {fds->fd[0], fds->fd[1]},
                      .fd_count = 2,
                      .limits = {.cpu_s = msg.cpu_s,
                                 .memory = msg.memory,
                                 .file = COMPILER_FILE,
                                 .files = COMPILER_FILES,
                                 .nice = COMPILER_NICE}};
    launch(child, s, msg.args, NULL, f->workers.journal);
    if (msg.wall_ns != 0) {
        child->kill_at = ns_add(clock_now_ns(), msg.wall_ns);
    }
    return 0;
}

/* The launcher does not wait for the monitor, which may hang in the driver and outlive SIGKILL. */
static int on_monitor(struct front *f, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_l_monitor msg;
    int rc = proto_decode(&schema_msg_l_monitor, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    if (f->programs.monitor < 0) {
        return refuse(f, msg.id, ERR_NOT_FOUND, "gpud-monitor is not installed", e);
    }
    struct child *child = child_for(f, CHILD_MONITOR, msg.id, &rc, e);
    if (child == NULL) {
        return rc;
    }
    struct spawn s = {
        .program = f->programs.monitor, .name = "gpud-monitor", .fd = {fds->fd[0]}, .fd_count = 1};
    launch(child, s, (struct proto_list){0}, NULL, f->workers.journal);
    return 0;
}

static int on_hello(struct front *f, struct bytes frame, struct err *e)
{
    struct msg_l_hello msg;
    int rc = proto_decode(&schema_msg_l_hello, frame, &msg, e);
    if (rc == 0) {
        f->greeted = true;
        /* a front of another build decides what to do when it reads this build */
        f->owes_hello = true;
    }
    return rc;
}

static int on_kill(struct front *f, struct bytes frame, struct err *e)
{
    struct msg_l_kill msg;
    int rc = proto_decode(&schema_msg_l_kill, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    struct child *child = children_find(f->children, msg.id);
    if (child != NULL) { /* otherwise it has ended, and L_ENDED reports that */
        child_signal(child, (int)msg.signal);
    }
    return 0;
}

static int on_list(struct front *f, struct bytes frame, struct err *e)
{
    struct msg_l_list msg;
    int rc = proto_decode(&schema_msg_l_list, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    f->listed = 0;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &f->children->child[i];
        if (child->kind == CHILD_WORKER && (child->pid > 0 || child_departed(child))) {
            child->owed |= OWED_INVENTORY;
            f->listed++;
        }
    }
    f->owes_copies = true;
    f->copies_cursor = 0;
    f->owes_listed = true;
    return 0;
}

/* The front knows how many there may be, and counts them. */
static int on_keep(struct front *f, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_l_keep msg;
    struct copies *c = &f->children->copies;
    int rc = proto_decode(&schema_msg_l_keep, frame, &msg, e);
    if (rc == 0 && copies_keep(c, msg.id, msg.worker, fds->fd[0])) {
        fds->count = 0;
    } else if (rc == 0) { /* as if it had not come: the end of the connection would cost far more */
        log_say(LOG_JOB_UNRECORDED,
                "buffer %#llx will not survive a restart of gpud: there are %u copies already",
                (unsigned long long)msg.id, c->max);
    }
    return rc;
}

static int on_release(struct front *f, struct bytes frame, struct err *e)
{
    struct msg_l_release msg;
    int rc = proto_decode(&schema_msg_l_release, frame, &msg, e);
    if (rc == 0) {
        copies_release(&f->children->copies, msg.id);
    }
    return rc;
}

static int on_vacate(struct front *f, struct bytes frame, struct err *e)
{
    struct msg_l_vacate msg;
    int rc = proto_decode(&schema_msg_l_vacate, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    struct msg_l_vacated answer = {.id = msg.id, .left = workers_vacate(&f->workers, msg.device)};
    rc = send_msg(f, &schema_msg_l_vacated, &answer, NULL, e);
    return rc == SEQPACKET_AGAIN ? 0 : rc; /* the front asks again */
}

static int descriptors_of(unsigned kind)
{
    switch (kind) {
    case FRAME_KIND_L_WORKER:
        return 3;
    case FRAME_KIND_L_COMPILER:
        return 2;
    case FRAME_KIND_L_MONITOR:
    case FRAME_KIND_L_KEEP:
        return 1;
    default:
        return 0;
    }
}

static int on_frame(struct front *f, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    unsigned kind = proto_kind(frame);
    if (fds->count != descriptors_of(kind)) {
        return err_set(e, ERR_PROTOCOL, "frame %u with %d descriptors", kind, fds->count);
    }
    if (!f->greeted && kind != FRAME_KIND_L_HELLO) {
        return err_set(e, ERR_PROTOCOL, "frame %u before L_HELLO", kind);
    }
    switch (kind) {
    case FRAME_KIND_L_HELLO:
        return on_hello(f, frame, e);
    case FRAME_KIND_L_WORKER:
        return on_worker(f, frame, fds, e);
    case FRAME_KIND_L_COMPILER:
        return on_compiler(f, frame, fds, e);
    case FRAME_KIND_L_MONITOR:
        return on_monitor(f, frame, fds, e);
    case FRAME_KIND_L_DEVICE:
        return on_device(f, frame, e);
    case FRAME_KIND_L_KILL:
        return on_kill(f, frame, e);
    case FRAME_KIND_L_LIST:
        return on_list(f, frame, e);
    case FRAME_KIND_L_KEEP:
        return on_keep(f, frame, fds, e);
    case FRAME_KIND_L_RELEASE:
        return on_release(f, frame, e);
    case FRAME_KIND_L_VACATE:
        return on_vacate(f, frame, e);
    case FRAME_KIND_L_QUIT:
        f->quit = true;
        return 0;
    default:
        return err_set(e, ERR_PROTOCOL, "frame of unknown kind %u", kind);
    }
}

int front_read(struct front *f, struct err *e)
{
    static uint8_t frame[FRAME_MAX_BYTES];
    for (int i = 0; i < FRAMES_A_TURN && !f->quit; i++) {
        size_t size = 0;
        struct frame_fds fds = {.count = 0};
        int rc = seqpacket_recv(f->fd, frame, sizeof frame, &size, &fds, e);
        if (rc == SEQPACKET_AGAIN) {
            return 0;
        }
        if (rc == SEQPACKET_EOF) {
            return err_set(e, ERR_CLOSED, "the front closed its connection");
        }
        if (rc == 0) {
            rc = on_frame(f, bytes_of(frame, size), &fds, e);
            frame_fds_close(&fds);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}
