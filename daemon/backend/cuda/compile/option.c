#include "daemon/backend/cuda/compile/option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* X(name, value, known): names without the dash or two dashes that may precede them. */
#define OPTIONS(X)                                                                                 \
    X("std", VALUE_STD, BOTH)                                                                      \
    X("use_fast_math", VALUE_NONE, BOTH)                                                           \
    X("ftz", VALUE_BOOL, BOTH)                                                                     \
    X("prec-div", VALUE_BOOL, BOTH)                                                                \
    X("prec-sqrt", VALUE_BOOL, BOTH)                                                               \
    X("fmad", VALUE_BOOL, BOTH)                                                                    \
    X("maxrregcount", VALUE_NUMBER, BOTH)                                                          \
    X("restrict", VALUE_NONE, BOTH)                                                                \
    X("lineinfo", VALUE_NONE, BOTH)                                                                \
    X("default-device", VALUE_NONE, NVRTC)                                                         \
    X("extra-device-vectorization", VALUE_NONE, BOTH)                                              \
    X("w", VALUE_NONE, BOTH)                                                                       \
    X("diag-suppress", VALUE_NUMBERS, BOTH)                                                        \
    X("define-macro", VALUE_MACRO, BOTH)                                                           \
    X("disable-warnings", VALUE_NONE, BOTH)                                                        \
    X("generate-line-info", VALUE_NONE, BOTH)                                                      \
    X("device-as-default-execution-space", VALUE_NONE, NVRTC)                                      \
    X("expt-relaxed-constexpr", VALUE_NONE, NVCC)                                                  \
    X("expt-extended-lambda", VALUE_NONE, NVCC)                                                    \
    X("extended-lambda", VALUE_NONE, NVCC)

static const char expression_option[] = "--name-expression=";
static const char tool_option[] = "--compiler=";

enum value {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_NUMBER,
    VALUE_NUMBERS,
    VALUE_STD,
    VALUE_MACRO,
};

enum known { BOTH, NVRTC, NVCC };

struct allowed {
    const char *name;
    enum value value;
    enum known known;
};

static const struct allowed allowed[] = {
#define X(name, value, known) {name, value, known},
    OPTIONS(X)
#undef X
};
static const struct allowed macro = {"D", VALUE_MACRO, BOTH};

static bool all_of(const char *text, const char *letters)
{
    return text[0] != '\0' && text[strspn(text, letters)] == '\0';
}

/* Is it NAME or NAME=VALUE, for "-D" or "-U"? The value may contain characters that a shell
 * would interpret, because macros do not go through a shell. */
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
    if (kind == VALUE_NONE || value == NULL) {
        return kind == VALUE_NONE && value == NULL;
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

/* NULL: the option is not allowed. */
static const struct allowed *option_find(const char *word)
{
    if (word[0] == '-' && (word[1] == 'D' || word[1] == 'U') && word[2] != '\0') {
        return macro_ok(word + 2) ? &macro : NULL;
    }
    const char *name = word + (word[0] == '-') + (word[0] == '-' && word[1] == '-');
    const char *equals = strchr(name, '=');
    size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
    for (size_t i = 0; name != word && i < sizeof allowed / sizeof allowed[0]; i++) {
        if (strlen(allowed[i].name) == size && memcmp(allowed[i].name, name, size) == 0 &&
            value_ok(allowed[i].value, equals != NULL ? equals + 1 : NULL)) {
            return &allowed[i];
        }
    }
    return NULL;
}

/* Ends the word at *at with a NUL, and moves *at behind it. Removes quotes; if one is not
 * closed, *ret_whole becomes false. */
static char *word_take(char **at, bool *ret_whole)
{
    char *word = *at + strspn(*at, " \t");
    bool expression = strncmp(word, expression_option, sizeof expression_option - 1) == 0;
    char quote = '\0';
    int depth = 0; /* nesting of a name expression's brackets */
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

/* Options that users of nvcc separate from their value by a blank, as in "-std c++17" and "-D
 * NAME". */
static bool joins(const char *word)
{
    return strcmp(word, "-D") == 0 || strcmp(word, "-U") == 0 || strcmp(word, "-std") == 0 ||
           strcmp(word, "--std") == 0 || strcmp(word, "-maxrregcount") == 0 ||
           strcmp(word, "--maxrregcount") == 0;
}

static int expression_take(struct cuda_options *o, const char *expression, struct err *e)
{
    if (!expression_ok(expression)) {
        return err_set(e, ERR_INVALID, "\"%.64s\" names no kernel: f<float,4>, space::f<int>",
                       expression);
    }
    if (o->expression_count == CUDA_EXPRESSIONS_MAX) {
        return err_set(e, ERR_LIMIT, "over %u name expressions", CUDA_EXPRESSIONS_MAX);
    }
    o->expression[o->expression_count++] = expression;
    return 0;
}

static int known_take(struct cuda_options *o, char *word, const struct allowed *a, struct err *e)
{
    if (o->option_count == CUDA_OPTIONS_MAX || o->macro_count == CUDA_OPTIONS_MAX) {
        return err_set(e, ERR_LIMIT, "over %u compiler options", CUDA_OPTIONS_MAX);
    }
    o->nvrtc_only = a->known == NVRTC ? word : o->nvrtc_only;
    o->nvcc_only = a->known == NVCC ? word : o->nvcc_only;
    if (a->value != VALUE_MACRO) {
        o->option[o->option_count++] = word;
        return 0;
    }
    if (a != &macro) { /* turns "define-macro=NAME" into "-DNAME" */
        word = strchr(word, '=') - 1;
        word[0] = '-';
        word[1] = 'D';
    }
    o->macro[o->macro_count++] = word;
    return 0;
}

static int option_take(struct cuda_options *o, char *word, struct err *e)
{
    if (strncmp(word, expression_option, sizeof expression_option - 1) == 0) {
        return expression_take(o, word + sizeof expression_option - 1, e);
    }
    if (strncmp(word, tool_option, sizeof tool_option - 1) == 0) {
        const char *tool = word + sizeof tool_option - 1;
        return cuda_tool_read(tool, &o->tool)
                   ? 0
                   : err_set(e, ERR_INVALID, "\"%.64s\" is no compiler: auto, nvrtc or nvcc", tool);
    }
    const struct allowed *known = option_find(word);
    if (known == NULL) {
#define X(name, value, known) ", -" name
        return err_set(e, ERR_INVALID,
                       "compiler option \"%.64s\" is not allowed; these are: -D, -U, %s, "
                       "%s" OPTIONS(X),
                       word, expression_option, tool_option);
#undef X
    }
    return known_take(o, word, known, e);
}

/* Joins an option and its value: "-D" and "NAME" become "-DNAME"; other options get a "=" in
 * between. */
static void join(char *word, const char *value)
{
    char *end = word + strlen(word);
    if (word[1] != 'D' && word[1] != 'U') {
        *end++ = '=';
    }
    memmove(end, value, strlen(value) + 1);
}

bool cuda_tool_read(const char *text, enum cuda_tool *ret_tool)
{
    static const char *const names[] = {
        [CUDA_TOOL_AUTO] = "auto", [CUDA_TOOL_NVRTC] = "nvrtc", [CUDA_TOOL_NVCC] = "nvcc"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) == 0) {
            *ret_tool = (enum cuda_tool)i;
            return true;
        }
    }
    return false;
}

int cuda_options_read(const char *text, struct cuda_options *ret_options, struct err *e)
{
    struct cuda_options o = {.text = strdup(text)};
    if (o.text == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for compiler options");
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
        cuda_options_finish(&o);
        return rc;
    }
    *ret_options = o;
    return 0;
}

void cuda_options_finish(struct cuda_options *o)
{
    free(o->text);
    *o = (struct cuda_options){.option_count = 0};
}
