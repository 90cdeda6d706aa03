#include "tests/sim/front/sim_load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/front/rules/sim_shares.h"

#define TENANT "load"

/* ---- sections -------------------------------------------------------------------------------- */

static void choose_weight(const struct sim *s, unsigned client)
{
    static const unsigned weights[] = {100, 100, 25, 50, 200, 400, 37, 1000};
    struct chance c = chance_of(s->course->seed + s->load->version, 20 + client);
    struct load_client *t = &s->load->client[client];
    t->weight = weights[chance_below(&c, sizeof weights / sizeof weights[0])];
    bool least = t->least_weight == 0 || t->weight < t->least_weight;
    t->least_weight = least ? t->weight : t->least_weight;
}

static void choose_limits(const struct sim *s, struct load_client *t, struct chance *c)
{
    t->rate = chance_percent(c, 25) ? 65536u << chance_below(c, 4) : 0;
    if (chance_percent(c, 35)) {
        t->devices = UINT64_C(1) << chance_below(c, s->p.devices);
    }
    t->devices = s->load->bursts ? UINT64_MAX : t->devices;
    t->hard = chance_percent(c, 25) ? 4096u << chance_below(c, 4) : 0;
}

/* In a third of the worlds some tenants may have a part of a device's time only. */
static void choose_cap(const struct sim *s, struct load_client *t, unsigned client)
{
    static const unsigned caps[] = {5, 10, 20, 30, 50};
    struct chance world = chance_of(s->course->seed, 60);
    struct chance c = chance_of(s->course->seed, 61 + client);
    bool some = s->p.special != WORLD_OVERRUNS && chance_percent(&world, 33);
    t->cap =
        some && chance_percent(&c, 40) ? caps[chance_below(&c, sizeof caps / sizeof caps[0])] : 0;
}

/* In half of the worlds with workers of tenants one that always has jobs has next to no weight. */
static unsigned lean_weight(const struct sim *s, unsigned client)
{
    struct chance c = chance_of(s->course->seed, 32);
    bool light = load_rivals(s) && client == LEAN_ONE + 1 && chance_percent(&c, 50);
    return light ? 1 : TENANT_WEIGHT_USUAL;
}

static void be_lean(const struct sim *s, struct load_client *t, unsigned client)
{
    bool batch = client == LEAN_ONE + 1 && !load_rivals(s);
    t->first_class = client == LEAN_LATE ? CLASS_REALTIME : batch ? CLASS_BATCH : CLASS_INTERACTIVE;
    t->wish = client == LEAN_LATE ? CLASS_REALTIME : CLASS_USUAL;
    t->trusted = !load_rivals(s);
    t->wild = false;
    t->rate = t->hard = t->cap = 0;
    t->devices = UINT64_MAX;
    t->weight = t->least_weight = lean_weight(s, client);
}

/* The worker of one whose jobs overrun is not ended if others have jobs there. */
static unsigned trusted_percent(const struct sim *s, unsigned client)
{
    return s->p.special == WORLD_OVERRUNS && client == 0 ? 60 : 20;
}

static void choose_client(struct sim *s, unsigned client)
{
    struct chance c = chance_of(s->course->seed, 40 + client);
    struct load_client *t = &s->load->client[client];
    unsigned n = (unsigned)chance_below(&c, 100);
    bool rivals = load_rivals(s);
    *t = (struct load_client){.devices = UINT64_MAX};
    t->first_class = n < 20 ? CLASS_REALTIME : n < 87 ? CLASS_INTERACTIVE : CLASS_BATCH;
    n = (unsigned)chance_below(&c, 100);
    t->wish = n < 75   ? CLASS_USUAL
              : n < 85 ? CLASS_REALTIME
              : n < 92 ? CLASS_INTERACTIVE
                       : CLASS_BATCH;
    t->wish = t->first_class == CLASS_REALTIME && n < 75 ? CLASS_REALTIME : t->wish;
    t->trusted = !rivals || chance_percent(&c, trusted_percent(s, client));
    uint64_t base = s->p.run_us * NS_PER_US * (1 + chance_below(&c, 4)) / 2;
    base = s->load->brief && chance_percent(&c, 50) ? 40 * NS_PER_US : base;
    t->wild = chance_percent(&c, 20) && !s->load->bursts;
    base = t->wild ? base / 4 : base;
    for (unsigned i = 0; i < LOAD_KINDS; i++) {
        t->run_ns[i] = base + base * chance_below(&c, 200) / 100;
    }
    choose_limits(s, t, &c);
    choose_cap(s, t, client);
    choose_weight(s, client);
    if (load_lean(s)) {
        be_lean(s, t, client);
    }
}

/* Turns are long beside jobs. */
static void make_lean(struct sim *s, struct chance *c)
{
    s->load->outliers = s->load->brief = false;
    s->load->gap_ns = load_rivals(s) ? NS_PER_US : 0;
    s->load->percent = 20;
    s->load->switch_ns = chance_spread(c, 500 * NS_PER_US, 3 * NS_PER_MS);
}

/* Devices behind the first may be slow. */
static void make_slow(struct sim *s, struct chance *c)
{
    bool may = s->p.pauses == 0 && s->p.special != WORLD_OVERRUNS;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        bool slow = i > 0 && may && (chance_percent(c, 60) || s->load->bursts);
        unsigned least = s->load->bursts ? 3 : 2;
        s->load->slow[i] = slow ? least + (unsigned)chance_below(c, 7) : 1;
    }
}

void load_begin(struct sim *s)
{
    static const unsigned percents[] = {5, 5, 1, 20, 50};
    struct chance c = chance_of(s->course->seed, 19);
    charge_begin(s);
    if (s->p.special != WORLD_SHARES && !load_rivals(s)) {
        return;
    }
    s->load = calloc(1, sizeof *s->load);
    shares_book_begin(s);
    s->load->percent = percents[chance_below(&c, sizeof percents / sizeof percents[0])];
    s->load->outliers = chance_percent(&c, s->p.special == WORLD_RIVALS ? 70 : 30) &&
                        s->p.special != WORLD_OVERRUNS;
    if (load_rivals(s)) {
        s->load->brief = s->p.special == WORLD_RIVALS && chance_percent(&c, 40);
        uint64_t most = (s->load->brief ? 50 : 1000) * NS_PER_US;
        s->load->switch_ns = chance_spread(&c, 10 * NS_PER_US, most);
        s->load->gap_ns = (s->load->brief ? 50 + chance_below(&c, 150) : 1) * NS_PER_US;
    }
    if (load_lean(s)) {
        make_lean(s, &c);
    }
    s->load->bursts =
        s->p.special == WORLD_SHARES && s->p.devices > 1 && s->course->seed / 8 % 4 != 0;
    s->load->outliers = s->load->outliers && !s->load->bursts;
    make_slow(s, &c);
    for (unsigned i = 0; i < LOAD_CLIENTS; i++) {
        choose_client(s, i);
    }
}

void load_finish(struct sim *s)
{
    shares_book_finish(s);
    charge_finish(s);
    free(s->load);
    s->load = NULL;
}

static void write_devices(const struct sim *s, uint64_t devices, FILE *out)
{
    for (unsigned i = 0; devices != UINT64_MAX && i < s->p.devices; i++) {
        if ((devices >> i & 1) != 0) {
            (void)fprintf(out, "devices = %u\n", i);
        }
    }
}

void load_write(const struct sim *s, FILE *out)
{
    static const char *const classes[CLASS_COUNT] = {[CLASS_REALTIME] = "realtime",
                                                     [CLASS_INTERACTIVE] = "interactive",
                                                     [CLASS_BATCH] = "batch"};
    for (unsigned i = 0; load_is(s) && i < LOAD_CLIENTS && i < s->p.clients; i++) {
        const struct load_client *t = &s->load->client[i];
        (void)fprintf(out,
                      "[tenant " TENANT "%u]\nusers = %u\nload_kernels = yes\ntrusted = %s\n"
                      "weight = %u\nclass = %s\n",
                      i, i == 0 ? 0 : 1000 + i % (unsigned)s->p.tenants, t->trusted ? "yes" : "no",
                      t->weight, classes[t->first_class]);
        if (t->rate > 0) {
            (void)fprintf(out, "transfer_rate = %" PRIu64 "\n", t->rate);
        }
        if (t->hard > 0) {
            (void)fprintf(out, "memory_hard = %" PRIu64 "\n", t->hard);
        }
        if (t->cap > 0) {
            (void)fprintf(out, "device_share = %u%%\n", t->cap);
        }
        write_devices(s, t->devices, out);
    }
}

struct load_client *load_client_of(const struct sim *s, const char *tenant)
{
    unsigned number = LOAD_CLIENTS;
    bool own = load_is(s) && sscanf(tenant, TENANT "%u", &number) == 1 && number < LOAD_CLIENTS;
    return own ? &s->load->client[number] : NULL;
}

bool load_name(const struct sim *s, const struct sim_client *c, char ret_name[SIM_LABEL])
{
    (void)snprintf(ret_name, SIM_LABEL, TENANT "%u", c->index);
    return load_is(s) && c->index < LOAD_CLIENTS;
}

unsigned load_flow(const struct sim *s, unsigned client, unsigned class)
{
    (void)s;
    return client * CLASS_COUNT + class;
}

void load_reweigh(struct sim *s)
{
    shares_anew(s);
    s->load->version++;
    for (unsigned i = 0; i < LOAD_CLIENTS; i++) {
        choose_weight(s, i);
    }
    front_reload(s);
}

/* ---- times ----------------------------------------------------------------------------------- */

uint64_t load_draw_ns(struct sim *s, unsigned client, unsigned kind, struct chance *r)
{
    struct load_client *t = &s->load->client[client];
    uint64_t ns = t->run_ns[kind] * (90 + chance_below(r, 21)) / 100;
    ns = !t->wild ? ns : chance_percent(r, 10) ? 8 * ns : ns / 8;
    bool late =
        s->load->outliers && !t->wild && t->sent[kind] >= 2 * LOAD_LEAST && chance_percent(r, 2);
    t->sent[kind]++;
    return late ? 20 * ns : ns;
}

static void on_ready(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    if (x->state == WORKER_RUNS && x->epoch == h->a && !x->silent) {
        exec_more(s, x);
    }
}

/* When the worker has the device, if it asks for that now. A switch to another worker ends first,
 * else two that ask in turn would have no job run at all. */
static uint64_t context_ns(struct sim *s, const struct sim_worker *x)
{
    unsigned hardware = worker_hardware(s, x->number);
    uint64_t ns = s->load->switch_ns;
    if (s->load->context[hardware].worker != x->id &&
        s->now_ns < s->load->context[hardware].ready_ns) {
        return s->load->context[hardware].ready_ns + 1;
    }
    if (s->load->context[hardware].worker != x->id) {
        bool late = s->load->outliers && ++s->load->context[hardware].switches % 16 == 15;
        shares_turn(s, hardware, x);
        s->load->context[hardware].worker = x->id;
        s->load->context[hardware].ready_ns = s->now_ns + (late ? 60 * ns : ns);
    }
    return s->load->context[hardware].ready_ns;
}

bool load_delays(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    if (!load_is(s) || !load_rivals(s)) {
        return false;
    }
    uint64_t gap = x->stream_ns[j->stream % SIM_STREAMS] + s->load->gap_ns;
    uint64_t at = context_ns(s, x);
    at = at > gap ? at : gap;
    if (at > s->now_ns && j->ready_ns != at) {
        j->ready_ns = at;
        sim_at(s, at, on_ready, x, x->epoch, 0);
    }
    return at > s->now_ns;
}

void load_ended(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j)
{
    x->stream_ns[j->stream % SIM_STREAMS] = s->now_ns;
}
