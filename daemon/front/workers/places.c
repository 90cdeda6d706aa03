#include "daemon/front/workers/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/evacuate.h"
#include "daemon/front/workers/rest.h"

#define BUFFERS_A_UNIT 16u /* that are looked at in a unit of work */

#define LOOK_NS  NS_PER_S          /* between two looks at all buffers */
#define POLL_NS  (20 * NS_PER_MS)  /* between two looks at a domain that yields */
#define AGAIN_NS (100 * NS_PER_MS) /* between two looks at the buffers for it */
/* For so long a domain has to be idle before it leaves early. Tenants that pause between two
 * requests would else take each other's places all the time. */
#define IDLE_NS NS_PER_S

/* ---- what a domain has ----------------------------------------------------------------------- */

void survey_make(struct front *f, struct survey *ret_survey)
{
    uint32_t cursor = 0;
    unsigned count = 0;
    memset(ret_survey, 0, sizeof *ret_survey);
    for (const struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL; count++) {
        device_set_put(&ret_survey->any, b->device);
        if (b->pending != NULL && (!b->seal_wanted || b->writers == 0)) { /* jobs are counted */
            device_set_put(&ret_survey->asked, b->device);
        }
        (void)evacuate_count(b, &ret_survey->load[b->device]);
    }
    turn_count(f, count / BUFFERS_A_UNIT);
}

enum keeper survey_keeper(const struct front *f, const struct survey *s, const struct device *d)
{
    return evacuate_keeper(f, d, &s->load[d->index]);
}

bool survey_wants(const struct front *f, const struct survey *s, const struct device *d)
{
    return domain_needed(f, d) || device_set_has(&s->asked, d->index);
}

bool place_is_spare(const struct front *f, const struct device *d)
{
    return d->owner != NULL && d->owner == f->spare;
}

/* Nothing of it is under way in a worker, and its worker, if there is one, could be asked for
 * copies. */
static bool is_calm(const struct device *d)
{
    bool calm = d->state == DEVICE_READY || d->state == DEVICE_WAITING || d->state == DEVICE_ABSENT;
    return d->owner != NULL && calm && d->killed_ns == 0 && !d->losing && d->inflight_count == 0 &&
           d->restores == 0 && !arrivals_any(d);
}

bool place_is_quiet(const struct front *f, const struct device *d)
{
    return is_calm(d) && !domain_needed(f, d);
}

uint64_t place_used_ns(const struct device *d)
{
    return d->ran_ns > d->used_ns ? d->ran_ns : d->used_ns;
}

/* ---- places and wishes ----------------------------------------------------------------------- */

/* Has it a place? Also while its worker ends, or pauses before the next one. */
static bool holds(const struct device *d)
{
    return d->worker != 0 || d->state != DEVICE_RESTING;
}

static bool asks(const struct device *d)
{
    return d->state == DEVICE_RESTING && d->wanted;
}

/* The spare one asks after all others. */
static bool asked_before(const struct front *f, const struct device *a, const struct device *b)
{
    bool spare = place_is_spare(f, b);
    return !place_is_spare(f, a) &&
           (spare || a->place.asked_ns < b->place.asked_ns ||
            (a->place.asked_ns == b->place.asked_ns && a->index < b->index));
}

/* Those without a place that get one before it. */
static unsigned waiting_before(const struct front *f, const struct device *d)
{
    unsigned count = 0;
    for (const struct device *o = d->base->domains; o != NULL; o = o->domain_next) {
        count += o != d && !holds(o) && asks(o) && asked_before(f, o, d);
    }
    return count;
}

unsigned places_used(const struct device *base)
{
    unsigned count = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        count += d->state != DEVICE_RESTING || d->wanted;
    }
    return count;
}

bool place_free(const struct front *f, const struct device *d)
{
    unsigned taken = waiting_before(f, d);
    for (const struct device *o = d->base->domains; o != NULL; o = o->domain_next) {
        taken += o != d && holds(o);
    }
    return taken < f->config.domains_max;
}

bool place_waits(const struct front *f, const struct device *d)
{
    return d->owner != NULL && asks(d) && (holds(d) || !place_free(f, d));
}

void place_ask(struct front *f, struct device *d)
{
    d->wanted = true;
    d->place.asked_ns = front_now(f);
    d->base->places.look_ns = 0;
    wake_at(f, front_now(f));
}

void place_taken(struct front *f, struct device *d)
{
    d->place.since_ns = front_now(f);
    d->place.fresh = true;
}

/* ---- domains that leave ---------------------------------------------------------------------- */

/* A spare domain goes before all others. */
static bool goes_before(const struct front *f, const struct device *a, const struct device *b)
{
    return place_is_spare(f, a) || (!place_is_spare(f, b) && place_used_ns(a) < place_used_ns(b));
}

/* until_ns: of those that have done nothing since. */
static struct device *least_used(const struct front *f, const struct device *base,
                                 const struct survey *s, uint64_t until_ns)
{
    struct device *least = NULL;
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool idle = place_is_quiet(f, d) && !d->place.yields &&
                    !device_set_has(&s->asked, d->index) && survey_keeper(f, s, d) == KEEPER_NONE &&
                    (place_used_ns(d) <= until_ns || place_is_spare(f, d));
        if (idle && (least == NULL || goes_before(f, d, least))) {
            least = d;
        }
    }
    return least;
}

/* A full device is asked often: the buffers are walked only if a domain may go. */
struct device *place_least_used(struct front *f, const struct device *base)
{
    struct survey s;
    bool some = false;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        some = some || place_is_quiet(f, d);
    }
    if (!some) {
        return NULL;
    }
    survey_make(f, &s);
    return least_used(f, base, &s, NS_NEVER);
}

/* Can it leave at some time? A request that its worker has is answered soon. */
static bool can_leave(const struct front *f, const struct device *d, const struct survey *s)
{
    enum keeper k = survey_keeper(f, s, d);
    return d->state != DEVICE_STUCK && (k == KEEPER_NONE || k == KEEPER_REQUEST);
}

static uint64_t due_ns(const struct front *f, const struct device *d)
{
    return ns_add(d->place.since_ns, f->config.domain_place_s * NS_PER_S);
}

static bool may_yield(const struct front *f, const struct device *d)
{
    bool up = d->state == DEVICE_READY || d->state == DEVICE_WAITING || d->state == DEVICE_ABSENT;
    return up && !d->place.yields && !place_is_spare(f, d);
}

/* The domain that has had its place longest, of those that can leave. */
static struct device *longest(const struct front *f, const struct device *base,
                              const struct survey *s)
{
    struct device *first = NULL;
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool may = may_yield(f, d) && can_leave(f, d, s);
        first = may && (first == NULL || d->place.since_ns < first->place.since_ns) ? d : first;
    }
    return first;
}

/* ---- a domain yields ------------------------------------------------------------------------- */

/* The jobs of other workers may go that stood behind its jobs. */
static void yield_begin(struct front *f, struct device *d)
{
    log_debug("device %u: tenant %s yields its place to another one", device_shown(d),
              d->owner->name);
    d->place.yields = true;
    d->place.look_ns = 0;
    if (d->state == DEVICE_READY) {
        (void)snprintf(d->reason, sizeof d->reason,
                       "another tenant gets its place: it takes no new jobs, and its buffers go to "
                       "the host when those in flight have ended");
    }
    f->hooks.kick(f);
}

/* It goes on, with what it was asked for meanwhile. */
static void yield_cancel(struct front *f, struct device *d)
{
    d->place.yields = false;
    d->wanted = false;
    if (d->state == DEVICE_READY) {
        d->reason[0] = '\0';
        f->hooks.device_changed(f, d);
        f->hooks.worker_takes(f, d);
        f->hooks.kick(f);
    }
}

static void yield_now(struct front *f, struct device *d, const struct survey *s)
{
    bool again = d->wanted || survey_wants(f, s, d);
    rest_begin(f, d, "another tenant gets its place");
    if (again) {
        place_ask(f, d);
    }
}

static void yield_go_on(struct front *f, struct device *d, uint64_t now)
{
    struct survey s;
    wake_at(f, ns_add(now, POLL_NS));
    if (d->state == DEVICE_STUCK) {
        yield_cancel(f, d);
    }
    if (!is_calm(d) || !d->place.yields || now < d->place.look_ns) {
        return;
    }
    survey_make(f, &s);
    d->place.look_ns = ns_add(now, AGAIN_NS);
    if (survey_keeper(f, &s, d) == KEEPER_NONE) {
        yield_now(f, d, &s);
    } else if (!can_leave(f, d, &s)) { /* it has what it had not when it began */
        d->place.since_ns = now;
        yield_cancel(f, d);
    }
}

/* ---- places come free ------------------------------------------------------------------------ */

struct census {
    unsigned stay;   /* domains that have a place and do not yield it; without the spare one */
    unsigned yield;  /* domains that yield theirs */
    unsigned wanted; /* domains that ask; those that yield can be among them */
};

static struct census count(const struct front *f, const struct device *base)
{
    struct census c = {.stay = 0};
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool up = d->state != DEVICE_RESTING && !place_is_spare(f, d);
        c.yield += up && d->place.yields;
        c.stay += up && !d->place.yields;
        c.wanted += asks(d) && !place_is_spare(f, d);
    }
    return c;
}

/* How many have to leave, so that all that ask have a place. */
static unsigned lacking(const struct front *f, const struct census *c)
{
    uint64_t all = (uint64_t)c->stay + c->wanted;
    uint64_t over = all > f->config.domains_max ? all - f->config.domains_max : 0;
    over = over < c->wanted ? over : c->wanted;
    return (unsigned)(over < c->stay ? over : c->stay);
}

/* Counts what keeps the places of the device, in words. No tenant's name: it is none of the
 * others' business. */
static void say_kept(const struct front *f, const struct device *base, const struct survey *s,
                     char *out, size_t size)
{
    static const char *const what[] = {
        [KEEPER_EXPORT] = "exported buffers",
        [KEEPER_VARIABLE] = "variables of modules",
        [KEEPER_HOST] = "buffers for which [domains] host_memory_max or memory_spilled has no room",
        [KEEPER_COPIES] = "more buffers than the launcher keeps copies of",
    };
    unsigned count[sizeof what / sizeof what[0]] = {0};
    unsigned stuck = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool up = d->state != DEVICE_RESTING;
        stuck += d->state == DEVICE_STUCK;
        count[survey_keeper(f, s, d)] += up && d->state != DEVICE_STUCK;
    }
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < sizeof what / sizeof what[0] && used < size; i++) {
        if (what[i] != NULL && count[i] > 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%u by %s", used > 0 ? ", " : "",
                                     count[i], what[i]);
        }
    }
    if (stuck > 0 && used < size) {
        (void)snprintf(out + used, size - used, "%s%u by a driver that hangs", used > 0 ? ", " : "",
                       stuck);
    }
}

/* Can a place of the device come free? */
static void judge(const struct front *f, struct device *base, const struct survey *s)
{
    struct device_places *p = &base->places;
    unsigned keep = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        keep += d->state != DEVICE_RESTING && !can_leave(f, d, s);
    }
    p->keep = keep;
    say_kept(f, base, s, p->why, sizeof p->why);
}

/* Since the look the settings may have changed how many there are. */
bool places_kept(const struct front *f, const struct device *base)
{
    return base->places.keep >= f->config.domains_max;
}

/* What a domain waited for may have been cancelled or freed. */
static void drop_wishes(const struct front *f, const struct device *base, const struct survey *s)
{
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool idle = !domain_needed(f, d) && !device_set_has(&s->any, d->index);
        d->wanted = d->wanted && !(asks(d) && !holds(d) && idle && !place_is_spare(f, d));
    }
}

/* Looks for those that leave, for wishes that have not ended. Returns when the next one may. */
static uint64_t make_way(struct front *f, struct device *base, uint64_t now)
{
    struct survey s;
    uint64_t at_ns = ns_add(now, LOOK_NS);
    survey_make(f, &s);
    judge(f, base, &s);
    drop_wishes(f, base, &s);
    struct census c = count(f, base);
    unsigned lack = lacking(f, &c);
    while (lack > 0) {
        struct device *out = least_used(f, base, &s, sat_sub(now, IDLE_NS));
        if (out != NULL) {
            lack -= !place_is_spare(f, out);
            rest_begin(f, out, "another tenant needs the device");
            continue;
        }
        out = longest(f, base, &s); /* it may be idle as well */
        if (out == NULL || now < due_ns(f, out)) {
            return out != NULL && due_ns(f, out) < at_ns ? due_ns(f, out) : at_ns;
        }
        yield_begin(f, out);
        lack--;
    }
    return at_ns;
}

void place_say_waits(const struct front *f, struct device *d)
{
    bool kept = places_kept(f, d->base);
    char text[sizeof d->reason];
    uint64_t most = f->config.domains_max;
    unsigned before = waiting_before(f, d);
    (void)snprintf(text, sizeof text,
                   "other tenants have the %" PRIu64 " place%s of the device ([domains] "
                   "per_device_max), %u tenant%s before it%s%s",
                   most, most == 1 ? "" : "s", before, before == 1 ? " waits" : "s wait",
                   kept ? "; none can come free: " : "", kept ? d->base->places.why : "");
    if (strcmp(d->reason, text) != 0) {
        device_set_state(d, DEVICE_RESTING, text);
    }
}

static void watch_yielding(struct front *f, struct device *base, bool wanted, uint64_t now)
{
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        if (d->place.fresh && d->state == DEVICE_READY) {
            d->place.fresh = false;
            d->place.since_ns = now;
        }
        if (d->place.yields && !wanted) {
            yield_cancel(f, d);
        } else if (d->place.yields) {
            yield_go_on(f, d, now);
        }
    }
}

void places_watch(struct front *f, struct device *base, uint64_t now)
{
    struct census c = count(f, base);
    uint64_t most = f->config.domains_max;
    bool wanted = c.wanted > 0 && most > 0 && (uint64_t)c.stay + c.yield + c.wanted > most &&
                  !device_drains(base);
    watch_yielding(f, base, wanted, now);
    if (wanted && now >= base->places.look_ns) {
        base->places.look_ns = make_way(f, base, now);
    }
    if (wanted) {
        wake_at(f, base->places.look_ns);
    }
}

int place_check(struct front *f, const struct tenant *t, struct device *base, struct err *e)
{
    struct device_places *p = &base->places;
    uint64_t most = f->config.domains_max;
    uint64_t now = front_now(f);
    if (places_used(base) < most) {
        return 0;
    }
    if (now >= p->judge_ns) {
        struct survey s;
        survey_make(f, &s);
        judge(f, base, &s);
        p->judge_ns = ns_add(now, LOOK_NS);
    }
    if (!places_kept(f, base)) {
        return 0;
    }
    int rc = err_set(e, ERR_BUSY,
                     "tenant %s needs a worker of its own on device %u, whose %" PRIu64
                     " place%s ([domains] per_device_max) other tenants have, and none can come "
                     "free: %s; try later, or another device",
                     t->name, base->index, most, most == 1 ? "" : "s", p->why);
    e->retry_after_ns = LOOK_NS;
    return rc;
}
