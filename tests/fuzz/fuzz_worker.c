/*
 * Input: the frames of a lying worker, as commands: a kind, then its fields, each made from few
 * bytes. Ids are those that the worker was given, those of another device, or nonsense. The first
 * byte says whether the worker is being adopted, with a record of what it was given. The front may
 * end the worker (which ends the input); it must not change another device's state, and read
 * nothing outside (which the sanitizer sees).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/memory/arenas.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/views/snapshot.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker_frames.h"
#include "proto/codec.h"
#include "tests/unit/front/fake_front.h"

#define LIAR      0u
#define HONEST    1u
#define BYTES     64u
#define COMMANDS  200u
#define FRAMES    18u
#define GIVEN     3u /* buffers, and jobs, that a front before this one gave it */
#define GIVEN_JOB 100u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

struct world {
    struct fake *k;
    struct input in;
    struct job *honest;        /* of the other device */
    struct buffer *others;     /* the same */
    uint64_t known[2 + GIVEN]; /* its buffers */
    uint64_t jobs[2 + GIVEN];
};

/* ---- the input ------------------------------------------------------------------------------- */

static uint8_t u8(struct input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static uint64_t u64(struct input *in)
{
    static const uint64_t edges[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 1};
    uint8_t what = u8(in);
    if (what < sizeof edges / sizeof edges[0]) {
        return edges[what];
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < (what & 7u) + 1; i++) {
        value = value << 8 | u8(in);
    }
    return value;
}

static int64_t code(struct input *in)
{
    static const int64_t codes[] = {0, ERR_KERNEL_FAULT, ERR_DEVICE_LOST, ERR_CANCELLED, ERR_RANGE};
    uint8_t what = u8(in);
    return what < 200 ? codes[what % (sizeof codes / sizeof codes[0])] : (int64_t)u64(in);
}

static uint64_t pick(struct world *w, const uint64_t *known, uint64_t others)
{
    uint8_t what = u8(&w->in);
    switch (what % 8) {
    case 5:
        return others;
    case 6:
        return idmap_handle(IDMAP_MAX - 1, 9);
    case 7:
        return u64(&w->in);
    default:
        return known[what % 8];
    }
}

static struct bytes text(struct input *in)
{
    size_t size = u8(in) % 32;
    size = size < in->left ? size : in->left;
    struct bytes b = bytes_of(in->at, size);
    in->at += size;
    in->left -= size;
    return b;
}

static int memory(struct input *in)
{
    uint8_t what = u8(in);
    int fd = what % 4 == 0 ? -1 : memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, what % 4 == 1 ? (int)BYTES - 1 : (int)BYTES) != 0 ||
                    (what % 4 != 2 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0))) {
        abort();
    }
    return fd;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* true: the worker is ended. */
static bool hear(struct world *w, struct bytes frame, int fd)
{
    struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    struct err e = ERR_INIT;
    int rc = worker_frame(&w->k->f, &w->k->device[LIAR], proto_kind(frame), frame, &fds, &e);
    frame_fds_close(&fds);
    return rc != 0;
}

static bool say_with(struct world *w, const struct schema *schema, const void *msg, int fd)
{
    struct capbuf out;
    capbuf_init(&out, FRAME_MAX_BYTES);
    bool encoded = proto_encode(schema, msg, &out, NULL) == 0;
    bool ended = false;
    if (encoded) {
        ended = hear(w, capbuf_view(&out), fd);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    capbuf_finish(&out);
    return ended;
}

static bool say(struct world *w, const struct schema *schema, const void *msg)
{
    return say_with(w, schema, msg, -1);
}

static bool say_ready(struct world *w)
{
    struct input *in = &w->in;
    const struct msg_w_ready m = {.build = bytes_str(w->k->f.build),
                                  .name = text(in),
                                  .pin = text(in),
                                  .memory = u64(in),
                                  .streams = u8(in),
                                  .urgent = u8(in),
                                  .devices = u8(in),
                                  .pool_limit = u64(in),
                                  .spill_limit = u64(in)};
    return say(w, &schema_msg_w_ready, &m);
}

static bool say_done(struct world *w)
{
    struct input *in = &w->in;
    struct msg_w_done m = {.job = pick(w, w->jobs, w->honest->id),
                           .code = code(in),
                           .vendor = (int64_t)u64(in),
                           .step = (int64_t)u64(in),
                           .arg = (int64_t)u64(in),
                           .effects = u8(in) % 3,
                           .started_ns = u64(in),
                           .ended_ns = u64(in),
                           .text = text(in)};
    struct capbuf list;
    unsigned count = u8(in);
    capbuf_init(&list, FRAME_MAX_BYTES);
    for (unsigned i = 0; i < count; i++) {
        const struct proto_timing t = {.step = i};
        if (proto_list_add(&schema_timing, &t, &list, NULL) != 0) {
            abort();
        }
    }
    m.timings = proto_list_of(&list, count);
    bool ended = say(w, &schema_msg_w_done, &m);
    capbuf_finish(&list);
    return ended;
}

static bool say_inventory(struct world *w, bool job)
{
    struct input *in = &w->in;
    if (job) {
        const struct msg_w_inventory_job m = {
            .job = pick(w, w->jobs, w->honest->id), .stream = u8(in), .finished = u8(in) % 2};
        return say(w, &schema_msg_w_inventory_job, &m);
    }
    const struct msg_w_inventory_buffer m = {.id = pick(w, w->known, w->others->handle),
                                             .size = u8(in) % 4 != 0 ? BYTES : u64(in),
                                             .sealed = u8(in) % 2,
                                             .arriving = u8(in) % 2};
    return say_with(w, &schema_msg_w_inventory_buffer, &m, memory(in));
}

static bool say_numbers(struct world *w, uint8_t kind)
{
    struct input *in = &w->in;
    if (kind == 0) {
        const struct msg_w_tenant m = {
            .tenant = u64(in), .asked = u64(in), .mapped = u64(in), .peak = u64(in)};
        return say(w, &schema_msg_w_tenant, &m);
    }
    if (kind == 1) {
        const struct msg_w_tenant_refused m = {
            .tenant = u64(in), .code = code(in), .text = text(in)};
        return say(w, &schema_msg_w_tenant_refused, &m);
    }
    if (kind == 2) {
        const struct msg_w_arena m = {.arena = u64(in), .align = u64(in) % 4097};
        return say(w, &schema_msg_w_arena, &m);
    }
    const struct msg_w_pool m = {.size = u64(in), .used = u64(in), .cached = u64(in)};
    return say(w, &schema_msg_w_pool, &m);
}

static bool say_answer(struct world *w, uint8_t kind)
{
    struct input *in = &w->in;
    if (kind == 0) {
        const struct msg_w_buffer m = {.id = pick(w, w->known, w->others->handle),
                                       .code = code(in),
                                       .vendor = (int64_t)u64(in),
                                       .text = text(in)};
        return say(w, &schema_msg_w_buffer, &m);
    }
    if (kind == 1) {
        const struct msg_w_exported m = {.id = pick(w, w->known, w->others->handle),
                                         .bytes = u64(in),
                                         .code = code(in),
                                         .text = text(in)};
        return say_with(w, &schema_msg_w_exported, &m, memory(in));
    }
    if (kind == 2) {
        const struct msg_w_snapshot m = {.nonce = u64(in), .code = code(in), .text = text(in)};
        return say_with(w, &schema_msg_w_snapshot, &m, memory(in));
    }
    const struct msg_w_module m = {.module = u64(in), .code = code(in), .text = text(in)};
    return say(w, &schema_msg_w_module, &m);
}

/* Any bytes under any of a worker's kinds but W_RINGS, which is the link's. */
static bool say_raw(struct world *w)
{
    uint8_t frame[64] = {0x92, 0xcc};
    frame[2] = (uint8_t)(FRAME_KIND_W_READY + u8(&w->in) % (FRAME_KIND_W_SNAPSHOT - 160 + 1));
    struct bytes rest = text(&w->in);
    if (frame[2] == FRAME_KIND_W_RINGS) {
        return false;
    }
    memcpy(frame + 3, rest.data, rest.size);
    return hear(w, bytes_of(frame, 3 + rest.size), -1);
}

static bool command(struct world *w)
{
    struct input *in = &w->in;
    uint8_t what = u8(in) % FRAMES;
    const struct msg_w_started started = {.job = pick(w, w->jobs, w->honest->id)};
    const struct msg_w_paused paused = {.job = started.job};
    const struct msg_w_waiting waiting = {.job = started.job, .waits = what % 2};
    const struct msg_w_absent absent = {.code = ERR_NO_DEVICE, .devices = what};
    const struct msg_w_inventory_end inventory_end = {.nonce = what % 2};
    switch (what) {
    case 0:
        return say_ready(w);
    case 1:
        return say_done(w);
    case 2:
        return say(w, &schema_msg_w_paused, &paused);
    case 3:
        return say(w, &schema_msg_w_started, &started);
    case 4:
        return say(w, &schema_msg_w_waiting, &waiting);
    case 5:
        return say(w, &schema_msg_w_absent, &absent);
    case 6:
    case 7:
        return say_inventory(w, what == 6);
    case 8:
        return say(w, &schema_msg_w_inventory_end, &inventory_end);
    case 9:
    case 10:
    case 11:
    case 12:
        return say_numbers(w, what - 9);
    case 13:
    case 14:
    case 15:
    case 16:
        return say_answer(w, what - 13);
    default:
        return say_raw(w);
    }
}

/* ---- the world ------------------------------------------------------------------------------- */

static bool on_opened(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
    return true;
}

static void on_absent(struct front *f, struct device *d, const struct err *e)
{
    (void)f;
    (void)d;
    (void)e;
}

static void on_device(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

static void on_inventory_end(struct front *f, struct device *d)
{
    (void)f;
    record_settle(d->record);
    d->state = DEVICE_READY;
}

static void hook(struct front *f)
{
    f->hooks.worker_done = completion_done;
    f->hooks.worker_buffer = buffer_answered;
    f->hooks.worker_exported = buffer_exported;
    f->hooks.worker_arena = arena_mapped;
    f->hooks.worker_module = building_loaded;
    f->hooks.worker_opened = on_opened;
    f->hooks.worker_siblings = on_device;
    f->hooks.worker_absent = on_absent;
    f->hooks.inventory_buffer = adopt_buffer;
    f->hooks.inventory_module = building_adopt_module;
    f->hooks.inventory_job = adopt_job;
    f->hooks.inventory_end = on_inventory_end;
    f->hooks.snapshot = snapshot_received;
}

static void give(struct world *w, unsigned i)
{
    struct buffer like = {.bytes = BYTES, .tenant = w->k->tenant, .seq = i + 1};
    struct capbuf record;
    like.shape = (struct shape){.dtype = DTYPE_F32, .ndim = 1, .dim = {BYTES / 4}};
    like.owner = i == 0 ? w->k->session : NULL;
    capbuf_init(&record, 4096);
    w->known[2 + i] = idmap_handle(500 + i, 9);
    w->jobs[2 + i] = GIVEN_JOB + i;
    if (record_encode_buffer(&like, &record, NULL) != 0) {
        abort();
    }
    fake_given(w->k, LIAR, RECORD_BUFFER, w->known[2 + i], capbuf_view(&record));
    capbuf_reset(&record);
    struct job job = {.session = w->k->session, .tenant = w->k->tenant, .seq = 10 + i};
    job.limit_ns = NS_PER_S;
    job.async = i == 1;
    job.input = job.output = RANGE_NONE;
    if (record_encode_job(&job, &record, NULL) != 0) {
        abort();
    }
    fake_given(w->k, LIAR, RECORD_JOB, w->jobs[2 + i], capbuf_view(&record));
    capbuf_finish(&record);
}

static void begin(struct world *w, bool adopting)
{
    w->k = fake_create();
    hook(&w->k->f);
    w->others = fake_buffer(w->k, HONEST, BYTES, true);
    w->honest = fake_job(w->k, HONEST);
    fake_reads(w->honest, w->others, 0, BYTES);
    (void)fake_submit(w->k, w->honest);
    for (unsigned i = 0; i < 2; i++) {
        struct buffer *b = fake_buffer(w->k, LIAR, BYTES, true);
        struct job *j = fake_job(w->k, LIAR);
        fake_writes(j, b, 0, BYTES);
        w->known[i] = b->handle;
        w->jobs[i] = fake_submit(w->k, j);
    }
    fake_turn(w->k);
    for (unsigned i = 0; i < GIVEN; i++) {
        give(w, i);
    }
    w->k->device[LIAR].link = NULL; /* nothing is sent to it */
    w->k->device[LIAR].state = adopting ? DEVICE_ADOPTING : DEVICE_READY;
}

static void end(struct world *w)
{
    struct front *f = &w->k->f;
    struct err e = ERR_INIT;
    struct job *j;
    struct job *next;
    (void)err_set(&e, ERR_WORKER_LOST, "over");
    if (job_ended(w->honest) || w->honest->device != &w->k->device[HONEST] ||
        w->others->state != BUFFER_LIVE || w->others->device != HONEST) {
        abort(); /* another device's state was changed */
    }
    HASH_ITER(hh, f->jobs, j, next)
    {
        if (!job_ended(j)) {
            job_conclude(f, j, JOB_FAILED, &e);
        }
    }
    while (f->sessions != NULL) {
        session_end(f, f->sessions);
    }
    w->k->device[LIAR].link = (struct link *)&w->k->device[LIAR];
    fake_destroy(w->k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.in = {.at = data, .left = size}};
    log_set_level(0);
    begin(&w, u8(&w.in) % 2 != 0);
    for (unsigned i = 0; i < COMMANDS && w.in.left > 0; i++) {
        if (command(&w)) {
            break;
        }
    }
    end(&w);
    return 0;
}
