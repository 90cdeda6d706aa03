#include "daemon/front/devices/energy.h"

#include <string.h>
#include <utlist.h>

#include "daemon/front/sched/shares.h"

#define LATE_NS  (60 * NS_PER_S) /* of an interval: the monitor was away, or hung */
#define UJ_OF_MJ UINT64_C(1000)
#define MW_NS_UJ UINT64_C(1000000) /* mW x ns of a microjoule */
#define INSTANCE "MIG-"            /* begins the UUID of a part of a GPU */

/* What the device used in the interval, in microjoules; 0: not known. */
static uint64_t used(const struct device *d, const struct health_device *health, uint64_t ns)
{
    const struct health_value *energy = &health->value[HEALTH_energy];
    const struct health_value *power = &health->value[HEALTH_power];
    if (energy->state == HEALTH_KNOWN) { /* a smaller number: the driver was loaded anew */
        bool grew = d->energy.known && energy->value > d->energy.mj;
        uint64_t mj = grew ? energy->value - d->energy.mj : 0;
        return mj < UINT64_MAX / UJ_OF_MJ ? mj * UJ_OF_MJ : 0;
    }
    bool fits = power->state == HEALTH_KNOWN && power->value < UINT64_MAX / LATE_NS;
    return fits ? power->value * ns / MW_NS_UJ : 0;
}

/* Products of 64 bits do not fit. */
static uint64_t part_of(uint64_t uj, uint64_t ns, uint64_t of_ns)
{
    return (uint64_t)((double)uj * ((double)ns / (double)of_ns));
}

static void divide(struct line *l, uint64_t uj, uint64_t ns)
{
    uint64_t spent = 0;
    for (const struct stake *k = l->spenders; k != NULL; k = k->spender_next) {
        spent += k->spent_ns;
    }
    uint64_t all = spent > ns ? spent : ns;
    while (l->spenders != NULL) {
        struct stake *k = l->spenders;
        account_energy(k->tenant->account, part_of(uj, k->spent_ns, all));
        DL_DELETE2(l->spenders, k, spender_prev, spender_next);
        k->spent_ns = 0;
    }
}

void energy_report(struct front *f, struct device *d, const struct health_device *health,
                   uint64_t taken_ns)
{
    uint64_t since_ns = d->energy.taken_ns;
    uint64_t ns = taken_ns - since_ns;
    if (taken_ns <= since_ns || strncmp(health->uuid, INSTANCE, strlen(INSTANCE)) == 0) {
        return;
    }
    bool late = since_ns == 0 || ns > LATE_NS;
    shares_spend(f, d);
    for (struct device *x = d->domains; x != NULL; x = x->domain_next) {
        shares_spend(f, x);
    }
    divide(&d->line, late ? 0 : used(d, health, ns), ns);
    d->energy.taken_ns = taken_ns;
    d->energy.known = health->value[HEALTH_energy].state == HEALTH_KNOWN;
    d->energy.mj = health->value[HEALTH_energy].value;
}
