/*
 * A tenant: the account of one or more users. Each section of the settings (tenant_rules.h) is a
 * tenant; each uid without a section is a tenant of its own. All sessions of a tenant, on all
 * devices, share its limits. Thread: the loop's. Nothing here blocks.
 *
 * The ledger here counts buffers by the bytes that were asked for, on the device or the host.
 * Workers count the device memory that buffers and temporaries take, and apply the same limits to
 * that.
 */
#ifndef FRONT_MODEL_TENANT_H
#define FRONT_MODEL_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "common/err.h"
#include "common/hash.h"
#include "daemon/front/model/account.h"
#include "daemon/front/model/conduct.h"
#include "daemon/front/model/crowd.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/forecast.h"
#include "daemon/front/model/gate.h"
#include "daemon/front/model/share.h"
#include "daemon/front/settings/tenant_limits.h"
#include "proto/limits.h"

/* A kernel is quarantined when it ended this many workers while it ran alone. */
#define STRIKES_MAX 3

/* How many workers a kernel ended. The key hashes its module's content and its entry
 * (kernel_hash). */
struct strike {
    struct hash kernel;
    unsigned count;
    UT_hash_handle hh;
};

/* The last report of a device's worker about the tenant, in bytes (proto/frames.h, W_TENANT). */
struct tenant_use {
    uint64_t asked, mapped, peak, shared, spilled;
    uint64_t kept; /* what the worker reserves of the guarantee */
};

struct buffer;
struct job;

extern const char *const tenant_things[TENANT_THINGS]; /* "buffers" */

struct tenant {
    uint64_t key; /* names it to workers; the same in every front */
    char name[PROTO_NAME_MAX + 1];
    bool ruled;       /* the settings have a section for it */
    bool may_load;    /* may load kernels, as its newest session (rights.h) */
    unsigned domains; /* that it has, resting ones too */
    bool apart; /* it runs in workers of its own (domain.h); rights_place and domain_adopt set it */
    bool needed; /* in use; valid only while forget.c searches for unused tenants */
    unsigned sessions;
    uint64_t left_ns; /* when its last session ended (or its section was removed) */
    struct tenant_limits limits;
    bool changed; /* its quota changed; valid only while new rules are applied */
    struct share share;
    struct forecast forecast; /* of its jobs */
    struct gate gate;
    struct account *account; /* what it has used; `own`, or one of tenants/accounts.h */
    struct account own;
    struct tenant_use use[PLACES_MAX];
    uint64_t buffer_bytes;             /* of its buffers on all devices */
    uint64_t device_bytes[PLACES_MAX]; /* of its buffers on each device */
    uint64_t refusals;                 /* buffers refused because of its own limits */
    uint64_t held[TENANT_THINGS];
    uint64_t arena_bytes;   /* including freed arenas that jobs still use */
    uint64_t input_bytes;   /* of its unfinished jobs, in front->input_bytes */
    uint64_t message_bytes; /* bytes kept for its sessions (session_keep) */
    unsigned waiting;       /* jobs that wait for memory, as of the last count */
    unsigned detached;      /* unfinished jobs that outlive their sessions */
    struct crowd crowd;     /* of refused jobs */
    struct conduct conduct; /* strikes against the tenant itself */
    uint64_t jobs_submitted;
    uint64_t jobs_failed;
    uint64_t secret;          /* random; salts hash tables whose keys clients choose */
    struct buffer *published; /* by name; uthash, buffer.c's */
    struct job *kept; /* jobs beyond the history whose answers are unacknowledged, oldest first */
    unsigned kept_count;
    uint64_t lane_round, table_round; /* its next turns (common/round.h) */
    unsigned snapshots;               /* sets of snapshots of pools; snapshot.c's */
    struct strike *strikes;           /* uthash */
    UT_hash_handle hh;
};

/* Each finds or makes the tenant; NULL: no memory. The name of a user without a section is
 * uid:N. */
struct tenant *tenant_named(struct tenant **table, const char *name);
struct tenant *tenant_obtain(struct tenant **table, uint32_t uid);
/* NULL: the table has no tenant of that key. */
struct tenant *tenant_find(struct tenant *table, uint64_t key);
void tenant_destroy(struct tenant **table, struct tenant *t); /* must not be in use */
void tenant_destroy_all(struct tenant **table);

/* Whether it may use the device that clients call so. t NULL: the daemon itself may use all. */
static inline bool tenant_may_use(const struct tenant *t, unsigned device)
{
    return t == NULL || t->limits.devices == 0 || (t->limits.devices >> device & 1) != 0;
}

/* Sets ERR_PERMISSION: it may not use the device. */
int tenant_refuse_device(const struct tenant *t, unsigned device, struct err *e);
/* Sets ERR_NO_DEVICE: none that it may use serves. */
int tenant_no_device(const struct tenant *t, struct err *e);

/* Hashes a name with the tenant's secret, so that clients cannot choose names that collide. */
unsigned tenant_hash(const struct tenant *t, const char *name);
/* The key of the tenant of that name, whether or not it exists. */
uint64_t tenant_key_of(const char *name);
/* t NULL: the daemon itself, whose key is 0. */
uint64_t tenant_key(const struct tenant *t);

unsigned tenant_strike(struct tenant *t, struct hash kernel); /* the new count; 0: no memory */
bool tenant_quarantined(const struct tenant *t, struct hash kernel);
bool tenant_has_quarantined(const struct tenant *t); /* any kernel */

/* How long a job of it may take; usual_ns: without a limit of its own. */
uint64_t tenant_time_limit_ns(const struct tenant *t, uint64_t usual_ns);

/* ---- the ledger. `all`: limit of the device's pool, in bytes. */

/* The limits that a device's worker applies, in bytes. */
struct tenant_quota {
    uint64_t hard, soft, guaranteed, spilled;
};

/* A soft limit that is not below the hard one becomes UINT64_MAX. */
struct tenant_quota tenant_quota(const struct tenant *t, uint64_t all);
/* false: a sum would overflow; nothing is changed. */
bool tenant_charge(struct tenant *t, unsigned device, uint64_t bytes, uint64_t now_ns);
/* Takes back a part of what was charged. */
void tenant_discharge(struct tenant *t, unsigned device, uint64_t bytes, uint64_t now_ns);
/* Bytes of buffers that it may add on the device. Bounds: its hard limit, pool plus its part of
 * host memory, and its total over all devices. */
uint64_t tenant_room(const struct tenant *t, unsigned device, uint64_t all);
/* The same for a buffer that it has on another device already. */
uint64_t tenant_room_to_move(const struct tenant *t, unsigned device, uint64_t all);
/* Bytes that other tenants must leave for its buffers: the unused part of its guarantee. */
uint64_t tenant_due(const struct tenant *t, unsigned device, uint64_t all);
/* Checks whether it may have one more. `usual`: the limit, unless its section has another.
 * ERR_LIMIT names the tenant, its count, the limit and the setting. */
int tenant_check(const struct tenant *t, enum tenant_thing thing, uint64_t usual, struct err *e);
/* Checks whether the front may keep `more` bytes of messages for it. ERR_BUSY, with such a text. */
int tenant_check_messages(const struct tenant *t, uint64_t more, uint64_t most, struct err *e);
/* Counts a refusal and sets ERR_LIMIT. The text names the request, the limit, the use and a
 * remedy. */
int tenant_refuse(struct tenant *t, const struct device *d, uint64_t wanted, struct err *e);

#endif
