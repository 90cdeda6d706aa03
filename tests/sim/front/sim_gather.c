#include "tests/sim/front/sim_gather.h"

#include "tests/sim/front/sim.h"

#define READERS   5u   /* at most */
#define CANCEL_MS 200u /* at most, until one of them is cancelled */

static bool holds(const struct sim_client *c, const struct sim_buffer *b)
{
    bool held = false;
    for (unsigned i = 0; i < c->buffers && !held; i++) {
        held = c->buffer[i] == b;
    }
    return held;
}

/* device: counted from 1; 0: any. */
static struct sim_job *read_on(struct sim *s, struct sim_client *c, struct sim_buffer *b,
                               uint64_t device, struct chance *r)
{
    struct sim_job *j = ask_job(s, c, r);
    struct capbuf args, steps;
    const struct proto_arg arg = {.tag = ARG_BUFFER, .handle = b->handle};
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    ask_encode(s, &schema_arg, &arg, &args);
    const struct proto_step p = {.op = OP_READ, .args = proto_list_of(&args, 1)};
    ask_encode(s, &schema_step, &p, &steps);
    j->step[j->steps++] =
        (struct sim_step){.op = OP_READ, .to = b, .count = b->bytes / sizeof(uint32_t)};
    struct msg_submit m = {
        .steps = proto_list_of(&steps, 1), .flags = SUBMIT_ASYNC, .device = device};
    ask_job_send(s, j, &m);
    capbuf_finish(&args);
    capbuf_finish(&steps);
    return j;
}

/* Another job wants the buffer at once, wherever it is. */
static void on_cancel(struct sim *s, const struct hap *h)
{
    struct sim_job *j = h->actor;
    struct sim_client *c = j->client;
    struct chance r = chance_of(j->r, 80);
    if (s->settling || c->state != CLIENT_ON || c->leaving || c->said_bye || j->life != c->lives ||
        !ask_room(c)) {
        return;
    }
    ask_cancel_of(s, j);
    if (holds(c, j->step[0].to)) {
        (void)read_on(s, c, j->step[0].to, 0, &r);
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
        struct sim_job *j = read_on(s, c, b, 1 + (i % 2 == 0 ? first : second), r);
        if (cancels) {
            sim_at(s, s->now_ns + (1 + chance_below(r, CANCEL_MS)) * NS_PER_MS, on_cancel, j, 0, 0);
        }
    }
}
