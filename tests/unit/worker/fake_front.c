#include "tests/unit/worker/fake_front.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/doorbell.h"
#include "kernels/builtin.h"

#define WAIT_MS 60000

static void no_error(int rc, const struct err *e)
{
    ck_assert_msg(rc == 0, "%d: %s", rc, e->text);
}

/* ---- processes ------------------------------------------------------------------------------ */

pid_t fake_spawn(const char *name, const char *const *args, const int *fds, int count)
{
    char path[4096];
    char *argv[32] = {path};
    int n = 1;
    (void)snprintf(path, sizeof path, "%s/%s", GPUD_BIN_DIR, name);
    for (; args[n - 1] != NULL; n++) {
        argv[n] = (char *)(uintptr_t)args[n - 1];
    }
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int parked[8];
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < count; i++) {
            parked[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
        }
        for (int i = 0; i < count; i++) {
            (void)dup2(parked[i], 3 + i);
        }
        (void)close_range((unsigned)(3 + count), ~0U, CLOSE_RANGE_CLOEXEC);
        (void)execv(path, argv);
        _exit(127);
    }
    return pid;
}

void fake_start(struct fake *f, const char *backend, const char *const *args)
{
    struct err e = ERR_INIT;
    int pair[2];
    const char *argv[24] = {"--backend", backend, "--device", "0"};
    for (int n = 4; args != NULL && args[n - 4] != NULL; n++) {
        argv[n] = args[n - 4];
    }
    memset(f, 0, sizeof *f);
    no_error(memfd_create_sealed("in", FAKE_STAGING, &f->input, &e), &e);
    no_error(memfd_create_sealed("out", FAKE_STAGING, &f->output, &e), &e);
    no_error(seqpacket_pair(pair, &e), &e);
    const int fds[] = {pair[1], f->input.fd, f->output.fd};
    f->fd = pair[0];
    f->pid = fake_spawn("gpud-worker", argv, fds, 3);
    (void)close(pair[1]);
    unsigned kind = fake_next(f);
    if (kind == FRAME_KIND_W_ABSENT) {
        f->absent = true;
        return;
    }
    ck_assert_uint_eq(kind, FRAME_KIND_W_READY);
    struct msg_w_ready ready;
    no_error(proto_decode(&schema_msg_w_ready, bytes_of(f->frame, f->size), &ready, &e), &e);
    ck_assert(bytes_to_str(ready.arch, f->arch, sizeof f->arch));
    f->streams = ready.streams;
    if (getenv("FAKE_RINGS") != NULL) {
        fake_rings(f);
    }
}

int fake_reap(struct fake *f)
{
    int status = 0;
    ck_assert_int_eq(waitpid(f->pid, &status, 0), f->pid);
    f->pid = 0;
    return status;
}

void fake_stop(struct fake *f)
{
    struct msg_f_quit msg = {0};
    fake_send(f, &schema_msg_f_quit, &msg, -1);
    int status = fake_reap(f);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    fake_finish(f);
}

void fake_finish(struct fake *f)
{
    if (f->pid > 0) {
        (void)kill(f->pid, SIGKILL);
        (void)waitpid(f->pid, NULL, 0);
    }
    frame_fds_close(&f->fds);
    fake_dies(f);
    memfd_finish(&f->input);
    memfd_finish(&f->output);
    if (f->fd >= 0) {
        (void)close(f->fd);
    }
}

/* ---- frames --------------------------------------------------------------------------------- */

static bool bell_wait(struct fake *f)
{
    struct pollfd p[2] = {{.fd = f->ear, .events = POLLIN}, {.fd = f->fd, .events = POLLRDHUP}};
    ck_assert_msg(poll(p, 2, WAIT_MS) > 0, "no bell was rung");
    (void)doorbell_wait(f->ear, 0);
    return (p[1].revents & (POLLRDHUP | POLLHUP)) == 0;
}

static void send_by_ring(struct fake *f, struct bytes out, const struct frame_fds *fds)
{
    struct err e = ERR_INIT;
    no_error(duplex_send(f->rings, out, fds, &e), &e);
    no_error(duplex_flush(f->rings, &e), &e);
    while (f->rings->queue != NULL && bell_wait(f)) {
        no_error(duplex_resume(f->rings, &e), &e);
        no_error(duplex_flush(f->rings, &e), &e);
    }
}

void fake_send_bytes(struct fake *f, struct bytes out, const struct frame_fds *fds)
{
    struct err e = ERR_INIT;
    int rc;
    if (f->rings != NULL) {
        send_by_ring(f, out, fds);
        return;
    }
    while ((rc = seqpacket_send(f->fd, out.data, out.size, fds, &e)) == SEQPACKET_AGAIN) {
        struct pollfd p = {.fd = f->fd, .events = POLLOUT};
        ck_assert_int_gt(poll(&p, 1, WAIT_MS), 0);
    }
    no_error(f->may_end ? 0 : rc, &e);
}

void fake_packet_begin(struct fake *f)
{
    f->gathered = malloc(sizeof *f->gathered);
    ck_assert_ptr_nonnull(f->gathered);
    packet_reset(f->gathered);
}

void fake_packet_end(struct fake *f)
{
    fake_send_bytes(f, packet_view(f->gathered), NULL);
    free(f->gathered);
    f->gathered = NULL;
}

void fake_send(struct fake *f, const struct schema *schema, const void *msg, int fd)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    const struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    capbuf_init(&out, FRAME_MAX_BYTES);
    no_error(proto_encode(schema, msg, &out, &e), &e);
    if (f->gathered != NULL) {
        ck_assert(fd < 0 && packet_add(f->gathered, capbuf_view(&out)));
    } else {
        fake_send_bytes(f, capbuf_view(&out), &fds);
    }
    capbuf_finish(&out);
}

/* The next frame out of the ring, which becomes a packet. False at the channel's end. */
static bool next_of_ring(struct fake *f)
{
    struct err e = ERR_INIT;
    struct bytes frame;
    int rc;
    frame_fds_close(&f->fds);
    do {
        duplex_turn(f->rings);
        rc = duplex_next(f->rings, &frame, &f->fds, &e);
        no_error(rc < 0 ? rc : 0, &e);
        duplex_settle(f->rings);
        if (rc == 0 && !bell_wait(f) && !ring_ready(&f->rings->rings.in)) {
            duplex_by_socket(f->rings);
        }
    } while (rc == 0);
    if (rc == 1) {
        memcpy(f->packet, frame.data, frame.size);
        f->rest = bytes_of(f->packet, frame.size);
        f->first = true;
    }
    return rc == 1;
}

static bool next_of_packet(struct fake *f)
{
    struct err e = ERR_INIT;
    struct bytes frame = {0};
    int rc = packet_next(&f->rest, &f->first, &frame, &e);
    no_error(rc < 0 ? rc : 0, &e);
    f->size = rc == 1 ? frame.size : 0;
    if (rc == 1) {
        memcpy(f->frame, frame.data, f->size);
    }
    return rc == 1;
}

/* False at the channel's end. */
static bool next_packet(struct fake *f)
{
    struct err e = ERR_INIT;
    size_t size = 0;
    struct pollfd p = {.fd = f->fd, .events = POLLIN};
    if (f->rings != NULL) {
        return next_of_ring(f) && next_of_packet(f);
    }
    frame_fds_close(&f->fds);
    ck_assert_msg(poll(&p, 1, WAIT_MS) > 0, "no frame came");
    int rc = seqpacket_recv(f->fd, f->packet, sizeof f->packet, &size, &f->fds, &e);
    if (rc == SEQPACKET_EOF) {
        return false;
    }
    no_error(rc < 0 ? rc : 0, &e);
    f->rest = bytes_of(f->packet, rc == 0 ? size : 0);
    f->first = rc == 0;
    (void)next_of_packet(f);
    return true;
}

unsigned fake_next(struct fake *f)
{
    for (;;) {
        unsigned kind = 0;
        if (!next_of_packet(f) && !next_packet(f)) {
            return 0;
        }
        if (f->size > 0) {
            kind = proto_kind(bytes_of(f->frame, f->size));
        }
        if (kind == FRAME_KIND_W_BEAT) {
            f->beats++;
        } else if (kind != 0) {
            return kind;
        }
    }
}

bool fake_turns(unsigned kind)
{
    return kind == FRAME_KIND_W_STARTED || kind == FRAME_KIND_W_PAUSED;
}

void fake_expect(struct fake *f, unsigned kind, const struct schema *schema, void *ret_msg)
{
    struct err e = ERR_INIT;
    unsigned got;
    do {
        got = fake_next(f);
    } while (got != kind && (fake_turns(got) || got == FRAME_KIND_W_TENANT ||
                             got == FRAME_KIND_W_WAITING)); /* perhaps for memory to be mapped */
    ck_assert_msg(got == kind, "frame %u instead of %u", got, kind);
    no_error(proto_decode(schema, bytes_of(f->frame, f->size), ret_msg, &e), &e);
}

/* ---- rings ---------------------------------------------------------------------------------- */

void fake_rings(struct fake *f)
{
    struct err e = ERR_INIT;
    struct frame_fds fds;
    struct capbuf out;
    struct msg_f_rings offer = {.nonce = 77};
    struct msg_w_rings answer;
    struct duplex *rings = malloc(sizeof *rings);
    ck_assert_ptr_nonnull(rings);
    duplex_init(rings, f->fd, SIZE_MAX, false);
    no_error(duplex_make(rings, &fds, &e), &e);
    f->ear = doorbell_listen(rings->rings.bell);
    ck_assert_int_ge(f->ear, 0);
    capbuf_init(&out, FRAME_MAX_BYTES);
    no_error(proto_encode(&schema_msg_f_rings, &offer, &out, &e), &e);
    fake_send_bytes(f, capbuf_view(&out), &fds);
    capbuf_finish(&out);
    duplex_offered(rings);
    fake_expect(f, FRAME_KIND_W_RINGS, &schema_msg_w_rings, &answer);
    ck_assert_uint_eq(answer.nonce, 77);
    ck_assert_int_eq(answer.code, 0);
    duplex_join(rings);
    f->rings = rings;
}

void fake_dies(struct fake *f)
{
    if (f->rings != NULL) {
        duplex_finish(f->rings);
        descriptor_close(&f->ear);
        free(f->rings);
        f->rings = NULL;
    }
}

int fake_buffer(struct fake *f, uint64_t id, uint64_t size, bool zero)
{
    struct msg_f_buffer_create msg = {.id = id, .size = size, .zero = zero, .tenant = f->tenant};
    struct msg_w_buffer answer;
    fake_send(f, &schema_msg_f_buffer_create, &msg, -1);
    fake_expect(f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_uint_eq(answer.id, id);
    return (int)answer.code;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

void draft_init(struct job_draft *d, uint64_t job, unsigned stream)
{
    memset(d, 0, sizeof *d);
    d->msg.job = job;
    d->msg.stream = stream;
    d->msg.deadline_ns = UINT64_MAX;
    capbuf_init(&d->after, FRAME_MAX_BYTES);
    capbuf_init(&d->temps, FRAME_MAX_BYTES);
    capbuf_init(&d->steps, FRAME_MAX_BYTES);
}

void draft_after(struct job_draft *d, uint64_t job)
{
    struct proto_jobref ref = {.job = job};
    ck_assert_int_eq(proto_list_add(&schema_jobref, &ref, &d->after, NULL), 0);
    d->after_count++;
}

uint64_t draft_temp(struct job_draft *d, uint64_t size)
{
    struct proto_wtemp temp = {.size = size};
    ck_assert_int_eq(proto_list_add(&schema_wtemp, &temp, &d->temps, NULL), 0);
    return d->temp_count++;
}

static void add_step(struct job_draft *d, struct proto_wstep *s, const struct proto_ref *args,
                     unsigned count)
{
    struct capbuf list;
    capbuf_init(&list, FRAME_MAX_BYTES);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(proto_list_add(&schema_ref, &args[i], &list, NULL), 0);
    }
    s->args = proto_list_of(&list, count);
    s->step = d->step_count++;
    ck_assert_int_eq(proto_list_add(&schema_wstep, s, &d->steps, NULL), 0);
    capbuf_finish(&list);
}

void draft_move(struct job_draft *d, int op, struct proto_ref ref, uint64_t stage)
{
    struct proto_wstep s = {.op = (uint64_t)op, .stage = stage};
    add_step(d, &s, &ref, 1);
}

void draft_move_arena(struct job_draft *d, int op, struct proto_ref ref, struct proto_ref arena)
{
    struct proto_wstep s = {.op = (uint64_t)op};
    const struct proto_ref args[] = {ref, arena};
    add_step(d, &s, args, 2);
}

void draft_copy(struct job_draft *d, struct proto_ref dst, struct proto_ref src)
{
    struct proto_wstep s = {.op = OP_COPY};
    const struct proto_ref args[] = {dst, src};
    add_step(d, &s, args, 2);
}

void draft_fill(struct job_draft *d, struct proto_ref dst, const void *pattern, size_t size)
{
    struct proto_wstep s = {.op = OP_FILL, .pattern = bytes_of(pattern, size)};
    add_step(d, &s, &dst, 1);
}

void draft_launch(struct job_draft *d, uint64_t module, const char *entry, uint64_t global,
                  const struct proto_ref *args, unsigned count)
{
    struct proto_wstep s = {.op = OP_LAUNCH,
                            .module = module,
                            .entry = bytes_str(entry),
                            .gx = global,
                            .shared = d->shared};
    add_step(d, &s, args, count);
}

void draft_send(struct job_draft *d, struct fake *f)
{
    d->msg.after = proto_list_of(&d->after, d->after_count);
    d->msg.temps = proto_list_of(&d->temps, d->temp_count);
    d->msg.steps = proto_list_of(&d->steps, d->step_count);
    d->msg.tenant = f->tenant;
    fake_send(f, &schema_msg_f_job, &d->msg, -1);
    capbuf_finish(&d->after);
    capbuf_finish(&d->temps);
    capbuf_finish(&d->steps);
}

int fake_done(struct fake *f, uint64_t job, struct msg_w_done *ret_done)
{
    struct msg_w_done done;
    fake_expect(f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
    ck_assert_uint_eq(done.job, job);
    if (ret_done != NULL) {
        *ret_done = done;
    }
    return (int)done.code;
}

struct proto_ref ref_buffer(uint64_t id, uint64_t offset, uint64_t size)
{
    return (struct proto_ref){.tag = REF_BUFFER, .id = id, .offset = offset, .size = size};
}

struct proto_ref ref_temp(uint64_t index, uint64_t size)
{
    return (struct proto_ref){.tag = REF_TEMP, .id = index, .size = size};
}

struct proto_ref ref_as(struct proto_ref ref, int access)
{
    ref.access = (uint64_t)access;
    return ref;
}

struct proto_ref ref_value(const void *value, size_t size)
{
    return (struct proto_ref){.tag = REF_VALUE, .value = bytes_of(value, size)};
}

/* ---- modules -------------------------------------------------------------------------------- */

void fake_compile(const char *backend, const char *arch, int lang, const char *file,
                  struct bytes source, struct compile_response *ret_response,
                  struct memfd *ret_memory)
{
    struct err e = ERR_INIT;
    struct memfd in = MEMFD_NONE;
    int status = 0;
    const struct compile_request request = {.lang = lang,
                                            .f64 = true,
                                            .source = source,
                                            .file = bytes_str(file),
                                            .arch = bytes_str(arch)};
    const char *args[] = {"--backend", backend, "--device", "0", NULL};
    no_error(compile_request_write(&request, &in, &e), &e);
    no_error(compile_response_create(ret_memory, &e), &e);
    const int fds[] = {in.fd, ret_memory->fd};
    pid_t pid = fake_spawn("gpud-compile", args, fds, 2);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "gpud-compile: status %x", (unsigned)status);
    no_error(compile_response_read(ret_memory, ret_response, &e), &e);
    memfd_finish(&in);
}

int fake_module(struct fake *f, uint64_t module, struct bytes binary)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    struct msg_w_module answer;
    no_error(memfd_create_sealed("module", binary.size, &m, &e), &e);
    memcpy(m.data, binary.data, binary.size);
    struct msg_f_module_load msg = {.module = module,
                                    .size = binary.size,
                                    .hash = bytes_of("0123456789abcdef", 16),
                                    .tenant = f->tenant};
    fake_send(f, &schema_msg_f_module_load, &msg, m.fd);
    memfd_finish(&m);
    fake_expect(f, FRAME_KIND_W_MODULE, &schema_msg_w_module, &answer);
    ck_assert_uint_eq(answer.module, module);
    return (int)answer.code;
}

void fake_builtin(struct fake *f, const char *backend, const char *kernel, uint64_t module)
{
    struct err e = ERR_INIT;
    unsigned index = 0;
    const struct signature *sig = NULL;
    struct compile_response response;
    struct memfd memory = MEMFD_NONE;
    no_error(builtin_init(&e), &e);
    ck_assert(builtin_find(kernel, &index, &sig));
    fake_compile(backend, f->arch, LANG_DIALECT, builtin_module_name(index),
                 builtin_module_source(index), &response, &memory);
    ck_assert_msg(response.code == 0, "%.*s", (int)response.text.size, response.text.data);
    ck_assert_int_eq(fake_module(f, module, response.binary), 0);
    memfd_finish(&memory);
}
