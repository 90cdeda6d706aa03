/* Bursts of jobs of known times at the end of a world, when nothing else comes: rules/sim_told.h
 * says what must hold. Devices get new workers with one stream, so that jobs run one after the
 * other. */
#include "tests/sim/front/sim_told.h"

#include <signal.h>

#include "common/saturate.h"
#include "daemon/front/model/buffer.h"
#include "daemon/front/sched/transit.h"
#include "tests/sim/front/rules/sim_sooner.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_stray.h"

#define SALT       92u
#define ROUNDS     14u
#define LITTLE     (2 * sizeof(uint32_t) * ELEMENTS - 4)
#define TRIES      100u
#define DEVICES    4u
#define CLIENTS    24u
#define INFLIGHT   64u        /* requests of a session that the world has to allow */
#define MEMORY_KIB (1u << 20) /* of a device */
#define OWN        4u         /* buffers; the last one is sealed */
#define LOADER     OWN        /* one more, of jobs whose kernel is loaded on its device only */
#define ELEMENTS   16u
#define WARM       30u  /* jobs of a kind on each device, before their time counts as known */
#define STEADY     100u /* jobs of a tenant that always has some */
#define AHEAD      6u   /* jobs that a tenant has in flight, or had before another one */
#define STRAYS     6u
#define LOOKS      40u /* at the begins that the front expects while a buffer moves */
#define WAY_NS     (STRAY_LEAVES_NS + STRAY_COMES_NS)

enum { BARE, READS, WRITES, LOADED, UNKNOWN, KINDS };
#define FILLS KINDS /* a step of an unknown job */

static struct {
    bool chosen, may;
    unsigned stage, tries, warmed, round;
    struct chance r;
    struct sim_client *client[2];    /* of two tenants; the second NULL: there is one only */
    struct sim_buffer *own[OWN + 1]; /* of the first one */
    struct sim_buffer *filler;       /* leaves a device little memory; NULL: none does */
    uint64_t run_ns[KINDS];
} play;

/* ---- jobs ------------------------------------------------------------------------------------ */

struct how {
    unsigned client, kind;
    struct sim_buffer *buffer;
    unsigned device; /* from 1; 0: any */
    uint64_t deadline_ns;
};

/* A class of its own would be drawn by its random number. */
static struct sim_job *usual_job(struct sim *s, struct sim_client *c)
{
    struct sim_job *j = ask_job(s, c, &play.r);
    while (chance_mix(j->r) % (2 * CLASS_BATCH) <= CLASS_BATCH) {
        j->r = chance_next(&play.r);
    }
    return j;
}

static void add_bare(struct sim *s, const struct sim_job *j, struct capbuf *steps)
{
    uint32_t data[SIM_SMALL];
    struct capbuf args;
    const struct proto_arg value = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = 1};
    const struct proto_arg x = ask_inline(data, ELEMENTS);
    struct proto_arg y = x;
    y.access = ACCESS_INOUT;
    capbuf_init(&args, 4096);
    ask_encode(s, &schema_arg, &value, &args);
    ask_encode(s, &schema_arg, &x, &args);
    ask_encode(s, &schema_arg, &y, &args);
    const struct proto_step p = {
        .op = OP_LAUNCH, .kernel = j->client->axpy, .args = proto_list_of(&args, 3)};
    ask_encode(s, &schema_step, &p, steps);
    capbuf_finish(&args);
}

/* A kernel that ends well; `kernels`: it has none. */
static unsigned good_kernel(const struct sim_client *c)
{
    unsigned k = 0;
    while (k < c->kernels && c->kernel_bad[k] != 0) {
        k++;
    }
    return k;
}

static bool has_kernel(const struct sim_client *c)
{
    return good_kernel(c) < c->kernels;
}

static void add_step(struct sim *s, struct sim_job *j, struct sim_buffer *b, unsigned kind,
                     struct capbuf *steps)
{
    struct sim_step *t = &j->step[j->steps++];
    unsigned k = kind == LOADED ? good_kernel(j->client) : 0;
    *t = (struct sim_step){.op = kind == FILLS ? OP_FILL : OP_LAUNCH,
                           .to = b,
                           .from = kind == FILLS ? NULL : b,
                           .count = ELEMENTS,
                           .inlined = kind == READS || kind == LOADED,
                           .inout = kind == LOADED ? j->client->kernel_inout[k] : kind != FILLS,
                           .value = 1};
    j->writes = j->writes || (kind != READS && kind != LOADED);
    j->loaded = kind == LOADED;
    ask_encode_step(s, j, t, kind == LOADED ? j->client->kernel[k] : j->client->axpy, steps);
}

static struct sim_job *send_job(struct sim *s, const struct how *h)
{
    struct sim_job *j = usual_job(s, play.client[h->client]);
    struct capbuf steps;
    capbuf_init(&steps, 8192);
    if (h->kind == BARE) {
        add_bare(s, j, &steps);
    } else if (h->kind == UNKNOWN) {
        add_step(s, j, h->buffer, FILLS, &steps);
        add_step(s, j, h->buffer, WRITES, &steps);
        add_step(s, j, h->buffer, FILLS, &steps);
    } else {
        add_step(s, j, h->buffer, h->kind, &steps);
    }
    j->last = true; /* it comes behind the last looks */
    j->run_ns = play.run_ns[h->kind];
    struct msg_submit m = {.steps = proto_list_of(&steps, j->steps > 0 ? j->steps : 1),
                           .flags = SUBMIT_ASYNC,
                           .device = h->device,
                           .deadline_ns = h->deadline_ns};
    ask_job_send(s, j, &m);
    capbuf_finish(&steps);
    return j;
}

/* ---- before the bursts ----------------------------------------------------------------------- */

static bool takes_part(const struct sim_client *c)
{
    return c->state == CLIENT_ON && !c->leaving && !c->said_bye && !c->hasty;
}

static void choose_clients(struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        if (takes_part(c) && play.client[0] == NULL) {
            play.client[0] = c;
        } else if (takes_part(c) && play.client[1] == NULL && c->tenant != play.client[0]->tenant) {
            play.client[1] = c;
        }
    }
}

static bool suits(const struct sim *s)
{
    bool kind = s->p.special != WORLD_HELD && s->p.special != WORLD_HOSTILE &&
                s->p.special != WORLD_LARGE && !s->set.own && !load_is(s);
    return kind && s->p.devices <= DEVICES && s->clients <= CLIENTS && !memory_failed() &&
           s->p.divided == 0 && s->p.inflight_max >= INFLIGHT && s->p.memory_kib >= MEMORY_KIB &&
           s->f != NULL;
}

static void choose(struct sim *s)
{
    play.chosen = true;
    play.r = chance_of(s->course->seed, SALT);
    play.may = suits(s);
    choose_clients(s);
    play.may = play.may && play.client[0] != NULL;
    for (unsigned i = 0; i < KINDS; i++) {
        play.run_ns[i] = (5 + chance_below(&play.r, 25)) * NS_PER_MS;
    }
    told_begin(play.may);
    for (unsigned i = 1; i < s->p.devices && chance_percent(&play.r, 50); i++) {
        told_slow(i, 1 + (unsigned)chance_below(&play.r, 3));
    }
}

/* Nothing else is scarce any more. */
static void renew(struct sim *s)
{
    s->p.streams = 1;
    s->p.urgent = 0;
    s->p.wire_us = s->p.wire_us < 200 ? s->p.wire_us : 200;
    s->p.flight = s->p.rate_kib = 0;
    s->p.window = chance_percent(&play.r, 50) ? 2 + chance_below(&play.r, 3) : 0;
    s->p.queue_max = 4096;
    s->queue_most = s->queue_most > s->p.queue_max ? s->queue_most : s->p.queue_max;
    s->p.buffers_max = 1024;
    front_reload(s);
    for (unsigned i = 0; i < s->workers; i++) {
        if (s->worker[i]->state == WORKER_RUNS) {
            launcher_ends(s, s->worker[i], SIGKILL, 0);
        }
    }
}

static bool all_serve(const struct sim *s)
{
    bool all = s->f != NULL && s->f->device_count == s->p.devices;
    for (unsigned i = 0; all && i < s->f->device_count; i++) {
        const struct device *d = s->f->device[i];
        all = device_takes(d) && d->streams == 1 && d->domains == NULL;
    }
    return all;
}

static void equip(struct sim *s)
{
    for (unsigned i = 0; i < 2 && play.client[i] != NULL; i++) {
        if (play.client[i]->axpy == 0) {
            ask_find(s, play.client[i]);
        }
    }
    if (!has_kernel(play.client[0])) {
        ask_load_named(s, play.client[0], "source of bursts", 0);
    }
    for (unsigned i = 0; i <= OWN; i++) {
        ask_new(s, play.client[0], ELEMENTS, true, 1 + i % s->p.devices);
        play.own[i] = s->buffer[s->buffers - 1];
    }
}

static bool equipped(void)
{
    bool all = true;
    for (unsigned i = 0; i <= OWN; i++) {
        all = all && play.own[i]->handle != 0 && !play.own[i]->known_lost;
    }
    for (unsigned i = 0; i < 2 && play.client[i] != NULL; i++) {
        all = all && play.client[i]->axpy != 0;
    }
    return all;
}

/* The times of all kinds get known on each device, and those of moves. */
static void warm(struct sim *s)
{
    for (unsigned device = 1; device <= s->p.devices; device++) {
        for (unsigned k = 0; k < 2 && play.client[k] != NULL; k++) {
            (void)send_job(s, &(struct how){.client = k, .kind = BARE, .device = device});
        }
        for (unsigned kind = READS; kind <= WRITES; kind++) {
            (void)send_job(s, &(struct how){.kind = kind, .buffer = play.own[0], .device = device});
        }
    }
    if (has_kernel(play.client[0])) {
        const struct how h = {.kind = LOADED, .buffer = play.own[LOADER]};
        (void)send_job(s, &h);
    }
    if (play.warmed++ == 0) {
        struct msg_buffer_seal m = {.seq = ask_number(play.client[0]),
                                    .handle = play.own[OWN - 1]->handle};
        play.own[OWN - 1]->sealing = true;
        client_send(s, play.client[0], &schema_msg_buffer_seal, &m)->buffer = play.own[OWN - 1];
    }
}

/* Moves that took long before, for any cause, do not count any more. */
static bool knows_ways(const struct sim *s)
{
    bool all = true;
    for (unsigned i = 0; i < s->f->device_count; i++) {
        for (unsigned k = 0; k < s->f->device_count; k++) {
            const struct buffer b = {.bytes = SIM_SMALL, .host_fd = -1};
            uint64_t ns = transit_cost(&b, s->f->device[i], s->f->device[k]).ns;
            all = all && (i == k || ns < WAY_NS + NS_PER_MS / 4);
        }
    }
    return all;
}

enum { LATER_LOOK, LATER_OTHER, LATER_LINE, LATER_STRAY, LATER_DRAIN };

static void later(struct sim *s, uint64_t in_ns, unsigned what, unsigned device);

/* ---- bursts ---------------------------------------------------------------------------------- */

static unsigned below(unsigned most)
{
    return (unsigned)chance_below(&play.r, most);
}

/* From 1. */
static unsigned some_device(const struct sim *s)
{
    return 1 + below((unsigned)s->p.devices);
}

/* Where the buffer is, from 1. */
static unsigned home_of(const struct sim *s, const struct sim_buffer *x)
{
    const struct buffer *b = idmap_get(&s->f->buffers, x->handle);
    return b != NULL ? b->device + 1 : 1;
}

static unsigned other_device(const struct sim *s, unsigned device)
{
    return 1 + (device + below((unsigned)s->p.devices - 1)) % (unsigned)s->p.devices;
}

/* A job, of those of known times. */
static uint64_t longest_on(unsigned device)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < UNKNOWN; i++) {
        ns = play.run_ns[i] > ns ? play.run_ns[i] : ns;
    }
    return ns * told_times(device - 1);
}

static void follow(struct sim *s, const struct how *h)
{
    told_follow(s, send_job(s, h), 0, 0);
}

/* Others have jobs there. Which of two tenants is first is not known. They are expected to send
 * more, as long as they have been there. */
static void follow_beside(struct sim *s, const struct how *h, unsigned other)
{
    told_follow(s, send_job(s, h), other != 0 ? AHEAD * longest_on(h->device) : 0,
                other != 0 ? TOLD_ANY : 0);
}

/* The buffer moves while the device has other jobs, and the front counts both. Jobs of another
 * tenant take the device meanwhile. */
static void follow_way(struct sim *s, const struct how *h, unsigned other)
{
    uint64_t slack = other != 0 ? 2 * longest_on(h->device) : 0;
    slack += h->buffer->sealed ? STRAY_COMES_NS : WAY_NS; /* the host has a sealed one */
    told_follow(s, send_job(s, h), other != 0 ? TOLD_ANY : 0, slack);
}

static void send_bare(struct sim *s, unsigned client, unsigned device, unsigned count)
{
    for (; count > 0; count--) {
        const struct how h = {.client = client, .kind = BARE, .device = device};
        told_beside(s, send_job(s, &h));
    }
}

/* Jobs of one tenant in line for one device, some with deadlines. */
static void burst_line(struct sim *s)
{
    unsigned device = some_device(s);
    for (unsigned i = 2 + below(10); i > 0; i--) {
        struct how h = {.kind = BARE, .device = device};
        h.deadline_ns = below(10) < 3 ? (2000 + 100 * i) * NS_PER_MS : 0;
        follow(s, &h);
    }
}

/* Jobs of one device read a buffer of another one, which one way brings to all of them. */
static void burst_way(struct sim *s)
{
    struct sim_buffer *b = play.own[below(2) > 0 ? OWN - 1 : below(OWN)];
    unsigned device = s->p.devices > 1 ? other_device(s, home_of(s, b)) : 1;
    unsigned before = below(2) * below(9);
    send_bare(s, 0, device, before);
    for (unsigned i = 1 + below(4); i > 0; i--) {
        const struct how h = {.kind = READS, .buffer = b, .device = device};
        (before > 0 ? follow_way : follow_beside)(s, &h, 0);
    }
    for (unsigned i = 0; i < LOOKS; i++) { /* nothing else happens then */
        later(s, (i + 1) * (NS_PER_MS / 2), LATER_LOOK, device);
    }
}

/* Jobs that wait for each other, on one device and then on another one, which has jobs of its own.
 */
static void burst_chain(struct sim *s)
{
    struct sim_buffer *b = play.own[0];
    unsigned home = home_of(s, b);
    unsigned device = s->p.devices > 1 ? other_device(s, home) : 1;
    unsigned other = play.client[1] != NULL && below(3) > 0;
    send_bare(s, other, device, below(24));
    for (unsigned i = 1 + below(12); i > 0; i--) {
        const struct how h = {.kind = WRITES, .buffer = b, .device = home};
        follow_beside(s, &h, home == device ? other : 0);
    }
    for (unsigned i = 1 + below(2); i > 0; i--) {
        const struct how h = {.kind = WRITES, .buffer = b, .device = device};
        (home == device ? follow_beside : follow_way)(s, &h, other);
    }
}

/* Others of its tenant go before a job, until a job with a deadline waits for it. The front does
 * not count the waiting job for the others, as it stands in no line meanwhile. */
static void burst_inherit(struct sim *s)
{
    struct sim_buffer *b = play.own[0];
    unsigned home = home_of(s, b);
    send_bare(s, 0, home, 2 + below(6));
    follow(s, &(struct how){.kind = WRITES, .buffer = b, .device = home});
    struct how h = {.kind = READS, .buffer = b, .device = home, .deadline_ns = 4 * NS_PER_S};
    follow(s, &h);
}

/* Behind a job of a kind that none was of before. */
static void burst_unknown(struct sim *s)
{
    struct sim_buffer *b = play.own[0];
    unsigned home = home_of(s, b);
    unsigned before = s->p.devices > 1 ? other_device(s, home) : home;
    send_bare(s, 0, home, below(6));
    told_beside(s, send_job(s, &(struct how){.kind = WRITES, .buffer = b, .device = before}));
    told_unknown(s, send_job(s, &(struct how){.kind = UNKNOWN, .buffer = b, .device = home}));
    for (unsigned i = 1 + below(3); i > 0; i--) {
        struct how h = {.kind = READS, .buffer = b, .device = home};
        h.deadline_ns = (1 + below(10)) * NS_PER_MS;
        told_unknown(s, send_job(s, &h));
    }
}

/* Jobs beside those of another tenant, which came before. */
static void burst_beside(struct sim *s)
{
    unsigned device = some_device(s);
    send_bare(s, play.client[1] != NULL, device, 1 + below(8));
    for (unsigned i = 2 + below(8); i > 0; i--) {
        const struct how h = {.kind = BARE, .device = device};
        follow_beside(s, &h, play.client[1] != NULL);
    }
}

/* ---- what comes later in a burst ------------------------------------------------------------- */

/* A job whose buffer may leave its device, which gets some more to do. */
static void send_stray(struct sim *s, struct sim_buffer *b)
{
    send_bare(s, 0, home_of(s, b), below(5));
    told_beside(s, send_job(s, &(struct how){.kind = READS, .buffer = b}));
}

static void on_later(struct sim *s, const struct hap *h)
{
    unsigned device = (unsigned)(h->b & UINT32_MAX);
    bool over = h->b >> 32 != play.round; /* another burst has begun */
    if (over || !told_on(s) || s->f == NULL || !takes_part(play.client[0])) {
        return;
    }
    switch (h->a) {
    case LATER_LOOK:
        break;
    case LATER_OTHER:
        send_bare(s, 1, device, 1);
        break;
    case LATER_LINE:
        for (unsigned i = 20 + below(12); i > 0; i--) {
            const struct how how = {.kind = BARE, .device = device};
            told_follow(s, send_job(s, &how), AHEAD * play.run_ns[BARE] * told_times(device - 1),
                        TOLD_ANY);
        }
        break;
    case LATER_STRAY:
        send_stray(s, play.own[1 + below(OWN - 1)]);
        break;
    default:
        drain_now(s, s->f->device[device - 1]);
        told_beside(s, send_job(s, &(struct how){.kind = READS, .buffer = play.own[1]}));
        break;
    }
}

static void later(struct sim *s, uint64_t in_ns, unsigned what, unsigned device)
{
    sim_at(s, s->now_ns + in_ns, on_later, NULL, what, (uint64_t)play.round << 32 | device);
}

/* Beside another tenant that keeps some jobs in line for as long as the burst lasts. They do not
 * all fit into the window. */
static void burst_steady(struct sim *s)
{
    unsigned device = some_device(s);
    uint64_t each = play.run_ns[BARE] * told_times(device - 1);
    if (play.client[1] == NULL || s->p.window == 0) {
        return;
    }
    send_bare(s, 1, device, 8);
    for (unsigned i = 1; i <= STEADY; i++) {
        later(s, i * each, LATER_OTHER, device);
    }
    later(s, STEADY / 3 * each + each / 2, LATER_LINE, device);
}

/* Jobs that may take their buffers from a device that is busy. */
static void burst_stray(struct sim *s)
{
    for (unsigned i = 0; i < STRAYS; i++) {
        later(s, (30 * i + below(20)) * NS_PER_MS, LATER_STRAY, 1);
    }
}

/* The same, and another device has a job that takes far longer than such jobs take. */
static void burst_late(struct sim *s)
{
    unsigned home = home_of(s, play.own[1]);
    unsigned other = s->p.devices > 1 ? other_device(s, home) : 1;
    struct sim_job *j = send_job(s, &(struct how){.kind = BARE, .device = other});
    uint64_t most = s->p.time_limit_ms * NS_PER_MS / (3 * told_times(other - 1));
    j->run_ns = 12 * play.run_ns[BARE] < most ? 12 * play.run_ns[BARE] : most;
    told_usual(s, j, play.run_ns[BARE]);
    uint64_t usual = play.run_ns[BARE] * told_times(other - 1);
    for (unsigned i = 0; i < STRAYS; i++) {
        later(s, 3 * usual / 2 + i * usual, LATER_STRAY, 1);
    }
}

/* A kernel that the other devices have not loaded. */
static void burst_loads(struct sim *s)
{
    send_bare(s, 0, home_of(s, play.own[LOADER]), 1 + below(5));
    if (has_kernel(play.client[0])) {
        told_beside(s, send_job(s, &(struct how){.kind = LOADED, .buffer = play.own[LOADER]}));
    }
}

/* Another device has memory for less than a buffer. */
static void burst_room(struct sim *s)
{
    unsigned home = home_of(s, play.own[1]);
    unsigned other = s->p.devices > 1 ? other_device(s, home) : 1;
    const struct device *d = s->f->device[other - 1];
    uint64_t left = sat_sub(device_pool_limit(d), d->buffer_bytes);
    if (s->p.devices > 1 && left > LITTLE) {
        ask_new(s, play.client[0], (left - LITTLE) / sizeof(uint32_t), false, other);
        play.filler = s->buffer[s->buffers - 1];
    }
    for (unsigned i = 0; i < STRAYS; i++) {
        later(s, (30 * i + 10) * NS_PER_MS, LATER_STRAY, 1);
    }
}

/* The same, and that device is drained. */
static void burst_drain(struct sim *s)
{
    unsigned home = home_of(s, play.own[1]);
    send_bare(s, 0, home, 4 + below(4));
    later(s, NS_PER_MS, LATER_DRAIN, home);
}

static void burst(struct sim *s)
{
    static void (*const bursts[])(struct sim * s) = {
        burst_line,   burst_way,   burst_chain,  burst_inherit, burst_unknown,
        burst_beside, burst_stray, burst_steady, burst_late,    burst_drain,
        burst_way,    burst_chain, burst_loads,  burst_room};
    unsigned kinds = sizeof bursts / sizeof bursts[0];
    sim_log(s, "told: burst %u of kind %u", play.round, play.round % kinds);
    told_anew();
    if (play.filler != NULL) {
        ask_free(s, play.client[0], play.filler);
        play.filler = NULL;
    }
    bursts[play.round % kinds](s);
}

/* ---- in order -------------------------------------------------------------------------------- */

enum { STAGE_RENEW, STAGE_EQUIP, STAGE_WARM, STAGE_BURST };

static bool goes_on(struct sim *s)
{
    switch (play.stage) {
    case STAGE_RENEW:
        renew(s);
        break;
    case STAGE_EQUIP:
        if (!all_serve(s)) {
            return ++play.tries < TRIES;
        }
        equip(s);
        break;
    case STAGE_WARM:
        if (!equipped()) {
            return false;
        }
        warm(s);
        play.stage += play.warmed == WARM;
        return true;
    default:
        if (!all_serve(s) || play.round == ROUNDS) {
            return false;
        }
        if (!knows_ways(s)) {
            warm(s);
            return ++play.tries < TRIES;
        }
        play.round++;
        burst(s);
        return true;
    }
    play.stage++;
    return true;
}

bool told_goes_on(struct sim *s)
{
    if (!play.chosen) {
        choose(s);
    }
    bool on = play.may && goes_on(s);
    if (!on) {
        sim_log(s, "told: over at stage %u", play.stage);
        told_begin(false);
    }
    return on;
}

void told_reset(void)
{
    play.chosen = play.may = false;
    play.stage = play.tries = play.warmed = play.round = 0;
    play.client[0] = play.client[1] = NULL;
    play.filler = NULL;
    told_begin(false);
}
