#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

const char *setting(const char *suffix)
{
    char name[64];
    snprintf(name, sizeof name, "FAKECUDA%s", suffix);
    const char *value = getenv(name);
    if (!value) {
        snprintf(name, sizeof name, "CUDA_FAKE%s", suffix);
        value = getenv(name);
    }
    return value;
}

static bool number_parse(const char *text, uint64_t *ret_number)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*text)) {
        return false;
    }
    uint64_t n = strtoull(text, &end, 0);
    if (*end == 'K' || *end == 'M' || *end == 'G') {
        n <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
        end++;
    }
    *ret_number = n;
    return *end == '\0';
}

static bool code_parse(const char *text, CUresult *ret_code)
{
    uint64_t n = 0;
    const char *name = NULL;
    if (number_parse(text, &n)) {
        *ret_code = (CUresult)n;
        return true;
    }
    for (int code = 1; code <= 999; code++) {
        if (cuGetErrorName((CUresult)code, &name) == CUDA_SUCCESS && strcmp(name, text) == 0) {
            *ret_code = (CUresult)code;
            return true;
        }
    }
    return false;
}

static bool action_parse(const char *text, struct action *ret_action)
{
    static const struct {
        const char *name;
        enum act act;
    } plain[] = {{"stall", ACT_STALL}, {"block", ACT_BLOCK}, {"lost", ACT_LOST}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(text, plain[i].name) == 0) {
            *ret_action = (struct action){.act = plain[i].act};
            return true;
        }
    }
    struct action a = {.act = ACT_CODE};
    if (strncmp(text, "fault:", 6) == 0) {
        a.act = ACT_FAULT;
        text += 6;
    }
    bool right = code_parse(text, &a.code);
    *ret_action = a;
    return right;
}

/* [D:]CALL@N[+]; the key is taken apart. */
static bool rule_parse(struct script *s, char *key, const char *value)
{
    struct rule r = {.device = -1};
    char *colon = strchr(key, ':');
    uint64_t n = 0;
    if (colon) {
        *colon = '\0';
        if (!number_parse(key, &n) || n >= DEVICES_MAX) {
            return false;
        }
        r.device = (int)n;
        key = colon + 1;
    }
    char *at = strchr(key, '@');
    size_t size = strlen(at);
    r.onward = at[size - 1] == '+';
    if (r.onward) {
        at[size - 1] = '\0';
    }
    *at = '\0';
    if (!number_parse(at + 1, &r.nth) || r.nth == 0 || !action_parse(value, &r.action) ||
        s->rule_count == RULES_MAX) {
        return false;
    }
    snprintf(r.call, sizeof r.call, "%s", key);
    s->rule[s->rule_count++] = r;
    return true;
}

static bool flag_set(struct script *s, const char *key, uint64_t n)
{
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"mig", &s->mig},
                 {"peer", &s->peer},
                 {"ats", &s->ats},
                 {"host_pointers", &s->host_pointers},
                 {"remap_waits", &s->remap_waits},
                 {"main_notes", &s->main_notes},
                 {"pageable_waits", &s->pageable_waits}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(key, flags[i].key) == 0) {
            *flags[i].flag = n != 0;
            return n <= 1;
        }
    }
    return false;
}

static bool value_set(struct script *s, const char *key, const char *value)
{
    const struct {
        const char *key;
        int *number;
    } ints[] = {
        {"devices", &s->devices}, {"driver", &s->driver}, {"arch", &s->arch}, {"whole", &s->whole}};
    const struct {
        const char *key;
        uint64_t *number;
    } sizes[] = {{"memory", &s->memory},
                 {"context", &s->context},
                 {"addresses", &s->addresses},
                 {"copy_rate", &s->copy_rate},
                 {"kernel_us", &s->kernel_us},
                 {"remap_us", &s->remap_us},
                 {"host_us", &s->host_us},
                 {"load_us", &s->load_us},
                 {"delay_us", &s->delay_us},
                 {"units", &s->units},
                 {"register_most", &s->register_most}};
    uint64_t n = 0;
    if (!number_parse(value, &n)) {
        return false;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strcmp(key, sizes[i].key) == 0) {
            *sizes[i].number = n;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        if (strcmp(key, ints[i].key) == 0) {
            *ints[i].number = (int)n;
            return n <= INT32_MAX;
        }
    }
    return flag_set(s, key, n);
}

static bool item_parse(struct script *s, char *item)
{
    char *equal = strrchr(item, '=');
    CUresult code = CUDA_SUCCESS;
    if (!equal) {
        return false;
    }
    *equal = '\0';
    const char *value = equal + 1;
    if (strchr(item, '@')) {
        return rule_parse(s, item, value);
    }
    if (strcmp(item, "name") == 0) {
        snprintf(s->name, sizeof s->name, "%s", value);
        return true;
    }
    if (strcmp(item, "unknown") == 0) {
        s->noop = strcmp(value, "noop") == 0;
        return s->noop || strcmp(value, "fail") == 0;
    }
    if (strcmp(item, "init") == 0) {
        bool right = code_parse(value, &code);
        s->init = (int)code;
        return right;
    }
    return value_set(s, item, value);
}

bool script_parse(const char *text, struct script *ret_script, const char **ret_wrong)
{
    struct script s = {.devices = 1,
                       .driver = CUDA_VERSION,
                       .arch = 90,
                       .name = "NVIDIA H200",
                       .memory = UINT64_C(8) << 30,
                       .addresses = UINT64_C(1) << 46,
                       .context = UINT64_C(256) << 20,
                       .peer = true,
                       .host_pointers = true,
                       .delay_us = 20};
    while (text && *text) {
        char item[2 * NAME_SIZE];
        size_t size = strcspn(text, ";,");
        *ret_wrong = text;
        if (size >= sizeof item) {
            return false;
        }
        memcpy(item, text, size);
        item[size] = '\0';
        if (size > 0 && !item_parse(&s, item)) {
            return false;
        }
        text += size + (text[size] != '\0');
    }
    if (s.devices > DEVICES_MAX) {
        *ret_wrong = "devices";
        return false;
    }
    *ret_script = s;
    return true;
}

/* One process among those that share the folder gets true. */
static bool rule_claim(const struct rule *r)
{
    const char *dir = setting("_STATE");
    char path[4 * NAME_SIZE];
    if (!dir || r->onward) {
        return true;
    }
    snprintf(path, sizeof path, "%s/rule-%d-%s-%llu", dir, r->device, r->call,
             (unsigned long long)r->nth);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

struct action script_next(const char *call, int device)
{
    struct action a = {.act = ACT_NONE};
    for (unsigned i = 0; i < fake.script.rule_count; i++) {
        struct rule *r = &fake.script.rule[i];
        if (strcmp(r->call, call) != 0 || (r->device >= 0 && r->device != device)) {
            continue;
        }
        r->seen++;
        bool now = r->onward ? r->seen >= r->nth : r->seen == r->nth;
        if (now && a.act == ACT_NONE && rule_claim(r)) {
            a = r->action;
        }
    }
    return a;
}
