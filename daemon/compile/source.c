#include "daemon/compile/source.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define NOT_ALLOWED                                                                                \
    "is not allowed here: no file of the daemon's host is read, and no header of that name came "  \
    "with the source (gpud_module_options.headers; gpuctl looks for them with -I)"
/* Without an apostrophe, because the compiler splits the line into tokens. The header's name
 * follows. */
#define AS_ERROR                                                                                   \
    "error #include is not allowed here: no header of that name came with the source "             \
    "(gpud_module_options.headers; gpuctl looks for them with -I): "

struct cursor {
    const char *at;
    const char *end;
    const char *line_start;
    unsigned line;
    struct capbuf *safe; /* not owned; NULL: none */
    const char *copied;  /* end of the source copied to `safe` */
};

/* Skips a backslash and newline, which may be anywhere, also with the trigraph for the
 * backslash. */
static bool skip_continuation(struct cursor *c)
{
    size_t left = (size_t)(c->end - c->at);
    size_t slash = left >= 1 && c->at[0] == '\\' ? 1 : 0;
    if (left >= 3 && memcmp(c->at, "?\?/", 3) == 0) {
        slash = 3;
    }
    if (slash == 0) {
        return false;
    }
    size_t n = slash;
    while (n < left && (c->at[n] == ' ' || c->at[n] == '\t' || c->at[n] == '\r')) {
        n++;
    }
    if (n >= left || c->at[n] != '\n') {
        return false;
    }
    c->at += n + 1;
    c->line++;
    c->line_start = c->at;
    return true;
}

static int peek(struct cursor *c)
{
    while (c->at < c->end && skip_continuation(c)) {
    }
    return c->at < c->end ? (unsigned char)*c->at : -1;
}

static int take(struct cursor *c)
{
    int ch = peek(c);
    if (ch < 0) {
        return ch;
    }
    c->at++;
    if (ch == '\n') {
        c->line++;
        c->line_start = c->at;
    }
    return ch;
}

static bool take_if(struct cursor *c, char wanted)
{
    if (peek(c) != wanted) {
        return false;
    }
    (void)take(c);
    return true;
}

/* After a slash: skips the rest of a comment, but not the newline that ends it. Returns false if
 * no comment began. */
static bool skip_comment(struct cursor *c)
{
    if (take_if(c, '*')) {
        int before = 0;
        for (int ch = take(c); ch >= 0 && !(before == '*' && ch == '/'); ch = take(c)) {
            before = ch;
        }
        return true;
    }
    if (peek(c) != '/') {
        return false;
    }
    while (peek(c) >= 0 && peek(c) != '\n') {
        (void)take(c);
    }
    return true;
}

static void skip_blanks(struct cursor *c)
{
    for (;;) {
        int ch = peek(c);
        if (ch >= 0 && ch != '\n' && isspace(ch)) {
            (void)take(c);
            continue;
        }
        struct cursor before = *c;
        if (ch == '/' && take(c) == '/' && skip_comment(c)) {
            continue;
        }
        *c = before;
        return;
    }
}

static void skip_literal(struct cursor *c, int quote)
{
    for (int ch = take(c); ch >= 0 && ch != quote && ch != '\n'; ch = take(c)) {
        if (ch == '\\') {
            (void)take(c);
        }
    }
}

/* Takes a hash: "#", "%:" or the trigraph. */
static bool take_hash(struct cursor *c)
{
    struct cursor before = *c;
    if (take_if(c, '#') || (take_if(c, '%') && take_if(c, ':'))) {
        return true;
    }
    *c = before;
    if (take_if(c, '?') && take_if(c, '?') && take_if(c, '=')) {
        return true;
    }
    *c = before;
    return false;
}

static bool forbidden(const char *word)
{
    static const char *const NAME[] = {"include", "include_next", "import", "embed",
                                       "__include_macros"};
    for (size_t i = 0; i < sizeof NAME / sizeof NAME[0]; i++) {
        if (strcmp(word, NAME[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Replaces the directive whose word begins at `begin` by an #error. Returns false if that is not
 * possible. */
static bool leave_to_compiler(struct cursor *c, const char *begin, const char *word)
{
    if (c->safe == NULL || strcmp(word, "include") != 0 || c->at != begin + strlen(word) ||
        !capbuf_append(c->safe, c->copied, (size_t)(begin - c->copied)) ||
        !capbuf_append(c->safe, AS_ERROR, sizeof AS_ERROR - 1)) {
        return false;
    }
    c->copied = c->at;
    return true;
}

static int directive_check(struct cursor *c, const char *file, struct err *e)
{
    char word[32];
    size_t n = 0;
    unsigned line = c->line;
    unsigned column = (unsigned)(c->at - c->line_start);
    skip_blanks(c);
    const char *begin = c->at;
    while (n + 1 < sizeof word && (isalnum(peek(c)) || peek(c) == '_')) {
        word[n++] = (char)take(c);
    }
    word[n] = '\0';
    if (forbidden(word) && !leave_to_compiler(c, begin, word)) {
        return err_set(e, ERR_COMPILE, "%s:%u:%u: error: #%s " NOT_ALLOWED,
                       file[0] != '\0' ? file : "source", line, column, word);
    }
    return 0;
}

int source_check(struct bytes source, const char *file, struct capbuf *ret_safe, struct err *e)
{
    const char *text = (const char *)source.data;
    struct cursor c = {.at = text,
                       .end = text + source.size,
                       .line_start = text,
                       .line = 1,
                       .safe = ret_safe,
                       .copied = text};
    bool line_begins = true;
    while (peek(&c) >= 0) {
        skip_blanks(&c);
        if (line_begins && take_hash(&c)) {
            int rc = directive_check(&c, file, e);
            if (rc != 0) {
                return rc;
            }
        }
        int ch = take(&c);
        line_begins = ch == '\n';
        if (ch == '"' || ch == '\'') {
            skip_literal(&c, ch);
        }
    }
    if (c.copied != text && !capbuf_append(ret_safe, c.copied, (size_t)(c.end - c.copied))) {
        return err_set(e, ERR_LIMIT, "%s: too many #include", file[0] != '\0' ? file : "source");
    }
    return 0;
}
