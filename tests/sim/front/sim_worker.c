/* Workers: the frames of the front, and their answers. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memfd.h"
#include "daemon/front/model/session.h"
#include "tests/sim/front/rules/sim_fronts.h"
#include "tests/sim/front/rules/sim_moves.h"
#include "tests/sim/front/rules/sim_places.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_launches.h"

#define FRAME_NS   (30 * NS_PER_US)
#define OPEN_NS    (40 * NS_PER_MS)
#define GARBAGE    0xa5
#define EARLY_NS   (2 * NS_PER_S) /* in which a worker may have no memory for some buffers yet */
#define PATIENT_MS 2000u          /* from this time between beats on a worker asks for patience */

/* ---- make and unmake ------------------------------------------------------------------------- */

struct sim_worker *worker_make(struct sim *s, uint64_t id, unsigned number)
{
    struct sim_worker *x = calloc(1, sizeof *x);
    x->id = id;
    x->number = number;
    x->pid = 100000 + (int)s->workers; /* no process of the system has it */
    x->channel.fd = -1;
    x->inbox_end = &x->inbox;
    x->job_end = x->live = &x->job;
    capbuf_init(&x->device, FRAME_DEVICE_MAX);
    if ((s->workers & (s->workers - 1)) == 0) { /* a power of two: full */
        s->worker = realloc(s->worker, (2 * s->workers + 1) * sizeof(struct sim_worker *));
    }
    s->worker[s->workers++] = x;
    s->device[number].latest = x;
    return x;
}

static void inbox_drop(struct sim_worker *x)
{
    while (x->inbox != NULL) {
        struct sim_inbox *in = x->inbox;
        x->inbox = in->next;
        frame_fds_close(&in->fds);
        free(in->data);
        free(in);
    }
    x->inbox_end = &x->inbox;
}

uint64_t worker_ended_ns(const struct sim *s, uint64_t id)
{
    for (unsigned i = s->workers; i > 0; i--) {
        const struct sim_worker *x = s->worker[i - 1];
        if (x->id == id) {
            return x->state == WORKER_GONE ? x->ended_ns : s->now_ns;
        }
    }
    return s->now_ns;
}

void worker_drop_record(struct sim_worker *x)
{
    if (x->recorded) {
        x->recorded = false;
        (void)close(x->fd[WORKER_RECORD]);
        capbuf_finish(&x->device);
    }
}

void worker_end_now(struct sim *s, struct sim_worker *x)
{
    x->recorded = x->state == WORKER_RUNS;
    x->state = WORKER_GONE;
    s->ends++;
    x->ended_ns = s->now_ns;
    x->epoch++;
    channel_close(x);
    inbox_drop(x);
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        if (i != WORKER_RECORD || !x->recorded) {
            (void)close(x->fd[i]);
        }
    }
    for (unsigned i = 0; i < x->buffers; i++) {
        if (x->buffer[i].copy >= 0) {
            (void)close(x->buffer[i].copy);
        }
    }
    free(x->buffer);
    x->buffer = NULL;
    x->buffers = 0;
    for (unsigned i = 0; i < x->arenas; i++) {
        (void)munmap(x->arena[i].data, x->arena[i].size);
    }
    x->arenas = 0;
    if (x->input != NULL) {
        (void)munmap(x->input, x->staging);
        (void)munmap(x->output, x->staging);
        x->input = x->output = NULL;
    }
    HASH_CLEAR(hh, x->by_id);
    while (x->job != NULL) {
        struct sim_worker_job *j = x->job;
        x->job = j->next;
        exec_free(j);
    }
    x->live = &x->job;
    if (!x->recorded) {
        capbuf_finish(&x->device);
    }
}

void workers_free(struct sim *s)
{
    for (unsigned i = 0; i < s->workers; i++) {
        if (s->worker[i]->state != WORKER_GONE) {
            worker_end_now(s, s->worker[i]);
        }
        worker_drop_record(s->worker[i]);
        free(s->worker[i]);
    }
    free(s->worker);
}

unsigned worker_slot(struct sim *s, unsigned number, const char *owner)
{
    if (owner[0] == '\0') {
        return number;
    }
    unsigned i = 0;
    while (i < s->domains &&
           (s->domain[i].number != number || strcmp(s->domain[i].tenant, owner) != 0)) {
        i++;
    }
    if (i == SIM_SLOTS - DEVICES_MAX) {
        sim_fail(s, "sim: too many domains");
    }
    if (i == s->domains) {
        s->domain[s->domains++].number = number;
        (void)snprintf(s->domain[i].tenant, sizeof s->domain[i].tenant, "%s", owner);
    }
    return DEVICES_MAX + i;
}

unsigned worker_slot_of(struct sim *s, const struct device *d)
{
    return worker_slot(s, device_hardware(s, d), d->owner != NULL ? d->owner->name : "");
}

unsigned worker_hardware(const struct sim *s, unsigned slot)
{
    return slot < DEVICES_MAX ? slot : s->domain[slot - DEVICES_MAX].number;
}

struct sim_worker *worker_of_device(struct sim *s, unsigned number)
{
    struct sim_worker *x = s->device[number].latest; /* those before it have ended */
    return x != NULL && x->state != WORKER_GONE ? x : NULL;
}

struct sim_worker_buffer *worker_buffer(struct sim_worker *x, uint64_t id)
{
    for (unsigned i = 0; i < x->buffers; i++) {
        if (x->buffer[i].id == id) {
            return &x->buffer[i];
        }
    }
    return NULL;
}

/* ---- out ------------------------------------------------------------------------------------- */

void worker_send_bytes(struct sim *s, struct sim_worker *x, struct bytes frame,
                       const struct frame_fds *fds)
{
    struct err e = ERR_INIT;
    x->heard_ns = s->now_ns;
    if (x->channel.fd >= 0 && !x->cut) {
        x->unread = true;
        (void)duplex_send(&x->channel, frame, fds, &e); /* fails if the front closed it */
    }
}

void worker_send(struct sim *s, struct sim_worker *x, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds)
{
    struct err e = ERR_INIT;
    struct capbuf frame;
    if (x->silent || x->state != WORKER_RUNS) {
        return;
    }
    capbuf_init(&frame, FRAME_MAX_BYTES);
    if (proto_encode(schema, msg, &frame, &e) != 0) {
        sim_fail(s, "worker: %s: %s", schema->name, e.text);
    }
    if (schema != &schema_msg_w_beat && frame.size <= sizeof x->last && fds == NULL) {
        memcpy(x->last, frame.data, frame.size);
        x->last_size = frame.size;
    }
    worker_send_bytes(s, x, capbuf_view(&frame), fds);
    capbuf_finish(&frame);
}

bool worker_unread(struct sim *s)
{
    bool any = false;
    for (unsigned i = 0; i < s->workers; i++) {
        struct sim_worker *x = s->worker[i];
        int bytes = 0;
        if (x->channel.fd >= 0 && x->channel.queue != NULL) { /* the socket was full */
            struct err e = ERR_INIT;
            (void)duplex_resume(&x->channel, &e);
            x->unread = true;
        }
        if (x->unread) {
            x->unread =
                x->channel.fd >= 0 && ioctl(x->channel.fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
            any = any || x->unread;
        }
    }
    return any;
}

static void on_beat(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    if (x->state != WORKER_RUNS || x->epoch != h->a) {
        return;
    }
    uint64_t ms = s->p.beat_ms;
    const struct msg_w_beat m = {.count = 1,
                                 .patience_ns = ms >= PATIENT_MS ? ms * 2 * NS_PER_MS : 0};
    worker_send(s, x, &schema_msg_w_beat, &m, NULL);
    sim_at(s, s->now_ns + ms * NS_PER_MS, on_beat, x, x->epoch, 0);
}

/* With a monitor devices are named as its library names them. */
void worker_pin(const struct sim *s, unsigned number, char ret_pin[16])
{
    const char *form = s->p.divided != 0            ? "uuid=MIG-%04u"
                       : s->p.special == WORLD_HELD ? "uuid=GPU-%04u"
                                                    : "card=%u";
    (void)snprintf(ret_pin, 16, form, worker_hardware(s, number));
}

void worker_say_ready(struct sim *s, struct sim_worker *x)
{
    char pin[16];
    worker_pin(s, x->number, pin);
    const struct msg_w_ready m = {
        .pin = bytes_str(pin),
        .build = bytes_str("sim"),
        .backend = bytes_str("sim"),
        .name = bytes_str(s->p.watch != 0 ? "a \"board\\\n\xff\xc3(\xe2\x82\xac" : "simulated"),
        .simulated = 1,
        .memory = s->p.memory_kib * 1024,
        .max_alloc = s->p.memory_kib * 1024,
        .streams = s->p.streams,
        .urgent = s->p.urgent < s->p.streams ? s->p.urgent : 0,
        .arch = bytes_str("any"),
        .devices = s->p.divided != 0 ? 1 : s->p.devices, /* a process sees one instance */
        .pool_limit = x->lease.limit > 0 ? x->lease.limit : s->p.memory_kib * 1024,
        .pool_default = s->p.memory_kib * 1024,
        .spill_limit = 0,
    };
    worker_send(s, x, &schema_msg_w_ready, &m, NULL);
    s->device[x->number].pinned = s->device[x->number].pinned || !x->silent;
    x->ready = true;
    x->rings_asked = true;
}

static void on_open(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    if (x->state != WORKER_RUNS || x->epoch != h->a || x->ready) {
        return;
    }
    if (launches_unfit(s, x)) {
        const struct msg_w_absent m = {
            .code = ERR_NO_DEVICE, .text = bytes_str("no driver"), .devices = 0};
        worker_send(s, x, &schema_msg_w_absent, &m, NULL);
        launcher_ends(s, x, 1 << 8, NS_PER_MS);
        return;
    }
    unsigned *absent = &s->device[x->number].absent;
    if (*absent > 0 && !s->settling) {
        static const int codes[] = {ERR_NO_DEVICE, ERR_DEVICE_LOST, ERR_INTERNAL};
        --*absent;
        const struct msg_w_absent m = {.code = codes[x->id % 3],
                                       .text = bytes_str("the driver does not find it"),
                                       .devices = s->p.devices};
        s->gave_up = true;
        s->device[x->number].later = m.code != ERR_NO_DEVICE && !x->silent;
        worker_send(s, x, &schema_msg_w_absent, &m, NULL);
        launcher_ends(s, x, 1 << 8, NS_PER_MS);
        return;
    }
    worker_say_ready(s, x);
    const struct hap beat = {.actor = x, .a = x->epoch};
    on_beat(s, &beat);
}

static uint8_t *map(struct sim *s, int fd, size_t size)
{
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        sim_fail(s, "worker: cannot map %zu bytes", size);
    }
    return data;
}

void worker_begin(struct sim *s, struct sim_worker *x)
{
    x->staging = s->p.staging_kib * 1024;
    x->input = map(s, x->fd[WORKER_INPUT], x->staging);
    x->output = map(s, x->fd[WORKER_OUTPUT], x->staging);
    sim_at(s, s->now_ns + domain_opens_ns(s, x, OPEN_NS), on_open, x, x->epoch, 0);
}

/* The link itself offers rings. A worker takes none: all goes by the socket. */
void worker_answer_rings(struct sim *s)
{
    for (unsigned i = 0; i < s->workers; i++) {
        struct sim_worker *x = s->worker[i];
        struct bytes frame;
        struct frame_fds fds = {.count = 0};
        struct msg_f_rings offer;
        if (!x->rings_asked || x->channel.fd < 0) {
            continue;
        }
        while (duplex_next(&x->channel, &frame, &fds, NULL) == 1) {
            frame_fds_close(&fds);
            if (proto_decode(&schema_msg_f_rings, frame, &offer, NULL) != 0) {
                sim_fail(s, "worker: what the link sent is no offer of rings");
            }
            const struct msg_w_rings m = {
                .nonce = offer.nonce, .code = ERR_UNSUPPORTED, .text = bytes_str("no rings")};
            const struct frame_fds other = {.fd = {x->fd[WORKER_INPUT]}, .count = 1};
            x->rings_asked = false;
            worker_send(s, x, &schema_msg_w_rings, &m, &other); /* it is no state of a thread */
        }
    }
}

/* ---- buffers, modules, arenas ---------------------------------------------------------------- */

static void count_tenant(struct sim_worker *x, uint64_t key, uint64_t more, uint64_t less)
{
    unsigned i = 0;
    while (i < x->tenants && x->tenant[i].key != key) {
        i++;
    }
    if (i == sizeof x->tenant / sizeof x->tenant[0]) {
        return;
    }
    if (i == x->tenants) {
        x->tenant[x->tenants++].key = key;
        x->tenant[i].asked = x->tenant[i].reported = 0;
    }
    x->tenant[i].asked += more - less;
}

static uint64_t used_bytes(const struct sim_worker *x)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < x->buffers; i++) {
        sum += x->buffer[i].size;
    }
    return sum;
}

static bool refuses(struct sim *s, struct sim_worker *x)
{
    bool refuses = x->refuses && !s->settling;
    x->refuses = false;
    return refuses;
}

static void say_buffer(struct sim *s, struct sim_worker *x, uint64_t id, int code)
{
    const struct msg_w_buffer m = {
        .id = id, .code = code, .text = bytes_str(code != 0 ? "refused" : "")};
    worker_send(s, x, &schema_msg_w_buffer, &m, NULL);
}

static struct sim_worker_buffer *add_buffer(struct sim *s, struct sim_worker *x, uint64_t id,
                                            uint64_t size, uint64_t tenant)
{
    if (worker_buffer(x, id) != NULL) {
        sim_fail(s, "worker: buffer %#" PRIx64 " is made twice", id);
    }
    if (used_bytes(x) + size > s->p.memory_kib * 1024) {
        return NULL;
    }
    if (x->buffers == x->buffers_room) {
        x->buffers_room = 2 * x->buffers_room + 16;
        x->buffer = realloc(x->buffer, x->buffers_room * sizeof *x->buffer);
    }
    struct sim_worker_buffer *b = &x->buffer[x->buffers++];
    *b = (struct sim_worker_buffer){.id = id, .size = size, .tenant = tenant, .copy = -1};
    memset(b->content, GARBAGE, sizeof b->content);
    count_tenant(x, tenant, size, 0);
    return b;
}

static void take_create(struct sim *s, struct sim_worker *x, const struct msg_f_buffer_create *m)
{
    struct sim_worker_buffer *b =
        refuses(s, x) ? NULL : add_buffer(s, x, m->id, m->size, m->tenant);
    if (b != NULL && m->zero != 0) {
        memset(b->content, 0, sizeof b->content);
    }
    struct sim_buffer *known = model_find(s, m->id);
    if (known != NULL && known->worker == 0) {
        known->worker = x->id;
    }
    if (known != NULL) {
        known->lied = known->lied || x->lied;
    }
    say_buffer(s, x, m->id, b != NULL ? 0 : ERR_DEVICE_MEMORY);
}

void worker_drop_buffer(struct sim_worker *x, struct sim_worker_buffer *b)
{
    count_tenant(x, b->tenant, 0, b->size);
    if (b->copy >= 0) {
        (void)close(b->copy);
    }
    *b = x->buffer[--x->buffers];
}

static void take_free(struct sim *s, struct sim_worker *x, const struct msg_f_buffer_free *m)
{
    struct sim_worker_buffer *b = worker_buffer(x, m->id);
    if (b == NULL) {
        return; /* the front had not asked for it yet; a worker refuses the frame */
    }
    b->freed = true;
    if (b->readers + b->writers == 0) {
        worker_drop_buffer(x, b);
    } else if (!memory_failed() && !x->lied) { /* without memory a record names no buffer */
        sim_fail(s, "worker: buffer %#" PRIx64 " is freed while jobs use it", m->id);
    }
}

/* A copy for the time without a worker is complete. The next front asks for its own. */
static void on_lent(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    int fd = (int)(h->b & UINT32_MAX);
    const struct sim_worker_buffer *b = worker_buffer(x, h->a);
    bool fails = lease_is_slow(s, x, h->a) && (h->a % 4 == 3 || places_wanted(s, x));
    if (b != NULL && x->state == WORKER_RUNS && h->b >> 32 == s->era && fails) {
        places_copy_refused(s, x);
        say_buffer(s, x, h->a, ERR_NOMEM);
    } else if (b != NULL && x->state == WORKER_RUNS && h->b >> 32 == s->era) {
        copy_write(s, b, fd);
        model_copied(s, h->a, true);
        say_buffer(s, x, h->a, 0);
    }
    (void)close(fd);
}

static void take_seal(struct sim *s, struct sim_worker *x, const struct msg_f_buffer_seal *m,
                      struct frame_fds *fds)
{
    struct sim_worker_buffer *b = worker_buffer(x, m->id);
    if (b == NULL || fds->count != 1) {
        sim_fail(s, "worker: buffer %#" PRIx64 " is sealed, and is not there", m->id);
    }
    if (b->writers > 0 && !x->lied) { /* it may have said that they have ended */
        sim_fail(s, "worker: buffer %#" PRIx64 " is sealed while jobs write it", m->id);
    }
    if (refuses(s, x)) {
        places_copy_refused(s, x);
        say_buffer(s, x, m->id, ERR_NOMEM);
        return;
    }
    fds->count = 0;
    if (m->lent != 0) {
        uint64_t at_ns = s->now_ns + worker_lends_ns(s, m->id);
        client_wants(s, m->id);
        at_ns += lease_is_slow(s, x, m->id) ? (1 + m->id % 8) * NS_PER_S : 0;
        moves_begin(s, x, m->id, at_ns - s->now_ns);
        sim_at(s, at_ns, on_lent, x, m->id, s->era << 32 | (uint64_t)fds->fd[0]);
        return;
    }
    copy_write(s, b, fds->fd[0]);
    if (memfd_freeze(fds->fd[0], NULL) != 0) {
        sim_fail(s, "seal: the copy of buffer %#" PRIx64 " cannot be made unwritable", m->id);
    }
    b->copy = fds->fd[0];
    say_buffer(s, x, m->id, 0);
}

static void take_restore(struct sim *s, struct sim_worker *x, const struct msg_f_buffer_restore *m,
                         struct frame_fds *fds)
{
    bool tight = s->device[x->number].tight && !s->settling;
    s->device[x->number].tight = false;
    if (tight) {
        client_lets_go(s, m->id);
    }
    bool early = lease_is_slow(s, x, m->id) && s->now_ns < x->began_ns + EARLY_NS;
    bool refused = refuses(s, x) || tight || early || moves_refused(s, m->id);
    struct sim_worker_buffer *b = refused ? NULL : add_buffer(s, x, m->id, m->size, m->tenant);
    if (b == NULL) {
        s->broke_restore = s->broke_restore || !refused;
        say_buffer(s, x, m->id, ERR_DEVICE_MEMORY);
        return;
    }
    size_t size = m->size < SIM_CONTENT ? m->size : SIM_CONTENT;
    if (fds->count != 1 || pread(fds->fd[0], b->content, size, 0) != (ssize_t)size) {
        sim_fail(s, "worker: buffer %#" PRIx64 " has no copy", m->id);
    }
    if (m->lent == 0) {
        b->copy = fds->fd[0];
        fds->count = 0;
    }
    moves_take(s, x, b);
}

static void take_load(struct sim *s, struct sim_worker *x, const struct msg_f_module_load *m)
{
    int code = refuses(s, x) ? ERR_DEVICE_MEMORY : 0;
    bool room = x->modules < sizeof x->module / sizeof x->module[0];
    code = room ? code : ERR_DEVICE_MEMORY;
    if (code == 0) {
        x->module[x->modules++] = m->module;
    }
    const struct msg_w_module answer = {
        .module = m->module, .code = code, .text = bytes_str(code != 0 ? "refused" : "")};
    worker_send(s, x, &schema_msg_w_module, &answer, NULL);
}

static void take_unload(struct sim_worker *x, uint64_t module)
{
    for (unsigned i = 0; i < x->modules; i++) {
        if (x->module[i] == module) {
            x->module[i] = x->module[--x->modules];
            return;
        }
    }
}

static void take_arena(struct sim *s, struct sim_worker *x, const struct msg_f_arena *m,
                       struct frame_fds *fds)
{
    bool room = x->arenas < sizeof x->arena / sizeof x->arena[0];
    struct msg_w_arena answer = {.arena = m->arena, .align = 64};
    if (m->tenant == 0) {
        sim_fail(s, "worker: arena %#" PRIx64 " is of no tenant", m->arena);
    }
    if (!room || fds->count != 1 || refuses(s, x)) {
        answer.align = 0;
        x->arenas_refused = true;
    } else {
        x->arena[x->arenas].id = m->arena;
        x->arena[x->arenas].size = m->size;
        x->arena[x->arenas++].data = map(s, fds->fd[0], m->size);
    }
    worker_send(s, x, &schema_msg_w_arena, &answer, NULL);
}

static void take_arena_free(struct sim_worker *x, uint64_t arena)
{
    for (unsigned i = 0; i < x->arenas; i++) {
        if (x->arena[i].id == arena) {
            (void)munmap(x->arena[i].data, x->arena[i].size);
            x->arena[i] = x->arena[--x->arenas];
            return;
        }
    }
}

/* Another front asks: it sends its arenas anew. Jobs that run keep those of the former. */
static void arenas_forget(struct sim_worker *x)
{
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->state != WJOB_ENDED) {
            return;
        }
    }
    while (x->arenas > 0) {
        take_arena_free(x, x->arena[0].id);
    }
}

static void take_pool(struct sim *s, struct sim_worker *x)
{
    for (unsigned i = 0; i < x->tenants; i++) {
        uint64_t asked = x->tenant[i].asked;
        if (asked != x->tenant[i].reported) {
            const struct msg_w_tenant m = {
                .tenant = x->tenant[i].key, .asked = asked, .mapped = asked, .peak = asked};
            x->tenant[i].reported = asked;
            worker_send(s, x, &schema_msg_w_tenant, &m, NULL);
        }
    }
    lease_tick(s, x);
    uint64_t used = used_bytes(x) > lease_fat(s, x) ? used_bytes(x) : lease_fat(s, x);
    const struct msg_w_pool m = {
        .size = used, .used = used, .limit = x->lease.limit, .missing = x->lease.missing};
    worker_send(s, x, &schema_msg_w_pool, &m, NULL);
}

/* ---- in -------------------------------------------------------------------------------------- */

static void take_buffers(struct sim *s, struct sim_worker *x, struct sim_inbox *in, const void *msg)
{
    if (in->schema == &schema_msg_f_buffer_create) {
        take_create(s, x, msg);
    } else if (in->schema == &schema_msg_f_buffer_free) {
        take_free(s, x, msg);
    } else if (in->schema == &schema_msg_f_buffer_seal) {
        take_seal(s, x, msg, &in->fds);
    } else if (in->schema == &schema_msg_f_buffer_restore) {
        take_restore(s, x, msg, &in->fds);
    } else if (in->schema == &schema_msg_f_arena) {
        take_arena(s, x, msg, &in->fds);
    } else if (in->schema == &schema_msg_f_arena_free) {
        take_arena_free(x, ((const struct msg_f_arena_free *)msg)->arena);
    }
}

/* A former front asked for its memory, which the device refuses only now. */
static void lose_one(struct sim *s, struct sim_worker *x)
{
    for (unsigned i = x->buffers; i > 0; i--) {
        struct sim_worker_buffer *b = &x->buffer[i - 1];
        struct sim_buffer *known = model_find(s, b->id);
        if (b->copy < 0 && b->readers + b->writers == 0 && !b->freed && known != NULL) {
            const struct msg_w_buffer m = {
                .id = b->id, .code = ERR_DEVICE_MEMORY, .gone = 1, .text = bytes_str("refused")};
            known->lied = true;
            sim_log(s, "    worker %" PRIu64 " loses buffer %#" PRIx64, x->id, b->id);
            worker_send(s, x, &schema_msg_w_buffer, &m, NULL);
            worker_drop_buffer(x, b);
            return;
        }
    }
}

static void take_frame(struct sim *s, struct sim_worker *x, struct sim_inbox *in, const void *msg)
{
    if (in->schema == &schema_msg_f_job) {
        exec_job(s, x, msg, in);
    } else if (in->schema == &schema_msg_f_retire) {
        exec_retire(s, x, ((const struct msg_f_retire *)msg)->job);
    } else if (in->schema == &schema_msg_f_cancel) {
        exec_cancel(s, x, ((const struct msg_f_cancel *)msg)->job);
    } else if (in->schema == &schema_msg_f_module_load) {
        take_load(s, x, msg);
    } else if (in->schema == &schema_msg_f_module_unload) {
        take_unload(x, ((const struct msg_f_module_unload *)msg)->module);
    } else if (in->schema == &schema_msg_f_budget) {
        lease_budget(s, x, msg);
    } else if (in->schema == &schema_msg_f_pool) {
        take_pool(s, x);
    } else if (in->schema == &schema_msg_f_inventory) {
        worker_say_ready(s, x);
        arenas_forget(x);
        exec_inventory(s, x);
        if (refuses(s, x)) {
            lose_one(s, x);
        }
        const struct msg_w_inventory_end m = {.nonce =
                                                  ((const struct msg_f_inventory *)msg)->nonce};
        worker_send(s, x, &schema_msg_w_inventory_end, &m, NULL);
    } else if (in->schema == &schema_msg_f_snapshot) {
        const struct msg_w_snapshot m = {.nonce = ((const struct msg_f_snapshot *)msg)->nonce,
                                         .code = ERR_NOMEM,
                                         .text = bytes_str("no memory")};
        worker_send(s, x, &schema_msg_w_snapshot, &m, NULL);
    } else {
        take_buffers(s, x, in, msg);
    }
}

static void on_inbox(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    struct err e = ERR_INIT;
    if (x->state != WORKER_RUNS || x->epoch != h->a) {
        return;
    }
    struct sim_inbox *in = x->inbox;
    x->inbox_due = false;
    if (in != NULL && in->schema == &schema_msg_f_inventory && x->slow_ns > 0) {
        x->inbox_due = true;
        sim_at(s, s->now_ns + x->slow_ns, on_inbox, x, x->epoch, 0);
        x->slow_ns = 0;
        return;
    }
    if (in == NULL || x->silent || x->cut) {
        return; /* a worker that hangs reads nothing */
    }
    x->inbox = in->next;
    x->inbox_end = x->inbox != NULL ? x->inbox_end : &x->inbox;
    void *msg = calloc(1, in->schema->size);
    if (proto_decode(in->schema, bytes_of(in->data, in->size), msg, &e) != 0) {
        sim_fail(s, "worker: %s: %s", in->schema->name, e.text);
    }
    sim_log(s, "    worker %" PRIu64 " takes %s %#" PRIx64, x->id, in->schema->name,
            *(const uint64_t *)msg);
    take_frame(s, x, in, msg);
    frame_fds_close(&in->fds);
    free(in->data);
    free(in);
    free(msg);
    if (x->inbox != NULL && x->state == WORKER_RUNS) {
        x->inbox_due = true;
        sim_at(s, s->now_ns + FRAME_NS / 10, on_inbox, x, x->epoch, 0);
    }
}

/* Whose job it is: the front knows, as long as the session lives. */
static void identify(struct sim *s, uint64_t id, struct sim_inbox *in)
{
    const struct job *j = job_find(s->f->jobs, id);
    if (j == NULL) {
        sim_fail(s, "worker: job %" PRIu64 " is sent, and the front has none", id);
    }
    in->alone = j->trust != TRUST_SHARED;
    for (unsigned i = s->jobs; i > 0 && in->job == NULL; i--) {
        struct sim_job *k = s->job[i - 1];
        const struct session *owner = j->session;
        bool by_number = owner != NULL && k->request->seq == j->seq &&
                         memcmp(owner->key.client_id, k->client->id, sizeof k->client->id) == 0 &&
                         owner->key.listener == client_listener(k->client);
        in->job = by_number || (k->id == id && k->id_era == s->era) ? k : NULL;
    }
    if (in->job != NULL && j->record == 0) { /* there was no memory for its entry */
        in->job->forgotten = true;
    }
}

void worker_take(struct sim *s, struct sim_worker *x, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds)
{
    struct err e = ERR_INIT;
    struct capbuf bytes;
    capbuf_init(&bytes, FRAME_MAX_BYTES);
    if (proto_encode(schema, msg, &bytes, &e) != 0) {
        sim_fail(s, "worker: %s cannot be sent: %s", schema->name, e.text);
    }
    struct sim_inbox *in = calloc(1, sizeof *in);
    *in = (struct sim_inbox){.schema = schema, .data = bytes.data, .size = bytes.size};
    in->sent_ns = s->now_ns;
    frames_once(s, x, in);
    for (int i = 0; fds != NULL && i < fds->count; i++) {
        in->fds.fd[in->fds.count++] = fcntl(fds->fd[i], F_DUPFD_CLOEXEC, 0);
    }
    if (schema == &schema_msg_f_job) {
        identify(s, ((const struct msg_f_job *)msg)->job, in);
        due_sent(s, msg, in->job);
        strikes_check_sent(s, in->job);
        forecast_sent(s, x->id, ((const struct msg_f_job *)msg)->job, in->job);
        if (in->job != NULL) {
            in->job->stalled = in->job->stalled || x->silent || x->cut;
            in->job->lied = in->job->lied || x->lied;
        }
    }
    *x->inbox_end = in;
    x->inbox_end = &in->next;
    if (!x->inbox_due) {
        x->inbox_due = true;
        sim_at(s, s->now_ns + FRAME_NS, on_inbox, x, x->epoch, 0);
    }
}

/* ---- mishaps --------------------------------------------------------------------------------- */

/* Its jobs may pass their time limits. */
static void stall(struct sim_worker *x)
{
    for (const struct sim_inbox *in = x->inbox; in != NULL; in = in->next) {
        if (in->job != NULL) {
            in->job->stalled = true;
        }
    }
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->job != NULL && (j->state != WJOB_ENDED || !j->reported)) {
            j->job->stalled = true;
        }
    }
}

static void die(struct sim *s, struct sim_worker *x, struct chance *r)
{
    static const int status[] = {SIGKILL, SIGKILL, SIGSEGV, SIGABRT, SIGTERM, 1 << 8};
    int how = status[chance_below(r, sizeof status / sizeof status[0])];
    s->device[x->number].tight = chance_percent(r, 20);
    if (s->set.own && x->number >= DEVICES_MAX && places_awaited(s, x->number)) {
        s->device[x->number].unstarted += 2; /* its place is wanted while it pauses */
    }
    launcher_ends(s, x, how, 0);
}

/* Its end follows, unless the channel alone broke: then the front ends it. */
static void cut(struct sim *s, struct sim_worker *x, struct chance *r)
{
    x->cut = true;
    stall(x);
    channel_close(x);
    if (chance_percent(r, 50)) {
        launcher_ends(s, x, SIGSEGV, chance_spread(r, NS_PER_US, 100 * NS_PER_MS));
    }
}

void worker_suffers(struct sim *s, struct sim_worker *x, enum course_kind kind, struct chance *r)
{
    switch (kind) {
    case COURSE_DIE:
        die(s, x, r);
        break;
    case COURSE_DEAF:
        x->deaf = true;
        s->gave_up = true;
        /* fall through */
    case COURSE_HANG:
        stall(x);
        aim_hang(s, x, kind, r);
        break;
    case COURSE_CUT:
        cut(s, x, r);
        break;
    case COURSE_REFUSE:
        x->refuses = true;
        break;
    case COURSE_LIE:
        lie_event(s, x, r);
        break;
    case COURSE_REPEAT:
        lie_again(s, x);
        break;
    case COURSE_FORGE:
        x->forges = 1 + (unsigned)chance_below(r, 3);
        break;
    case COURSE_SLOW:
        x->slow_ns = chance_spread(r, 10 * NS_PER_MS, 4 * NS_PER_S);
        break;
    case COURSE_SHUFFLE:
        x->shuffles = true;
        break;
    case COURSE_SKEW:
        x->skew_ns =
            chance_percent(r, 50) ? chance_next(r) : chance_below(r, NS_PER_S) - NS_PER_S / 2;
        break;
    default:
        break;
    }
}

/* All devices fail at once, and some of them for longer. */
static void go_dark(struct sim *s, struct chance *r)
{
    for (unsigned i = 0; i < s->p.devices; i++) {
        struct sim_worker *x = worker_of_device(s, i);
        s->device[i].absent += 1 + (unsigned)chance_below(r, 3);
        if (x != NULL && x->state == WORKER_RUNS) {
            die(s, x, r);
        }
    }
}

void worker_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    bool domain = s->domains > 0 && e->r % 4 != 0; /* a tenant's own worker, mostly */
    unsigned slot = domain ? DEVICES_MAX + (unsigned)(e->r / 4 % s->domains) : e->actor;
    unsigned next = s->p.places > 0 ? slot : e->actor;
    struct sim_worker *x = worker_of_device(s, slot);
    if (e->kind == COURSE_ABSENT) {
        s->device[next].absent++;
    } else if (e->kind == COURSE_UNSTARTED && s->p.places > 0) {
        domain_unstarted(s, slot, e->r / 64);
    } else if (e->kind == COURSE_UNSTARTED) {
        s->device[next].unstarted++;
    } else if (e->kind == COURSE_DARK) {
        go_dark(s, r);
    } else if (e->kind == COURSE_RECOVER) {
        monitor_event(s, e, r);
    } else if (e->kind == COURSE_PRESS) {
        s->device[e->actor].pressed_until_ns = s->now_ns + chance_spread(r, NS_PER_MS, NS_PER_S);
    } else if (x != NULL && x->state == WORKER_RUNS && s->f != NULL && !aim_takes(s, e, x)) {
        worker_suffers(s, x, e->kind, r);
    }
}
