/* Jobs whose kernels end workers, or never end. */
#include <string.h>

#include "tests/sim/front/sim.h"

/* A kernel of the client that ends workers, and is not in quarantine if there is such a one; the
 * number of kernels: it has none. */
static unsigned find_bad(const struct sim *s, const struct sim_client *c)
{
    unsigned any = c->kernels;
    for (unsigned k = c->kernels; k > 0; k--) {
        unsigned bad = c->kernel_bad[k - 1] * 2 + c->kernel_inout[k - 1];
        if (c->kernel_bad[k - 1] == 0) {
            continue;
        }
        any = k - 1;
        if (!strikes_ban(s, c->tenant, bad)) {
            return k - 1;
        }
    }
    return any;
}

/* No buffer is the reason why it does not run. */
static void bare(struct sim *s, struct sim_client *c, unsigned k, struct chance *r)
{
    static struct sim_buffer none;
    uint32_t data[SIM_SMALL];
    uint64_t count = 1 + chance_below(r, SIM_SMALL);
    bool inout = c->kernel_inout[k];
    struct proto_step p = {.op = OP_LAUNCH, .kernel = c->kernel[k]};
    const struct proto_arg x = ask_inline(data, count);
    struct proto_arg y = x;
    y.access = inout ? ACCESS_INOUT : ACCESS_OUT;
    y.data = inout ? x.data : bytes_str("");
    struct capbuf args, steps;
    capbuf_init(&args, 65536);
    capbuf_init(&steps, 65536);
    ask_encode(s, &schema_arg, &x, &args);
    ask_encode(s, &schema_arg, &y, &args);
    p.args = proto_list_of(&args, 2);
    ask_encode(s, &schema_step, &p, &steps);
    struct sim_job *j = ask_job(s, c, r);
    j->step[j->steps++] = (struct sim_step){.op = OP_LAUNCH,
                                            .inlined = true,
                                            .inout = inout,
                                            .bad = c->kernel_bad[k] * 2 + inout,
                                            .count = count,
                                            .to = &none,
                                            .from = &none};
    ask_guilty_send(s, j, &steps, r);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

/* A kernel of gpud's that has so much to do that it overruns its turn, and mostly its client's own
 * limit. */
static void be_long(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct special_bare how = {.flags = SUBMIT_ASYNC, .run_ns = GUILT_LONG_NS};
    how.limit_ns = chance_percent(r, 80) ? 300 * NS_PER_MS : 0;
    if (c->axpy == 0) {
        ask_find(s, c);
    } else {
        (void)special_bare(s, c, &how, r);
    }
}

void ask_guilt(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (s->p.special == WORLD_OVERRUNS && c->index == 0 && ask_room(c) && chance_percent(r, 50)) {
        be_long(s, c, r);
        return;
    }
    unsigned k = find_bad(s, c);
    if (k == c->kernels || c->jobs + 1 >= sizeof c->job / sizeof c->job[0]) {
        ask_load_bad(s, c, r);
    } else if (c->buffers == 0 || chance_percent(r, 50)) {
        bare(s, c, k, r);
    } else {
        ask_guilt_with(s, c, k, r);
    }
}
