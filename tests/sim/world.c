#include "tests/sim/world.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duplex.h"
#include "common/log.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/request.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/workers/launcher_link.h"
#include "daemon/front/workers/worker.h"
#include "tests/sim/text.h"

#define BEGIN_NS     (1000 * NS_PER_S) /* the clock at the begin of a stream */
#define WORKERS_MAX  64u
#define COMPILES_MAX 256u
#define PIPES_MAX    16u
#define QUEUE_BYTES  (1u << 20)
#define TURNS_MAX    64u
#define REQUESTS_MAX 8192u
#define FRAMES_MAX   1024u
#define BUFFERS_MAX  256u

struct sim_worker {
    int fd[LAUNCHER_WORKER_FDS]; /* what the launcher keeps for the next front; -1: none */
    struct capbuf device;        /* what the front said of its device */
    struct duplex channel;       /* its end; fd -1: none */
    bool asked, killed;          /* by the front, and the launcher has not answered */
};

struct sim_frame {
    const struct schema *schema;
    uint64_t id; /* of a job, a buffer or a module */
    bool cancelled;
};

/* Frames to a device's worker that it has not answered, oldest first. */
struct sim_frames {
    struct sim_frame frame[FRAMES_MAX];
    unsigned count;
};

struct sim_request {
    uint32_t pipe;
    uint64_t seq; /* 0: none */
    bool answered;
};

/* What a client keeps of its session. */
struct sim_client {
    uint64_t next;                /* number of its next request */
    uint64_t acked;               /* it has all answers up to here */
    uint64_t buffer[BUFFERS_MAX]; /* handles, as they were answered */
    unsigned buffers;
};

struct sim_compile {
    compiler_done_fn done;
    void *data;
};

static struct {
    struct front *f;
    uv_loop_t loop;
    FILE *out;
    uint64_t now_ns;
    uint64_t fronts;   /* so many began */
    uint64_t requests; /* of all connections; the number is the slot of the answer */
    uint32_t uid[PIPES_MAX];
    struct sim_worker worker[WORKERS_MAX]; /* by id */
    struct sim_compile compile[COMPILES_MAX];
    unsigned compiles; /* asked for */
    unsigned compiled; /* of them, answered */
    struct sim_frames frames[DEVICES_MAX];
    struct sim_request request[REQUESTS_MAX]; /* by number */
    struct sim_client client[PIPES_MAX];      /* by pipe */
} w;

/* ---- what the front says --------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    return w.now_ns;
}

/* A slot is the number of its request. */
static struct listener_slot *slot_of(uint64_t request)
{
    return (struct listener_slot *)(uintptr_t)request;
}

static void print_decoded(const struct schema *s, struct bytes message)
{
    struct err e = ERR_INIT;
    void *msg = calloc(1, s->size);
    ck_assert_ptr_nonnull(msg);
    if (proto_decode(s, message, msg, &e) != 0) {
        ck_abort_msg("%s", e.text);
    }
    text_print(w.out, s, msg);
    free(msg);
}

/* A request is over; open: it was refused and its number is free. */
static void settle(uint64_t number, bool open)
{
    ck_assert_uint_lt(number, REQUESTS_MAX);
    struct sim_request *r = &w.request[number];
    struct sim_client *c = &w.client[r->pipe];
    ck_assert_msg(!r->answered, "request %" PRIu64 " is answered twice", number);
    r->answered = true;
    if (open && r->seq > 0 && r->seq < c->next) {
        c->next = r->seq;
    }
}

static void note_answer(uint64_t number, struct bytes message)
{
    struct msg_error e = {.open = 0};
    struct msg_buffer b = {.handle = 0};
    ck_assert_uint_lt(number, REQUESTS_MAX);
    struct sim_client *c = &w.client[w.request[number].pipe];
    unsigned kind = proto_kind(message);
    if (kind == MSG_KIND_ERROR) {
        ck_assert_int_eq(proto_decode(&schema_msg_error, message, &e, NULL), 0);
    } else if (kind == MSG_KIND_BUFFER && c->buffers < BUFFERS_MAX) {
        ck_assert_int_eq(proto_decode(&schema_msg_buffer, message, &b, NULL), 0);
        c->buffer[c->buffers++] = b.handle;
    }
    settle(number, e.open != 0);
}

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    const struct schema *s = schema_find(proto_kind(message));
    ck_assert_ptr_nonnull(s);
    (void)fprintf(w.out, "  answer %" PRIu64 ": ", (uint64_t)(uintptr_t)slot);
    print_decoded(s, message);
    (void)fputc('\n', w.out);
    note_answer((uint64_t)(uintptr_t)slot, message);
}

static void on_drop(struct listener *l, struct listener_slot *slot)
{
    (void)l;
    (void)fprintf(w.out, "  no answer %" PRIu64 "\n", (uint64_t)(uintptr_t)slot);
    settle((uint64_t)(uintptr_t)slot, false);
}

static void on_identified(struct listener *l, uint32_t pipe)
{
    (void)l;
    (void)fprintf(w.out, "  identified %u\n", pipe);
}

static void on_close_pipe(struct listener *l, uint32_t pipe)
{
    (void)l;
    (void)fprintf(w.out, "  close %u\n", pipe);
}

static const struct device *device_of(const struct link *l)
{
    for (unsigned i = 0; i < w.f->device_count; i++) {
        if (w.f->device[i]->link == l) {
            return w.f->device[i];
        }
    }
    ck_abort_msg("a frame to no device");
    return NULL;
}

/* Remembers a frame that is to be answered. All of these begin with the id. */
static void note_frame(struct sim_frames *all, const struct schema *schema, const void *msg)
{
    bool answers = schema == &schema_msg_f_job || schema == &schema_msg_f_buffer_create ||
                   schema == &schema_msg_f_buffer_seal || schema == &schema_msg_f_buffer_restore ||
                   schema == &schema_msg_f_module_load;
    uint64_t id = *(const uint64_t *)msg;
    if (answers && all->count < FRAMES_MAX) {
        all->frame[all->count++] = (struct sim_frame){.schema = schema, .id = id};
    }
    for (unsigned i = 0; schema == &schema_msg_f_cancel && i < all->count; i++) {
        struct sim_frame *x = &all->frame[i];
        x->cancelled = x->cancelled || (x->schema == &schema_msg_f_job && x->id == id);
    }
}

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    struct capbuf bytes;
    capbuf_init(&bytes, FRAME_MAX_BYTES);
    int rc = proto_encode(schema, msg, &bytes, e);
    ck_assert_int_eq(rc, 0);
    unsigned device = device_of(l)->index;
    note_frame(&w.frames[device], schema, msg);
    (void)fprintf(w.out, "  device %u: ", device);
    print_decoded(schema, capbuf_view(&bytes));
    if (fds != NULL && fds->count > 0) {
        (void)fprintf(w.out, " +%d fd", fds->count);
    }
    (void)fputc('\n', w.out);
    capbuf_finish(&bytes);
    return 0;
}

static bool never(const struct link *l)
{
    (void)l;
    return false;
}

static struct sim_worker *worker_of(uint64_t id)
{
    ck_assert_uint_lt(id, WORKERS_MAX);
    return &w.worker[id];
}

static int on_worker(struct launcher_link *l, const struct worker_order *start, struct err *e)
{
    struct sim_worker *x = worker_of(start->id);
    (void)l;
    (void)e;
    (void)fprintf(w.out, "  start worker %" PRIu64 ":", start->id);
    for (const char *const *args = start->args; *args != NULL; args++) {
        (void)fprintf(w.out, " %s", **args == '\0' ? "''" : *args);
    }
    (void)fputc('\n', w.out);
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        x->fd[i] = fcntl(start->fd[i], F_DUPFD_CLOEXEC, 0);
        ck_assert_int_ge(x->fd[i], 0);
    }
    x->asked = true;
    capbuf_reset(&x->device);
    ck_assert(capbuf_append(&x->device, start->device.data, start->device.size));
    return 0;
}

static int on_monitor(struct launcher_link *l, uint64_t id, int page, struct err *e)
{
    (void)l;
    (void)id;
    (void)page;
    (void)e;
    (void)fputs("  start monitor\n", w.out);
    return 0;
}

static int on_name(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)device;
    (void)e;
    (void)fprintf(w.out, "  worker %" PRIu64 " has another owner\n", id);
    return 0;
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)e;
    (void)fprintf(w.out, "  signal %d to worker %" PRIu64 "\n", signal, id);
    worker_of(id)->killed = true;
    return 0;
}

static int on_keep(struct launcher_link *l, uint64_t id, uint64_t worker, int fd, struct err *e)
{
    (void)l;
    (void)id;
    (void)worker;
    (void)fd;
    return err_set(e, ERR_LIMIT, "no copies here");
}

static int on_release(struct launcher_link *l, uint64_t id, struct err *e)
{
    (void)l;
    (void)id;
    (void)e;
    return 0;
}

/* The launcher prepares no worker here. */
static int on_vacate(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)device;
    (void)e;
    draining_vacated(w.f, id, 0);
    return 0;
}

static int on_compile(struct compiler *c, const struct compiler_request *r, compiler_done_fn done,
                      void *data, struct err *e)
{
    (void)c;
    (void)e;
    (void)fprintf(w.out, "  compile %s for %s %s: lang %d, %zu bytes, options '%s', of %s\n",
                  r->file, r->backend, r->arch, r->lang, r->source.size, r->build_options,
                  r->owner);
    ck_assert_uint_lt(w.compiles, COMPILES_MAX);
    w.compile[w.compiles++] = (struct sim_compile){.done = done, .data = data};
    return 0;
}

static bool never_seen(const struct device *d, struct thread_look *ret_look)
{
    (void)d;
    (void)ret_look;
    return false;
}

static const struct front_io io = {
    .now_ns = now_ns,
    .reply = on_reply,
    .drop = on_drop,
    .identified = on_identified,
    .close_pipe = on_close_pipe,
    .send = on_send,
    .pressed = never,
    .unread = never,
    .look = never_seen,
    .start_worker = on_worker,
    .name_worker = on_name,
    .start_monitor = on_monitor,
    .kill = on_kill,
    .keep = on_keep,
    .release = on_release,
    .vacate = on_vacate,
    .compile = on_compile,
};

/* ---- workers' channels ----------------------------------------------------------------------- */

/* A pair; the worker's end is kept, the front's is returned. */
static int channel_open(struct sim_worker *x)
{
    int fd[2];
    ck_assert_int_eq(seqpacket_pair(fd, NULL), 0);
    duplex_init(&x->channel, fd[1], QUEUE_BYTES, false);
    return fd[0];
}

static void channel_close(struct sim_worker *x)
{
    if (x->channel.fd >= 0) {
        (void)close(x->channel.fd);
        duplex_finish(&x->channel);
        x->channel.fd = -1;
    }
}

static void worker_frees(struct sim_worker *x)
{
    channel_close(x);
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        if (x->fd[i] >= 0) {
            (void)close(x->fd[i]);
        }
        x->fd[i] = -1;
    }
}

static void channel_send(struct sim_worker *x, const struct schema *s, const void *msg)
{
    struct err e = ERR_INIT;
    struct capbuf frame;
    capbuf_init(&frame, FRAME_MAX_BYTES);
    if (proto_encode(s, msg, &frame, &e) != 0 ||
        duplex_send(&x->channel, capbuf_view(&frame), NULL, &e) != 0) {
        ck_abort_msg("%s: %s", s->name, e.text);
    }
    capbuf_finish(&frame);
}

/* What the link itself sends is the offer of rings. This worker takes none: all goes by the socket.
 */
static void refuse_rings(struct sim_worker *x)
{
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    struct msg_f_rings offer;
    while (x->channel.fd >= 0 && duplex_next(&x->channel, &frame, &fds, NULL) == 1) {
        frame_fds_close(&fds);
        ck_assert_int_eq(proto_decode(&schema_msg_f_rings, frame, &offer, NULL), 0);
        struct msg_w_rings refusal = {
            .nonce = offer.nonce, .code = ERR_UNSUPPORTED, .text = bytes_str("no rings")};
        channel_send(x, &schema_msg_w_rings, &refusal);
    }
}

/* ---- the loop and the clock ------------------------------------------------------------------ */

/* Turns of the loop until nothing is left for the next one. */
static void turns(void)
{
    struct front *f = w.f;
    unsigned quiet = 0;
    for (unsigned i = 0; quiet < 3; i++) {
        ck_assert_uint_lt(i, TURNS_MAX);
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        for (unsigned id = 0; id < WORKERS_MAX; id++) {
            refuse_rings(&w.worker[id]);
        }
        bool goes_on = f->kicked || f->ending != NULL || f->sweeping != NULL;
        quiet = goes_on ? 0 : quiet + 1;
    }
}

static void wait_ms(uint64_t ms)
{
    uint64_t until = w.now_ns + ms * NS_PER_MS;
    for (unsigned i = 0; w.f->wake_ns <= until; i++) {
        ck_assert_uint_lt(i, 10000);
        w.now_ns = w.f->wake_ns > w.now_ns ? w.f->wake_ns : w.now_ns;
        pipeline_wake(w.f);
        turns();
    }
    w.now_ns = until;
}

/* ---- fronts ---------------------------------------------------------------------------------- */

static void front_begin(void)
{
    struct front *f = calloc(1, sizeof *f);
    struct err e = ERR_INIT;
    ck_assert_ptr_nonnull(f);
    w.f = f;
    uint64_t generation = 1 + 16 * w.fronts++; /* those of one front never reach the next one's */
    f->io = io;
    f->loop = &w.loop;
    config_defaults(&f->config);
    ck_assert_int_eq(config_set(&f->config, "daemon.backend", "sim", &e), 0);
    f->config.spill_limit = UINT64_C(1) << 30; /* else it is derived from the memory of the host */
    f->rights.admins.group = f->rights.loaders.group = UINT32_MAX;
    f->rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
    f->build = "sim";
    f->started_ns = w.now_ns;
    f->next_session = f->next_worker = f->next_job = 1;
    memset(f->daemon_id, (int)w.fronts, sizeof f->daemon_id);
    idmap_init(&f->buffers, IDMAP_MAX, generation);
    idmap_init(&f->arenas, 64, generation);
    idmap_init(&f->programs, 64, generation);
    idmap_init(&f->modules, 64, generation);
    idmap_init(&f->kernels, 1024, generation);
    uv_signal_t *const signals[] = {&f->sigterm, &f->sigint, &f->sighup, &f->sigusr1};
    for (unsigned i = 0; i < 4; i++) {
        (void)uv_signal_init(&w.loop, signals[i]);
    }
    pipeline_init(f);
    ck_assert_int_eq(monitor_create(&f->monitor, &e), 0);
    ck_assert_int_eq(hold_file_create(&f->holds, &e), 0);
    ck_assert_int_eq(building_init(f, &e), 0);
}

static void front_end(void)
{
    while (w.compiled < w.compiles) { /* as compiler_destroy does */
        struct err e = ERR_INIT;
        struct sim_compile *c = &w.compile[w.compiled++];
        (void)err_set(&e, ERR_CLOSED, "the daemon ends");
        c->done(c->data, ERR_CLOSED, NULL, (struct hash){0}, &e);
    }
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        channel_close(&w.worker[i]);
    }
    front_life_step(&w.f->life, FRONT_HANDING_OVER);
    pipeline_stop(w.f);
    (void)alarm(0); /* pipeline_stop's */
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    pipeline_finish(w.f);
    free(w.f);
    w.f = NULL;
}

/* ---- what happens ---------------------------------------------------------------------------- */

/* As a reader and the listener do it: bytes are decoded, and the request is handed to the loop. */
static void request(uint32_t pipe, const char *text)
{
    char name[PROTO_NAME_MAX];
    struct err e = ERR_INIT;
    struct capbuf bytes;
    capbuf_init(&bytes, PROTO_MESSAGE_MAX);
    ck_assert_int_eq(sscanf(text, "%63s", name), 1);
    const struct schema *s = text_schema(name);
    struct request *r = calloc(1, sizeof *r + PROTO_LOG_MAX);
    ck_assert(s != NULL && r != NULL);
    text_read(s, text + strlen(name), &r->msg);
    if (proto_encode(s, &r->msg, &bytes, &e) != 0) {
        ck_abort_msg("%s", e.text);
    }
    ck_assert_uint_le(bytes.size, PROTO_LOG_MAX);
    memcpy(r + 1, bytes.data, bytes.size);
    if (proto_decode(s, bytes_of(r + 1, bytes.size), &r->msg, &e) != 0) {
        ck_abort_msg("%s", e.text);
    }
    const uint64_t seq = s == &schema_msg_hello ? 0 : r->msg.ping.seq;
    ck_assert_uint_lt(w.requests + 1, REQUESTS_MAX);
    w.request[w.requests + 1] = (struct sim_request){.pipe = pipe, .seq = seq};
    r->kind = s->kind;
    r->size = bytes.size;
    r->slot = slot_of(++w.requests);
    r->peer = (struct peer){
        .pipe = pipe, .local = true, .uid = w.uid[pipe], .gid = w.uid[pipe], .pid = 0};
    (void)fprintf(w.out, "  request %" PRIu64 "\n", w.requests);
    capbuf_finish(&bytes);
    pipeline_requests.request(w.f, r);
}

static void frame(unsigned device, const char *text)
{
    char name[PROTO_NAME_MAX];
    ck_assert_uint_lt(device, w.f->device_count);
    ck_assert_int_eq(sscanf(text, "%63s", name), 1);
    const struct schema *s = text_schema(name);
    void *msg = s != NULL ? calloc(1, s->size) : NULL;
    ck_assert_ptr_nonnull(msg);
    text_read(s, text + strlen(name), msg);
    if (s == &schema_msg_w_inventory_end) { /* the front numbers what it asks for by its clock */
        ((struct msg_w_inventory_end *)msg)->nonce = w.f->device[device]->inventory;
    }
    channel_send(worker_of(w.f->device[device]->worker), s, msg);
    free(msg);
}

static void output(unsigned device, uint64_t offset, const char *text)
{
    ck_assert_uint_lt(device, w.f->device_count);
    struct bytes b = text_bytes(&text);
    struct device *d = w.f->device[device];
    ck_assert_uint_le(offset + b.size, d->output.size);
    memcpy(d->output.data + offset, b.data, b.size);
}

static void compiled(const char *text)
{
    struct msg_c_response m;
    struct err e = ERR_INIT;
    text_read(&schema_msg_c_response, text, &m);
    struct compile_response r = {.code = (int)m.code,
                                 .vendor = (int)m.vendor,
                                 .text = m.text,
                                 .log = m.log,
                                 .compiler = m.compiler,
                                 .binary = m.binary,
                                 .kernels = m.kernels,
                                 .entries = m.entries};
    ck_assert_uint_lt(w.compiled, w.compiles);
    struct sim_compile *c = &w.compile[w.compiled++];
    if (m.code != 0) {
        (void)err_set(&e, (int)m.code, "%.*s", (int)m.text.size, (const char *)m.text.data);
    }
    bool answers = m.code == 0 || m.code == ERR_COMPILE;
    c->done(c->data, (int)m.code, answers ? &r : NULL, hash_of(m.binary.data, m.binary.size), &e);
}

static void started(uint64_t id, int pid)
{
    worker_of(id)->asked = false;
    ck_assert(worker_started(w.f, id, pid, channel_open(worker_of(id)), 0, ""));
}

static void ended(uint64_t id, int status)
{
    worker_frees(worker_of(id));
    worker_of(id)->asked = worker_of(id)->killed = false;
    for (unsigned i = 0; i < w.f->device_count; i++) {
        if (w.f->device[i]->worker == id) {
            w.frames[i].count = 0;
        }
    }
    ck_assert(worker_ended(w.f, id, status));
}

static void adopt(uint64_t id, int pid)
{
    struct sim_worker *x = worker_of(id);
    struct launcher_inventory inventory = {
        .id = id, .pid = pid, .device = capbuf_view(&x->device), .channel = channel_open(x)};
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        inventory.fd[i] = fcntl(x->fd[i], F_DUPFD_CLOEXEC, 0);
    }
    adopt_worker(w.f, &inventory);
}

static void restart(void)
{
    front_end();
    front_begin();
}

static void set(const char *text)
{
    char key[64];
    char value[64];
    struct err e = ERR_INIT;
    ck_assert_int_eq(sscanf(text, "%63s %63s", key, value), 2);
    if (config_set(&w.f->config, key, value, &e) != 0) {
        ck_abort_msg("%s", e.text);
    }
}

/* The word and one or two numbers behind it; *ret_rest: what follows. */
static bool is(const char *line, const char *word, unsigned numbers, uint64_t ret_n[2],
               const char **ret_rest)
{
    size_t size = strlen(word);
    if (strncmp(line, word, size) != 0 || (line[size] != ' ' && line[size] != '\0')) {
        return false;
    }
    line += size;
    for (unsigned i = 0; i < numbers; i++) {
        char *end = NULL;
        ret_n[i] = strtoull(line, &end, 0);
        ck_assert_ptr_ne(end, line);
        line = end;
    }
    *ret_rest = line + strspn(line, " ");
    return true;
}

/* ---- streams that are made up while they run ---- */

/* `$N` becomes a handle. */
static void with_handles(const struct sim_client *c, const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text != '\0' && used + 24 < size) {
        if (*text != '$') {
            out[used++] = *text++;
            continue;
        }
        char *end = NULL;
        unsigned long n = strtoul(text + 1, &end, 10);
        uint64_t handle = c->buffers > 0 ? c->buffer[c->buffers - 1 - n % c->buffers] : 1;
        used += (size_t)snprintf(out + used, size - used, "%" PRIu64, handle);
        text = end;
    }
    out[used] = '\0';
}

/* All answers that came without a gap. */
static uint64_t acknowledged(uint32_t pipe)
{
    struct sim_client *c = &w.client[pipe];
    for (uint64_t i = 1; i <= w.requests; i++) {
        const struct sim_request *r = &w.request[i];
        if (r->pipe == pipe && r->answered && r->seq == c->acked + 1 && r->seq < c->next) {
            c->acked++;
        }
    }
    return c->acked;
}

static void next(uint32_t pipe, const char *text)
{
    char plain[1024];
    char line[1100];
    struct sim_client *c = &w.client[pipe];
    with_handles(c, text, plain, sizeof plain);
    c->next = c->next > 0 ? c->next : 1;
    size_t name = strcspn(plain, " ");
    (void)snprintf(line, sizeof line, "%.*s seq=%" PRIu64 " ack=%" PRIu64 "%s", (int)name, plain,
                   c->next, acknowledged(pipe), plain + name);
    c->next++;
    request(pipe, line);
}

static void open_workers(void)
{
    static const char ready[] =
        "w_ready build=\"sim\" backend=\"sim\" name=\"simulated\" streams=4 memory=0x40000000 "
        "max_alloc=0x40000000 arch=\"any\" devices=2 pool_limit=0x40000000 stay=268435456 "
        "spill_limit=0x40000000";
    static const uint8_t probe[] = {0, 0, 0x28, 0x42}; /* 42.0, which the first kernel writes */
    for (unsigned i = 0; i < w.f->device_count; i++) {
        struct device *d = w.f->device[i];
        if (d->worker == 0 || !worker_of(d->worker)->asked) {
            continue;
        }
        for (size_t at = 0; at < 4096; at++) {
            d->output.data[at] = probe[at % sizeof probe];
        }
        started(d->worker, (int)d->worker + 100);
        frame(i, ready);
    }
}

static void answer(unsigned device, int64_t code)
{
    char line[128];
    struct sim_frames *all = &w.frames[device];
    if (device >= w.f->device_count || all->count == 0 || w.f->device[device]->link == NULL) {
        return;
    }
    struct sim_frame x = all->frame[0];
    memmove(&all->frame[0], &all->frame[1], --all->count * sizeof x);
    const char *form = x.schema == &schema_msg_f_job           ? "w_done job=%" PRIu64
                       : x.schema == &schema_msg_f_module_load ? "w_module module=%" PRIu64
                                                               : "w_buffer id=%" PRIu64;
    int n = snprintf(line, sizeof line, form, x.id);
    code = x.cancelled ? ERR_CANCELLED : x.schema == &schema_msg_f_job ? code : 0;
    (void)snprintf(line + n, sizeof line - (size_t)n, " code=%" PRId64 " text=\"said\"", code);
    frame(device, line);
}

static void build(int64_t code)
{
    if (w.compiled < w.compiles) {
        compiled(code == 0 ? "binary=x'01' kernels=[]" : "code=-29 text=\"bad\"");
    }
}

static void die(unsigned device, int status)
{
    uint64_t id = device < w.f->device_count ? w.f->device[device]->worker : 0;
    if (id != 0 && !worker_of(id)->asked) {
        ended(id, status);
    }
}

static void reap(void)
{
    for (unsigned i = 0; i < w.f->device_count; i++) {
        uint64_t id = w.f->device[i]->worker;
        if (id != 0 && worker_of(id)->killed) {
            ended(id, SIGKILL);
        }
    }
}

static void beat(void)
{
    for (unsigned i = 0; i < w.f->device_count; i++) {
        if (w.f->device[i]->link != NULL) {
            frame(i, "w_beat count=1");
        }
    }
}

static bool made_up(const char *line)
{
    uint64_t n[2] = {0};
    const char *rest = line;
    if (is(line, "next", 1, n, &rest)) {
        next((uint32_t)n[0], rest);
    } else if (is(line, "open", 0, n, &rest)) {
        open_workers();
    } else if (is(line, "answer", 2, n, &rest)) {
        answer((unsigned)n[0], (int64_t)n[1]);
    } else if (is(line, "build", 1, n, &rest)) {
        build((int64_t)n[0]);
    } else if (is(line, "die", 2, n, &rest)) {
        die((unsigned)n[0], (int)n[1]);
    } else if (is(line, "reap", 0, n, &rest)) {
        reap();
    } else if (is(line, "beat", 0, n, &rest)) {
        beat();
    } else {
        return false;
    }
    return true;
}

static void client_line(const char *line)
{
    char *rest = NULL;
    unsigned long pipe = strtoul(line, &rest, 10);
    if (rest == line || pipe >= PIPES_MAX) {
        ck_abort_msg("not known: %s", line);
    }
    request((uint32_t)pipe, rest + strspn(rest, " "));
}

static void world_does(const char *line)
{
    uint64_t n[2] = {0};
    const char *rest = line;
    if (is(line, "connect", 2, n, &rest)) {
        ck_assert_uint_lt(n[0], PIPES_MAX);
        w.uid[n[0]] = (uint32_t)n[1];
    } else if (is(line, "closed", 1, n, &rest)) {
        pipeline_requests.closed(w.f, (uint32_t)n[0]);
    } else if (is(line, "listed", 0, n, &rest)) {
        discover_start(w.f);
    } else if (is(line, "started", 2, n, &rest)) {
        started(n[0], (int)n[1]);
    } else if (is(line, "ended", 2, n, &rest)) {
        ended(n[0], (int)n[1]);
    } else if (is(line, "device", 1, n, &rest)) {
        frame((unsigned)n[0], rest);
    } else if (is(line, "output", 2, n, &rest)) {
        output((unsigned)n[0], n[1], rest);
    } else if (is(line, "compiled", 0, n, &rest)) {
        compiled(rest);
    } else if (is(line, "wait", 1, n, &rest)) {
        wait_ms(n[0]);
    } else if (is(line, "set", 0, n, &rest)) {
        set(rest);
    } else if (is(line, "restart", 0, n, &rest)) {
        restart();
    } else if (is(line, "adopt", 2, n, &rest)) {
        adopt(n[0], (int)n[1]);
    } else if (is(line, "adopted", 0, n, &rest)) {
        adopt_over(w.f);
    } else {
        client_line(line);
    }
}

void world_line(const char *line)
{
    (void)fprintf(w.out, "%s\n", line);
    if (line[0] == '#' || line[0] == '\0') {
        return;
    }
    if (!made_up(line)) {
        world_does(line);
    }
    turns();
    wait_ms(0);
    text_free();
}

void world_begin(FILE *out)
{
    memset(&w, 0, sizeof w);
    log_set_level(getenv("GPUD_LOG") != NULL ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR - 1);
    ck_assert_int_eq(uv_loop_init(&w.loop), 0);
    w.out = out;
    w.now_ns = BEGIN_NS;
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        struct sim_worker *x = &w.worker[i];
        x->channel.fd = -1;
        x->fd[WORKER_INPUT] = x->fd[WORKER_OUTPUT] = x->fd[WORKER_RECORD] = -1;
        capbuf_init(&x->device, FRAME_DEVICE_MAX);
    }
    front_begin();
}

void world_end(void)
{
    front_end();
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        worker_frees(&w.worker[i]);
        capbuf_finish(&w.worker[i].device);
    }
    ck_assert_int_eq(uv_loop_close(&w.loop), 0);
}
