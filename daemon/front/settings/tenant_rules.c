#include "daemon/front/settings/tenant_rules.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/front/settings/config.h"
#include "daemon/front/settings/config_file.h"
#include "daemon/front/settings/secret_file.h"
#include "proto/limits.h"

#define TENANT_SESSIONS_MAX 65536u
#define TENANT_THINGS_MAX   16777216u /* of buffers, jobs and the like */
#define RATE_MIN            4096u     /* bytes a second */

/* ---- rules and claims ----------------------------------------------------------------------- */

static struct tenant_rule *find(const struct tenant_rules *r, const char *name)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (strcmp(r->rule[i].name, name) == 0) {
            return &r->rule[i];
        }
    }
    return NULL;
}

const struct tenant_limits *tenant_rules_limits(const struct tenant_rules *rules, const char *name)
{
    const struct tenant_rule *rule = find(rules, name);
    return rule != NULL ? &rule->limits : &rules->others;
}

const struct tenant_rule *tenant_rules_named(const struct tenant_rules *rules, const char *name)
{
    return find(rules, name);
}

static struct tenant_rule *obtain(struct tenant_rules *r, const char *name, struct err *e)
{
    struct tenant_rule *rule = find(r, name);
    if (rule != NULL) {
        return rule;
    }
    if (r->count == TENANT_RULES_MAX) {
        (void)err_set(e, ERR_LIMIT, "over %u tenants", TENANT_RULES_MAX);
        return NULL;
    }
    struct tenant_rule *all = reallocarray(r->rule, r->count + 1, sizeof *all);
    if (all == NULL) {
        (void)err_set(e, ERR_NOMEM, "no memory for tenant %s", name);
        return NULL;
    }
    r->rule = all;
    rule = &all[r->count++];
    *rule = (struct tenant_rule){.limits = TENANT_UNLIMITED, .socket = TENANT_SOCKET_NONE};
    (void)snprintf(rule->name, sizeof rule->name, "%s", name);
    return rule;
}

static int claim(struct tenant_rules *r, struct tenant_claim c, struct err *e)
{
    if (r->claim_count == TENANT_CLAIMS_MAX) {
        return err_set(e, ERR_LIMIT, "over %u users", TENANT_CLAIMS_MAX);
    }
    if (r->claim_count == r->claim_room) {
        unsigned room = r->claim_room == 0 ? 16 : 2 * r->claim_room;
        struct tenant_claim *all = reallocarray(r->claim, room, sizeof *all);
        if (all == NULL) {
            return err_set(e, ERR_NOMEM, "no memory for the users of tenants");
        }
        r->claim = all;
        r->claim_room = room;
    }
    r->claim[r->claim_count++] = c;
    return 0;
}

/* Drops the users or the groups of a section, because a later file replaces them. */
static void unclaim(struct tenant_rules *r, unsigned rule, bool users)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < r->claim_count; i++) {
        bool goes = r->claim[i].rule == rule && (r->claim[i].kind == CLAIM_USER) == users;
        if (!goes) {
            r->claim[kept++] = r->claim[i];
        }
    }
    r->claim_count = kept;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool number_of(const char *word, uint32_t *ret_id)
{
    char *end = NULL;
    errno = 0;
    unsigned long long id = isdigit((unsigned char)word[0]) ? strtoull(word, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || id >= UINT32_MAX) {
        return false;
    }
    *ret_id = (uint32_t)id;
    return true;
}

static int add_user(struct tenant_rules *r, unsigned rule, const char *word, struct err *e)
{
    struct tenant_claim c = {.kind = CLAIM_USER, .rule = rule};
    if (!number_of(word, &c.id)) {
        const struct passwd *p = getpwnam(word);
        if (p == NULL) {
            return err_set(e, ERR_NOT_FOUND, "users: there is no user %s", word);
        }
        c.id = p->pw_uid;
    }
    for (unsigned i = 0; i < r->claim_count; i++) {
        const struct tenant_claim *old = &r->claim[i];
        if (old->kind == CLAIM_USER && old->id == c.id && old->rule != rule) {
            return err_set(e, ERR_EXISTS, "users: %s belongs to tenant %s already", word,
                           r->rule[old->rule].name);
        }
    }
    return claim(r, c, e);
}

static int add_group(struct tenant_rules *r, unsigned rule, const char *word, struct err *e)
{
    struct tenant_claim c = {.kind = CLAIM_GROUP, .rule = rule};
    const struct group *g = number_of(word, &c.id) ? getgrgid(c.id) : getgrnam(word);
    if (g == NULL) {
        return err_set(e, ERR_NOT_FOUND, "groups: there is no group %s", word);
    }
    c.id = g->gr_gid;
    int rc = claim(r, c, e);
    c.kind = CLAIM_MEMBER;
    for (char **name = g->gr_mem; rc == 0 && *name != NULL; name++) {
        const struct passwd *p = getpwnam(*name);
        if (p != NULL) { /* a deleted user may still be a member */
            c.id = p->pw_uid;
            rc = claim(r, c, e);
        }
    }
    return rc;
}

/* Accepts names or numbers with commas or blanks between them. */
static int set_members(struct tenant_rules *r, unsigned rule, const char *value, bool users,
                       struct err *e)
{
    static const char separators[] = ", \t\n";
    int rc = 0;
    unclaim(r, rule, users);
    for (const char *c = value + strspn(value, separators); rc == 0 && *c != '\0';) {
        char word[64];
        size_t length = strcspn(c, separators);
        if (length >= sizeof word) {
            return err_set(e, ERR_LIMIT, "%.60s…: no name of a user or group", c);
        }
        (void)snprintf(word, sizeof word, "%.*s", (int)length, c);
        rc = users ? add_user(r, rule, word, e) : add_group(r, rule, word, e);
        c += length;
        c += strspn(c, separators);
    }
    return rc;
}

static int set_percent(const char *key, const char *value, unsigned *out, struct err *e)
{
    char number[8];
    uint64_t percent = 0;
    size_t length = strlen(value);
    size_t digits = length > 0 ? length - 1 : 0;
    (void)snprintf(number, sizeof number, "%.*s", (int)digits, value);
    if (length > sizeof number - 1 || value[digits] != '%' ||
        config_number(key, number, false, &percent, NULL) != 0 || percent < 1 || percent > 100) {
        return err_set(e, ERR_INVALID, "%s = %s: not within 1%% and 100%%", key, value);
    }
    *out = (unsigned)percent;
    return 0;
}

static int set_amount(const char *key, const char *value, struct amount *out, struct err *e)
{
    struct amount a = AMOUNT_NONE;
    size_t length = strlen(value);
    if (length < 2 || value[length - 1] != '%') {
        int rc = config_number(key, value, true, &a.bytes, e);
        *out = rc == 0 ? a : *out;
        return rc;
    }
    int rc = set_percent(key, value, &a.percent, e);
    *out = rc == 0 ? a : *out;
    return rc;
}

static int set_bool(const char *key, const char *value, bool *out, struct err *e)
{
    bool yes = strcmp(value, "yes") == 0;
    if (!yes && strcmp(value, "no") != 0) {
        return err_set(e, ERR_INVALID, "%s = %s: not one of yes, no", key, value);
    }
    *out = yes;
    return 0;
}

static int set_count(const char *key, const char *value, uint64_t most, uint64_t *out,
                     struct err *e)
{
    uint64_t number = 0;
    int rc = config_number(key, value, false, &number, e);
    if (rc == 0 && (number < 1 || number > most)) {
        rc = err_set(e, ERR_RANGE, "%s = %s: not within 1 and %" PRIu64, key, value, most);
    }
    *out = rc == 0 ? number : *out;
    return rc;
}

static int set_rate(const char *key, const char *value, uint64_t *out, struct err *e)
{
    uint64_t number = 0;
    int rc = config_number(key, value, true, &number, e);
    if (rc == 0 && number < RATE_MIN) {
        rc = err_set(e, ERR_RANGE, "%s = %s: at least 4K bytes a second", key, value);
    }
    *out = rc == 0 ? number : *out;
    return rc;
}

static int set_load(const char *key, const char *value, enum tenant_load *out, struct err *e)
{
    bool yes = false;
    int rc = set_bool(key, value, &yes, e);
    *out = rc != 0 ? *out : yes ? TENANT_LOAD_YES : TENANT_LOAD_NO;
    return rc;
}

static int set_class(const char *value, uint64_t *out, struct err *e)
{
    for (unsigned c = CLASS_REALTIME; c <= CLASS_BATCH; c++) {
        if (strcmp(value, tenant_classes[c]) == 0) {
            *out = c;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID, "class = %s: not realtime, interactive or batch", value);
}

/* Accepts words with commas or blanks between them. word: adds one to what `out` points to. */
static int set_words(const char *key, const char *value, void *out,
                     int (*add)(const char *key, const char *word, void *out, struct err *e),
                     struct err *e)
{
    static const char separators[] = ", \t";
    int rc = 0;
    for (const char *c = value + strspn(value, separators); rc == 0 && *c != '\0';) {
        char word[32];
        size_t length = strcspn(c, separators);
        (void)snprintf(word, sizeof word, "%.*s", (int)length, c);
        rc = add(key, word, out, e);
        c += length;
        c += strspn(c, separators);
    }
    return rc;
}

static int add_role(const char *key, const char *word, void *out, struct err *e)
{
    for (unsigned i = 0; i < TENANT_ROLES; i++) {
        if (strcmp(word, tenant_roles[i]) == 0) {
            *(unsigned *)out |= 1u << i;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID, "%s: %s: not one of drain, reload, see, cancel", key, word);
}

static int add_device(const char *key, const char *word, void *out, struct err *e)
{
    uint32_t index = 0;
    if (!number_of(word, &index) || index >= 64) {
        return err_set(e, ERR_INVALID, "%s: %s: not the index of a device, below 64", key, word);
    }
    *(uint64_t *)out |= UINT64_C(1) << index;
    return 0;
}

/* What it may do, and where. */
static int set_rights(struct tenant_limits *l, const char *key, const char *value, struct err *e)
{
    unsigned roles = 0;
    uint64_t devices = 0;
    bool connect = true;
    int rc = 0;
    if (strcmp(key, "roles") == 0) {
        rc = set_words(key, value, &roles, add_role, e);
        l->roles = rc == 0 ? roles : l->roles;
    } else if (strcmp(key, "devices") == 0) {
        rc = set_words(key, value, &devices, add_device, e);
        if (rc == 0 && devices == 0) {
            rc = err_set(e, ERR_INVALID, "devices: names none; without this line it may use all");
        }
        l->devices = rc == 0 ? devices : l->devices;
    } else if (strcmp(key, "connect") == 0) {
        rc = set_bool(key, value, &connect, e);
        l->barred = rc == 0 ? !connect : l->barred;
    } else {
        rc = err_set(e, ERR_NOT_FOUND, "unknown setting %s of a tenant", key);
    }
    return rc;
}

/* How much its jobs may do at once. */
static int set_pace(struct tenant_limits *l, const char *key, const char *value, struct err *e)
{
    if (strcmp(key, "weight") == 0) {
        return set_count(key, value, TENANT_WEIGHT_MAX, &l->weight, e);
    }
    if (strcmp(key, "class") == 0) {
        return set_class(value, &l->job_class, e);
    }
    if (strcmp(key, "inflight_max") == 0) {
        return set_count(key, value, TENANT_THINGS_MAX, &l->in_flight, e);
    }
    if (strcmp(key, "device_share") == 0) {
        return set_percent(key, value, &l->device_share, e);
    }
    if (strcmp(key, "transfer_rate") == 0) {
        return set_rate(key, value, &l->transfer_rate, e);
    }
    return set_rights(l, key, value, e);
}

/* The keys of limits. */
static int set_limit(struct tenant_limits *l, const char *key, const char *value, struct err *e)
{
    if (strcmp(key, "memory_hard") == 0) {
        return set_amount(key, value, &l->hard, e);
    }
    if (strcmp(key, "memory_soft") == 0) {
        return set_amount(key, value, &l->soft, e);
    }
    if (strcmp(key, "memory_guaranteed") == 0) {
        return set_amount(key, value, &l->guaranteed, e);
    }
    if (strcmp(key, "memory_spilled") == 0) {
        return set_amount(key, value, &l->spilled, e);
    }
    if (strcmp(key, "memory_total") == 0) {
        return config_number(key, value, true, &l->total, e);
    }
    if (strcmp(key, "arena_bytes_max") == 0) {
        return config_number(key, value, true, &l->arena_bytes, e);
    }
    if (strcmp(key, "sessions_max") == 0) {
        return set_count(key, value, TENANT_SESSIONS_MAX, &l->sessions, e);
    }
    for (unsigned i = 0; i < TENANT_THINGS; i++) {
        if (strcmp(key, tenant_settings[i]) == 0) {
            return set_count(key, value, TENANT_THINGS_MAX, &l->most[i], e);
        }
    }
    if (strcmp(key, "load_kernels") == 0) {
        return set_load(key, value, &l->load, e);
    }
    if (strcmp(key, "trusted") == 0) {
        return set_bool(key, value, &l->trusted, e);
    }
    return set_pace(l, key, value, e);
}

/* The file itself is read when all sections are (tenant_tokens.h). */
static int set_tokens(struct tenant_rule *rule, const char *value, struct err *e)
{
    int rc = value[0] != '\0' ? secret_file_name("tokens", value, e) : 0;
    if (rc == 0 && strlen(value) >= sizeof rule->tokens) {
        rc = err_set(e, ERR_LIMIT, "tokens: longer than %zu bytes", sizeof rule->tokens - 1);
    }
    if (rc == 0) {
        (void)snprintf(rule->tokens, sizeof rule->tokens, "%s", value);
    }
    return rc;
}

/* The keys that tell which clients a tenant has. */
static int set_users(struct tenant_rules *r, struct tenant_rule *rule, const char *key,
                     const char *value, struct err *e)
{
    unsigned index = (unsigned)(rule - r->rule);
    bool users = strcmp(key, "users") == 0;
    if (users || strcmp(key, "groups") == 0) {
        (void)snprintf(users ? rule->users : rule->groups, sizeof rule->users, "%s", value);
        return set_members(r, index, value, users, e);
    }
    if (tenant_socket_key(key)) {
        return tenant_socket_set(&rule->socket, key, value, e);
    }
    return strcmp(key, "tokens") == 0
               ? set_tokens(rule, value, e)
               : set_bool(key, value, strcmp(key, "tcp") == 0 ? &rule->tcp : &rule->unknown, e);
}

static bool says_who(const char *key)
{
    return strcmp(key, "users") == 0 || strcmp(key, "groups") == 0 || strcmp(key, "tcp") == 0 ||
           strcmp(key, "tokens") == 0 || strcmp(key, "unknown") == 0 || tenant_socket_key(key);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct reading {
    struct tenant_rules rules;
    char place[TENANT_RULE_PLACE]; /* of the setting being read */
    bool tenants_only;             /* the file may have no other sections */
};

static bool name_good(const char *name)
{
    size_t length = strlen(name);
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr("-_.", *c) == NULL) {
            return false;
        }
    }
    return length > 0 && length <= PROTO_NAME_MAX;
}

static const char *tenant_of(const char *section)
{
    size_t prefix = sizeof CONFIG_TENANT - 1;
    return strncmp(section, CONFIG_TENANT, prefix) == 0 ? section + prefix : NULL;
}

static bool section(void *data, const char *name)
{
    const struct reading *r = data;
    const char *tenant = tenant_of(name);
    return tenant != NULL ? name_good(tenant) : !r->tenants_only;
}

/* Notes the place for errors that show only when all files are read. */
static void note_place(struct tenant_rule *rule, const char *key, const char *place)
{
    if (strcmp(key, "tcp") == 0) {
        (void)snprintf(rule->tcp_at, sizeof rule->tcp_at, "%s", place);
    } else if (strcmp(key, "unknown") == 0) {
        (void)snprintf(rule->unknown_at, sizeof rule->unknown_at, "%s", place);
    } else if (strcmp(key, "memory_guaranteed") == 0) {
        (void)snprintf(rule->guaranteed_at, sizeof rule->guaranteed_at, "%s", place);
    } else if (strcmp(key, "memory_hard") == 0) {
        (void)snprintf(rule->hard_at, sizeof rule->hard_at, "%s", place);
    } else if (strcmp(key, "devices") == 0) {
        (void)snprintf(rule->devices_at, sizeof rule->devices_at, "%s", place);
    } else if (strcmp(key, "listen") == 0) {
        (void)snprintf(rule->listen_at, sizeof rule->listen_at, "%s", place);
    }
}

static int set(void *data, const char *section_name, const char *key, const char *value,
               struct err *e)
{
    const struct reading *reading = data;
    struct tenant_rules *r = &((struct reading *)data)->rules;
    const char *name = tenant_of(section_name);
    if (name == NULL) {
        return 0;
    }
    bool users = says_who(key);
    bool own = users || strcmp(key, "memory_guaranteed") == 0 || strcmp(key, "roles") == 0;
    bool others = strcmp(name, TENANT_OTHERS) == 0;
    if (others && own) {
        return err_set(e, ERR_INVALID,
                       "%s: not allowed in [tenant %s], which covers all other users", key,
                       TENANT_OTHERS);
    }
    if (others) {
        return set_limit(&r->others, key, value, e);
    }
    struct tenant_rule *rule = obtain(r, name, e);
    if (rule == NULL) {
        return e != NULL ? e->code : ERR_NOMEM;
    }
    note_place(rule, key, reading->place);
    return users ? set_users(r, rule, key, value, e) : set_limit(&rule->limits, key, value, e);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool above(const struct amount *a, const struct amount *b)
{
    bool alike = (a->percent == 0) == (b->percent == 0);
    return alike && (a->percent > b->percent || a->bytes > b->bytes);
}

static int check_one(const struct tenant_rule *rule, struct err *e)
{
    if (above(&rule->limits.guaranteed, &rule->limits.hard)) {
        return err_set(e, ERR_INVALID, "%s: tenant %s: memory_guaranteed is more than memory_hard",
                       rule->guaranteed_at, rule->name);
    }
    return 0;
}

/* One tenant at most has clients over tcp, and one has unknown users. */
static int check_once(const struct tenant_rules *r, struct err *e)
{
    const struct tenant_rule *tcp = NULL;
    const struct tenant_rule *unknown = NULL;
    for (unsigned i = 0; i < r->count; i++) {
        const struct tenant_rule *rule = &r->rule[i];
        if (rule->tcp && tcp != NULL) {
            return err_set(e, ERR_EXISTS,
                           "%s: tenants %s and %s both have tcp = yes, one tenant may",
                           rule->tcp_at, tcp->name, rule->name);
        }
        if (rule->unknown && unknown != NULL) {
            return err_set(e, ERR_EXISTS,
                           "%s: tenants %s and %s both have unknown = yes, one tenant may",
                           rule->unknown_at, unknown->name, rule->name);
        }
        tcp = rule->tcp ? rule : tcp;
        unknown = rule->unknown ? rule : unknown;
    }
    return 0;
}

/* Is a path of the one a path of the other? */
static bool sockets_meet(const struct tenant_socket *a, const struct tenant_socket *b)
{
    char shm[TENANT_SOCKET_PATH + sizeof TENANT_SOCKET_SHM];
    (void)snprintf(shm, sizeof shm, "%s%s", a->path, TENANT_SOCKET_SHM);
    return tenant_socket_has(b, a->path) || tenant_socket_has(b, shm);
}

static int check_pair(const struct tenant_rule *a, const struct tenant_rule *b, struct err *e)
{
    if (sockets_meet(&a->socket, &b->socket)) {
        return err_set(e, ERR_EXISTS, "%s: tenants %s and %s have one socket, %s", a->listen_at,
                       b->name, a->name, a->socket.path);
    }
    return tenant_socket_number(a->name) != tenant_socket_number(b->name)
               ? 0
               : err_set(e, ERR_EXISTS,
                         "%s: the names of tenants %s and %s are too alike for two that have "
                         "sockets of their own: rename one",
                         a->listen_at, b->name, a->name);
}

/* A socket belongs to one tenant, and there are not too many. */
static int check_sockets(const struct tenant_rules *r, struct err *e)
{
    unsigned count = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < r->count; i++) {
        const struct tenant_rule *rule = &r->rule[i];
        if (rule->socket.path[0] == '\0') {
            continue;
        }
        if (++count > TENANT_SOCKETS_MAX) {
            return err_set(e, ERR_LIMIT, "%s: over %u tenants have sockets of their own",
                           rule->listen_at, TENANT_SOCKETS_MAX);
        }
        for (unsigned k = 0; rc == 0 && k < i; k++) {
            bool both = r->rule[k].socket.path[0] != '\0';
            rc = both ? check_pair(rule, &r->rule[k], e) : 0;
        }
    }
    return rc;
}

static bool is_common(const struct tenant_socket *s, const struct config *config)
{
    static const char ipc[] = "ipc://";
    char shm[CONFIG_PATH + 1 + sizeof CONFIG_SHM];
    char launcher[CONFIG_PATH + 1 + sizeof CONFIG_LAUNCHER];
    (void)snprintf(shm, sizeof shm, "%s/" CONFIG_SHM, config->runtime_dir);
    (void)snprintf(launcher, sizeof launcher, "%s/" CONFIG_LAUNCHER, config->runtime_dir);
    bool found = tenant_socket_has(s, shm) || tenant_socket_has(s, launcher);
    for (unsigned i = 0; i < config->listen_count; i++) {
        const char *url = config->listen[i];
        found = found || (strncmp(url, ipc, sizeof ipc - 1) == 0 &&
                          tenant_socket_has(s, url + sizeof ipc - 1));
    }
    return found;
}

/* No tenant has a socket that is for all. */
static int check_common(const struct tenant_rules *r, const struct config *config, struct err *e)
{
    for (unsigned i = 0; i < r->count; i++) {
        const struct tenant_rule *rule = &r->rule[i];
        if (is_common(&rule->socket, config)) {
            return err_set(e, ERR_EXISTS,
                           "%s: tenant %s: listen = %s: the daemon has a socket for all tenants "
                           "there, or beside it",
                           rule->listen_at, rule->name, rule->socket.path);
        }
    }
    return 0;
}

static int check(const struct tenant_rules *r, struct err *e)
{
    unsigned percent = 0;
    const struct tenant_rule *over = NULL;
    int rc = check_once(r, e);
    rc = rc == 0 ? check_sockets(r, e) : rc;
    for (unsigned i = 0; rc == 0 && i < r->count; i++) {
        const struct tenant_rule *rule = &r->rule[i];
        rc = check_one(rule, e);
        percent += rule->limits.guaranteed.percent;
        over = over == NULL && percent > 100 ? rule : over;
    }
    if (rc == 0 && over != NULL) {
        rc = err_set(e, ERR_LIMIT,
                     "%s: tenants are guaranteed %u%% of a device: lower memory_guaranteed",
                     over->guaranteed_at, percent);
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tenant_rule *)a)->name, ((const struct tenant_rule *)b)->name);
}

/* Sorts the rules by name, and updates the claims, which name rules by index. */
static int sort(struct tenant_rules *r, struct err *e)
{
    if (r->count == 0) {
        return 0;
    }
    struct tenant_rule *sorted = calloc(r->count, sizeof *sorted);
    if (sorted == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for tenants");
    }
    memcpy(sorted, r->rule, r->count * sizeof *sorted);
    qsort(sorted, r->count, sizeof *sorted, by_name);
    for (unsigned i = 0; i < r->claim_count; i++) {
        const struct tenant_rule *at =
            bsearch(&r->rule[r->claim[i].rule], sorted, r->count, sizeof *sorted, by_name);
        r->claim[i].rule = (unsigned)(at - sorted);
    }
    free(r->rule);
    r->rule = sorted;
    return 0;
}

static int finish_reading(struct reading *r, int rc, struct tenant_rules *ret_rules, struct err *e)
{
    rc = rc == 0 ? check(&r->rules, e) : rc;
    rc = rc == 0 ? sort(&r->rules, e) : rc;
    if (rc != 0) {
        tenant_rules_finish(&r->rules);
        return rc;
    }
    *ret_rules = r->rules;
    return 0;
}

static int read_some(struct reading *r, const char *file, const char *dir, bool tenants_only,
                     struct err *e)
{
    const struct config_sink sink = {.section = section,
                                     .set = set,
                                     .data = r,
                                     .place = r->place,
                                     .place_size = sizeof r->place};
    struct err why = ERR_INIT;
    r->tenants_only = tenants_only;
    int rc = file != NULL ? config_file_read(file, &sink, &why) : 0;
    rc = rc == 0 && dir != NULL ? config_dir_read(dir, &sink, NULL, &why) : rc;
    if (rc != 0 && e != NULL) {
        *e = why;
    }
    return rc;
}

int tenant_rules_load(const char *file, const char *dir, struct tenant_rules *ret_rules,
                      struct err *e)
{
    struct reading r = {.rules = {.others = TENANT_UNLIMITED}};
    int rc = read_some(&r, file, NULL, false, e);
    rc = rc == 0 ? read_some(&r, NULL, dir, true, e) : rc;
    return finish_reading(&r, rc, ret_rules, e);
}

static int read_all(const struct config *config, struct tenant_rules *ret_rules, struct err *e)
{
    if (config->chosen) {
        return tenant_rules_load(config->file, NULL, ret_rules, e);
    }
    struct reading r = {.rules = {.others = TENANT_UNLIMITED}};
    char path[CONFIG_PATH + 32];
    (void)snprintf(path, sizeof path, "%s/" CONFIG_FILE, config->root);
    int rc = read_some(&r, path, NULL, false, e);
    if (rc == 0 || rc == ERR_NOT_FOUND) {
        (void)snprintf(path, sizeof path, "%s/" CONFIG_DROP_INS, config->root);
        rc = read_some(&r, NULL, path, false, e);
    }
    (void)snprintf(path, sizeof path, "%s/" CONFIG_TENANTS, config->root);
    rc = rc == 0 ? read_some(&r, NULL, path, true, e) : rc;
    return finish_reading(&r, rc, ret_rules, e);
}

int tenant_rules_read(const struct config *config, struct tenant_rules *ret_rules, struct err *e)
{
    struct tenant_rules rules;
    int rc = read_all(config, &rules, e);
    if (rc != 0) {
        return rc;
    }
    rc = check_common(&rules, config, e);
    if (rc != 0) {
        tenant_rules_finish(&rules);
        return rc;
    }
    *ret_rules = rules;
    return 0;
}

int tenant_rules_folders(const struct tenant_rules *rules, const struct config *config,
                         struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < rules->count; i++) {
        const struct tenant_rule *rule = &rules->rule[i];
        rc = tenant_socket_check_folder(&rule->socket, config->runtime_dir, e);
        rc = rc != 0 ? err_wrap(e, "%s: tenant %s", rule->listen_at, rule->name) : 0;
    }
    return rc;
}

void tenant_rules_finish(struct tenant_rules *rules)
{
    free(rules->rule);
    free(rules->claim);
    free(rules->token);
    *rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
}

/* ---- answers --------------------------------------------------------------------------------- */

const struct tenant_rule *tenant_rules_of(const struct tenant_rules *rules,
                                          const struct tenant_peer *peer)
{
    unsigned first = rules->count;
    unsigned unknown = rules->count;
    for (unsigned i = 0; i < rules->count; i++) {
        unknown = rules->rule[i].unknown ? i : unknown;
    }
    for (unsigned i = 0; !peer->local && i < rules->count; i++) {
        if (rules->rule[i].tcp) {
            return &rules->rule[i];
        }
    }
    for (unsigned i = 0; peer->local && i < rules->claim_count; i++) {
        const struct tenant_claim *c = &rules->claim[i];
        if (c->id != (c->kind == CLAIM_GROUP ? peer->gid : peer->uid)) {
            continue;
        }
        if (c->kind == CLAIM_USER) {
            return &rules->rule[c->rule];
        }
        first = c->rule < first ? c->rule : first;
    }
    first = first < rules->count ? first : unknown;
    return first < rules->count ? &rules->rule[first] : NULL;
}

const struct tenant_rule *tenant_rules_socket(const struct tenant_rules *rules, uint32_t number)
{
    for (unsigned i = 0; i < rules->count; i++) {
        const struct tenant_rule *rule = &rules->rule[i];
        if (rule->socket.path[0] != '\0' && tenant_socket_number(rule->name) == number) {
            return rule;
        }
    }
    return NULL;
}

/* What there is. */
struct extent {
    unsigned devices;
    uint64_t pool; /* bytes of the largest */
};

/* devices_at, hard_at: FILE:LINE. */
static bool exceed(const struct tenant_limits *l, const char *name, const char *devices_at,
                   const char *hard_at, const struct extent *e, char *out, size_t size)
{
    uint64_t there = e->devices < 64 ? (UINT64_C(1) << e->devices) - 1 : UINT64_MAX;
    uint64_t beyond = l->devices & ~there;
    if (beyond != 0) {
        (void)snprintf(out, size, "%s: tenant %s: devices names %u, the last device is %u%s",
                       devices_at, name, (unsigned)__builtin_ctzll(beyond), e->devices - 1,
                       (l->devices & there) == 0 ? ", so it can use none" : "");
        return true;
    }
    bool above = l->hard.percent == 0 && l->hard.bytes != UINT64_MAX && l->hard.bytes > e->pool;
    if (above) {
        (void)snprintf(out, size,
                       "%s: tenant %s: memory_hard is %" PRIu64
                       " bytes, the largest pool of a device has %" PRIu64 ": it limits nothing",
                       hard_at, name, l->hard.bytes, e->pool);
    }
    return above;
}

bool tenant_rules_exceed(const struct tenant_rules *rules, unsigned devices, uint64_t pool_most,
                         char *out, size_t size)
{
    const struct extent e = {.devices = devices, .pool = pool_most};
    bool found = devices > 0 && exceed(&rules->others, TENANT_OTHERS, "[tenant " TENANT_OTHERS "]",
                                       "[tenant " TENANT_OTHERS "]", &e, out, size);
    for (unsigned i = 0; devices > 0 && !found && i < rules->count; i++) {
        const struct tenant_rule *r = &rules->rule[i];
        found = exceed(&r->limits, r->name, r->devices_at, r->hard_at, &e, out, size);
    }
    return found;
}

int tenant_rules_fit(const struct tenant_rules *rules, uint64_t pool_limit, struct err *e)
{
    char names[256] = "";
    size_t used = 0;
    uint64_t all = 0;
    const struct tenant_rule *over = NULL; /* the first for which nothing is left */
    for (unsigned i = 0; i < rules->count; i++) {
        const struct tenant_rule *rule = &rules->rule[i];
        uint64_t bytes = amount_of(&rule->limits.guaranteed, pool_limit);
        if (bytes > amount_of(&rule->limits.hard, pool_limit)) {
            return err_set(e, ERR_LIMIT,
                           "tenant %s: memory_guaranteed is %" PRIu64
                           " bytes on this device, more than memory_hard",
                           rule->name, bytes);
        }
        over = over == NULL && sat_add(all, bytes) > pool_limit ? rule : over;
        all = sat_add(all, bytes);
        if (bytes > 0 && used < sizeof names) {
            int n = snprintf(names + used, sizeof names - used, "%s%s %" PRIu64,
                             used > 0 ? ", " : "", rule->name, bytes);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (over == NULL) {
        return 0;
    }
    bool placed = over->guaranteed_at[0] != '\0';
    return err_set(e, ERR_LIMIT,
                   "%" PRIu64 " bytes are guaranteed to tenants (%s), the device's pool may take "
                   "%" PRIu64 ": lower memory_guaranteed%s%s",
                   all, names, pool_limit, placed ? ", as at " : "", over->guaranteed_at);
}
