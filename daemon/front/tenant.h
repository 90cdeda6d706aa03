/* A tenant: who pays. One for each uid until tenants are configured. Thread: the loop's. */
#ifndef FRONT_TENANT_H
#define FRONT_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "common/hash.h"
#include "proto/limits.h"

#define STRIKES_MAX 3 /* a kernel that ended its worker so often, alone, is quarantined */

/* What a kernel did to its workers. Keyed by the content it was made from and its entry. */
struct strike {
    struct hash kernel;
    unsigned count;
    UT_hash_handle hh;
};

struct tenant {
    uint32_t uid; /* key */
    char name[PROTO_NAME_MAX + 1];
    bool may_load; /* kernels of its own; told of its newest session (rights.h decides) */
    unsigned sessions;
    uint64_t buffer_bytes;
    uint64_t arena_bytes; /* those that only jobs use still, too */
    uint64_t jobs_submitted;
    uint64_t jobs_failed;
    struct strike *strikes; /* uthash */
    UT_hash_handle hh;
};

/* Finds or makes; NULL when memory is out. */
struct tenant *tenant_obtain(struct tenant **table, uint32_t uid);
void tenant_destroy_all(struct tenant **table);

/* What workers know it by: the same in every front. NULL, the daemon's own: 0. */
uint64_t tenant_key(const struct tenant *t);

unsigned tenant_strike(struct tenant *t, struct hash kernel); /* how many it has now */
bool tenant_quarantined(const struct tenant *t, struct hash kernel);

#endif
