#include "daemon/front/model/tenant.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/hash.h"
#include "common/saturate.h"

/* Keys of named tenants are above those of users. */
#define KEY_NAMED (UINT64_C(1) << 63)

const char *const tenant_things[TENANT_THINGS] = {
    [TENANT_BUFFERS] = "buffers",   [TENANT_JOBS] = "unfinished jobs", [TENANT_OPENS] = "openings",
    [TENANT_PROGRAMS] = "programs", [TENANT_MODULES] = "modules",      [TENANT_ARENAS] = "arenas",
    [TENANT_KERNELS] = "kernels",   [TENANT_NOTICES] = "notices"};

unsigned tenant_hash(const struct tenant *t, const char *name)
{
    const struct hash_part parts[] = {{&t->secret, sizeof t->secret}, {name, strlen(name)}};
    struct hash h = hash_parts(parts, 2);
    unsigned value;
    memcpy(&value, h.byte, sizeof value);
    return value;
}

/* The uid in uid:N, as tenant_obtain writes it; UINT64_MAX: another name. */
static uint64_t uid_of(const char *name)
{
    static const char prefix[] = "uid:";
    char *end = NULL;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 ||
        !isdigit((unsigned char)name[sizeof prefix - 1])) {
        return UINT64_MAX;
    }
    errno = 0;
    unsigned long long uid = strtoull(name + sizeof prefix - 1, &end, 10);
    return errno == 0 && *end == '\0' && uid <= UINT32_MAX ? uid : UINT64_MAX;
}

uint64_t tenant_key_of(const char *name)
{
    uint64_t uid = uid_of(name);
    if (uid != UINT64_MAX) {
        return uid + 1;
    }
    struct hash h = hash_of(name, strlen(name));
    uint64_t key;
    memcpy(&key, h.byte, sizeof key);
    return key | KEY_NAMED;
}

struct tenant *tenant_find(struct tenant *table, uint64_t key)
{
    struct tenant *t = NULL;
    HASH_FIND(hh, table, &key, sizeof key, t);
    return t;
}

struct tenant *tenant_named(struct tenant **table, const char *name)
{
    uint64_t key = tenant_key_of(name);
    struct tenant *t = tenant_find(*table, key);
    if (t != NULL) {
        return t;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    if (getrandom(&t->secret, sizeof t->secret, 0) != (ssize_t)sizeof t->secret) {
        free(t);
        return NULL;
    }
    t->key = key;
    t->limits = TENANT_UNLIMITED;
    t->account = &t->own;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    HASH_ADD(hh, *table, key, sizeof t->key, t);
    if (!HASH_ENTERED(t->hh)) {
        free(t);
        return NULL;
    }
    return t;
}

struct tenant *tenant_obtain(struct tenant **table, uint32_t uid)
{
    char name[32];
    (void)snprintf(name, sizeof name, "uid:%u", (unsigned)uid);
    return tenant_named(table, name);
}

static void strikes_destroy(struct tenant *t)
{
    struct strike *s;
    struct strike *next;
    HASH_ITER(hh, t->strikes, s, next)
    {
        HASH_DEL(t->strikes, s);
        free(s);
    }
}

void tenant_destroy(struct tenant **table, struct tenant *t)
{
    HASH_DEL(*table, t);
    strikes_destroy(t);
    share_finish(&t->share);
    forecast_finish(&t->forecast);
    free(t);
}

void tenant_destroy_all(struct tenant **table)
{
    struct tenant *t;
    struct tenant *next;
    HASH_ITER(hh, *table, t, next)
    {
        tenant_destroy(table, t);
    }
}

uint64_t tenant_key(const struct tenant *t)
{
    return t != NULL ? t->key : 0;
}

unsigned tenant_strike(struct tenant *t, struct hash kernel)
{
    struct strike *s = NULL;
    HASH_FIND(hh, t->strikes, &kernel, sizeof kernel, s);
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        if (s == NULL) {
            return 0;
        }
        s->kernel = kernel;
        HASH_ADD(hh, t->strikes, kernel, sizeof s->kernel, s);
        if (!HASH_ENTERED(s->hh)) {
            free(s);
            return 0;
        }
    }
    return ++s->count;
}

bool tenant_quarantined(const struct tenant *t, struct hash kernel)
{
    struct strike *s = NULL;
    HASH_FIND(hh, t->strikes, &kernel, sizeof kernel, s);
    return s != NULL && s->count >= STRIKES_MAX;
}

bool tenant_has_quarantined(const struct tenant *t)
{
    const struct strike *s = t->strikes;
    while (s != NULL && s->count < STRIKES_MAX) {
        s = s->hh.next;
    }
    return s != NULL;
}

uint64_t tenant_time_limit_ns(const struct tenant *t, uint64_t usual_ns)
{
    return t->limits.time_limit_ms > 0 ? t->limits.time_limit_ms * NS_PER_MS : usual_ns;
}

/* ---- the ledger ------------------------------------------------------------------------------ */

struct tenant_quota tenant_quota(const struct tenant *t, uint64_t all)
{
    struct tenant_quota q = {.hard = amount_of(&t->limits.hard, all),
                             .soft = amount_of(&t->limits.soft, all),
                             .guaranteed = amount_of(&t->limits.guaranteed, all),
                             .spilled = amount_of(&t->limits.spilled, all)};
    q.soft = q.soft < q.hard ? q.soft : UINT64_MAX;
    return q;
}

bool tenant_charge(struct tenant *t, unsigned device, uint64_t bytes, uint64_t now_ns)
{
    if (bytes > UINT64_MAX - t->buffer_bytes) { /* device_bytes is at most this sum */
        return false;
    }
    t->buffer_bytes += bytes;
    t->device_bytes[device] += bytes;
    account_held(t->account, t->buffer_bytes, now_ns);
    return true;
}

void tenant_discharge(struct tenant *t, unsigned device, uint64_t bytes, uint64_t now_ns)
{
    t->buffer_bytes -= bytes;
    t->device_bytes[device] -= bytes;
    account_held(t->account, t->buffer_bytes, now_ns);
}

/* Limit for its buffers on one device, in bytes: device memory and spilled bytes together. */
static uint64_t most_of(const struct tenant *t, uint64_t all)
{
    uint64_t hard = amount_of(&t->limits.hard, all);
    uint64_t both = sat_add(all, amount_of(&t->limits.spilled, all));
    return hard < both ? hard : both;
}

uint64_t tenant_room_to_move(const struct tenant *t, unsigned device, uint64_t all)
{
    return sat_sub(most_of(t, all), t->device_bytes[device]);
}

uint64_t tenant_room(const struct tenant *t, unsigned device, uint64_t all)
{
    uint64_t here = tenant_room_to_move(t, device, all);
    uint64_t in_all = sat_sub(t->limits.total, t->buffer_bytes);
    return here < in_all ? here : in_all;
}

uint64_t tenant_due(const struct tenant *t, unsigned device, uint64_t all)
{
    return sat_sub(amount_of(&t->limits.guaranteed, all), t->device_bytes[device]);
}

int tenant_check(const struct tenant *t, enum tenant_thing thing, uint64_t usual, struct err *e)
{
    uint64_t own = t->limits.most[thing];
    uint64_t most = own > 0 ? own : usual;
    if (t->held[thing] < most) {
        return 0;
    }
    return err_set(e, ERR_LIMIT,
                   "tenant %s has %" PRIu64 " %s, at most %" PRIu64 " (%s %s): free or finish some",
                   t->name, t->held[thing], tenant_things[thing], most,
                   own > 0 ? "its section's" : "[tenants]", tenant_settings[thing]);
}

int tenant_refuse_device(const struct tenant *t, unsigned device, struct err *e)
{
    return err_set(e, ERR_PERMISSION,
                   "tenant %s may not use device %u: the devices of its section leave it out",
                   t->name, device);
}

int tenant_no_device(const struct tenant *t, struct err *e)
{
    bool all = t->limits.devices == 0;
    return err_set(e, ERR_NO_DEVICE, "no device%s%s%s serves: see gpuctl devices",
                   all ? "" : " that tenant ", all ? "" : t->name, all ? "" : " may use");
}

int tenant_check_messages(const struct tenant *t, uint64_t more, uint64_t most, struct err *e)
{
    if (t->message_bytes <= most && more <= most - t->message_bytes) {
        return 0;
    }
    return err_set(e, ERR_BUSY,
                   "the daemon keeps %" PRIu64 " bytes for tenant %s, at most %" PRIu64
                   " ([tenants] message_bytes_max): take answers, free programs, unload modules",
                   t->message_bytes, t->name, most);
}

int tenant_refuse(struct tenant *t, const struct device *d, uint64_t wanted, struct err *e)
{
    uint64_t all = device_extent(d);
    uint64_t most = most_of(t, all);
    t->refusals++;
    if (wanted > sat_sub(t->limits.total, t->buffer_bytes)) {
        return err_set(e, ERR_LIMIT,
                       "tenant %s wants %" PRIu64 " bytes and may have %" PRIu64
                       " on all devices, of which its buffers have %" PRIu64
                       ": free some of them, or raise its memory_total",
                       t->name, wanted, t->limits.total, t->buffer_bytes);
    }
    return err_set(e, ERR_LIMIT,
                   "tenant %s wants %" PRIu64 " bytes on device %u and may have %" PRIu64
                   " there, of which its buffers have %" PRIu64
                   ": free some of them, or raise its %s",
                   t->name, wanted, device_shown(d), most, t->device_bytes[d->index],
                   most == amount_of(&t->limits.hard, all)
                       ? "memory_hard"
                       : "memory_spilled, which adds to the limit of the device's pool");
}
