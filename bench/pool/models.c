/*
 * Loads of inference and of image processing, made once and replayed with each policy, with memory
 * for 100/97 and for 125% of their peak. Frees are complete at once, so only placement counts.
 * --gib is the peak.
 */
#include <stdlib.h>

#include "bench/pool/parts.h"
#include "bench/pool/replay.h"

#define KIB   UINT64_C(1024)
#define MIB   (KIB * KIB)
#define GIB   (KIB * MIB)
#define ITEMS 32768u /* alive at once */

/* A buffer that is alive. */
struct item {
    uint64_t from, size;
    uint32_t owner; /* a sequence, a batch, a model */
};

struct maker {
    struct trace *trace;
    struct load load;
    uint64_t now, live;
    uint64_t most; /* bytes alive */
    uint32_t count;
    struct item item[ITEMS];
};

/* False: it would be too many, or too many bytes. */
static bool item_open(struct maker *m, uint64_t size, uint32_t owner)
{
    if (m->live + size > m->most || m->count == ITEMS) {
        return false;
    }
    m->live += size;
    m->item[m->count++] = (struct item){m->now++, size, owner};
    return true;
}

static void item_close(struct maker *m, uint32_t i)
{
    struct item *item = &m->item[i];
    m->live -= item->size;
    trace_add(m->trace, item->from, m->now++, item->size);
    *item = m->item[--m->count];
}

static void owner_close(struct maker *m, uint32_t owner)
{
    for (uint32_t i = m->count; i-- > 0;) {
        if (m->item[i].owner == owner) {
            item_close(m, i);
        }
    }
}

/* ---- key-value caches -------------------------------------------------------------------------*/

#define SEQUENCES 512u
#define MODELS    4u

/* Bytes of the cache for a token: of models with 1, 7, 8 and 70 thousand million parameters. */
static const uint64_t token_bytes[MODELS] = {32 * KIB, 56 * KIB, 128 * KIB, 320 * KIB};

struct sequence {
    uint64_t token;    /* bytes for one */
    uint64_t now, end; /* tokens */
    bool alive;
};

/* The share of the models changes over time: the first phase has the small ones only. */
static struct sequence sequence_make(struct load *l, uint64_t phase)
{
    uint64_t prompt = load_log_uniform(l, 64, 2048);
    return (struct sequence){.token = token_bytes[(phase + load_random(l, 2)) % MODELS],
                             .now = prompt,
                             .end = prompt + load_log_uniform(l, 16, 2048),
                             .alive = true};
}

/* A sequence has blocks of 16 tokens, and gets one more when the last is full. */
static bool blocks_grow(struct maker *m, const struct sequence *s, uint32_t owner, bool begins)
{
    bool good = true;
    for (uint64_t n = begins ? s->now / 16 + 1 : 1; good && n > 0; n--) {
        good = item_open(m, 16 * s->token, owner);
    }
    return good;
}

/* A sequence has one buffer. When that is full it gets one of twice the size, and frees the first.
 */
static bool buffer_grow(struct maker *m, const struct sequence *s, uint32_t owner, bool begins)
{
    if (begins) {
        return item_open(m, s->now * s->token, owner);
    }
    uint32_t i = 0;
    while (m->item[i].owner != owner) {
        i++;
    }
    bool good = item_open(m, 2 * m->item[i].size, owner);
    if (good) {
        item_close(m, i);
    }
    return good;
}

typedef bool grow_fn(struct maker *m, const struct sequence *s, uint32_t owner, bool begins);

/* Sequences begin, grow and end at random. One that gets no memory ends. */
static void make_caches(struct maker *m, grow_fn *grow, bool doubles, uint64_t steps)
{
    struct sequence *all = bench_calloc(SEQUENCES, sizeof *all);
    for (uint64_t n = 0; n < steps && m->trace->buffers + ITEMS < TRACE_BUFFERS_MAX; n++) {
        uint32_t i = (uint32_t)load_random(&m->load, SEQUENCES);
        struct sequence *s = &all[i];
        bool begins = !s->alive;
        bool good = true;
        if (begins) {
            *s = sequence_make(&m->load, n * 8 / steps);
        } else {
            s->now = doubles ? 2 * s->now : s->now + 16;
            good = s->now < s->end;
        }
        if (!good || !grow(m, s, i, begins)) {
            owner_close(m, i);
            s->alive = false;
        }
    }
    free(all);
}

static void make_kv_blocks(struct maker *m, uint64_t steps)
{
    make_caches(m, blocks_grow, false, steps);
}

static void make_kv_doubling(struct maker *m, uint64_t steps)
{
    make_caches(m, buffer_grow, true, steps);
}

/* ---- images -----------------------------------------------------------------------------------*/

#define BATCHES 24u     /* under way at once */
#define BATCH   64u     /* images at most */
#define SHORT   BATCHES /* owner of temporaries */

/* Each image of a batch: its bytes, as floats of a random smaller size for a while, and a result.
 * The images and results of a batch are freed together. */
static void make_images(struct maker *m, uint64_t steps)
{
    uint64_t left[BATCHES] = {0};
    for (uint64_t n = 0; n < steps && m->trace->buffers + ITEMS < TRACE_BUFFERS_MAX; n++) {
        uint32_t batch = (uint32_t)load_random(&m->load, BATCHES);
        if (left[batch] == 0) {
            owner_close(m, batch);
            left[batch] = 1 + load_random(&m->load, BATCH);
        }
        uint64_t wide = load_log_uniform(&m->load, 320, 8192);
        uint64_t high = wide * (2 + load_random(&m->load, 3)) / 4;
        uint64_t by = 1 + load_random(&m->load, 4);
        bool good = item_open(m, wide * high * 3, batch) &&
                    item_open(m, wide * high * 12 / by, SHORT) &&
                    item_open(m, wide * high / 8 + 4096, batch);
        left[batch] = good ? left[batch] - 1 : 0;
        if (!good || load_random(&m->load, 3) == 0) {
            owner_close(m, SHORT);
        }
    }
}

/* ---- weights and activations ------------------------------------------------------------------*/

#define RESIDENT    3u       /* models in memory */
#define ACTIVATIONS RESIDENT /* owner */

/* A model of layers with the same seven matrices, of a random width, until its share is full. */
static void weights_load(struct maker *m, uint32_t owner)
{
    static const uint64_t parts[] = {16, 4, 4, 16, 43, 43, 43}; /* of 16 * width² weights */
    uint64_t wide = 256 * (4 + load_random(&m->load, 17));
    uint64_t most = m->most / 100 * (15 + load_random(&m->load, 12));
    uint64_t bytes = 0;
    for (unsigned n = 0; bytes < most; n++) {
        uint64_t size = 2 * wide * wide / 16 * parts[n % 7];
        if (!item_open(m, size, owner)) {
            return;
        }
        bytes += size;
    }
}

/* Frees some activation; false: there is none. */
static bool activation_close(struct maker *m)
{
    uint32_t from = (uint32_t)load_random(&m->load, m->count);
    for (uint32_t n = 0; n < m->count; n++) {
        uint32_t i = (from + n) % m->count;
        if (m->item[i].owner == ACTIVATIONS) {
            item_close(m, i);
            return true;
        }
    }
    return false;
}

static void make_weights(struct maker *m, uint64_t steps)
{
    for (uint32_t model = 0; model < RESIDENT; model++) {
        weights_load(m, model);
    }
    for (uint64_t n = 1; n < steps && m->trace->buffers + ITEMS < TRACE_BUFFERS_MAX; n++) {
        if (n % (steps / 12) == 0) { /* another model */
            uint32_t model = (uint32_t)load_random(&m->load, RESIDENT);
            owner_close(m, model);
            weights_load(m, model);
        }
        uint64_t size = load_log_uniform(&m->load, 4 * KIB, m->most / 64);
        while (!item_open(m, size, ACTIVATIONS) && activation_close(m)) {
        }
        if (load_random(&m->load, 8) == 0) { /* the end of a job */
            for (unsigned i = 0; i < 8 && activation_close(m); i++) {
            }
        }
    }
}

/* ---- replays ----------------------------------------------------------------------------------*/

static void one_policy(struct report *rep, const char *name, enum policy_kind kind,
                       const struct trace *t, bool ample)
{
    struct replay r;
    uint64_t *ns = bench_calloc(t->count, sizeof *ns);
    replay_init(&r, kind, ample ? replay_limit_125(t) : replay_limit_97(t), 1, 0, t->buffers);
    replay_round_timed(&r, t, ns);
    const char *policy = r.policy.name;
    report_add(rep, "models", name, policy, ample ? "refused_125" : "refused_97",
               (double)r.refused);
    if (r.policy.calls != NULL) {
        report_add(rep, "models", name, policy, ample ? "calls_an_event_125" : "calls_an_event_97",
                   (double)replay_calls(&r) / (double)t->count);
    }
    report_add(rep, "models", name, policy, ample ? "p50_ns_125" : "p50_ns_97",
               (double)replay_percentile(ns, t->count, 50));
    report_add(rep, "models", name, policy, ample ? "p99_ns_125" : "p99_ns_97",
               (double)replay_percentile(ns, t->count, 99));
    replay_finish(&r);
    free(ns);
}

void part_models(const struct settings *s, struct report *rep)
{
    static const struct {
        const char *name;
        void (*make)(struct maker *m, uint64_t steps);
    } loads[] = {{"caches that grow by blocks", make_kv_blocks},
                 {"caches that double", make_kv_doubling},
                 {"images in batches", make_images},
                 {"weights and activations", make_weights}};
    struct maker *m = bench_calloc(1, sizeof *m);
    for (unsigned i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        struct trace t;
        trace_begin(&t);
        *m = (struct maker){.trace = &t, .most = s->gib * GIB};
        load_seed(&m->load, i + 1);
        loads[i].make(m, s->smoke ? 1000 : 30000);
        while (m->count > 0) {
            item_close(m, m->count - 1);
        }
        trace_end(&t);
        for (enum policy_kind kind = POLICY_POOL_MOVING; kind <= POLICY_EXPANDABLE; kind++) {
            one_policy(rep, loads[i].name, kind, &t, false);
            one_policy(rep, loads[i].name, kind, &t, true);
        }
        trace_finish(&t);
    }
    free(m);
}
