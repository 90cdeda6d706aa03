#include "daemon/front/settings/tenant_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/settings/secret_file.h"

static int add(struct tenant_rules *r, unsigned rule, const struct token_hash *hash, struct err *e)
{
    for (unsigned i = 0; i < r->token_count; i++) {
        bool same = token_hash_equal(&r->token[i].hash, hash);
        if (same && r->token[i].rule == rule) {
            return 0;
        }
        if (same) {
            return err_set(e, ERR_EXISTS, "this token belongs to tenant %s already",
                           r->rule[r->token[i].rule].name);
        }
    }
    if (r->token_count == TENANT_TOKENS_MAX) {
        return err_set(e, ERR_LIMIT, "over %u tokens", TENANT_TOKENS_MAX);
    }
    struct tenant_token *all = reallocarray(r->token, r->token_count + 1, sizeof *all);
    if (all == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for tokens");
    }
    r->token = all;
    all[r->token_count++] = (struct tenant_token){.rule = rule, .hash = *hash};
    return 0;
}

static int read_lines(struct tenant_rules *r, unsigned rule, char *text, struct err *e)
{
    unsigned number = 0;
    int rc = 0;
    for (char *line = text; rc == 0 && line != NULL;) {
        char *end = strchr(line, '\n');
        struct token_hash hash;
        number++;
        if (end != NULL) {
            *end = '\0';
        }
        line += strspn(line, " \t\r");
        if (line[0] != '\0' && line[0] != '#') {
            rc = token_line_read(line, &hash, e);
            rc = rc == 0 ? add(r, rule, &hash, e) : rc;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return rc != 0 ? err_wrap(e, "tokens = %s: line %u", r->rule[rule].tokens, number) : 0;
}

static int read_rule(struct tenant_rules *r, unsigned rule, struct err *e)
{
    struct token_hash hash;
    char *text = NULL;
    int rc = token_hash_of(bytes_str(""), &hash, e); /* can this build hash tokens? */
    rc = rc == 0 ? secret_file_read("tokens", r->rule[rule].tokens, true, &text, e) : rc;
    rc = rc == 0 ? read_lines(r, rule, text, e) : rc;
    free(text); /* hashes are no secrets */
    return rc != 0 ? err_wrap(e, "tenant %s", r->rule[rule].name) : 0;
}

int tenant_tokens_read(struct tenant_rules *rules, struct err *e)
{
    struct err first = ERR_INIT;
    rules->token_count = 0;
    for (unsigned i = 0; i < rules->count; i++) {
        struct err why = ERR_INIT;
        bool named = rules->rule[i].tokens[0] != '\0';
        if (named && read_rule(rules, i, &why) != 0 && first.code == 0) {
            first = why;
        }
    }
    if (first.code != 0 && e != NULL) {
        *e = first;
    }
    return first.code;
}

const struct tenant_rule *tenant_tokens_find(const struct tenant_rules *rules, struct bytes token,
                                             struct token_hash *ret_hash)
{
    const struct tenant_rule *found = NULL;
    if (token_hash_of(token, ret_hash, NULL) != 0) {
        return NULL;
    }
    for (unsigned i = 0; i < rules->token_count; i++) { /* to the end, as if none were found */
        const struct tenant_token *t = &rules->token[i];
        found = token_hash_equal(&t->hash, ret_hash) ? &rules->rule[t->rule] : found;
    }
    return found;
}

bool tenant_tokens_have(const struct tenant_rules *rules, const char *tenant,
                        const struct token_hash *hash)
{
    for (unsigned i = 0; i < rules->token_count; i++) {
        const struct tenant_token *t = &rules->token[i];
        if (token_hash_equal(&t->hash, hash) && strcmp(rules->rule[t->rule].name, tenant) == 0) {
            return true;
        }
    }
    return false;
}
