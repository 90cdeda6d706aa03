#include "tests/sim/front/rules/sim_places.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/tenant.h"
#include "tests/sim/front/sim.h"

#define START_NS (1500 * NS_PER_MS) /* until a worker starts that waits for nothing */
#define SPARE_NS (3 * NS_PER_S)     /* until a spare worker ends that is in the way */
#define ASKED_NS (100 * NS_PER_MS)  /* a wish may come and go between two looks */
#define VAIN_MAX 4u                 /* ends of a worker that came to nothing, one after the other */

struct place { /* as of the last look */
    uint64_t worker;
    enum device_state state;
    bool failed;      /* its buffers could not go to the host */
    unsigned vain;    /* how often, since it last ran a job */
    uint64_t ran_ns;  /* when that ended */
    uint64_t free_ns; /* since when its worker could start; 0: it cannot */
    bool waits;       /* for a place, without a worker */
    bool yields;      /* its place, to another tenant */
};

struct sim_places {
    struct place of[SIM_SLOTS];
    struct {
        uint64_t era;
        unsigned taken;
        uint64_t surplus_ns; /* since when its spare worker is in the way; 0: it is not */
        uint64_t spare;      /* that worker; 0: none */
        bool wished;         /* a tenant waits for a place, and has something for its worker */
    } base[DEVICES_MAX];
};

void places_begin(struct sim *s)
{
    s->places = calloc(1, sizeof *s->places);
}

void places_finish(struct sim *s)
{
    free(s->places);
    s->places = NULL;
}

static bool is_spare(const struct sim *s, const struct device *d)
{
    return d->owner != NULL && d->owner == s->f->spare;
}

static bool is_active(const struct device *d)
{
    return d->state != DEVICE_RESTING || d->wanted;
}

static unsigned active(const struct device *base)
{
    unsigned count = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        count += is_active(d);
    }
    return count;
}

/* Those with a worker, or that get one after a pause. */
static unsigned taken(const struct device *base)
{
    unsigned count = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        count += d->worker != 0 || d->state != DEVICE_RESTING;
    }
    return count;
}

/* The spare worker of the device, if it may end at once. */
static const struct device *idle_spare(const struct sim *s, const struct device *base)
{
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        if (is_spare(s, d) && d->state == DEVICE_READY && d->killed_ns == 0 && !d->losing &&
            d->jobs == 0 && d->inflight_count == 0 && d->restores == 0) {
            return d;
        }
    }
    return NULL;
}

static bool long_since(const struct sim *s, uint64_t since_ns, uint64_t ns)
{
    return since_ns != 0 && s->now_ns > since_ns + ns && s->now_ns > s->stalled_ns + ns;
}

/* ---- tenants that wait ----------------------------------------------------------------------- */

static bool has_memory(const struct sim *s, const struct device *d)
{
    const struct device *base = d->base;
    uint64_t whole = s->p.memory_kib * 1024;
    uint64_t kept = whole / 64 + whole / 100 * s->p.guaranteed * 2 + (UINT64_C(4) << 20);
    uint64_t usual = whole / 100 * s->f->config.domain_percent;
    usual = usual > whole / 100 * s->p.guaranteed ? usual : whole / 100 * s->p.guaranteed;
    return d->grant > 0 || base->granted + kept + usual <= whole;
}

static bool may_start(const struct sim *s, const struct device *d)
{
    const struct device *base = d->base;
    return d->state == DEVICE_RESTING && d->worker == 0 && d->wanted && !d->losing &&
           !is_spare(s, d) && device_serves(base) && base->proven && base->lease.owed == 0 &&
           s->f->departing_count == 0 && !front_life_stops(s->f->life) && !memory_failed() &&
           taken(base) < s->f->config.domains_max && active(base) <= s->f->config.domains_max &&
           has_memory(s, d);
}

/* A worker for which there is a place and memory starts, whatever others do. */
static void check_start(struct sim *s, const struct device *d, struct place *p)
{
    p->free_ns = !may_start(s, d) ? 0 : p->free_ns == 0 ? s->now_ns : p->free_ns;
    if (long_since(s, p->free_ns, START_NS)) {
        sim_fail(s,
                 "places: the worker of tenant %s does not start: %s, and device %u has %u of "
                 "%" PRIu64,
                 d->owner->name, d->reason, d->base->index, taken(d->base),
                 s->f->config.domains_max);
    }
}

/* ---- tenants that make room ------------------------------------------------------------------ */

/* A worker that has something to do, or had lately, ends for others only where no spare one can. */
static void check_first(struct sim *s, const struct device *d, const struct place *p)
{
    uint64_t used_ns = d->ran_ns > d->used_ns ? d->ran_ns : d->used_ns;
    bool rests = p->state != DEVICE_RESTING && d->state == DEVICE_RESTING;
    bool idle = s->now_ns >= ns_add(used_ns, s->f->config.domain_idle_s * NS_PER_S);
    if (rests && !idle && d->worker != 0 && !is_spare(s, d) && !device_drains(d) &&
        idle_spare(s, d->base) != NULL) {
        sim_fail(s, "places: the worker of tenant %s makes room, and a spare one is there",
                 d->owner->name);
    }
}

/* Has the tenant something for the worker of the domain? */
static bool has_use(const struct sim *s, const struct device *d)
{
    uint32_t cursor = 0;
    bool any = false;
    for (const struct job *j = s->f->jobs; j != NULL && !any; j = j->hh.next) {
        any = !job_ended(j) && j->tenant == d->owner && (j->device == d || j->device == NULL);
    }
    for (const struct buffer *b; !any && (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        any = b->device == d->index;
    }
    return any;
}

/* Does a tenant wait for a place of the device, or did one lately? */
static bool is_wished(const struct sim *s, const struct device *base, bool *ret_lately)
{
    bool wished = false;
    *ret_lately = false;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        uint64_t asked_ns = d->used_ns > d->place.asked_ns ? d->used_ns : d->place.asked_ns;
        bool waits = d->state == DEVICE_RESTING && d->wanted && !is_spare(s, d);
        wished = wished || (waits && has_use(s, d));
        *ret_lately =
            *ret_lately || (d->state == DEVICE_RESTING && s->now_ns < asked_ns + ASKED_NS);
    }
    return wished;
}

static bool makes_room(struct sim *s, const struct device *d)
{
    const struct place *p = &s->places->of[worker_slot_of(s, d)];
    bool ends = p->state != DEVICE_RESTING && d->state == DEVICE_RESTING && !p->yields &&
                strcmp(d->reason, "another tenant needs the device") == 0;
    bool yields = !p->yields && d->place.yields;
    return p->worker == d->worker && d->worker != 0 && (ends || yields) && !is_spare(s, d);
}

/* No worker ends, or begins to yield its place, for a tenant that has nothing for a worker. */
static void check_wish(struct sim *s, const struct device *base)
{
    bool *before = &s->places->base[base->index].wished;
    bool lately = false;
    bool wished = is_wished(s, base, &lately);
    bool excused = wished || *before || lately || memory_failed();
    for (const struct device *d = base->domains; d != NULL && !excused; d = d->domain_next) {
        if (makes_room(s, d)) {
            sim_fail(s,
                     "places: the worker of tenant %s makes room on device %u, and no tenant waits",
                     d->owner->name, base->index);
        }
    }
    *before = wished;
}

/* A worker does not begin to end again and again while its buffers cannot go. */
static void check_vain(struct sim *s, const struct device *d, struct place *p)
{
    bool stays = p->state == DEVICE_RESTING && d->state == DEVICE_READY;
    if (p->ran_ns != d->ran_ns || memory_failed()) {
        p->vain = 0;
    }
    p->vain += stays && p->failed;
    if (p->vain >= VAIN_MAX) {
        sim_fail(s, "places: the worker of tenant %s was to end %u times, and stays",
                 d->owner->name, p->vain);
    }
}

bool places_awaited(const struct sim *s, unsigned slot)
{
    const struct device *d;
    unsigned number = worker_hardware(s, slot);
    bool some = false;
    for (unsigned at = DEVICES_MAX; s->f != NULL && (d = front_next_device(s->f, &at)) != NULL;) {
        some = some || (d->number == number && d->worker == 0 && d->state == DEVICE_RESTING &&
                        d->wanted && !is_spare(s, d));
    }
    return some;
}

bool places_wanted(const struct sim *s, const struct sim_worker *x)
{
    const struct device *d;
    for (unsigned at = DEVICES_MAX; s->f != NULL && (d = front_next_device(s->f, &at)) != NULL;) {
        if (d->worker == x->id && d->state == DEVICE_RESTING) {
            return d->wanted;
        }
    }
    return false;
}

void places_copy_refused(struct sim *s, const struct sim_worker *x)
{
    s->places->of[x->number].vain = 0;
    s->device[worker_hardware(s, x->number)].busy_ns = s->now_ns;
}

/* A newcomer gets no place before a tenant that waits for one, not with the spare worker either. */
static void check_taken(struct sim *s, const struct device *base)
{
    const struct device *got = NULL;
    uint64_t *spare = &s->places->base[base->index].spare;
    uint64_t now = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        got = d->worker != 0 && d->worker == *spare && !is_spare(s, d) ? d : got;
        now = is_spare(s, d) ? d->worker : now;
    }
    *spare = now;
    for (const struct device *d = base->domains; d != NULL && got != NULL; d = d->domain_next) {
        const struct place *p = &s->places->of[worker_slot_of(s, d)];
        bool waits = d != got && p->waits && d->wanted && d->state == DEVICE_RESTING;
        if (waits && taken(base) >= s->f->config.domains_max && !memory_failed()) {
            sim_fail(s, "places: tenant %s gets the spare worker of device %u, and tenant %s waits",
                     got->owner->name, base->index, d->owner->name);
        }
    }
}

static void look(struct sim *s, const struct device *d)
{
    struct place *p = &s->places->of[worker_slot_of(s, d)];
    bool same = p->worker == d->worker;
    check_start(s, d, p);
    if (same && d->worker != 0) {
        check_first(s, d, p);
        check_vain(s, d, p);
    }
    *p = (struct place){.worker = d->worker,
                        .state = d->state,
                        .failed = d->evacuation.state == EVACUATION_FAILED,
                        .vain = same ? p->vain : 0,
                        .ran_ns = d->ran_ns,
                        .free_ns = p->free_ns,
                        .yields = d->place.yields,
                        .waits = d->wanted && d->state == DEVICE_RESTING && d->worker == 0 &&
                                 !is_spare(s, d)};
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool memory_wanted(const struct device *base)
{
    bool wanted = base->growth.wanter != NULL || base->lease.wanted > 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        wanted = wanted || d->lease.wanted > 0;
    }
    return wanted;
}

/* A spare worker is in nobody's way. */
static void check_surplus(struct sim *s, const struct device *base)
{
    uint64_t *since = &s->places->base[base->index].surplus_ns;
    bool unwanted = s->f->config.domain_spare == 0 || memory_wanted(base) ||
                    active(base) > s->f->config.domains_max;
    bool surplus = unwanted && idle_spare(s, base) != NULL && !front_life_stops(s->f->life);
    *since = !surplus ? 0 : *since == 0 ? s->now_ns : *since;
    if (long_since(s, *since, SPARE_NS)) {
        sim_fail(s, "places: a spare worker of device %u stays, with %u of %" PRIu64 " places: %s",
                 base->index, active(base), s->f->config.domains_max,
                 memory_wanted(base) ? "memory is wanted" : "no memory is wanted");
    }
}

/* Places are given only as far as there are some. Settings may have fewer than are in use. */
static void check_base(struct sim *s, const struct device *base)
{
    unsigned most = (unsigned)s->f->config.domains_max;
    unsigned places = taken(base);
    check_taken(s, base);
    check_wish(s, base);
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        look(s, d);
    }
    bool known = s->places->base[base->index].era == s->era;
    if (known && places > most && places > s->places->base[base->index].taken) {
        sim_fail(s, "places: device %u has workers of %u single tenants, at most %u", base->index,
                 places, most);
    }
    s->places->base[base->index].era = s->era;
    s->places->base[base->index].taken = places;
    check_surplus(s, base);
}

void places_check(struct sim *s)
{
    for (unsigned i = 0; s->set.own && s->accepts && i < s->f->device_count; i++) {
        check_base(s, s->f->device[i]);
    }
}

/* A tenant is refused a worker only while others have all places. */
void places_refused(struct sim *s, const struct msg_error *m)
{
    static const char before[] = "needs a worker of its own on device ";
    char text[ERR_TEXT_MAX];
    (void)bytes_to_str(m->text, text, sizeof text);
    const char *at = m->code == ERR_BUSY ? strstr(text, before) : NULL;
    unsigned number = at != NULL ? (unsigned)strtoul(at + sizeof before - 1, NULL, 10) : 0;
    if (at == NULL || strstr(at, "none can come free") == NULL || number >= s->f->device_count) {
        return;
    }
    const struct device *base = s->f->device[number];
    if (taken(base) < s->f->config.domains_max) {
        sim_fail(s,
                 "places: a tenant is refused a worker on device %u, where others have %u of "
                 "%" PRIu64,
                 number, taken(base), s->f->config.domains_max);
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

static const struct tenant *tenant_of(const struct sim *s, const struct schema *schema,
                                      const void *msg)
{
    uint64_t id = *(const uint64_t *)msg;
    const struct buffer *b = idmap_get(&s->f->buffers, id);
    const struct job *j = schema == &schema_msg_f_job ? job_find(s->f->jobs, id) : NULL;
    return schema == &schema_msg_f_job ? (j != NULL ? j->tenant : NULL)
                                       : (b != NULL ? b->tenant : NULL);
}

/* A tenant that may load kernels has a worker of its own, unless it is trusted. Root is. */
static void check_trust(struct sim *s, const struct device *d, const struct tenant *t)
{
    enum sim_section i = t != NULL ? settings_section(t->name) : SECTION_OTHERS;
    bool sure = t != NULL && s->set.own && s->p.roles == 0 && !s->set.trusted[i] &&
                !s->set.wavered[i] && strcmp(t->name, "uid:0") != 0;
    if (sure && d->owner == NULL) {
        sim_fail(s, "trust: tenant %s is not trusted, and has something in a worker of all",
                 t->name);
    }
}

/* A worker that is to end gets nothing more, and one gets something of a tenant only when the
 * launcher knows whose it is. */
void places_frame(struct sim *s, const struct device *d, const struct sim_worker *x,
                  const struct schema *schema, const void *msg)
{
    if (schema != &schema_msg_f_job && schema != &schema_msg_f_buffer_create &&
        schema != &schema_msg_f_buffer_restore) {
        return;
    }
    if (d->state == DEVICE_RESTING && !memory_failed()) {
        sim_fail(s, "rest: worker %" PRIu64 " is to end, and gets %s %#" PRIx64, x->id,
                 schema->name, *(const uint64_t *)msg);
    }
    if (x->state == WORKER_RUNS && x->number != worker_slot_of(s, d) && !memory_failed()) {
        sim_fail(s,
                 "names: worker %" PRIu64 " gets something of tenant %s, and is another's for "
                 "the launcher",
                 x->id, d->owner != NULL ? d->owner->name : "-");
    }
    check_trust(s, d, tenant_of(s, schema, msg));
}
