/*
 * The sections [tenant NAME] of the settings: who belongs to a tenant, and what it may have. They
 * may stand in every file of settings; those of tenants.d hold nothing else. What stands in a later
 * file counts. [tenant others] is for each tenant that has no section of its own.
 *
 * Users and groups are looked up when the settings are read, not when somebody connects: that
 * blocks. Thread: the loop's.
 */
#ifndef FRONT_SETTINGS_TENANT_RULES_H
#define FRONT_SETTINGS_TENANT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/front/settings/tenant_limits.h"
#include "proto/limits.h"

#define TENANT_RULES_MAX  256u
#define TENANT_CLAIMS_MAX 16384u /* users and members of groups of all sections */
#define TENANT_OTHERS     "others"
#define TENANT_RULE_PLACE 288u /* bytes of FILE:LINE */

struct config;
struct tenant;

struct tenant_rule {
    char name[PROTO_NAME_MAX + 1];
    struct tenant_limits limits;
    char users[256]; /* as they were set, cut; for people */
    char groups[256];
    bool tcp;                       /* who comes over tcp belongs to it */
    char tcp_at[TENANT_RULE_PLACE]; /* where that was set */
    char guaranteed_at[TENANT_RULE_PLACE];
    struct tenant *tenant; /* of that name, once the rules count (tenant_quota.h) */
};

enum claim_kind {
    CLAIM_USER,   /* named */
    CLAIM_MEMBER, /* of a group that is named */
    CLAIM_GROUP,  /* who has the group as primary one */
};

/* A uid or gid belongs to a rule. */
struct tenant_claim {
    uint32_t id;
    enum claim_kind kind;
    unsigned rule;
};

struct tenant_rules {
    struct tenant_rule *rule; /* owned array, by name */
    unsigned count;
    struct tenant_claim *claim; /* owned array */
    unsigned claim_count;
    unsigned claim_room;
    struct tenant_limits others;
};

/* Who connected. */
struct tenant_peer {
    uint32_t uid;
    uint32_t gid; /* primary; UINT32_MAX: not known */
    bool local;   /* else over tcp: uid and gid say nothing */
};

/* The files that config_load() read, and tenants.d with the system's. On failure, which names file
 * and line, *ret_rules is untouched. */
int tenant_rules_read(const struct config *config, struct tenant_rules *ret_rules, struct err *e);
/* These files: either may be NULL. */
int tenant_rules_load(const char *file, const char *dir, struct tenant_rules *ret_rules,
                      struct err *e);
void tenant_rules_finish(struct tenant_rules *rules);

/* The section a peer belongs to: that which names its user, then the first by name that names a
 * group of it. NULL: none, it is a tenant of its own. */
const struct tenant_rule *tenant_rules_of(const struct tenant_rules *rules,
                                          const struct tenant_peer *peer);
const struct tenant_rule *tenant_rules_named(const struct tenant_rules *rules, const char *name);

/* Can a device keep what is guaranteed? ERR_LIMIT names the sum and the tenants. */
int tenant_rules_fit(const struct tenant_rules *rules, uint64_t pool_limit, struct err *e);

#endif
