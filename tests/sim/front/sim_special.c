/* What clients do in special worlds (enum course_world). */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/front/rules/sim_sooner.h"
#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_stray.h"

#define RUSH      2500u          /* requests */
#define VAST      (450u * 1024u) /* elements: two such arrays are more than a table of a program has */
#define LINGER_NS (840 * NS_PER_S)

/* Answers that are small, but more than all others. */
static void chatter(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = 1000 + (unsigned)chance_below(r, 1500);
    for (unsigned i = 0; i < count && ask_room(c); i++) {
        ask_find(s, c);
    }
}

static void heap(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = 200 + (unsigned)chance_below(r, 600);
    for (unsigned i = 0; i < count && ask_room(c); i++) {
        ask_new(s, c, 1 + chance_below(r, SIM_SMALL), true, 0);
    }
}

static void look(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = 4 + (unsigned)chance_below(r, 40);
    for (unsigned i = 0; i < count && c->buffers > 0 && ask_room(c); i++) {
        struct sim_buffer *b = c->buffer[chance_below(r, c->buffers)];
        struct msg_buffer_info m = {.seq = ask_number(c), .handle = b->handle};
        client_send(s, c, &schema_msg_buffer_info, &m)->buffer = b;
    }
}

static void seal(struct sim *s, struct sim_client *c, struct chance *r)
{
    for (unsigned i = 0; i < c->buffers; i++) {
        struct sim_buffer *b = c->buffer[i];
        if (b->maker == c && !b->sealing && b->bytes <= SIM_CONTENT) {
            struct msg_buffer_seal m = {.seq = ask_number(c), .handle = b->handle};
            b->sealing = true;
            client_send(s, c, &schema_msg_buffer_seal, &m)->buffer = b;
            return;
        }
    }
    ask_new(s, c, 1 + chance_below(r, SIM_SMALL), true, 0);
}

/* Of a job in a world of deadlines; 0: none. */
static uint64_t deadline(const struct sim *s, struct chance *r)
{
    if (s->p.special != WORLD_DUE || !chance_percent(r, 70)) {
        return 0;
    }
    return chance_spread(r, s->p.run_us * NS_PER_US / 4, 200 * s->p.run_us * NS_PER_US);
}

/* y := axpy(value, x, y), or bulk(y, struct): all arrays are the job's own. The model does not
 * follow what they hold. */
struct sim_job *special_bare(struct sim *s, struct sim_client *c, const struct special_bare *how,
                             struct chance *r)
{
    bool bulk = how->bulk;
    static const uint8_t large[SIM_BULK_BYTES];
    static uint32_t data[VAST];
    uint64_t count = how->elements > 0           ? how->elements
                     : s->p.special == WORLD_DUE ? SIM_SMALL
                                                 : 1 + chance_below(r, SIM_SMALL);
    const struct proto_arg value = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = 1};
    const struct proto_arg whole = {.tag = ARG_STRUCT, .data = bytes_of(large, sizeof large)};
    const struct proto_arg x = ask_inline(data, count);
    struct proto_arg y = x;
    y.access = ACCESS_INOUT;
    const struct proto_arg *const axpy_args[] = {&value, &x, &y};
    const struct proto_arg *const bulk_args[] = {&y, &whole};
    struct capbuf args, steps;
    capbuf_init(&args, 65536 + 2 * sizeof data);
    capbuf_init(&steps, 65536 + 2 * sizeof data);
    for (unsigned i = 0; i < (bulk ? 2 : 3); i++) {
        ask_encode(s, &schema_arg, bulk ? bulk_args[i] : axpy_args[i], &args);
    }
    struct proto_step p = {.op = OP_LAUNCH,
                           .kernel = bulk ? c->bulk : c->axpy,
                           .args = proto_list_of(&args, bulk ? 2 : 3),
                           .gx = bulk ? count : 0};
    ask_encode(s, &schema_step, &p, &steps);
    struct sim_job *j = ask_job(s, c, r);
    j->loaded = bulk;
    j->safe = s->p.special == WORLD_HOSTILE && c->index == FAIR_CLIENT;
    j->run_ns = how->run_ns;
    j->flow = how->flow;
    j->kind = how->kind;
    struct msg_submit m = {
        .steps = proto_list_of(&steps, 1), .flags = how->flags, .job_class = how->job_class};
    m.device = how->device;
    m.deadline_ns = deadline(s, r);
    m.limit_ns = how->limit_ns;
    ask_job_send(s, j, &m);
    capbuf_finish(&args);
    capbuf_finish(&steps);
    return j;
}

static void bare(struct sim *s, struct sim_client *c, struct chance *r)
{
    bool bulk = chance_percent(r, 60);
    if (!ask_room(c)) {
        return;
    }
    if (c->bulk_module == 0 && bulk) {
        c->bulk_module = UINT64_MAX;
        ask_load_named(s, c, "source of " SIM_BULK, 0);
    } else if (c->axpy == 0) {
        ask_find(s, c);
    } else {
        struct chance other = chance_of(chance_mix(s->now_ns), 12);
        bool vast = s->p.staging_kib > 4096 && chance_percent(&other, 4);
        struct special_bare how = {.bulk = bulk && c->bulk != 0 && !vast};
        how.flags = chance_percent(r, 50) ? SUBMIT_ASYNC : 0;
        how.elements = vast ? VAST : 0;
        (void)special_bare(s, c, &how, r);
    }
}

/* Mostly leaves buffers that outlast its session, and the time for which its tenant is known. */
static void holiday(struct sim *s, struct sim_client *c, struct chance *r)
{
    char name[32];
    bool leaves = chance_percent(r, 60); /* else its tenant is forgotten, when its jobs are */
    for (unsigned i = 0; i < c->buffers && leaves; i++) {
        struct sim_buffer *b = c->buffer[i];
        (void)snprintf(name, sizeof name, "left%u", i);
        struct msg_buffer_publish m = {.seq = ask_number(c),
                                       .handle = b->handle,
                                       .name = bytes_str(name),
                                       .rights = ACCESS_IN,
                                       .linger_ns = LINGER_NS};
        b->publishes += b->maker == c; /* others are refused */
        client_send(s, c, &schema_msg_buffer_publish, &m)->buffer = b;
    }
    c->holiday_ns = (650 + chance_below(r, 200)) * NS_PER_S;
    c->leaving = true;
}

static void on_still(struct sim *s, const struct hap *h)
{
    (void)h;
    s->now_ns += s->p.wire_us * NS_PER_US;
    s->stalled_ns = s->now_ns;
}

/* What arrives while the front stands still is there at once. */
static void rush(struct sim *s, struct chance *r)
{
    unsigned each = RUSH / s->clients + 1;
    for (unsigned i = 0; i < s->clients * each; i++) {
        struct sim_client *c = &s->client[i % s->clients];
        if (c->state == CLIENT_ON && ask_room(c)) {
            ask_something(s, c, r);
        }
    }
    sim_at(s, s->now_ns + s->p.wire_us * NS_PER_US / 8, on_still, NULL, 0, 0);
}

static void flood(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = 50 + (unsigned)chance_below(r, 200);
    const struct special_bare how = {.flags = SUBMIT_ASYNC};
    if (c->axpy == 0) {
        ask_find(s, c);
    }
    for (unsigned i = 0; i < count && c->axpy != 0 && ask_room(c); i++) {
        (void)special_bare(s, c, &how, r);
    }
}

static void due(struct sim *s, struct sim_client *c, struct chance *r)
{
    unsigned count = 1 + (unsigned)chance_below(r, chance_percent(r, 10) ? 60 : 6);
    struct chance other = chance_of(chance_mix(s->now_ns) ^ c->index, 90);
    if (c->axpy == 0) {
        ask_find(s, c);
    }
    if (stray_is(s) && c->axpy != 0 && chance_percent(&other, 75)) {
        stray_event(s, c, &other);
        return;
    }
    for (unsigned i = 0; i < count && c->axpy != 0 && ask_room(c); i++) {
        const struct special_bare how = {.flags = chance_percent(r, 80) ? SUBMIT_ASYNC : 0};
        (void)special_bare(s, c, &how, r);
    }
}

void special_event(struct sim *s, struct sim_client *c, enum course_kind kind, struct chance *r)
{
    switch (kind) {
    case COURSE_CHATTER:
        chatter(s, c, r);
        break;
    case COURSE_HEAP:
        heap(s, c, r);
        break;
    case COURSE_LOOK:
        look(s, c, r);
        break;
    case COURSE_BARE:
        bare(s, c, r);
        break;
    case COURSE_HOLIDAY:
        holiday(s, c, r);
        break;
    case COURSE_SEAL:
        seal(s, c, r);
        break;
    case COURSE_RUSH:
        rush(s, r);
        break;
    case COURSE_FLOOD:
        flood(s, c, r);
        break;
    case COURSE_DUE:
        due(s, c, r);
        break;
    case COURSE_LOAD:
        feed_event(s, c, r);
        break;
    case COURSE_REWEIGH:
        load_reweigh(s);
        break;
    case COURSE_VISIT:
        ask_visit(s, c, r);
        break;
    case COURSE_HONEST:
        fair_ask(s, r);
        break;
    default:
        break;
    }
}
