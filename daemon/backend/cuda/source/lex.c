#include "daemon/backend/cuda/source/lex.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

int lex_normalize(struct bytes source, const char *file, char **ret_text, struct err *e)
{
    if (memchr(source.data, '\0', source.size) != NULL) {
        return err_set(e, ERR_COMPILE, "%s: error: the source contains a NUL", file);
    }
    char *text = malloc(source.size + 1);
    if (text == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a source of %zu bytes", source.size);
    }
    size_t size = 0;
    for (size_t i = 0; i < source.size;) {
        const uint8_t *at = source.data + i;
        size_t bytes = utf8_size(at, source.size - i);
        bool before_newline = i + 1 < source.size && at[1] == '\n';
        if (bytes == 0) {
            text[size++] = '@'; /* compilers refuse it, except where it does not matter */
        } else if (*at != '\r') {
            memcpy(text + size, at, bytes);
            size += bytes;
        } else if (!before_newline) {
            text[size++] = ' ';
        }
        i += bytes > 0 ? bytes : 1;
    }
    text[size] = '\0';
    if (strstr(text, "?\?/") != NULL || strstr(text, "?\?=") != NULL) {
        free(text);
        return err_set(e, ERR_COMPILE, "%s: error: the trigraphs ?\?/ and ?\?= are not allowed",
                       file);
    }
    *ret_text = text;
    return 0;
}

void lex_init(struct lex *l, const char *text, const char *file)
{
    *l = (struct lex){
        .begin = text, .at = text, .end = text + strlen(text), .line = 1, .file = file};
    if (l->end - l->at >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        l->at += 3;
    }
    l->line_start = l->at;
}

/* Reads the number and the name of a "#line" directive in the line at `text`. */
static bool line_mark(const char *text, const char *stop, unsigned *ret_line,
                      struct bytes *ret_name)
{
    static const char mark[] = "#line ";
    char *end = NULL;
    if (strncmp(text, mark, sizeof mark - 1) != 0 || !isdigit((unsigned char)text[6])) {
        return false;
    }
    unsigned long number = strtoul(text + 6, &end, 10);
    if (end[0] != ' ' || end[1] != '"') {
        return false;
    }
    const char *name = end + 2;
    const char *close = memchr(name, '"', (size_t)(stop - name));
    if (close == NULL) {
        return false;
    }
    *ret_line = (unsigned)number;
    *ret_name = bytes_of(name, (size_t)(close - name));
    return true;
}

void lex_place(const char *text, const char *file, unsigned line, char *out, size_t size)
{
    struct bytes name = bytes_str(file);
    unsigned shown = 1;
    for (unsigned at = 1; at < line && *text != '\0'; at++) {
        const char *stop = text + strcspn(text, "\n");
        shown = line_mark(text, stop, &shown, &name) ? shown : shown + 1;
        text = *stop != '\0' ? stop + 1 : stop;
    }
    snprintf(out, size, "%.*s:%u", (int)(name.size < 200 ? name.size : 200),
             (const char *)name.data, shown);
}

int lex_refuse(const char *text, const char *file, const struct lex_token *t, struct err *e,
               const char *what, struct bytes name, const char *advice)
{
    char place[LEX_PLACE];
    lex_place(text, file, t->line, place, sizeof place);
    return err_set(e, ERR_COMPILE, "%s:%u: error: %s%.*s%s", place, t->column, what,
                   (int)(name.size < 64 ? name.size : 64), (const char *)name.data, advice);
}

static int refuse(const struct lex *l, const char *at, const char *what, struct err *e)
{
    const struct lex_token t = {.line = l->line, .column = (unsigned)(at - l->line_start) + 1};
    return lex_refuse(l->begin, l->file, &t, e, "", bytes_str(what), "");
}

static bool word_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool word_char(char c)
{
    return word_start(c) || isdigit((unsigned char)c);
}

/* The text is NUL-terminated, so one character ahead can always be read. */
static void newline(struct lex *l)
{
    l->at++;
    l->line++;
    l->line_start = l->at;
}

/* At a backslash: returns 1 if it joins lines, which are then skipped, 0 if not, < 0 if refused. */
static int splice(struct lex *l, struct err *e)
{
    const char *p = l->at + 1;
    if (*p == '\n') {
        l->at = p;
        newline(l);
        return 1;
    }
    while (*p == ' ' || *p == '\t' || *p == '\v' || *p == '\f') {
        p++;
    }
    if (p > l->at + 1 && *p == '\n') {
        return refuse(l, l->at, "blanks between a backslash and the end of its line", e);
    }
    return 0;
}

static int skip_line_comment(struct lex *l, struct err *e)
{
    while (l->at < l->end && *l->at != '\n') {
        int rc = *l->at == '\\' ? splice(l, e) : 0;
        if (rc < 0) {
            return rc;
        }
        l->at += rc == 0;
    }
    return 0;
}

static int skip_block_comment(struct lex *l, struct err *e)
{
    l->at += 2;
    while (l->at < l->end) {
        if (l->at[0] == '*' && l->at[1] == '/') {
            l->at += 2;
            return 0;
        }
        if (l->at[0] == '*' && l->at[1] == '\\' && l->at[2] == '\n') {
            return refuse(l, l->at, "a comment's end that is continued on the next line", e);
        }
        if (*l->at == '\n') {
            newline(l);
        } else {
            l->at++;
        }
    }
    return 0;
}

/* Skips blanks and comments before the next token. */
static int skip_blanks(struct lex *l, bool *first, struct err *e)
{
    for (;;) {
        char c = *l->at;
        int rc = 0;
        if (l->at >= l->end) {
            return 0;
        }
        if (c == '\n') {
            newline(l);
            *first = true;
        } else if (isspace((unsigned char)c)) {
            l->at++;
        } else if (c == '\\') {
            rc = splice(l, e);
            if (rc == 0) {
                return 0;
            }
        } else if (c == '/' && l->at[1] == '/') {
            rc = skip_line_comment(l, e);
        } else if (c == '/' && l->at[1] == '*') {
            rc = skip_block_comment(l, e);
        } else {
            return 0;
        }
        if (rc < 0) {
            return rc;
        }
    }
}

static int take_literal(struct lex *l, struct err *e)
{
    char quote = *l->at++;
    while (l->at < l->end && *l->at != '\n') {
        char c = *l->at;
        int rc = c == '\\' ? splice(l, e) : 0;
        if (rc < 0) {
            return rc;
        }
        if (rc > 0) {
            continue;
        }
        if (c == '\\' && l->at[1] == '\\' && l->at[2] == '\n') {
            return refuse(l, l->at, "an escape that is continued on the next line", e);
        }
        l->at += c == '\\' && l->at + 1 < l->end ? 2 : 1;
        if (c == quote) {
            return 0;
        }
    }
    return 0; /* it is not closed, which the compiler reports */
}

static bool raw_prefix(const char *text, size_t size)
{
    static const char *const prefix[] = {"R", "LR", "uR", "UR", "u8R"};
    for (size_t i = 0; i < sizeof prefix / sizeof prefix[0]; i++) {
        if (strlen(prefix[i]) == size && memcmp(prefix[i], text, size) == 0) {
            return true;
        }
    }
    return false;
}

static int take_word(struct lex *l, const char *start, struct err *e)
{
    while (word_char(*l->at)) {
        l->at++;
    }
    if (*l->at == '"' && raw_prefix(start, (size_t)(l->at - start))) {
        return refuse(l, start, "raw strings are not allowed", e);
    }
    return 0;
}

/* Skips a number as the preprocessor reads it: digit separators look like quotes. */
static void take_number(struct lex *l)
{
    l->at++;
    for (;;) {
        char c = *l->at;
        bool exponent = c != '\0' && strchr("eEpP", c) != NULL;
        if (exponent && (l->at[1] == '+' || l->at[1] == '-')) {
            l->at += 2;
        } else if (c == '\'' && (isalnum((unsigned char)l->at[1]) || l->at[1] == '_')) {
            l->at += 2;
        } else if (word_char(c) || c == '.') {
            l->at++;
        } else {
            return;
        }
    }
}

/* Refuses a backslash that joins lines in the middle of what could be a word, a comment or a
 * number. */
static int joined_check(const struct lex *l, struct err *e)
{
    const char *p = l->at + (*l->at == '\'');
    char next = p[0] == '\\' && p[1] == '\n' ? p[2] : ' ';
    if (word_char(next) || next == '\\' || next == '"' || next == '\'') {
        return refuse(l, l->at, "a word that is continued on the next line", e);
    }
    return 0;
}

static int sign_check(const struct lex *l, struct err *e)
{
    bool half = *l->at == '/' || *l->at == '%';
    if (half && l->at[1] == '\\' && l->at[2] == '\n') {
        return refuse(l, l->at, "a sign that is continued on the next line", e);
    }
    return 0;
}

static int take_token(struct lex *l, struct lex_token *t, struct err *e)
{
    char c = *l->at;
    int rc = 0;
    if (word_start(c)) {
        t->kind = LEX_WORD;
        rc = take_word(l, l->at, e);
        rc = rc == 0 ? joined_check(l, e) : rc;
    } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)l->at[1]))) {
        t->kind = LEX_NUMBER;
        take_number(l);
        rc = joined_check(l, e);
    } else if (c == '"' || c == '\'') {
        t->kind = LEX_LITERAL;
        rc = take_literal(l, e);
    } else {
        rc = sign_check(l, e);
        bool digraph = c == '%' && l->at[1] == ':';
        t->kind = t->first && (c == '#' || digraph) ? LEX_HASH : LEX_SIGN;
        l->at += digraph ? 2 : 1;
    }
    return rc;
}

int lex_next(struct lex *l, struct lex_token *ret_token, struct err *e)
{
    struct lex_token t = {.kind = LEX_END, .first = l->last == NULL};
    int rc = skip_blanks(l, &t.first, e);
    t.text = l->at;
    t.line = l->line;
    t.column = (unsigned)(l->at - l->line_start) + 1;
    t.glued = l->last == l->at;
    if (rc == 0 && l->at < l->end) {
        rc = take_token(l, &t, e);
    }
    if (rc != 0) {
        return rc;
    }
    t.size = (size_t)(l->at - t.text);
    t.word = t.kind == LEX_HASH ? 1 : t.first || l->word == 0 ? 0 : l->word + 1;
    l->word = t.word;
    l->last = l->at;
    *ret_token = t;
    return 0;
}

struct bytes lex_header(struct lex *l, bool *ret_angle)
{
    const char *p = l->at;
    while (*p == ' ' || *p == '\t' || *p == '(') {
        p++;
    }
    char close = *p == '<' ? '>' : '"';
    if (*p != '<' && *p != '"') {
        return bytes_of(NULL, 0);
    }
    const char *name = ++p;
    while (p < l->end && *p != '\n' && *p != close) {
        p++;
    }
    if (*p != close) {
        return bytes_of(NULL, 0);
    }
    l->at = p + 1;
    *ret_angle = close == '>';
    return bytes_of(name, (size_t)(p - name));
}

bool lex_is(const struct lex_token *t, const char *text)
{
    size_t size = strlen(text);
    return (t->kind == LEX_WORD || t->kind == LEX_SIGN) && t->size == size &&
           memcmp(t->text, text, size) == 0;
}

static bool one_of(const struct lex_token *t, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (lex_is(t, *words)) {
            return true;
        }
    }
    return false;
}

bool lex_integer(const struct lex_token *t)
{
    static const char *const words[] = {"unsigned", "signed", "int", "long", "short", "char", NULL};
    return one_of(t, words);
}

bool lex_takes_parens(const struct lex_token *t)
{
    static const char *const words[] = {"__launch_bounds__",
                                        "__attribute__",
                                        "__cluster_dims__",
                                        "__block_size__",
                                        "__maxnreg__",
                                        "alignas",
                                        "__align__",
                                        "__declspec",
                                        "decltype",
                                        "noexcept",
                                        "throw",
                                        "explicit",
                                        "requires",
                                        NULL};
    return one_of(t, words);
}
