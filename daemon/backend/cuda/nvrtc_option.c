#include "daemon/backend/cuda/nvrtc_option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* X(name, value): without the dashes, of which each may have one or two. */
#define OPTIONS(X)                                                                                 \
    X("std", VALUE_STD)                                                                            \
    X("use_fast_math", VALUE_NONE)                                                                 \
    X("ftz", VALUE_BOOL)                                                                           \
    X("prec-div", VALUE_BOOL)                                                                      \
    X("prec-sqrt", VALUE_BOOL)                                                                     \
    X("fmad", VALUE_BOOL)                                                                          \
    X("maxrregcount", VALUE_NUMBER)                                                                \
    X("restrict", VALUE_NONE)                                                                      \
    X("lineinfo", VALUE_NONE)                                                                      \
    X("default-device", VALUE_DEVICE)                                                              \
    X("extra-device-vectorization", VALUE_NONE)                                                    \
    X("w", VALUE_NONE)                                                                             \
    X("diag-suppress", VALUE_NUMBERS)                                                              \
    X("define-macro", VALUE_MACRO)                                                                 \
    X("disable-warnings", VALUE_NONE)                                                              \
    X("generate-line-info", VALUE_NONE)                                                            \
    X("device-as-default-execution-space", VALUE_DEVICE)

static const char expression_option[] = "--name-expression=";

enum value {
    VALUE_REFUSED,
    VALUE_NONE,
    VALUE_DEVICE, /* none, and o->default_device */
    VALUE_BOOL,
    VALUE_NUMBER,
    VALUE_NUMBERS,
    VALUE_STD,
    VALUE_MACRO,
};

static const struct {
    const char *name;
    enum value value;
} allowed[] = {
#define X(name, value) {name, value},
    OPTIONS(X)
#undef X
};

static bool all_of(const char *text, const char *letters)
{
    return text[0] != '\0' && text[strspn(text, letters)] == '\0';
}

/* "-D", "-U", their names and values; text after "=" may hold what a shell would not. */
static bool macro_ok(const char *text)
{
    size_t name = 0;
    while (isalnum((unsigned char)text[name]) || text[name] == '_') {
        name++;
    }
    if (name == 0 || isdigit((unsigned char)text[0]) || (text[name] != '\0' && text[name] != '=')) {
        return false;
    }
    for (const char *at = text + name; *at != '\0'; at++) {
        if (!isprint((unsigned char)*at) || *at == '\\') {
            return false;
        }
    }
    return true;
}

static bool value_ok(enum value kind, const char *value)
{
    bool none = kind == VALUE_NONE || kind == VALUE_DEVICE;
    if (none || value == NULL) {
        return none && value == NULL;
    }
    switch (kind) {
    case VALUE_BOOL:
        return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    case VALUE_NUMBER:
        return strlen(value) <= 3 && all_of(value, "0123456789");
    case VALUE_NUMBERS:
        return strlen(value) <= 100 && all_of(value, "0123456789,");
    case VALUE_STD:
        return strcmp(value, "c++11") == 0 || strcmp(value, "c++14") == 0 ||
               strcmp(value, "c++17") == 0 || strcmp(value, "c++20") == 0;
    default:
        return macro_ok(value);
    }
}

static enum value option_kind(const char *word)
{
    if (word[0] == '-' && (word[1] == 'D' || word[1] == 'U') && word[2] != '\0') {
        return macro_ok(word + 2) ? VALUE_MACRO : VALUE_REFUSED;
    }
    const char *name = word + (word[0] == '-') + (word[0] == '-' && word[1] == '-');
    const char *equals = strchr(name, '=');
    size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
    if (name == word) {
        return VALUE_REFUSED;
    }
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        if (strlen(allowed[i].name) == size && memcmp(allowed[i].name, name, size) == 0 &&
            value_ok(allowed[i].value, equals != NULL ? equals + 1 : NULL)) {
            return allowed[i].value;
        }
    }
    return VALUE_REFUSED;
}

/* Ends the word at *at with a NUL; *at moves behind it. Quotes are taken out; where one is not
 * closed *ret_whole becomes false. */
static char *word_take(char **at, bool *ret_whole)
{
    char *word = *at + strspn(*at, " \t");
    bool expression = strncmp(word, expression_option, sizeof expression_option - 1) == 0;
    char quote = '\0';
    int depth = 0; /* of an expression's brackets */
    char *to = word;
    char *from = word;
    for (; *from != '\0' && (quote != '\0' || depth > 0 || strchr(" \t", *from) == NULL); from++) {
        if (quote != '\0' ? *from == quote : strchr("\"'", *from) != NULL) {
            quote = quote != '\0' ? '\0' : *from;
            continue;
        }
        depth += expression && strchr("<(", *from) != NULL;
        depth -= depth > 0 && strchr(">)", *from) != NULL;
        *to++ = *from;
    }
    *ret_whole = *ret_whole && quote == '\0';
    *at = from + (*from != '\0');
    *to = '\0';
    return word;
}

static bool expression_ok(const char *text)
{
    size_t size = strlen(text);
    for (const char *at = text; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr("_:<>(), *&+-.", *at) == NULL) {
            return false;
        }
    }
    return size > 0 && size < 256;
}

/* "-std c++17" and "-D NAME" as one word each, as users of nvcc write them. */
static bool joins(const char *word)
{
    return strcmp(word, "-D") == 0 || strcmp(word, "-U") == 0 || strcmp(word, "-std") == 0 ||
           strcmp(word, "--std") == 0 || strcmp(word, "-maxrregcount") == 0 ||
           strcmp(word, "--maxrregcount") == 0;
}

static int option_take(struct nvrtc_options *o, const char *word, struct err *e)
{
    if (strncmp(word, expression_option, sizeof expression_option - 1) == 0) {
        const char *expression = word + sizeof expression_option - 1;
        if (!expression_ok(expression)) {
            return err_set(e, ERR_INVALID, "\"%.64s\" names no kernel: f<float,4>, space::f<int>",
                           expression);
        }
        if (o->expression_count == NVRTC_EXPRESSIONS_MAX) {
            return err_set(e, ERR_LIMIT, "over %u name expressions", NVRTC_EXPRESSIONS_MAX);
        }
        o->expression[o->expression_count++] = expression;
        return 0;
    }
    enum value kind = option_kind(word);
    if (kind == VALUE_REFUSED) {
#define X(name, value) ", -" name
        return err_set(e, ERR_INVALID,
                       "compiler option \"%.64s\" is not allowed; these are: -D, -U, %s" OPTIONS(X),
                       word, expression_option);
#undef X
    }
    if (o->option_count == NVRTC_OPTIONS_MAX) {
        return err_set(e, ERR_LIMIT, "over %u compiler options", NVRTC_OPTIONS_MAX);
    }
    o->default_device = o->default_device || kind == VALUE_DEVICE;
    o->option[o->option_count++] = word;
    return 0;
}

/* "-D" and what follows it becomes "-DNAME"; the others get a "=" in the blank's place. */
static void join(char *word, const char *value)
{
    char *end = word + strlen(word);
    if (word[1] != 'D' && word[1] != 'U') {
        *end++ = '=';
    }
    memmove(end, value, strlen(value) + 1);
}

int nvrtc_options_read(const char *text, struct nvrtc_options *ret_options, struct err *e)
{
    struct nvrtc_options o = {.text = strdup(text)};
    if (o.text == NULL) {
        return err_set(e, ERR_NOMEM, "compiler options");
    }
    char *at = o.text;
    int rc = 0;
    while (rc == 0 && *(at += strspn(at, " \t")) != '\0') {
        bool whole = true;
        char *word = word_take(&at, &whole);
        if (joins(word) && *at != '\0') {
            join(word, word_take(&at, &whole));
        }
        rc = whole ? option_take(&o, word, e)
                   : err_set(e, ERR_INVALID, "option \"%.100s\": a quote is not closed", word);
    }
    if (rc != 0) {
        nvrtc_options_finish(&o);
        return rc;
    }
    *ret_options = o;
    return 0;
}

void nvrtc_options_finish(struct nvrtc_options *o)
{
    free(o->text);
    *o = (struct nvrtc_options){.option_count = 0};
}
