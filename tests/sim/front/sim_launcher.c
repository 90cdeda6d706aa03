/* The launcher, which starts and ends workers and outlives fronts; and the compiler. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/seqpacket.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/keep.h"
#include "daemon/front/workers/silence.h"
#include "daemon/front/workers/worker.h"
#include "tests/sim/front/rules/sim_conduct.h"
#include "tests/sim/front/rules/sim_endings.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_launches.h"
#include "tests/sim/front/sim_roles.h"

#define QUEUE_BYTES (8u << 20)
#define START_NS    (20 * NS_PER_MS)
#define REAP_NS     (3 * NS_PER_MS)
#define LIST_NS     (2 * NS_PER_MS)
#define STARTS_MAX  12u /* of workers of a device in a second: an outage has one without a pause */

/* ---- channels -------------------------------------------------------------------------------- */

int channel_open(struct sim *s, struct sim_worker *x)
{
    int fd[2];
    if (seqpacket_pair(fd, NULL) != 0) {
        sim_fail(s, "channel: %s", strerror(errno));
    }
    duplex_init(&x->channel, fd[1], QUEUE_BYTES, false);
    return fd[0];
}

void channel_close(struct sim_worker *x)
{
    if (x->channel.fd >= 0) {
        (void)close(x->channel.fd);
        duplex_finish(&x->channel);
        x->channel.fd = -1;
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

static struct sim_worker *find(struct sim *s, uint64_t id)
{
    for (unsigned i = s->workers; i > 0; i--) {
        if (s->worker[i - 1]->id == id && s->worker[i - 1]->state != WORKER_GONE) {
            return s->worker[i - 1];
        }
    }
    return NULL;
}

static void drop_records(struct sim *s, unsigned number)
{
    for (unsigned i = 0; i < s->workers; i++) {
        if (s->worker[i]->number == number) {
            worker_drop_record(s->worker[i]);
        }
    }
}

/* The worker that the front of `era` asked for starts. A later front learns of it from the list. */
static void on_started(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    if (x->state != WORKER_ASKED) {
        return;
    }
    bool same = h->a == s->era && front_alive(s);
    unsigned *unstarted = &s->device[x->number].unstarted;
    *unstarted += same && launches_fails(s, x);
    if (*unstarted > 0 && same) {
        --*unstarted;
        worker_end_now(s, x);
        memory_inside();
        (void)worker_started(s->f, x->id, 0, -1, ERR_IO, "no process can be made");
        memory_outside();
        return;
    }
    drop_records(s, x->number);
    x->state = WORKER_RUNS;
    x->heard_ns = x->began_ns = s->now_ns;
    s->device[x->number].later = false;
    sim_log(s, "worker %" PRIu64 " of device %u starts", x->id, x->number);
    if (same) {
        int fd = channel_open(s, x);
        memory_inside();
        bool taken = worker_started(s->f, x->id, x->pid, fd, 0, "");
        memory_outside();
        if (!taken) {
            (void)close(fd);
        }
    }
    worker_begin(s, x);
}

/* A device that a worker has had is named by its pin, which stays when numbers shift. */
static void check_pin(struct sim *s, unsigned number, const char *const *args)
{
    char pin[16];
    bool found = false;
    worker_pin(s, number, pin);
    for (; *args != NULL; args++) {
        found = found || strstr(*args, pin) != NULL;
    }
    if (!found && s->device[number].pinned && s->era == 1 && !s->lies && !memory_failed()) {
        sim_fail(s, "launcher: the next worker of device %u may open another one", number);
    }
}

/* Workers that end again and again are started after pauses. */
static void count_start(struct sim *s, unsigned number)
{
    uint64_t *since = &s->device[number].starts_ns;
    unsigned *starts = &s->device[number].starts;
    if (s->now_ns - *since > NS_PER_S) {
        *since = s->now_ns;
        *starts = 0;
    }
    if (++*starts > STARTS_MAX) {
        sim_fail(s, "starts: device %u gets %u workers in a second", number, *starts);
    }
}

/* The slot of a RECORD_WORKER. Spare workers, whose names all differ, have one for each device. */
static unsigned slot_named(struct sim *s, struct bytes device, unsigned *ret_number)
{
    struct msg_record_worker m;
    struct err e = ERR_INIT;
    char owner[PROTO_NAME_MAX + 1] = "";
    if (proto_decode(&schema_msg_record_worker, device, &m, &e) != 0) {
        sim_fail(s, "launcher: a worker of no device: %s", e.text);
    }
    (void)bytes_to_str(m.tenant, owner, sizeof owner);
    if (strncmp(owner, DOMAIN_SPARE, sizeof DOMAIN_SPARE - 1) == 0) {
        owner[sizeof DOMAIN_SPARE - 1] = '\0';
    }
    *ret_number = (unsigned)m.index;
    return worker_slot(s, (unsigned)m.index, owner);
}

/* The same number is another device for another back end. A front that chooses the back end may
 * take another one than the front before it, when it had no memory to take that one's worker over.
 */
static bool same_backend(struct bytes a, struct bytes b)
{
    struct msg_record_worker m;
    struct msg_record_worker n;
    return proto_decode(&schema_msg_record_worker, a, &m, NULL) != 0 ||
           proto_decode(&schema_msg_record_worker, b, &n, NULL) != 0 ||
           (m.backend.size == n.backend.size &&
            memcmp(m.backend.data, n.backend.data, m.backend.size) == 0);
}

static void alone_in(struct sim *s, unsigned slot, unsigned number, uint64_t id,
                     struct bytes device)
{
    const struct sim_worker *other = worker_of_device(s, slot);
    if (other != NULL && (!other->killed || same_backend(capbuf_view(&other->device), device))) {
        sim_fail(s, "launcher: device %u gets worker %" PRIu64 " beside worker %" PRIu64, number,
                 id, other->id);
    }
}

/* A spare worker has had nothing of any tenant. */
void launcher_named(struct sim *s, uint64_t id, struct bytes device)
{
    struct sim_worker *x = find(s, id);
    unsigned number = 0;
    unsigned slot = slot_named(s, device, &number);
    launches_named(s, id, x);
    if (x == NULL) {
        return;
    }
    alone_in(s, slot, number, id, device);
    if (x->taken || x->buffers > 0 || x->job != NULL) {
        sim_fail(s, "spare: worker %" PRIu64 " becomes another tenant's, and was one's before", id);
    }
    sim_log(s, "worker %" PRIu64 " of device %u is of device %u now", id, x->number, slot);
    x->taken = true;
    s->device[x->number].latest = NULL;
    s->device[slot].latest = x;
    drop_records(s, slot);
    x->number = slot;
    capbuf_reset(&x->device);
    (void)capbuf_append(&x->device, device.data, device.size);
}

int launcher_asked(struct sim *s, uint64_t id, const char *const *args, struct bytes device,
                   const int *fd, struct err *e)
{
    unsigned number = 0;
    unsigned slot = slot_named(s, device, &number);
    (void)e;
    if (s->p.divided != 0) {
        slot = number = launches_hardware(s, args, number);
    }
    alone_in(s, slot, number, id, device);
    check_pin(s, slot, args);
    drain_check_start(s, number);
    count_start(s, slot);
    struct sim_worker *x = worker_make(s, id, slot);
    lease_begin(s, x, args);
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        x->fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 0);
    }
    (void)capbuf_append(&x->device, device.data, device.size);
    sim_at(s, s->now_ns + START_NS, on_started, x, s->era, 0);
    return 0;
}

static void on_ended(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    if (x->state == WORKER_GONE || h->b != x->epoch) {
        return;
    }
    int status = (int)h->a;
    sim_log(s, "worker %" PRIu64 " of device %u ends, status %d", x->id, x->number, status);
    bool front_asked = x->killed;
    bool external = status == SIGKILL || status == SIGTERM;
    endings_ended(s, x, status);
    conduct_ended(s, x, status);
    exec_worker_gone(s, x, external && !front_asked);
    worker_end_now(s, x);
    if (front_alive(s)) {
        memory_inside();
        (void)worker_ended(s->f, x->id, status);
        memory_outside();
        x->told_era = s->era;
    }
}

void launcher_ends(struct sim *s, struct sim_worker *x, int status, uint64_t in_ns)
{
    sim_at(s, s->now_ns + in_ns, on_ended, x, (uint64_t)status, x->epoch);
}

void launcher_fall(struct sim *s, struct chance *r)
{
    for (unsigned i = 0; i < s->workers; i++) {
        if (s->worker[i]->state == WORKER_RUNS && chance_percent(r, 50)) {
            launcher_ends(s, s->worker[i], chance_percent(r, 50) ? SIGKILL : SIGSEGV, 0);
        }
    }
}

/* A worker that gets no processor is not ended for its silence before it had a minute more. */
static void check_starved(struct sim *s, const struct sim_worker *x)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        bool silent = d->worker == x->id && strncmp(d->ending, "no heartbeat", 12) == 0;
        if (silent && x->starved && s->now_ns < x->heard_ns + SILENCE_EXCUSED_MAX_NS) {
            sim_fail(s, "starved: worker %" PRIu64 " is ended, and only got no processor", x->id);
        }
    }
}

static const struct device *device_of(const struct sim *s, uint64_t id)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        if (d->worker == id) {
            return d;
        }
    }
    return NULL;
}

void launcher_kill_worker(struct sim *s, uint64_t id)
{
    struct sim_worker *x = find(s, id);
    if (x == NULL) {
        return;
    }
    const struct device *d = device_of(s, id);
    sim_log(s, "front ends worker %" PRIu64 " of device %u: %s", id, x->number,
            d != NULL ? d->ending : "");
    x->killed_ns = s->now_ns;
    if (x->killed) {
        return;
    }
    check_starved(s, x);
    if (d != NULL) {
        endings_killed(s, d, x);
        conduct_killed(s, d, x);
    }
    domain_doubt(s, x);
    overrun_killed(s, x);
    rules_killed(s, x);
    x->killed = true;
    x->deaf = x->deaf && !s->settling;
    if (x->deaf) { /* it ends so late that the front decides about its jobs before */
        exec_worker_gone(s, x, false);
    }
    uint64_t in_ns = x->deaf ? (4 + chance_mix(id ^ s->course->seed) % 40) * NS_PER_S : REAP_NS;
    launcher_ends(s, x, SIGKILL, in_ns);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static struct sim_copy *copy_of(struct sim *s, uint64_t id)
{
    for (unsigned i = 0; i < s->copies; i++) {
        if (s->copy[i].id == id) {
            return &s->copy[i];
        }
    }
    return NULL;
}

static void forget_copy(struct sim *s, struct sim_copy *c)
{
    (void)close(c->fd);
    *c = s->copy[--s->copies];
}

void launcher_keep_copy(struct sim *s, uint64_t id, uint64_t worker, int fd)
{
    struct sim_copy *c = copy_of(s, id);
    if (c != NULL && (c->leaves != 0 || !s->accepts)) { /* a former front's, which has gone */
        forget_copy(s, c);
        c = NULL;
    }
    if (c != NULL || launcher_copies_kept(s) >= s->f->copies_max || s->copies == SIM_COPIES) {
        sim_fail(s, "copies: %#" PRIx64 " is kept twice, or is one more than may be", id);
    }
    s->copy[s->copies++] =
        (struct sim_copy){.id = id, .worker = worker, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
}

static void on_released(struct sim *s, const struct hap *h)
{
    for (unsigned i = 0; i < s->copies; i++) {
        if (s->copy[i].leaves == h->a && s->era == h->b) {
            forget_copy(s, &s->copy[i]);
            return;
        }
    }
}

/* Some releases are on their way for long, and are lost with the front. */
void launcher_release_copy(struct sim *s, uint64_t id)
{
    struct sim_copy *c = copy_of(s, id);
    if (c == NULL || c->leaves != 0) {
        return;
    }
    c->leaves = ++s->releases;
    uint64_t ns = s->releases % 2 * (s->releases % 4 * 500 * NS_PER_MS);
    if (ns == 0) {
        forget_copy(s, c);
    } else {
        sim_at(s, s->now_ns + ns, on_released, NULL, c->leaves, s->era);
    }
}

bool launcher_has_copy(const struct sim *s, uint64_t id)
{
    bool has = false;
    for (unsigned i = 0; i < s->copies; i++) {
        has = has || (s->copy[i].id == id && s->copy[i].leaves == 0);
    }
    return has;
}

unsigned launcher_copies_kept(const struct sim *s)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->copies; i++) {
        count += s->copy[i].leaves == 0;
    }
    return count;
}

void launcher_check_left(struct sim *s)
{
    unsigned kept = launcher_copies_kept(s);
    if (kept > 0) {
        sim_fail(s, "left: the launcher keeps %u copies", kept);
    }
}

static void drop_copies(struct sim *s)
{
    while (s->copies > 0) {
        forget_copy(s, &s->copy[0]);
    }
}

void launcher_finish(struct sim *s)
{
    drop_copies(s);
}

static void hand_copies_on(struct sim *s)
{
    sim_log(s, "the launcher hands %u copies on", s->copies);
    for (unsigned i = 0; i < s->copies; i++) {
        struct sim_copy *c = &s->copy[i];
        uint64_t id = c->id;
        int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
        unsigned before = s->copies;
        c->left = c->left || c->leaves != 0;
        c->leaves = 0;
        memory_inside();
        keep_found(s->f, id, fd);
        memory_outside();
        i -= s->copies < before; /* without memory the front releases it */
    }
}

static void on_list(struct sim *s, const struct hap *h)
{
    if (h->a != s->era || !front_alive(s) || s->f->listed) {
        return;
    }
    hand_copies_on(s);
    for (unsigned i = 0; i < s->workers; i++) {
        struct sim_worker *x = s->worker[i];
        bool runs = x->state == WORKER_RUNS && x->channel.fd < 0;
        if (!runs && !x->recorded) {
            continue;
        }
        struct launcher_inventory inventory = {
            .id = x->id, .pid = runs ? x->pid : 0, .device = capbuf_view(&x->device)};
        inventory.channel = runs ? channel_open(s, x) : -1;
        x->cut = false;
        for (unsigned k = 0; k < LAUNCHER_WORKER_FDS; k++) {
            bool open = runs || k == WORKER_RECORD;
            inventory.fd[k] = open ? fcntl(x->fd[k], F_DUPFD_CLOEXEC, 0) : -1;
        }
        memory_inside();
        adopt_worker(s->f, &inventory);
        memory_outside();
    }
    memory_inside();
    discover_start(s->f);
    memory_outside();
}

void launcher_lists(struct sim *s)
{
    s->accepts = false;
    sim_at(s, s->now_ns + LIST_NS, on_list, NULL, s->era, 0);
}

/* As pipeline_start_anew, which would connect to a launcher. */
void launcher_lost(struct sim *s)
{
    sim_log(s, "the launcher ends");
    for (unsigned i = 0; i < s->workers; i++) {
        struct sim_worker *x = s->worker[i];
        if (x->state != WORKER_GONE) {
            exec_worker_gone(s, x, true);
            worker_end_now(s, x);
        }
        worker_drop_record(x);
    }
    drop_copies(s);
    launches_lost(s);
    for (unsigned i = 0; i < s->buffers; i++) {
        struct sim_buffer *b = s->buffer[i];
        b->alone_era = b->moved_era != 0 && b->alone_era == 0 ? s->era : b->alone_era;
    }
    monitor_drop(s);
    s->launchers++;
    if (!front_alive(s)) {
        return;
    }
    s->f->lineage = 1 + s->launchers;
    memory_inside();
    monitor_orphaned(s->f);
    departing_orphaned(s->f);
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        worker_orphaned(s->f, d);
    }
    keep_orphaned(s->f);
    memory_outside();
}

/* ---- the compiler ---------------------------------------------------------------------------- */

/* Code without a signature: bulk(float *y, struct of SIM_BULK_BYTES). */
static void add_bulk(const struct sim *s, struct capbuf *kernels)
{
    static const char forged[] = SIM_BULK " x=\"y\"\n2026-01-01T00:00:00.000000Z tenant=root,z";
    struct capbuf args;
    struct err e = ERR_INIT;
    const struct proto_carg arg[] = {
        {.name = bytes_str("y"), .kind = 2, .access = ACCESS_INOUT, .dtype = DTYPE_F32},
        {.name = bytes_str("b"), .kind = 3, .bytes = SIM_BULK_BYTES}};
    capbuf_init(&args, 4096);
    (void)proto_list_add(&schema_carg, &arg[0], &args, &e);
    (void)proto_list_add(&schema_carg, &arg[1], &args, &e);
    const struct proto_ckernel k = {.entry = bytes_str(s->p.watch != 0 ? forged : SIM_BULK),
                                    .args = proto_list_of(&args, 2)};
    (void)proto_list_add(&schema_ckernel, &k, kernels, &e);
    capbuf_finish(&args);
}

static void compile_answer(const struct sim *s, struct sim_compile *c, int code, const char *text)
{
    static const char signature[] = "//@kernel twist(in f32 x[n], inout f32 y[n])  over n";
    static const char fresh[] = "//@kernel make(in f32 x[n], out f32 y[n])  over n";
    struct capbuf kernels;
    struct err e = ERR_INIT;
    capbuf_init(&kernels, 65536);
    const struct proto_ckernel records[] = {
        {.entry = bytes_str("twist"), .signature = bytes_str(signature)},
        {.entry = bytes_str("make"), .signature = bytes_str(fresh)}};
    unsigned count = c->builtin ? 0 : 2;
    for (unsigned i = 0; i < count; i++) {
        (void)proto_list_add(&schema_ckernel, &records[i], &kernels, &e);
    }
    if (!c->builtin && strstr(c->source, SIM_BULK) != NULL) {
        capbuf_reset(&kernels);
        add_bulk(s, &kernels);
        count = 1;
    }
    struct compile_response r = {
        .code = code, .binary = bytes_str(c->source), .kernels = proto_list_of(&kernels, count)};
    if (code != 0) {
        (void)err_set(&e, code, "%s", text);
    }
    bool answers = code == 0 || code == ERR_COMPILE;
    c->over = true;
    memory_inside();
    c->done(c->data, code, answers ? &r : NULL, hash_of(c->source, strlen(c->source)), &e);
    memory_outside();
    capbuf_finish(&kernels);
}

static void on_compiled(struct sim *s, const struct hap *h)
{
    struct sim_compile *c = h->actor;
    if (h->a != s->era || !front_alive(s) || c->over) {
        return; /* the front that asked has ended, and its requests are gone */
    }
    if (s->bad_compiles > 0 && !s->settling) {
        static const int codes[] = {ERR_COMPILE, ERR_COMPILE_LIMIT, ERR_IO, ERR_NOMEM};
        s->bad_compiles--;
        int code = codes[chance_mix(c->salt) % (sizeof codes / sizeof codes[0])];
        code = c->builtin && code == ERR_COMPILE ? ERR_IO : code;
        compile_answer(s, c, code, "the compiler failed");
        return;
    }
    compile_answer(s, c, 0, "");
}

int compile_asked(struct sim *s, const struct compiler_request *q, compiler_done_fn done,
                  void *data, struct err *e)
{
    unsigned pending = 0;
    for (unsigned i = 0; i < s->compiles; i++) {
        pending += !s->compile[i]->over;
    }
    if (pending >= 32 || s->compiles == sizeof s->compile / sizeof s->compile[0]) {
        return err_set(e, ERR_BUSY, "the compiler has %u requests", pending);
    }
    rights_compile(s, q);
    struct sim_compile *c = calloc(1, sizeof *c);
    bool builtin = strcmp(q->owner, "builtin") == 0;
    *c = (struct sim_compile){
        .done = done, .data = data, .builtin = builtin, .salt = s->course->seed + s->compiles};
    (void)snprintf(c->source, sizeof c->source, "%.*s",
                   (int)(q->source.size < 60 ? q->source.size : 60), (const char *)q->source.data);
    s->compile[s->compiles++] = c;
    uint64_t ns = builtin ? NS_PER_MS : 1 + chance_mix(c->salt) % (s->p.compile_ms * NS_PER_MS);
    sim_at(s, s->now_ns + ns, on_compiled, c, s->era, 0);
    return 0;
}

/* As compiler_destroy does. */
void compiles_drop(struct sim *s)
{
    for (unsigned i = 0; i < s->compiles; i++) {
        if (!s->compile[i]->over) {
            compile_answer(s, s->compile[i], ERR_CLOSED, "the daemon ends");
        }
        free(s->compile[i]);
    }
    s->compiles = 0;
}
