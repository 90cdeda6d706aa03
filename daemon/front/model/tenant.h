/*
 * A tenant: who pays. One for each uid that no section of the settings names, one for each section
 * (tenant_rules.h), and all of its sessions on all devices share what it may have. Thread: the
 * loop's. Nothing here blocks.
 *
 * Its ledger counts buffers as they were asked for, on the device and off it; what they and
 * temporaries take of the device is counted, and limited by the same numbers, in the workers.
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

#define STRIKES_MAX 3 /* a kernel that ended its worker so often, alone, is quarantined */

/* What a kernel did to its workers. Keyed by the content it was made from and its entry. */
struct strike {
    struct hash kernel;
    unsigned count;
    UT_hash_handle hh;
};

/* What a device's worker said last of what it has, in bytes (proto/frames.h, W_TENANT). */
struct tenant_use {
    uint64_t asked, mapped, peak, shared, spilled;
    uint64_t kept; /* guaranteed, as the worker was told */
};

struct buffer;
struct job;

extern const char *const tenant_things[TENANT_THINGS]; /* "buffers" */

struct tenant {
    uint64_t key; /* what workers know it by: the same in every front */
    char name[PROTO_NAME_MAX + 1];
    bool ruled;    /* the settings have a section for it */
    bool may_load; /* kernels of its own; told of its newest session (rights.h decides) */
    bool needed;   /* something points at it; while that is looked for */
    unsigned sessions;
    uint64_t left_ns; /* when its last session ended */
    struct tenant_limits limits;
    bool changed; /* its quota, while rules are taken over */
    struct tenant_use use[DEVICES_MAX];
    uint64_t buffer_bytes;              /* of its buffers on all devices */
    uint64_t device_bytes[DEVICES_MAX]; /* and on each */
    uint64_t refusals;                  /* of buffers, for a limit of its own */
    uint64_t held[TENANT_THINGS];
    uint64_t arena_bytes;   /* those that only jobs use still, too */
    uint64_t message_bytes; /* that the front keeps for its sessions: session_keep */
    unsigned waiting;       /* jobs, for memory, when somebody looked last */
    unsigned detached;      /* unfinished jobs that outlive their sessions */
    uint64_t jobs_submitted;
    uint64_t jobs_failed;
    uint64_t secret;          /* random: of its tables whose keys its clients choose */
    struct buffer *published; /* by name; uthash, buffer.c's */
    struct job *kept;         /* out of the history, with answers not taken; oldest first */
    unsigned kept_count;
    unsigned pictures;      /* sets of pictures of pools, picture.c's */
    struct strike *strikes; /* uthash */
    UT_hash_handle hh;
};

/* Finds or makes; NULL when memory is out. The name of a user without a section is uid:N. */
struct tenant *tenant_named(struct tenant **table, const char *name);
struct tenant *tenant_obtain(struct tenant **table, uint32_t uid);
struct tenant *tenant_find(struct tenant *table, uint64_t key);
void tenant_destroy(struct tenant **table, struct tenant *t); /* nothing points at it */
void tenant_destroy_all(struct tenant **table);

/* Of a name that a client chose: nobody can choose names that meet in a table without the tenant's
 * secret. */
unsigned tenant_hash(const struct tenant *t, const char *name);
uint64_t tenant_key_of(const char *name);
/* NULL, the daemon's own: 0. */
uint64_t tenant_key(const struct tenant *t);

unsigned tenant_strike(struct tenant *t, struct hash kernel); /* how many it has now */
bool tenant_quarantined(const struct tenant *t, struct hash kernel);
bool tenant_has_quarantined(const struct tenant *t); /* any kernel */

/* ---- the ledger. `all`: what the device's pool may take, in bytes. */

/* What a device's worker holds it to. */
struct tenant_quota {
    uint64_t hard, soft, guaranteed, spilled;
};

/* soft is at most hard. */
struct tenant_quota tenant_quota(const struct tenant *t, uint64_t all);
/* Exact sums: false, and nothing is changed, where one would overflow. */
bool tenant_charge(struct tenant *t, unsigned device, uint64_t bytes);
/* Of what was charged. */
void tenant_discharge(struct tenant *t, unsigned device, uint64_t bytes);
/* Bytes of buffers that it may have on the device beside those it has: up to its hard limit, to
 * what the pool and its part of the host have room for, and to its total. */
uint64_t tenant_room(const struct tenant *t, unsigned device, uint64_t all);
/* Bytes of buffers that others leave for it: the rest of its guarantee. */
uint64_t tenant_due(const struct tenant *t, unsigned device, uint64_t all);
/* May it have one more? `usual`: at most so many unless its section says. ERR_LIMIT names the
 * tenant, what it has, the limit and its setting. */
int tenant_check(const struct tenant *t, enum tenant_thing thing, uint64_t usual, struct err *e);
/* May so many more bytes of messages be kept for it? ERR_BUSY, as above. */
int tenant_check_messages(const struct tenant *t, uint64_t more, uint64_t most, struct err *e);
/* ERR_LIMIT, and counts it: who wanted what, the limit, what is used, and what helps. */
int tenant_refuse(struct tenant *t, unsigned device, uint64_t all, uint64_t wanted, struct err *e);

#endif
