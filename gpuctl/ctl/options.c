#include "gpuctl/ctl/options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl/near.h"

const struct option options_common[] = {
    {"url", 'u', true, OPTION_URL},          {"output", 'o', true, OPTION_OUTPUT},
    {"watch", 'w', true, OPTION_WATCH},      {"help", 'h', false, OPTION_HELP},
    {"version", 'V', false, OPTION_VERSION}, {0},
};

void options_init(struct options *o, int argc, char **argv)
{
    *o = (struct options){.argv = argv, .argc = argc};
}

static const struct option *by_name(const struct option *list, const char *name, size_t length)
{
    for (; list != NULL && list->name != NULL; list++) {
        if (strlen(list->name) == length && memcmp(list->name, name, length) == 0) {
            return list;
        }
    }
    return NULL;
}

static const struct option *by_letter(const struct option *list, char letter)
{
    for (; list != NULL && list->name != NULL; list++) {
        if (list->letter != 0 && list->letter == letter) {
            return list;
        }
    }
    return NULL;
}

static bool is_prefix(const struct option *option)
{
    return option->name[0] == '-';
}

static const struct option *by_prefix(const struct option *list, const char *word)
{
    for (; list != NULL && list->name != NULL; list++) {
        if (is_prefix(list) && strncmp(word, list->name, strlen(list->name)) == 0) {
            return list;
        }
    }
    return NULL;
}

static void try_near(struct near *near, const struct option *list)
{
    for (; list != NULL && list->name != NULL; list++) {
        if (!is_prefix(list)) {
            near_try(near, list->name);
        }
    }
}

static int unknown(const struct option *own, const char *word, size_t length, struct ctl_err *e)
{
    char name[64];
    char meant[96];
    struct near near;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    near_init(&near, name);
    try_near(&near, own);
    try_near(&near, options_common);
    ctl_err_usage(e, "unknown option --%s%s", name, near_text(&near, "--", meant, sizeof meant));
    return OPTION_BAD;
}

static int take_long(struct options *o, const struct option *own, const char **ret_value,
                     struct ctl_err *e)
{
    const char *word = o->argv[o->next++] + 2;
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct option *found = by_name(own, word, length);
    if (found == NULL) {
        found = by_name(options_common, word, length);
    }
    if (found == NULL) {
        return unknown(own, word, length, e);
    }
    if (!found->value) {
        if (equals != NULL) {
            ctl_err_usage(e, "option --%s takes no value", found->name);
            return OPTION_BAD;
        }
        return found->id;
    }
    if (equals == NULL && o->next >= o->argc) {
        ctl_err_usage(e, "option --%s needs a value", found->name);
        return OPTION_BAD;
    }
    *ret_value = equals != NULL ? equals + 1 : o->argv[o->next++];
    return found->id;
}

static int take_letter(struct options *o, const struct option *own, const char **ret_value,
                       struct ctl_err *e)
{
    const char *word = o->argv[o->next];
    int at = o->letter > 0 ? o->letter : 1;
    char letter = word[at];
    const struct option *found = by_letter(own, letter);
    if (found == NULL) {
        found = by_letter(options_common, letter);
    }
    bool last = word[at + 1] == '\0';
    o->letter = last ? 0 : at + 1;
    o->next += last ? 1 : 0;
    if (found == NULL) {
        ctl_err_usage(e, "unknown option -%c", letter);
        return OPTION_BAD;
    }
    if (!found->value) {
        return found->id;
    }
    if (last && o->next >= o->argc) {
        ctl_err_usage(e, "option -%c needs a value", letter);
        return OPTION_BAD;
    }
    *ret_value = last ? o->argv[o->next] : word + at + 1;
    o->letter = 0;
    o->next++;
    return found->id;
}

int options_next(struct options *o, const struct option *own, const char **ret_value,
                 struct ctl_err *e)
{
    if (o->letter > 0) {
        return take_letter(o, own, ret_value, e);
    }
    if (o->next >= o->argc) {
        return OPTION_END;
    }
    const char *word = o->argv[o->next];
    if (!o->words_only && strcmp(word, "--") == 0) {
        o->words_only = true;
        o->next++;
        return options_next(o, own, ret_value, e);
    }
    if (o->words_only || word[0] != '-' || word[1] == '\0') {
        *ret_value = word;
        o->next++;
        return OPTION_WORD;
    }
    const struct option *prefix = by_prefix(own, word);
    if (prefix != NULL) {
        *ret_value = word;
        o->next++;
        return prefix->id;
    }
    return word[1] == '-' ? take_long(o, own, ret_value, e) : take_letter(o, own, ret_value, e);
}
