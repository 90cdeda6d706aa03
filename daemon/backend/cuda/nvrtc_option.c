#include "daemon/backend/cuda/nvrtc_option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED                                                                                    \
    "-D, -U, -std, --use_fast_math, -ftz, -prec-div, -prec-sqrt, -fmad, --maxrregcount, "          \
    "--restrict, -lineinfo, -default-device, -extra-device-vectorization, -w, "                    \
    "-diag-suppress, --name-expression="

static const char expression_option[] = "--name-expression=";

enum value { VALUE_REFUSED, VALUE_NONE, VALUE_DEVICE, VALUE_BOOL, VALUE_NUMBER, VALUE_NUMBERS, VALUE_STD, VALUE_MACRO };

/* Without the dashes: each may have one or two. */
static const struct {
    const char *name;
    enum value value;
} allowed[] = {
    {"std", VALUE_STD},
    {"use_fast_math", VALUE_NONE},
    {"ftz", VALUE_BOOL},
    {"prec-div", VALUE_BOOL},
    {"prec-sqrt", VALUE_BOOL},
    {"fmad", VALUE_BOOL},
    {"maxrregcount", VALUE_NUMBER},
    {"restrict", VALUE_NONE},
    {"lineinfo", VALUE_NONE},
    {"generate-line-info", VALUE_NONE},
    {"default-device", VALUE_DEVICE},
    {"device-as-default-execution-space", VALUE_DEVICE},
    {"extra-device-vectorization", VALUE_NONE},
    {"w", VALUE_NONE},
    {"disable-warnings", VALUE_NONE},
    {"diag-suppress", VALUE_NUMBERS},
};

static bool all_of(const char *text, const char *letters)
{
    return text[0] != '\0' && text[strspn(text, letters)] == '\0';
}

static bool value_ok(enum value kind, const char *value)
{
    static const char *const dialects[] = {"c++11", "c++14", "c++17", "c++20"};
    switch (kind) {
    case VALUE_NONE:
    case VALUE_DEVICE:
        return value == NULL;
    case VALUE_BOOL:
        return value != NULL && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0);
    case VALUE_NUMBER:
        return value != NULL && strlen(value) <= 3 && all_of(value, "0123456789");
    case VALUE_NUMBERS:
        return value != NULL && strlen(value) <= 100 && all_of(value, "0123456789,");
    default:
        for (size_t i = 0; value != NULL && i < sizeof dialects / sizeof dialects[0]; i++) {
            if (strcmp(value, dialects[i]) == 0) {
                return true;
            }
        }
        return false;
    }
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
    if (size == 12 && memcmp(name, "define-macro", size) == 0) {
        return equals != NULL && macro_ok(equals + 1) ? VALUE_MACRO : VALUE_REFUSED;
    }
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        if (strlen(allowed[i].name) == size && memcmp(allowed[i].name, name, size) == 0 &&
            value_ok(allowed[i].value, equals != NULL ? equals + 1 : NULL)) {
            return allowed[i].value;
        }
    }
    return VALUE_REFUSED;
}

/* Where in a word the reader is. */
struct word {
    bool expression; /* brackets count */
    char quote;      /* that is open, or NUL */
    int depth;       /* of brackets */
};

/* true: the character is a quote that begins or ends here */
static bool quote_step(struct word *w, char c)
{
    if (w->quote != '\0' ? c != w->quote : c != '"' && c != '\'') {
        return false;
    }
    w->quote = w->quote != '\0' ? '\0' : c;
    return true;
}

static void bracket_step(struct word *w, char c)
{
    if (w->expression && (c == '<' || c == '(')) {
        w->depth++;
    } else if (w->expression && w->depth > 0 && (c == '>' || c == ')')) {
        w->depth--;
    }
}

/* Ends the word at *at with a NUL; *at moves behind it. Quotes are taken out. */
static char *word_take(char **at)
{
    char *word = *at + strspn(*at, " \t");
    struct word w = {.expression =
                         strncmp(word, expression_option, sizeof expression_option - 1) == 0};
    char *to = word;
    char *from = word;
    for (; *from != '\0'; from++) {
        bool blank = *from == ' ' || *from == '\t';
        if (blank && w.quote == '\0' && w.depth == 0) {
            break;
        }
        if (!quote_step(&w, *from)) {
            bracket_step(&w, *from);
            *to++ = *from;
        }
    }
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
        return err_set(e, ERR_INVALID, "compiler option \"%.64s\" is not allowed; these are: %s",
                       word, ALLOWED);
    }
    if (o->option_count == NVRTC_OPTIONS_MAX) {
        return err_set(e, ERR_LIMIT, "over %u compiler options", NVRTC_OPTIONS_MAX);
    }
    o->default_device = o->default_device || kind == VALUE_DEVICE;
    o->option[o->option_count++] = word;
    return 0;
}

/* "-D" and what follows it in place: "-DNAME"; the others get a "=" between. */
static char *join(char *word, char *text, char *value)
{
    size_t size = strlen(word);
    bool macro = word[1] == 'D' || word[1] == 'U';
    memmove(text, word, size + 1);
    text[size] = '=';
    memmove(text + size + !macro, value, strlen(value) + 1);
    return text;
}

int nvrtc_options_read(const char *text, struct nvrtc_options *ret_options, struct err *e)
{
    struct nvrtc_options o = {.option_count = 0};
    /* in a copy with room for the words that are put together, which are no longer than they were
     */
    size_t size = strlen(text) + 1;
    o.text = malloc(2 * size);
    if (o.text == NULL) {
        return err_set(e, ERR_NOMEM, "compiler options");
    }
    char *joined = o.text + size;
    char *at = memcpy(o.text, text, size);
    int rc = 0;
    while (rc == 0 && *(at += strspn(at, " \t")) != '\0') {
        char *word = word_take(&at);
        if (joins(word) && *at != '\0') {
            char *value = word_take(&at);
            word = join(word, joined, value);
            joined += strlen(word) + 1;
        }
        rc = option_take(&o, word, e);
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
