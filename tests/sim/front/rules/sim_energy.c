/*
 * The energy of devices, which the monitor reports in some worlds: each tenant gets the part of an
 * interval's energy in which it had the device (devices/energy.h). It had it at most while jobs of
 * it were in flight there.
 */
#include "tests/sim/front/rules/sim_energy.h"

#include <inttypes.h>

#include "daemon/front/model/flight.h"
#include "daemon/front/model/tenant.h"

#define TENANTS  8u
#define ROUND_NS (5 * NS_PER_MS) /* turns of the loop */
#define ROUND_UJ 2000.0          /* the driver counts whole millijoules */
#define LATE_NS  (60 * NS_PER_S) /* a longer interval says nothing */

struct energy_tenant {
    uint64_t key;
    uint64_t uj;                  /* of its account, as of the last look */
    bool flew[DEVICES_MAX];       /* it had jobs in flight, as of the last look */
    uint64_t had_ns[DEVICES_MAX]; /* with jobs in flight, since the last report */
};

static struct {
    uint64_t at_ns;
    uint64_t taken_ns[DEVICES_MAX]; /* of the last report that the front has read */
    struct energy_tenant tenant[TENANTS];
    unsigned tenants;
} book;

static double power_mw(unsigned device)
{
    return 50000.0 * (device + 1);
}

/* Energy in some worlds, in others the power only. */
static bool counts(const struct sim *s)
{
    return s->course->seed / 8 % 2 == 0;
}

/* Since the world began. */
static uint64_t energy_mj(unsigned device, uint64_t at_ns)
{
    return (uint64_t)((double)(at_ns - SIM_BEGIN_NS) * power_mw(device) / 1e9);
}

void energy_tell(const struct sim *s, unsigned device, struct health_device *health)
{
    struct health_value *energy = &health->value[HEALTH_energy];
    struct health_value *power = &health->value[HEALTH_power];
    energy->state = counts(s) ? HEALTH_KNOWN : HEALTH_UNSUPPORTED;
    energy->value = counts(s) ? energy_mj(device, s->now_ns) : 0;
    power->state = HEALTH_KNOWN;
    power->value = (uint64_t)power_mw(device);
}

static struct energy_tenant *entry_of(const struct tenant *t)
{
    unsigned i = 0;
    while (i < book.tenants && book.tenant[i].key != t->key) {
        i++;
    }
    if (i == TENANTS) {
        return NULL;
    }
    if (i == book.tenants) {
        book.tenant[book.tenants++] =
            (struct energy_tenant){.key = t->key, .uj = t->account->energy_uj};
    }
    return &book.tenant[i];
}

static bool flies(const struct device *d, const struct tenant *t)
{
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        if (j->tenant == t) {
            return true;
        }
    }
    return false;
}

static bool has(const struct device *base, const struct tenant *t)
{
    bool any = flies(base, t);
    for (const struct device *d = base->domains; d != NULL && !any; d = d->domain_next) {
        any = flies(d, t);
    }
    return any;
}

/* Jobs in flight at the last look were there until now, or less. */
static void pass(struct sim *s)
{
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        struct energy_tenant *e = entry_of(t);
        for (unsigned i = 0; e != NULL && i < s->f->device_count; i++) {
            e->had_ns[i] += e->flew[i] ? s->now_ns - book.at_ns : 0;
            e->flew[i] = has(s->f->device[i], t);
        }
    }
    book.at_ns = s->now_ns;
}

/* What the device used in the interval that ends with the report, in microjoules. */
static double used_uj(const struct sim *s, unsigned device, uint64_t from_ns, uint64_t to_ns)
{
    bool says = from_ns != 0 && to_ns - from_ns <= LATE_NS && s->p.divided == 0;
    return !says ? 0 : power_mw(device) * (double)(to_ns - from_ns) / 1e6 + ROUND_UJ;
}

/* The front has read a report about devices: the bits of `read`. */
static void check(struct sim *s, const struct tenant *t, struct energy_tenant *e, uint64_t read)
{
    double most = 1;
    for (unsigned i = 0; i < s->f->device_count; i++) {
        if ((read >> i & 1) == 0) {
            continue;
        }
        uint64_t to_ns = s->f->device[i]->energy.taken_ns;
        double ns = (double)(to_ns - book.taken_ns[i]);
        double part = ((double)e->had_ns[i] + ROUND_NS) / ns;
        most += used_uj(s, device_hardware(s, s->f->device[i]), book.taken_ns[i], to_ns) *
                (part < 1 ? part : 1);
        e->had_ns[i] = 0;
    }
    uint64_t uj = t->account->energy_uj;
    if (uj > e->uj && (double)(uj - e->uj) > most) {
        sim_fail(s,
                 "energy: tenant %s gets %.3f J, and had jobs in flight for %.3f J of an interval",
                 t->name, (double)(uj - e->uj) / 1e6, most / 1e6);
    }
    e->uj = uj;
}

void energy_anew(void)
{
    book.tenants = 0;
    book.at_ns = 0;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        book.taken_ns[i] = 0;
    }
}

void energy_check(struct sim *s)
{
    uint64_t read = 0;
    if (book.at_ns < s->opened_ns) { /* another front, or another world */
        energy_anew();
        book.at_ns = s->now_ns;
    }
    pass(s);
    for (unsigned i = 0; i < s->f->device_count; i++) {
        read |= s->f->device[i]->energy.taken_ns != book.taken_ns[i] ? UINT64_C(1) << i : 0;
    }
    for (const struct tenant *t = s->f->tenants; read != 0 && t != NULL; t = t->hh.next) {
        struct energy_tenant *e = entry_of(t);
        if (e != NULL) {
            check(s, t, e, read);
        }
    }
    for (unsigned i = 0; i < s->f->device_count; i++) {
        book.taken_ns[i] = s->f->device[i]->energy.taken_ns;
    }
}
