/*
 * The sections [tenant NAME] of the settings: the users of a tenant and its limits. Every file of
 * settings may have them; the files of tenants.d have nothing else. A later file overrides an
 * earlier one. [tenant others] is for each tenant without a section of its own.
 *
 * Users and groups are looked up when the settings are read, because a lookup blocks.
 * tenant_rules_read and tenant_rules_load block and may run in any thread, one at a time. Thread of
 * the others: the loop's.
 */
#ifndef FRONT_SETTINGS_TENANT_RULES_H
#define FRONT_SETTINGS_TENANT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/token.h"
#include "daemon/front/settings/tenant_limits.h"
#include "daemon/front/settings/tenant_socket.h"
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
    char users[256]; /* the setting as text, cut, for tables */
    char groups[256];
    char tokens[256];               /* its file of hashes of tokens; "": none */
    bool tcp;                       /* clients over tcp without a token belong to it */
    bool unknown;                   /* clients that no section names belong to it */
    char tcp_at[TENANT_RULE_PLACE]; /* FILE:LINE where `tcp` was set */
    char unknown_at[TENANT_RULE_PLACE];
    char guaranteed_at[TENANT_RULE_PLACE];
    char hard_at[TENANT_RULE_PLACE];
    char devices_at[TENANT_RULE_PLACE];
    struct tenant_socket socket; /* its own */
    char listen_at[TENANT_RULE_PLACE];
    /* the tenant of that name, once the rules are in force (tenant_quota.h) */
    struct tenant *tenant;
};

enum claim_kind {
    CLAIM_USER,   /* a user that the section names */
    CLAIM_MEMBER, /* a member of a group that it names */
    CLAIM_GROUP,  /* users with that primary group */
};

/* A uid or gid belongs to a rule. */
struct tenant_claim {
    uint32_t id;
    enum claim_kind kind;
    unsigned rule;
};

/* A token belongs to a rule (tenant_tokens.h). */
struct tenant_token {
    struct token_hash hash;
    unsigned rule;
};

struct tenant_rules {
    struct tenant_rule *rule; /* owned array, by name */
    unsigned count;
    struct tenant_claim *claim; /* owned array */
    unsigned claim_count;
    unsigned claim_room;
    struct tenant_token *token; /* owned array */
    unsigned token_count;
    struct tenant_limits others;
};

/* The user of a connection. */
struct tenant_peer {
    uint32_t uid;
    uint32_t gid; /* primary group; UINT32_MAX: not known */
    bool local;   /* false: over tcp, uid and gid mean nothing */
};

/* Reads the files that config_load() reads, and tenants.d if they are the system's. Errors name
 * file and line and leave *ret_rules untouched. */
int tenant_rules_read(const struct config *config, struct tenant_rules *ret_rules, struct err *e);
/* Reads this file and the files of this folder; either may be NULL. */
int tenant_rules_load(const char *file, const char *dir, struct tenant_rules *ret_rules,
                      struct err *e);
void tenant_rules_finish(struct tenant_rules *rules);

/* The section of a peer: the one that names its user, else the first by name that names one of its
 * groups, else the one for unknown users. NULL: no section, the peer is a tenant of its own. */
const struct tenant_rule *tenant_rules_of(const struct tenant_rules *rules,
                                          const struct tenant_peer *peer);
const struct tenant_rule *tenant_rules_named(const struct tenant_rules *rules, const char *name);
/* The section with the socket of that number (tenant_socket_number); NULL: none. */
const struct tenant_rule *tenant_rules_socket(const struct tenant_rules *rules, uint32_t number);
/* Checks that the folders of the sockets exist, or can be made (tenant_socket_check_folder). */
int tenant_rules_folders(const struct tenant_rules *rules, const struct config *config,
                         struct err *e);

/* The limits of the tenant of that name. */
const struct tenant_limits *tenant_rules_limits(const struct tenant_rules *rules, const char *name);

/* Says which section gives more than there is: devices beyond `devices`, or a memory_hard in bytes
 * above `pool_most`, the largest pool. false: none does. */
bool tenant_rules_exceed(const struct tenant_rules *rules, unsigned devices, uint64_t pool_most,
                         char *out, size_t size);
/* Checks that a pool can reserve all guarantees. ERR_LIMIT names the sum and the tenants. */
int tenant_rules_fit(const struct tenant_rules *rules, uint64_t pool_limit, struct err *e);

#endif
