#include "tests/sim/front/sim_gather.h"

#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_stray.h"

#define READERS      5u   /* at most */
#define CANCEL_MS    200u /* at most, until one of them is cancelled */
#define SEAL_PERCENT 5u   /* of the looks at an idle worker that has ended */
#define WATCH_NS     (100 * NS_PER_MS)
#define LONG_NS      NS_PER_S /* until the job is cancelled for which a buffer leaves an idle worker */

static bool holds(const struct sim_client *c, const struct sim_buffer *b)
{
    bool held = false;
    for (unsigned i = 0; i < c->buffers && !held; i++) {
        held = c->buffer[i] == b;
    }
    return held;
}

/* Reads or fills all of the buffer. device: counted from 1; 0: any. */
static struct sim_job *use_on(struct sim *s, struct sim_client *c, struct sim_buffer *b,
                              unsigned op, uint64_t device, struct chance *r)
{
    struct sim_job *j = ask_job(s, c, r);
    struct sim_step *t = &j->step[j->steps++];
    struct capbuf steps;
    *t = (struct sim_step){.op = op, .to = b}; /* a slice of no length: all of it */
    t->value = op == OP_FILL ? 1 + (uint32_t)chance_below(r, UINT32_MAX) : 0;
    j->writes = op == OP_FILL;
    capbuf_init(&steps, 4096);
    ask_encode_step(s, j, t, 0, &steps);
    t->count = b->bytes / sizeof(uint32_t);
    struct msg_submit m = {
        .steps = proto_list_of(&steps, 1), .flags = SUBMIT_ASYNC, .device = device};
    ask_job_send(s, j, &m);
    capbuf_finish(&steps);
    return j;
}

/* h->a: another job wants the buffer at once, wherever it is. */
static void on_cancel(struct sim *s, const struct hap *h)
{
    struct sim_job *j = h->actor;
    struct sim_client *c = j->client;
    struct chance r = chance_of(j->r, 80);
    if (s->settling || c->state != CLIENT_ON || c->leaving || c->said_bye || j->life != c->lives ||
        !ask_room(c)) {
        return;
    }
    ask_cancel_of(s, j, false);
    if (h->a != 0 && holds(c, j->step[0].to)) {
        (void)use_on(s, c, j->step[0].to, OP_READ, 0, &r);
    }
}

/* The buffer is on one of the two devices mostly, so some of the readers run there at once, and
 * those of the other device wait between them. */
void ask_gather(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_buffer *b = c->buffer[chance_below(r, c->buffers)];
    uint64_t first = chance_below(r, s->p.devices);
    uint64_t second = (first + 1 + chance_below(r, s->p.devices - 1)) % s->p.devices;
    unsigned count = 3 + (unsigned)chance_below(r, READERS - 2);
    bool cancels = chance_percent(r, 50);
    for (unsigned i = 0; i < count && b->bytes <= SIM_CONTENT && ask_room(c); i++) {
        struct sim_job *j = use_on(s, c, b, OP_READ, 1 + (i % 2 == 0 ? first : second), r);
        if (cancels) {
            sim_at(s, s->now_ns + (1 + chance_below(r, CANCEL_MS)) * NS_PER_MS, on_cancel, j, 1, 0);
        }
    }
}

/* ---- idle workers ---------------------------------------------------------------------------- */

/* A client of the tenant that holds a buffer of its worker; NULL: none. */
static struct sim_client *holder(struct sim *s, const struct device *d, struct sim_buffer **ret_b)
{
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        bool on = c->state == CLIENT_ON && !c->leaving && !c->said_bye && ask_room(c);
        for (unsigned k = 0; on && k < c->buffers; k++) {
            const struct buffer *b = idmap_get(&s->f->buffers, c->buffer[k]->handle);
            if (b != NULL && b->device == d->index && c->buffer[k]->bytes <= SIM_CONTENT) {
                *ret_b = c->buffer[k];
                return c;
            }
        }
    }
    return NULL;
}

static bool idles_soon(const struct sim *s, const struct device *d)
{
    uint64_t used_ns = d->ran_ns > d->used_ns ? d->ran_ns : d->used_ns;
    uint64_t idle_ns = ns_add(used_ns, s->f->config.domain_idle_s * NS_PER_S);
    return d->state == DEVICE_READY && d->inflight_count == 0 && s->now_ns < idle_ns &&
           idle_ns - s->now_ns <= 2 * WATCH_NS;
}

static void take_from(struct sim *s, const struct device *d)
{
    struct sim_buffer *b = NULL;
    struct sim_client *c = holder(s, d, &b);
    struct chance r = chance_of(s->now_ns ^ d->index, 81);
    if (c == NULL) {
        return;
    }
    uint64_t other = (d->number + 1 + chance_below(&r, s->p.devices - 1)) % s->p.devices;
    struct sim_job *j = use_on(s, c, b, OP_READ, 1 + other, &r);
    if (chance_percent(&r, 50)) {
        sim_at(s, s->now_ns + LONG_NS, on_cancel, j, 0, 0);
    }
}

static void on_drain(struct sim *s, const struct hap *h)
{
    if (!s->settling && s->f != NULL && h->a < s->f->device_count) {
        drain_now(s, s->f->device[h->a]);
    }
}

static void on_resume(struct sim *s, const struct hap *h)
{
    const struct course_event e = {.kind = COURSE_RESUME, .actor = (unsigned)h->a};
    struct chance r = chance_of(h->a, 83);
    if (!s->settling) {
        drain_event(s, &e, &r);
    }
}

static bool rests_unwanted(const struct device *d)
{
    return d->state == DEVICE_RESTING && d->worker == 0 && !d->wanted;
}

/* The buffer is on the host only, and nothing but this job and the seal wants it: neither may wait
 * for the other. Some of the jobs are cancelled then, so that the seal alone wants a worker. */
static void seal_away(struct sim *s, const struct device *d)
{
    struct sim_buffer *b = NULL;
    struct sim_client *c = holder(s, d, &b);
    struct chance r = chance_of(s->now_ns ^ d->index, 82);
    if (!chance_percent(&r, SEAL_PERCENT) || c == NULL || b->maker != c || b->sealing) {
        return;
    }
    uint64_t other = (d->number + 1 + chance_below(&r, s->p.devices - 1)) % s->p.devices;
    struct sim_job *j = use_on(s, c, b, OP_FILL, 1 + other, &r);
    struct msg_buffer_seal m = {.seq = ask_number(c), .handle = b->handle};
    b->sealing = true;
    client_send(s, c, &schema_msg_buffer_seal, &m)->buffer = b;
    uint64_t cancel_ns = s->p.wire_us * NS_PER_US + chance_spread(&r, NS_PER_MS, LONG_NS);
    if (chance_percent(&r, 50)) { /* the job waits until the buffer's worker is idle again */
        uint64_t idle_ns = s->f->config.domain_idle_s * NS_PER_S;
        cancel_ns = ns_add(cancel_ns, ns_add(idle_ns, LONG_NS));
        sim_at(s, s->now_ns + s->p.wire_us * NS_PER_US, on_drain, NULL, other, 0);
        sim_at(s, ns_add(s->now_ns, ns_add(cancel_ns, LONG_NS)), on_resume, NULL, other, 0);
    }
    if (chance_percent(&r, 50)) {
        sim_at(s, ns_add(s->now_ns, cancel_ns), on_cancel, j, 0, 0);
    }
}

/* Buffers leave workers that are about to end as idle, and the host when these have ended. */
static void on_watch(struct sim *s, const struct hap *h)
{
    const struct device *d;
    (void)h;
    for (unsigned at = DEVICES_MAX; s->f != NULL && s->accepts && !s->settling &&
                                    (d = front_next_device(s->f, &at)) != NULL;) {
        if (idles_soon(s, d)) {
            take_from(s, d);
        } else if (rests_unwanted(d)) {
            seal_away(s, d);
        }
    }
    if (!s->settling) {
        sim_at(s, s->now_ns + WATCH_NS, on_watch, NULL, 0, 0);
    }
}

void gather_begin(struct sim *s)
{
    if (s->set.own && s->p.spread > 0) {
        sim_at(s, s->now_ns + WATCH_NS, on_watch, NULL, 0, 0);
    }
}
