/*
 * A tenant: the account of one or more users. Each uid without a section of the settings is one,
 * and each section (tenant_rules.h). All of its sessions, on all devices, share its limits. Thread:
 * the loop's. Nothing here blocks.
 *
 * The ledger here counts buffers by the bytes that were asked for, wherever they lie. The workers
 * count what buffers and temporaries take of the device, and apply the same limits there.
 */
#ifndef FRONT_MODEL_TENANT_H
#define FRONT_MODEL_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "common/err.h"
#include "common/hash.h"
#include "daemon/front/model/device.h"
#include "daemon/front/settings/tenant_limits.h"
#include "proto/limits.h"

/* A kernel that alone ended so many workers is quarantined. */
#define STRIKES_MAX 3

/* The ends of workers by a kernel. The key is its content and its entry. */
struct strike {
    struct hash kernel;
    unsigned count;
    UT_hash_handle hh;
};

/* The last report of a device's worker about the tenant, in bytes (proto/frames.h, W_TENANT). */
struct tenant_use {
    uint64_t asked, mapped, peak, shared, spilled;
    uint64_t kept; /* guarantee that the worker keeps */
};

struct buffer;
struct job;

extern const char *const tenant_things[TENANT_THINGS]; /* "buffers" */

struct tenant {
    uint64_t key; /* its name for workers; the same in every front */
    char name[PROTO_NAME_MAX + 1];
    bool ruled;    /* the settings have a section for it */
    bool may_load; /* it may load kernels, by its newest session (rights.h) */
    bool needed;   /* found to be in use; valid while unused tenants are searched for */
    unsigned sessions;
    uint64_t left_ns; /* when its last session ended */
    struct tenant_limits limits;
    bool changed; /* its quota changed; valid while new rules are applied */
    struct tenant_use use[DEVICES_MAX];
    uint64_t buffer_bytes;              /* of its buffers on all devices */
    uint64_t device_bytes[DEVICES_MAX]; /* the same for each device */
    uint64_t refusals;                  /* buffers refused for a limit of its own */
    uint64_t held[TENANT_THINGS];
    uint64_t arena_bytes;   /* with freed arenas that jobs still use */
    uint64_t message_bytes; /* kept for its sessions (session_keep) */
    unsigned waiting;       /* jobs that wait for memory, as of the last count */
    unsigned detached;      /* unfinished jobs that outlive their sessions */
    uint64_t jobs_submitted;
    uint64_t jobs_failed;
    uint64_t secret;          /* random; for tables whose keys its clients choose */
    struct buffer *published; /* by name; uthash, buffer.c's */
    struct job *kept; /* jobs out of the history whose answers are not acknowledged, oldest first */
    unsigned kept_count;
    unsigned snapshots;     /* sets of snapshots of pools; snapshot.c's */
    struct strike *strikes; /* uthash */
    UT_hash_handle hh;
};

/* Finds or makes; NULL when memory is out. The name of a user without a section is uid:N. */
struct tenant *tenant_named(struct tenant **table, const char *name);
struct tenant *tenant_obtain(struct tenant **table, uint32_t uid);
struct tenant *tenant_find(struct tenant *table, uint64_t key);
void tenant_destroy(struct tenant **table, struct tenant *t); /* it must not be in use */
void tenant_destroy_all(struct tenant **table);

/* Hashes a name that a client chose, with the tenant's secret, so that clients cannot choose names
 * that collide. */
unsigned tenant_hash(const struct tenant *t, const char *name);
uint64_t tenant_key_of(const char *name);
/* t NULL: the daemon itself, whose key is 0. */
uint64_t tenant_key(const struct tenant *t);

unsigned tenant_strike(struct tenant *t, struct hash kernel); /* returns how many it has now */
bool tenant_quarantined(const struct tenant *t, struct hash kernel);
bool tenant_has_quarantined(const struct tenant *t); /* any kernel */

/* ---- the ledger. `all`: what the device's pool may take, in bytes. */

/* The limits that a device's worker applies, in bytes. */
struct tenant_quota {
    uint64_t hard, soft, guaranteed, spilled;
};

/* soft is at most hard. */
struct tenant_quota tenant_quota(const struct tenant *t, uint64_t all);
/* false, and nothing is changed: a sum would overflow. */
bool tenant_charge(struct tenant *t, unsigned device, uint64_t bytes);
/* Takes back a part of what was charged. */
void tenant_discharge(struct tenant *t, unsigned device, uint64_t bytes);
/* Bytes of buffers that it may add on the device, within its hard limit, the room of the pool and
 * of its part of the host, and its total. */
uint64_t tenant_room(const struct tenant *t, unsigned device, uint64_t all);
/* Bytes that others must leave for its buffers: the rest of its guarantee. */
uint64_t tenant_due(const struct tenant *t, unsigned device, uint64_t all);
/* May it have one more? `usual`: limit, unless its section has another. ERR_LIMIT names the tenant,
 * its count, the limit and its setting. */
int tenant_check(const struct tenant *t, enum tenant_thing thing, uint64_t usual, struct err *e);
/* May the front keep so many more bytes of messages for it? ERR_BUSY, as above. */
int tenant_check_messages(const struct tenant *t, uint64_t more, uint64_t most, struct err *e);
/* Counts a refusal. ERR_LIMIT names the request, the limit, what is in use, and what helps. */
int tenant_refuse(struct tenant *t, unsigned device, uint64_t all, uint64_t wanted, struct err *e);

#endif
