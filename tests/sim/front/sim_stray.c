#include "tests/sim/front/sim_stray.h"

#include "daemon/front/model/buffer.h"
#include "tests/sim/front/sim.h"

#define OWN      8u /* buffers of a client, of one size: the time of a job depends on it */
#define CROWD    60u
#define ELEMENTS (SIM_CONTENT / (unsigned)sizeof(uint32_t))

static bool fits(const struct sim_client *c, const struct sim_buffer *b)
{
    return b->handle != 0 && b->bytes == SIM_CONTENT && b->maker == c && !b->known_lost &&
           !b->freed;
}

/* No job uses it. */
static bool rests(const struct sim *s, const struct sim_buffer *x)
{
    const struct buffer *b = s->f != NULL ? idmap_get(&s->f->buffers, x->handle) : NULL;
    return b != NULL && b->users == 0;
}

/* One in five is to stay on its device. */
static void make(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_buffer *b = model_buffer(s);
    b->bytes = SIM_CONTENT;
    b->zero = true;
    b->maker = c;
    struct msg_buffer_create m = {
        .seq = ask_number(c),
        .dtype = DTYPE_F32,
        .ndim = 1,
        .d0 = ELEMENTS,
        .flags = BUFFER_FLAG_ZERO | (chance_percent(r, 20) ? BUFFER_FLAG_STAY : 0),
        .label = bytes_str(""),
        .device = chance_percent(r, 85) ? 1 : 1 + chance_below(r, s->p.devices)};
    client_send(s, c, &schema_msg_buffer_create, &m)->buffer = b;
}

/* A launch that reads the buffer, and writes it or an array of the job's own; or a read. */
static void add(struct sim *s, struct sim_job *j, struct sim_buffer *b, bool launch, bool writes,
                struct capbuf *steps)
{
    const struct sim_client *c = j->client;
    struct sim_step *t = &j->step[j->steps++];
    bool loaded = launch && c->kernels > 0 && !writes && j->r % 3 == 0;
    *t = (struct sim_step){.op = launch ? OP_LAUNCH : OP_READ,
                           .to = b,
                           .from = launch ? b : NULL,
                           .count = ELEMENTS,
                           .inlined = launch && !writes,
                           .inout = launch,
                           .value = 1};
    if (loaded) {
        t->inout = c->kernel_inout[0];
        t->bad = c->kernel_bad[0] * 2 + (c->kernel_bad[0] != 0 && t->inout);
        j->guilty = j->guilty || t->bad != 0;
        j->loaded = true;
    }
    j->writes = j->writes || (launch && writes);
    ask_encode_step(s, j, t, loaded ? c->kernel[0] : c->axpy, steps);
}

static void use(struct sim *s, struct sim_client *c, struct sim_buffer *const *own, unsigned count,
                struct chance *r)
{
    struct sim_job *j = ask_job(s, c, r);
    struct capbuf steps;
    unsigned first = (unsigned)chance_below(r, count);
    bool launch = chance_percent(r, 85);
    bool writes = chance_percent(r, 40);
    for (unsigned i = 0; i < count && chance_percent(r, 80) && !rests(s, own[first]); i++) {
        first = (first + 1) % count;
    }
    writes = writes && !own[first]->sealed && !own[first]->sealing;
    capbuf_init(&steps, 8192);
    add(s, j, own[first], launch, writes, &steps);
    if (count > 1 && chance_percent(r, 30)) {
        add(s, j, own[(first + 1) % count], launch, false, &steps);
    }
    struct msg_submit m = {.steps = proto_list_of(&steps, j->steps), .flags = SUBMIT_ASYNC};
    if (chance_percent(r, 30)) {
        m.deadline_ns = chance_spread(r, s->p.run_us * NS_PER_US, 100 * s->p.run_us * NS_PER_US);
    }
    if (chance_percent(r, 20)) {
        m.device = 1 + chance_below(r, s->p.devices);
        m.deadline_ns = chance_percent(r, 50) ? chance_spread(r, NS_PER_MS, 20 * NS_PER_MS) : 0;
    }
    ask_job_send(s, j, &m);
    capbuf_finish(&steps);
}

void stray_event(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_buffer *own[OWN];
    unsigned count = 0;
    unsigned crowd = chance_percent(r, 35) ? (unsigned)chance_below(r, CROWD) : 0;
    const struct special_bare how = {.flags = SUBMIT_ASYNC,
                                     .device = chance_percent(r, 85) ? 1 : 1 + s->p.devices / 2};
    for (unsigned i = 0; i < c->buffers && count < OWN; i++) {
        if (fits(c, c->buffer[i])) {
            own[count++] = c->buffer[i];
        }
    }
    if (count < OWN && c->buffers < SIM_HANDLES && ask_room(c)) {
        make(s, c, r);
    }
    for (unsigned i = 0; i < crowd && ask_room(c); i++) {
        (void)special_bare(s, c, &how, r);
    }
    for (uint64_t i = chance_below(r, 5); count > 0 && i > 0 && ask_room(c); i--) {
        use(s, c, own, count, r);
    }
}
