/* Rules of tenants with workers of their own, and of jobs with a worker to themselves. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"
#include "daemon/front/workers/places.h"
#include "tests/sim/front/rules/sim_moves.h"
#include "tests/sim/front/sim.h"

#define PLACE_NS (5 * NS_PER_S) /* for jobs in flight to end, and few buffers to go to the host */
#define COPIES   32u            /* that the front asks for at a time */

static void check_jobs(struct sim *s, const struct device *d)
{
    const struct front *f = s->f;
    unsigned bound = 0;
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        bool here = j->device == d && !job_ended(j);
        bound += here && j->tenant != NULL;
        if (here && d->owner != NULL && j->tenant != d->owner) {
            sim_fail(s, "domain: job %" PRIu64 " runs in the worker of tenant %s", j->id,
                     d->owner->name);
        }
    }
    for (const struct job *j = f->leaving; j != NULL; j = j->ended_next) {
        bound += j->device == d && j->tenant != NULL;
    }
    if (d->jobs != bound) {
        sim_fail(s, "domain: device %u counts %u jobs, %u are there", d->index, d->jobs, bound);
    }
}

/* Host memory of buffers without a worker is counted, and no other. */
static void check_copies(struct sim *s, const struct device *d)
{
    uint64_t bytes = 0;
    uint64_t all = 0;
    uint32_t cursor = 0;
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        uint64_t copied = b->copy != COPY_NONE ? b->bytes : 0;
        all += copied;
        bytes += b->device == d->index ? copied : 0;
    }
    if (bytes != d->evacuation.bytes || all != s->f->evacuated_bytes ||
        all > s->f->config.domain_host_bytes) {
        sim_fail(s, "idle: device %u counts %" PRIu64 " bytes on the host, %" PRIu64 " are there",
                 d->index, d->evacuation.bytes, bytes);
    }
}

/* The launcher keeps what the front says, and nothing else. Where jobs may write a buffer, its copy
 * is true no more. */
void domain_check_kept(struct sim *s)
{
    unsigned handed = 0;
    uint32_t cursor = 0;
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        handed += b->handed;
        if (b->handed && !launcher_has_copy(s, b->handle)) {
            sim_fail(s, "copies: the launcher has none of buffer %#" PRIx64, b->handle);
        }
        if (b->handed && buffer_state(b) == BUFFER_LIVE &&
            s->f->device[b->device]->state != DEVICE_RESTING) {
            sim_fail(s, "copies: buffer %#" PRIx64 " may be written, and its copy is kept",
                     b->handle);
        }
    }
    uint64_t coming = 0;
    cursor = 0;
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        coming += b->copy != COPY_NONE && b->copy != COPY_KEPT && !b->passes;
    }
    if (coming != s->f->copies_coming) {
        sim_fail(s, "copies: the front counts %" PRIu64 " to come, and has %" PRIu64,
                 s->f->copies_coming, coming);
    }
    unsigned kept = launcher_copies_kept(s);
    if (s->accepts && (handed != kept || handed != s->f->copies_kept)) {
        sim_fail(s, "copies: the launcher keeps %u, the front counts %" PRIu64 ", and has %u", kept,
                 s->f->copies_kept, handed);
    }
}

/* A front has taken over what a former one had on the host, before it lets the launcher go. */
void domain_check_taken(struct sim *s)
{
    for (unsigned i = 0; i < s->copies && !memory_failed() && !s->lies; i++) {
        const struct sim_buffer *known = model_find(s, s->copy[i].id);
        const struct buffer *b = idmap_get(&s->f->buffers, s->copy[i].id);
        bool freed = known == NULL || known->freed || s->copy[i].left;
        bool away = !freed && known->moved_era != 0;
        if (away && (b == NULL || !b->handed || buffer_state(b) != BUFFER_RESTORING)) {
            sim_fail(s, "copies: buffer %#" PRIx64 " is on the host, and the next front lost it",
                     s->copy[i].id);
        }
    }
}

static bool worker_hangs(const struct sim_worker *x)
{
    return x != NULL && (x->silent || x->cut || x->lied || x->killed);
}

/* A worker of another device has yet to take a buffer of it, and hangs. */
static bool moves_in_vain(struct sim *s, const struct device *d)
{
    uint32_t cursor = 0;
    bool vain = false;
    bool some = s->f->moving > 0;
    for (const struct buffer *b;
         some && !vain && (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        const struct device *to = b->move == MOVE_ARRIVES ? s->f->device[b->move_to] : NULL;
        vain = to != NULL && b->device == d->index &&
               worker_hangs(worker_of_device(s, worker_slot_of(s, to)));
    }
    return vain;
}

/* What may keep a place of the device longer. */
static bool is_excused(struct sim *s, const struct device *d)
{
    const struct sim_worker *x = worker_of_device(s, worker_slot_of(s, d));
    bool hangs = worker_hangs(x) || moves_in_vain(s, d);
    bool calm = d->state == DEVICE_READY || d->state == DEVICE_RESTING;
    bool leaves = d->worker != 0 && (d->state == DEVICE_RESTING || device_yields(d));
    bool slow = s->p.slow > 0 && leaves; /* its buffers may take seconds, or have no answer */
    bool old = false;
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        old = old || s->now_ns > j->dispatched_ns + NS_PER_S;
    }
    return hangs || slow || !calm || d->killed_ns != 0 || d->losing || old;
}

/* The first that waits for a place of the device; NS_NEVER: none waits. */
static uint64_t first_asked_ns(const struct front *f, const struct device *base)
{
    uint64_t asked_ns = NS_NEVER;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool waits = d->worker == 0 && place_waits(f, d) && !place_is_spare(f, d);
        asked_ns = waits && d->place.asked_ns < asked_ns ? d->place.asked_ns : asked_ns;
    }
    return asked_ns;
}

/* It has a worker, which ends when its copies are there. */
static bool leaves(const struct device *d)
{
    return d->worker != 0 && d->state == DEVICE_RESTING;
}

/* The time in which a worker that leaves makes all of its copies, as long as the front asks for the
 * next one when one is there: eight seconds for a thousand of half a second at most. Until then
 * nobody can have its place. */
static uint64_t copies_ns(const struct sim *s, const struct device *d)
{
    uint64_t sum_ns = 0;
    uint64_t longest_ns = 0;
    uint32_t cursor = 0;
    bool goes = leaves(d) && d->evacuation.state == EVACUATION_COPIES;
    for (const struct buffer *b; goes && (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        if (b->device == d->index && b->copy != COPY_NONE && buffer_state(b) == BUFFER_LIVE) {
            uint64_t ns = worker_lends_ns(s, b->handle);
            sum_ns += ns;
            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
    }
    return sum_ns / COPIES + longest_ns;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of the worker that takes longest; `before` as of the last look, when there were more buffers. 0:
 * none leaves. */
static uint64_t longest_copies_ns(const struct sim *s, const struct device *base, uint64_t before)
{
    uint64_t ns = before;
    bool goes = false;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        goes = goes || leaves(d);
        ns = later(ns, copies_ns(s, d));
    }
    return goes ? ns : 0;
}

/* While a tenant waits for a place of the device, one changes hands in time, although all are
 * busy. */
static void check_waits(struct sim *s, const struct device *base)
{
    const struct front *f = s->f;
    uint64_t *excused_ns = &s->device[base->number].places_ns;
    uint64_t *copies = &s->device[base->number].copies_ns;
    bool excused = memory_failed() || !s->accepts || front_life_stops(f->life) ||
                   device_drains(base) || !device_serves(base) || places_kept(f, base) ||
                   is_excused(s, base);
    uint64_t last_ns = later(later(s->stalled_ns, s->accepts_ns), first_asked_ns(f, base));
    unsigned taken = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        excused = excused || is_excused(s, d);
        last_ns = later(last_ns, d->place.since_ns);
        taken += d->worker != 0 || d->state != DEVICE_RESTING;
    }
    excused = excused || taken < f->config.domains_max; /* it waits for memory, say */
    *excused_ns = excused ? s->now_ns : *excused_ns;
    *copies = excused ? 0 : longest_copies_ns(s, base, *copies);
    last_ns = later(last_ns, *excused_ns);
    if (s->now_ns > ns_add(last_ns, f->config.domain_place_s * NS_PER_S + PLACE_NS + *copies)) {
        sim_fail(s, "places: a tenant waits for a place of device %u, and none has come free",
                 base->index);
    }
}

/* All that is in a tenant's own worker is that tenant's, and all pools together have no more than
 * there is. */
void domain_check(struct sim *s, const struct device *d)
{
    uint64_t granted = 0;
    uint32_t cursor = 0;
    if (s->p.devices > 8) {
        return; /* it would take long */
    }
    check_jobs(s, d);
    check_copies(s, d);
    if (d->domains != NULL) {
        check_waits(s, d);
    }
    lease_check(s, d);
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        bool own = d->owner != NULL ? b->tenant == d->owner : !b->tenant->apart;
        if (b->device == d->index && !own &&
            !memory_failed()) { /* else it may be taken for apart */
            sim_fail(s, "domain: buffer %#" PRIx64 " of tenant %s is in another's worker",
                     b->handle, b->tenant->name);
        }
    }
    for (const struct device *x = d->domains; x != NULL; x = x->domain_next) {
        granted += x->grant;
    }
    granted += d->growth.coming;
    if (d->granted != granted || (d->base == NULL && granted > device_whole(d))) {
        sim_fail(s, "domain: device %u counts %" PRIu64 " bytes as granted, %" PRIu64 " are",
                 d->index, d->granted, granted);
    }
}

/* The host has what the worker has, but for what it has yet to free. */
static void check_moved(struct sim *s, const struct sim_worker *x,
                        const struct sim_worker_buffer *own)
{
    uint8_t copy[SIM_CONTENT];
    struct sim_buffer *known = model_find(s, own->id);
    const struct buffer *b = idmap_get(&s->f->buffers, own->id);
    size_t size = own->size < SIM_CONTENT ? own->size : SIM_CONTENT;
    if (b == NULL || own->freed || moves_frees(x, own->id)) {
        return;
    }
    if (!buffer_restorable(b)) {
        sim_fail(s, "idle: worker %" PRIu64 " is ended, and buffer %#" PRIx64 " with it", x->id,
                 b->handle);
    }
    if (pread(b->host_fd, copy, size, 0) != (ssize_t)size ||
        (memcmp(copy, own->content, size) != 0 && !x->lied)) {
        sim_fail(s,
                 "idle: worker %" PRIu64 " is ended, and the copy of buffer %#" PRIx64
                 " has other bytes",
                 x->id, b->handle);
    }
    if (!launcher_has_copy(s, b->handle)) {
        sim_fail(s, "idle: worker %" PRIu64 " is ended, and buffer %#" PRIx64 " with this front",
                 x->id, b->handle);
    }
    if (known != NULL && b->copy == COPY_KEPT) {
        known->moved_era = s->era;
        known->alone_era = 0;
    }
}

/* Of a worker that lied it is not known what has gone to the host. */
void domain_doubt(struct sim *s, const struct sim_worker *x)
{
    for (unsigned i = 0; x->lied && i < x->buffers; i++) {
        struct sim_buffer *b = model_find(s, x->buffer[i].id);
        if (b != NULL) {
            b->lied = true;
        }
    }
}

/* Whether nothing wants a tenant's own worker any more. It must not have anything that would be
 * lost. */
bool domain_rests(struct sim *s, const struct sim_worker *x)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        if (d->worker != x->id || d->state != DEVICE_RESTING) {
            continue;
        }
        if (d->evacuation.state != EVACUATION_NONE) {
            return false; /* it hangs before all has gone */
        }
        for (unsigned i = 0; i < x->buffers; i++) {
            check_moved(s, x, &x->buffer[i]);
        }
        if (d->inflight_count > 0) {
            sim_fail(s, "idle: worker %" PRIu64 " is ended, and has jobs", x->id);
        }
        return true;
    }
    return false;
}

/* The client may not know the job's id yet. */
static bool kill_asked(const struct sim *s, const struct job *j)
{
    for (unsigned i = 0; i < s->jobs; i++) {
        const struct sim_job *k = s->job[i];
        if (k->killed && (k->id == j->id || (k->id == 0 && k->request->seq == j->seq))) {
            return true;
        }
    }
    return false;
}

/* Returns how long the worker takes to open its device; others take `usual_ns`. Spare ones take
 * long in some worlds: newcomers and tenants that come back want them meanwhile. */
uint64_t domain_opens_ns(struct sim *s, const struct sim_worker *x, uint64_t usual_ns)
{
    bool spare = x->number >= DEVICES_MAX &&
                 strcmp(s->domain[x->number - DEVICES_MAX].tenant, DOMAIN_SPARE) == 0;
    if (!spare || s->p.aim == 0 || s->settling) {
        return usual_ns;
    }
    uint64_t ns = usual_ns * (1 + x->id % 24);
    if (x->id % 3 != 0) {
        clients_want(s, worker_hardware(s, x->number), ns);
    }
    return ns;
}

/* A spare worker ends, or mostly another one, and the next ones do not start, so that the one after
 * them starts after a pause. */
void domain_unstarted(struct sim *s, unsigned slot, uint64_t r)
{
    for (unsigned i = 0; i < s->domains && r % 2 == 0; i++) {
        slot = strcmp(s->domain[i].tenant, DOMAIN_SPARE) == 0 ? DEVICES_MAX + i : slot;
    }
    struct sim_worker *x = worker_of_device(s, slot);
    s->device[slot].unstarted += 1 + (unsigned)(r / 2 % 4);
    if (x != NULL && x->state == WORKER_RUNS && r / 8 % 2 == 0) {
        launcher_ends(s, x, SIGKILL, 0);
    }
}

bool domain_is_unwanted(const struct sim *s, const struct sim_worker *x)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        const struct job *j = d->worker == x->id ? d->inflight : NULL;
        for (; j != NULL; j = j->device_next) {
            if (kill_asked(s, j)) {
                return true;
            }
        }
    }
    return false;
}

/* The job that the device would get if the others of its hardware took none. It may have to wait
 * for jobs of theirs. */
const struct job *domain_head(struct front *f, struct device *d)
{
    struct device *base = device_base(d);
    bool busy = base->inflight_count > 0;
    base->shut = true;
    for (struct device *x = base->domains; x != NULL; x = x->domain_next) {
        x->shut = true;
        busy = busy || x->inflight_count > 0;
    }
    d->shut = false;
    return busy ? NULL : shares_head(f, base);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* A job goes to a worker: no other worker of the device has jobs in flight, but for those that wait
 * or waited for memory, or that have outstayed their turn. */
void domain_check_turn(struct sim *s, const struct device *d, uint64_t job)
{
    const struct device *base = d->base != NULL ? d->base : d;
    const struct device *x = base;
    if (device_yields(d)) {
        sim_fail(s, "places: job %" PRIu64 " is sent to worker %" PRIu64 ", which is to leave", job,
                 d->worker);
    }
    if (s->p.special != WORLD_DOMAINS && s->p.special != WORLD_RIVALS &&
        s->p.special != WORLD_OVERRUNS) {
        return;
    }
    for (; x != NULL; x = x == base ? base->domains : x->domain_next) {
        for (const struct job *j = x->inflight; x != d && j != NULL; j = j->device_next) {
            bool waited = lease_waited(s, x, j->id);
            if (j->wait != WAIT_MEMORY && !waited && !turn_outstays(x, j)) {
                sim_fail(s,
                         "turns: job %" PRIu64 " is sent to the worker %" PRIu64
                         ", and worker %" PRIu64 " of the same device has job %" PRIu64,
                         job, d->worker, x->worker, j->id);
            }
        }
    }
}

/* A worker that others wait for ends a job in time, or ends, or they go on beside it. */
void domain_check_overrun(struct sim *s, const struct device *base)
{
    const struct turn *t = &base->turn;
    const struct device *d = t->holder;
    uint64_t over = turn_length_ns(t) + 2 * s->f->config.turn_overrun_ms * NS_PER_MS + NS_PER_S;
    over +=
        s->p.beat_ms * 3 * NS_PER_MS; /* a sign of life comes, or the worker is ended as silent */
    if (d == NULL || t->rival_ns == 0 || d->inflight == NULL || d->killed_ns != 0) {
        return;
    }
    uint64_t since = t->rival_ns > d->ran_ns ? t->rival_ns : d->ran_ns;
    since = d->inflight->dispatched_ns > since ? d->inflight->dispatched_ns : since;
    since = since > s->stalled_ns ? since : s->stalled_ns;
    if (s->now_ns > since + over && !turn_outstays(d, d->inflight)) {
        sim_fail(s, "turns: worker %" PRIu64 " keeps its device from others for %" PRIu64 " ms",
                 d->worker, (s->now_ns - since) / NS_PER_MS);
    }
}

/* ---- jobs under suspicion -------------------------------------------------------------------- */

/* Such a job has its worker for itself: only so the worker's next end tells which job is to blame.
 */
void domain_check_alone(struct sim *s, const struct device *d, uint64_t job)
{
    const struct job *sent = job_find(s->f->jobs, job);
    for (const struct job *j = d->inflight; j != NULL && sent != NULL; j = j->device_next) {
        if (j != sent && (j->trust != TRUST_SHARED || sent->trust != TRUST_SHARED)) {
            sim_fail(s,
                     "alone: job %" PRIu64 " is sent to worker %" PRIu64 ", which has job %" PRIu64
                     ", and %s is to run alone",
                     job, d->worker, j->id, j->trust != TRUST_SHARED ? "that one" : "the new one");
        }
    }
}
