/*
 * The tokens of tenants: each section of the settings may name a file with the hashes of tokens
 * (`tokens`). A client from another host that shows such a token belongs to that tenant. Several
 * lines are valid together, so that a token can be replaced without a break.
 */
#ifndef FRONT_SETTINGS_TENANT_TOKENS_H
#define FRONT_SETTINGS_TENANT_TOKENS_H

#include <stdbool.h>

#include "common/bytes.h"
#include "common/token.h"
#include "daemon/front/settings/tenant_rules.h"

#define TENANT_TOKENS_MAX 4096u /* of all tenants */

/* Reads the files that the sections name into rules->tokens, after the rules themselves. On failure
 * the tokens of the other files are kept. Errors name file and line. Blocks on files. ERR_EXISTS: a
 * token of two tenants. ERR_PERMISSION: other users can read a file. */
int tenant_tokens_read(struct tenant_rules *rules, struct err *e);
/* The section whose token this is, with its hash; NULL: no section has it. Takes the same time for
 * each token of that length. */
const struct tenant_rule *tenant_tokens_find(const struct tenant_rules *rules, struct bytes token,
                                             struct token_hash *ret_hash);
/* Is the hash still one of that tenant's? */
bool tenant_tokens_have(const struct tenant_rules *rules, const char *tenant,
                        const struct token_hash *hash);

#endif
