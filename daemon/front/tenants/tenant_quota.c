#include "daemon/front/tenants/tenant_quota.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/leases.h"
#include "daemon/front/tenants/quota_send.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_end.h"

void quota_name(const struct front *f, const struct tenant_peer *peer, char out[PROTO_NAME_MAX + 1])
{
    const struct tenant_rule *rule = tenant_rules_of(&f->rules, peer);
    if (rule != NULL) {
        (void)snprintf(out, PROTO_NAME_MAX + 1, "%s", rule->name);
    } else {
        (void)snprintf(out, PROTO_NAME_MAX + 1, "uid:%u", (unsigned)peer->uid);
    }
}

struct tenant *quota_tenant(struct front *f, const char *name)
{
    struct tenant *t = tenant_find(f->tenants, tenant_key_of(name));
    if (t != NULL) {
        return t;
    }
    t = forget_room(f) ? tenant_named(&f->tenants, name) : NULL;
    if (t != NULL) {
        accounts_bind(f->accounts, t);
        (void)quota_apply(&f->rules, t);
        if (quota_limited(t)) {
            quota_send_all(f, t);
        }
    }
    return t;
}

/* ---- guarantees ------------------------------------------------------------------------------ */

/* Does the device's worker enforce guarantees? */
static bool keeps(const struct device *d)
{
    return quota_reaches(d) && d->state != DEVICE_ABSENT;
}

static int check_devices(const struct front *f, const struct tenant_rules *rules,
                         uint64_t memory_max, struct err *e)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        uint64_t whole = sat_add(budget_of(d, memory_max), d->granted);
        if (keeps(d) && tenant_rules_fit(rules, whole, e) != 0) {
            return err_wrap(e, "device %u", device_shown(d));
        }
    }
    return 0;
}

/* Sends shrinking guarantees first, which make room for growing ones. all: also tenants whose
 * limits have not changed. */
static void send_tenants(struct front *f, struct device *d, bool all)
{
    d->refused[0] = '\0';
    for (unsigned pass = 0; pass < 2; pass++) {
        for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
            uint64_t wanted = tenant_quota(t, device_whole(d)).guaranteed;
            bool grows = wanted > t->use[d->index].kept;
            if ((t->changed || (all && quota_limited(t))) && grows == (pass == 1)) {
                quota_send(f, d, t);
            }
        }
    }
}

/* A budget that grows goes first; one that shrinks is sent when the settings are in force
 * (budget.h). Limits may be shares of it. */
static void send_changed(struct front *f, struct device *d, uint64_t memory_max)
{
    uint64_t was = device_pool_limit(d);
    bool all = d->overpromised || d->refused[0] != '\0'; /* its worker reserves too little */
    d->pool_limit = budget_of(d, memory_max);
    if (d->pool_limit > was) {
        budget_settle(f, d);
    }
    d->overpromised = false;
    send_tenants(f, d, all || d->pool_limit != was);
}

/* Nothing of it ends. */
static void section_removed(struct front *f, struct tenant *t)
{
    if (t->sessions == 0) {
        forget_later(f, t);
    }
    if (t->sessions > 0 || t->held[TENANT_JOBS] > 0) {
        log_say(LOG_TENANT_REMOVED,
                "tenant %s has no section any more: its sessions (%u) and unfinished jobs (%" PRIu64
                ") go on, by the limits of [tenant " TENANT_OTHERS "]",
                t->name, t->sessions, t->held[TENANT_JOBS]);
    }
}

int quota_rules(struct front *f, struct tenant_rules *rules, uint64_t memory_max, struct err *e)
{
    struct err why = ERR_INIT;
    int rc = check_devices(f, rules, memory_max, &why);
    for (unsigned i = 0; rc == 0 && i < rules->count; i++) {
        const char *name = rules->rule[i].name;
        struct tenant *t = tenant_named(&f->tenants, name);
        rules->rule[i].tenant = t;
        if (t != NULL && t->account->since_ns == 0) {
            accounts_bind(f->accounts, t);
        }
        rc = t != NULL ? 0 : err_set(&why, ERR_NOMEM, "no memory for tenant %s", name);
    }
    if (rc != 0) {
        if (e != NULL) {
            *e = why;
        }
        return rc;
    }
    tenant_rules_finish(&f->rules);
    f->rules = *rules;
    *rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        bool ruled = t->ruled;
        t->changed = quota_apply(&f->rules, t);
        gate_look(&f->gates, &t->gate, t);
        share_look(&t->share);
        if (ruled && !t->ruled) {
            section_removed(f, t);
        }
    }
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        d->line.joined = false; /* tenants may use it that might not */
        if (keeps(d)) {
            send_changed(f, d, memory_max);
        }
    }
    return 0;
}

static void forget_uses(struct front *f, const struct device *d)
{
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        t->use[d->index] = (struct tenant_use){.asked = 0};
    }
}

bool quota_open(struct front *f, struct device *d)
{
    struct err e = ERR_INIT;
    uint64_t has = device_pool_limit(d);
    uint64_t limit = budget_of(d, f->config.device_memory_max);
    bool fits = d->owner != NULL || /* its grant has room for the guarantee */
                tenant_rules_fit(&f->rules, sat_add(limit, d->granted), &e) == 0;
    forget_uses(f, d);
    d->quota_epoch = d->epoch;
    d->overpromised = !fits;
    d->pool_limit = limit;
    if (!fits && d->state == DEVICE_ADOPTING) {
        log_about(LOG_GUARANTEE_UNMET, about_device(d),
                  "device %u reserves no guaranteed memory for tenants: %s", device_shown(d),
                  e.text);
    } else if (!fits) {
        log_about(LOG_GUARANTEE_UNMET, about_device(d), "device %u does not serve: %s",
                  device_shown(d), e.text);
        device_set_state(d, DEVICE_ABSENT, e.text);
        worker_end(f, d, NULL, e.text);
        f->hooks.device_given_up(f, d);
        f->hooks.device_changed(f, d);
        return false;
    }
    if (limit > has) {
        budget_settle(f, d);
    }
    send_tenants(f, d, true);
    budget_settle(f, d);
    return true;
}

void quota_retry(struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        bool waits = d->overpromised && d->state == DEVICE_ABSENT && d->worker == 0;
        struct err e = ERR_INIT;
        uint64_t limit = budget_of(d, f->config.device_memory_max);
        if (waits && tenant_rules_fit(&f->rules, sat_add(limit, d->granted), &e) == 0) {
            d->restart_ns = front_now(f);
            wake_at(f, d->restart_ns);
            device_set_state(d, DEVICE_WAITING, "the guaranteed memory fits now");
        } else if (waits) {
            device_set_state(d, DEVICE_ABSENT, e.text);
        }
    }
}

/* ---- room ------------------------------------------------------------------------------------ */

uint64_t quota_room(const struct front *f, const struct device *d, const struct tenant *t)
{
    uint64_t pool = device_pool_most(d);
    uint64_t taken = d->buffer_bytes;
    /* walks the rules, because there may be many more tenants */
    for (unsigned i = 0; d->owner == NULL && i < f->rules.count; i++) {
        const struct tenant *other = f->rules.rule[i].tenant;
        if (other != t && !d->overpromised && !other->apart) {
            taken = sat_add(taken, tenant_due(other, d->index, device_whole(d)));
        }
    }
    return sat_sub(sat_add(pool, d->spill_limit), taken);
}

void quota_reported(struct front *f, struct device *d, const struct msg_w_tenant *m)
{
    struct tenant *t = tenant_find(f->tenants, m->tenant);
    if (t != NULL) {
        struct tenant_use *u = &t->use[d->index];
        u->asked = m->asked;
        u->mapped = m->mapped;
        u->peak = m->peak;
        u->shared = m->shared;
        u->spilled = m->spilled;
    }
}

void quota_budget(struct front *f, struct device *d, const struct msg_w_budget *m)
{
    bool present = m->asked == d->budget; /* else the answer to a newer budget is on its way */
    if (budget_reported(d, m)) {          /* limits may be shares of it */
        char refused[sizeof d->refused];
        memcpy(refused, d->refused, sizeof refused);
        send_tenants(f, d, true);
        memcpy(d->refused, refused, sizeof refused);
    }
    if (present) {
        leases_answered(f, d, m);
    }
}

void quota_granted(struct front *f, struct device *base)
{
    if (keeps(base)) {
        send_changed(f, base, f->config.device_memory_max);
        budget_settle(f, base);
    } else if (base->pool_limit > 0) { /* its next worker has the rest */
        base->pool_limit = budget_of(base, f->config.device_memory_max);
    }
}

void quota_place(struct front *f, const struct session *s)
{
    if (rights_place(&f->rights, s) && quota_limited(s->tenant)) {
        quota_send_all(f, s->tenant); /* only one of the workers keeps its guarantee */
    }
}

void quota_refused(struct front *f, struct device *d, const struct msg_w_tenant_refused *m)
{
    struct tenant *t = tenant_find(f->tenants, m->tenant);
    const char *name = t != NULL ? t->name : "(unknown)";
    if (t != NULL) {
        t->use[d->index].kept = 0;
    }
    (void)snprintf(d->refused, sizeof d->refused, "limits of tenant %s: %.*s", name,
                   (int)m->text.size, (const char *)m->text.data);
    log_about(LOG_GUARANTEE_UNMET, about_device(d), "device %u: %s", device_shown(d), d->refused);
}

/* ---- the rules of a tenant ------------------------------------------------------------------- */

static bool same(const struct amount *a, const struct amount *b)
{
    return a->bytes == b->bytes && a->percent == b->percent;
}

bool quota_apply(const struct tenant_rules *rules, struct tenant *t)
{
    const struct tenant_rule *rule = tenant_rules_named(rules, t->name);
    const struct tenant_limits *l = tenant_rules_limits(rules, t->name);
    bool changed = !same(&l->hard, &t->limits.hard) || !same(&l->soft, &t->limits.soft) ||
                   !same(&l->guaranteed, &t->limits.guaranteed) ||
                   !same(&l->spilled, &t->limits.spilled);
    t->ruled = rule != NULL;
    t->limits = *l;
    return changed;
}

/* Appends a part of a list. */
static void list(char *out, size_t size, const char *prefix, const char *text)
{
    size_t used = strlen(out);
    if (text[0] != '\0' && used < size) {
        (void)snprintf(out + used, size - used, "%s%s%s", used > 0 ? "; " : "", prefix, text);
    }
}

void quota_users(const struct tenant_rules *rules, const struct tenant *t, char *out, size_t size)
{
    const struct tenant_rule *rule = tenant_rules_named(rules, t->name);
    out[0] = '\0';
    if (rule != NULL) {
        list(out, size, "", rule->users);
        list(out, size, "groups ", rule->groups);
        list(out, size, "", rule->tcp ? "tcp" : "");
        list(out, size, "", rule->tokens[0] != '\0' ? "tokens" : "");
        list(out, size, "", rule->unknown ? "unknown users" : "");
    }
}
