/* Tokens of tenants whose clients come from other hosts: the files, what changes in them, and which
 * ones a front has to know. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/token.h"
#include "tests/sim/front/sim.h"

#define SLACK_NS NS_PER_S /* for a reload */

const char *tokens_tenant(unsigned tenant)
{
    return tenant == 0 ? "far0" : "far1";
}

void tokens_text(const struct sim *s, unsigned tenant, unsigned token, char ret_text[SIM_TOKEN])
{
    uint64_t bits = chance_mix(s->course->seed ^ (uint64_t)tenant << 32 ^ token);
    (void)snprintf(ret_text, SIM_TOKEN, "%016" PRIx64 "%u", bits, token);
}

bool tokens_there(const struct sim *s, unsigned tenant)
{
    return !s->far[tenant].removed;
}

/* A front may read the file meanwhile. */
void tokens_write(const struct sim *s, unsigned tenant)
{
    const struct sim_far *t = &s->far[tenant];
    char path[SIM_FOLDER + 32];
    char fresh[SIM_FOLDER + 32];
    char text[SIM_TOKEN];
    char line[TOKEN_LINE_BYTES];
    struct token_hash hash;
    (void)snprintf(path, sizeof path, "%s/%s.tokens", s->dir, tokens_tenant(tenant));
    (void)snprintf(fresh, sizeof fresh, "%s/far.new", s->dir);
    FILE *out = fopen(fresh, "w");
    if (out == NULL || fchmod(fileno(out), 0600) != 0) {
        abort();
    }
    for (unsigned i = 1; i <= t->newest; i++) {
        tokens_text(s, tenant, i, text);
        if (t->token[i].until_ns == NS_NEVER && token_hash_of(bytes_str(text), &hash, NULL) == 0) {
            token_line(&hash, line);
            (void)fprintf(out, "%s\n", line);
        }
    }
    (void)fclose(out);
    if (rename(fresh, path) != 0) {
        abort();
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

static void add(struct sim *s, unsigned tenant)
{
    struct sim_far *t = &s->far[tenant];
    t->newest++;
    t->token[t->newest].from_ns = s->now_ns;
    t->token[t->newest].until_ns = NS_NEVER;
}

void tokens_begin(struct sim *s)
{
    struct token_hash hash;
    if (token_hash_of(bytes_str(""), &hash, NULL) != 0) {
        s->p.tokens = 0; /* built without mbedtls */
    }
    for (unsigned i = 0; i < SIM_FAR_TENANTS; i++) {
        add(s, i);
        s->far[i].token[1].from_ns = 0;
    }
}

void tokens_rotate(struct sim *s, unsigned tenant, bool keeps)
{
    struct sim_far *t = &s->far[tenant];
    if (t->removed || t->newest + 1 == SIM_TOKENS) {
        return;
    }
    for (unsigned i = 1; i <= t->newest && !keeps; i++) {
        uint64_t *until = &t->token[i].until_ns;
        *until = *until == NS_NEVER ? s->now_ns : *until;
    }
    add(s, tenant);
    sim_log(s, "tenant %s: token %u%s", tokens_tenant(tenant), t->newest,
            keeps ? " beside the others" : "");
    front_reload(s);
}

/* With the section those tokens go which come back with it: the newest one. */
void tokens_remove(struct sim *s, unsigned tenant)
{
    struct sim_far *t = &s->far[tenant];
    t->removed = !t->removed;
    for (unsigned i = 1; i <= t->newest && t->removed; i++) {
        uint64_t *until = &t->token[i].until_ns;
        *until = *until == NS_NEVER ? s->now_ns : *until;
    }
    if (!t->removed) {
        t->token[t->newest].from_ns = s->now_ns;
        t->token[t->newest].until_ns = NS_NEVER;
    }
    sim_log(s, "tenant %s: its section %s", tokens_tenant(tenant),
            t->removed ? "is removed" : "comes back");
    front_reload(s);
}

void tokens_settle(struct sim *s)
{
    for (unsigned i = 0; i < SIM_FAR_TENANTS; i++) {
        if (s->far[i].removed) {
            tokens_remove(s, i);
        }
    }
    if (memory_failed()) { /* an operator tries a reload again that lacked memory */
        front_reload(s);
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

bool tokens_may(const struct sim *s, unsigned tenant, unsigned token, uint64_t at_ns)
{
    const struct sim_far *t = &s->far[tenant];
    return token > 0 && token <= t->newest && t->token[token].from_ns <= at_ns + SLACK_NS &&
           ns_add(t->token[token].until_ns, SLACK_NS) >= at_ns;
}

bool tokens_must(const struct sim *s, unsigned tenant, unsigned token, uint64_t at_ns)
{
    const struct sim_far *t = &s->far[tenant];
    return token > 0 && token <= t->newest && t->token[token].from_ns + SLACK_NS <= at_ns &&
           t->token[token].until_ns == NS_NEVER;
}

/* A connection ends with its token. */
void tokens_check(struct sim *s)
{
    for (unsigned i = 0; i < s->clients && s->p.tokens != 0; i++) {
        const struct sim_client *c = &s->client[i];
        uint64_t since = s->stalled_ns > s->opened_ns ? s->stalled_ns : s->opened_ns;
        bool late = s->now_ns > since + SLACK_NS;
        if (client_far(c) && c->state == CLIENT_ON && c->shown > 0 && late && !memory_failed() &&
            !front_life_stops(s->f->life) &&
            !tokens_may(s, c->tenant - SIM_FARS, c->shown, s->now_ns)) {
            sim_fail(s, "token: client %u stays connected with token %u of tenant %s, which ended",
                     i, c->shown, tokens_tenant(c->tenant - SIM_FARS));
        }
    }
}
