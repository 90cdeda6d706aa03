#include "common/include.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32u   /* nested headers */
#define SHOWN_MAX 1000  /* bytes of a name in #line */
#define SEEN_MAX  1024u /* headers of higher numbers are inserted at every #include */

/* A header that is being read. */
struct reading {
    unsigned number;
    bool guarded;
};

struct expansion {
    include_find_fn find;
    void *data;
    struct capbuf *out;
    struct reading open[DEPTH_MAX];
    unsigned depth;
    bool any;               /* a header was inserted */
    bool certain;           /* no #if encloses the current text, so the compiler sees it */
    uint8_t seen[SEEN_MAX]; /* 1: the header has #pragma once, and the compiler has seen it */
    struct err *e;
};

/* A text that is being expanded, and the position in it. */
struct text {
    const char *at, *end;
    const char *path;
    const char *shown; /* in #line */
    unsigned line;     /* of `at` */
    bool comment;      /* a block comment is open */
    bool joined;       /* the previous line ended with a backslash */
    unsigned nesting;  /* open #if, #ifdef, #ifndef */
    bool unclear;      /* `nesting` may have missed a directive */
};

/* A line's directive; all false: none of these. */
struct directive {
    bool include, angle, once;
    bool opens, closes; /* #if, #ifdef, #ifndef; #endif */
    const char *name;   /* in the line */
    size_t size;
};

static int out_add(struct expansion *x, const char *text, size_t size)
{
    return size == 0 || capbuf_append(x->out, text, size)
               ? 0
               : err_set(x->e, ERR_LIMIT, "with what it includes more than %zu bytes",
                         x->out->limit);
}

static int line_mark(struct expansion *x, unsigned line, const char *shown)
{
    char text[SHOWN_MAX + 64];
    int size = snprintf(text, sizeof text, "#line %u \"%.*s\"\n", line, SHOWN_MAX, shown);
    return out_add(x, text, (size_t)size);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

static bool word_at(const char **at, const char *end, const char *word)
{
    size_t size = strlen(word);
    bool is = (size_t)(end - *at) >= size && memcmp(*at, word, size) == 0 &&
              (*at + size == end || (!isalnum((unsigned char)(*at)[size]) && (*at)[size] != '_'));
    *at += is ? size : 0;
    return is;
}

/* Reads the directive of the line that begins at `at`, outside of comments. */
static struct directive directive_read(const char *at, const char *end)
{
    struct directive d = {.include = false};
    at = blanks(at, end);
    if (at == end || *at++ != '#') {
        return d;
    }
    at = blanks(at, end);
    d.opens = word_at(&at, end, "if") || word_at(&at, end, "ifdef") || word_at(&at, end, "ifndef");
    d.closes = word_at(&at, end, "endif");
    if (word_at(&at, end, "pragma")) {
        at = blanks(at, end);
        d.once = word_at(&at, end, "once");
        return d;
    }
    if (!word_at(&at, end, "include")) {
        return d;
    }
    at = blanks(at, end);
    if (at == end || (*at != '"' && *at != '<')) {
        return d;
    }
    d.angle = *at == '<';
    d.name = at + 1;
    const char *close = memchr(d.name, d.angle ? '>' : '"', (size_t)(end - d.name));
    d.size = close != NULL ? (size_t)(close - d.name) : 0;
    d.include = d.size > 0;
    return d;
}

/* The position after a literal's closing quote. */
static const char *literal_skip(const char *at, const char *end)
{
    char quote = *at++;
    while (at < end && *at != quote) {
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    }
    return at < end ? at + 1 : end;
}

/* The position after the end of a block comment. *ret_open: the comment continues on the next line.
 */
static const char *comment_skip(const char *at, const char *end, bool *ret_open)
{
    const char *close = memmem(at, (size_t)(end - at), "*/", 2);
    *ret_open = close == NULL;
    return close != NULL ? close + 2 : end;
}

/* Is a block comment open at the end of the line? */
static bool comment_after(const char *at, const char *end, bool open)
{
    const char *begin = at;
    while (at < end) {
        char next = at + 1 < end ? at[1] : ' ';
        bool separator = at > begin && isalnum((unsigned char)at[-1]);
        if (open) {
            at = comment_skip(at, end, &open);
        } else if (*at == '/' && next == '/') {
            return false;
        } else if (*at == '/' && next == '*') {
            open = true;
            at += 2;
        } else if (*at == '"' || (*at == '\'' && !separator)) {
            at = literal_skip(at, end);
        } else {
            at++;
        }
    }
    return open;
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Does the header have an include guard (a first #ifndef), or #pragma once (*ret_once)? */
static bool guarded(struct bytes text, bool *ret_once)
{
    const char *at = (const char *)text.data;
    const char *end = at + text.size;
    bool comment = false;
    bool first = true;
    bool ifndef = false;
    *ret_once = false;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        const char *hash = blanks(at, stop);
        if (!comment && hash < stop && *hash == '#') {
            const char *word = blanks(hash + 1, stop);
            ifndef = ifndef || (first && word_at(&word, stop, "ifndef"));
            *ret_once = *ret_once || directive_read(at, stop).once;
            first = false;
        }
        comment = comment_after(at, stop, comment);
        at = newline != NULL ? newline + 1 : end;
    }
    return ifndef || *ret_once;
}

/* directive_read finds a directive only at the start of a line, and only by "#". Can the line have
 * a directive that it misses: after a comment, continued after "#", or by "%:" or a trigraph? */
static bool directive_hidden(const char *at, const char *end)
{
    const char *word = blanks(at, end);
    size_t size = (size_t)(end - at);
    size_t left = (size_t)(end - word);
    bool hash = left >= 1 && *word == '#';
    return (memmem(at, size, "*/", 2) != NULL && memchr(at, '#', size) != NULL) ||
           (hash && left >= 2 && end[-1] == '\\' && blanks(word + 1, end) == end - 1) ||
           (left >= 2 && memcmp(word, "%:", 2) == 0) || (left >= 3 && memcmp(word, "?\?=", 3) == 0);
}

static void conditions_follow(struct text *t, const struct directive *d, const char *stop)
{
    t->unclear = t->unclear || directive_hidden(t->at, stop) || (d->closes && t->nesting == 0);
    t->nesting += d->opens ? 1 : 0;
    t->nesting -= d->closes && t->nesting > 0 ? 1 : 0;
}

static int text_expand(struct expansion *x, struct text *t);

/* Writes the header's text, expanded. once: in an include guard, in place of #pragma once. */
static int header_write(struct expansion *x, const struct include_header *h, const char *shown,
                        struct reading reading, bool once)
{
    char guard[96] = "";
    const char *data = (const char *)h->text.data;
    struct text t = {
        .at = data, .end = data + h->text.size, .path = h->path, .shown = shown, .line = 1};
    int size = once ? snprintf(guard, sizeof guard, "#ifndef GPUD_ONCE_%u\n#define GPUD_ONCE_%u\n",
                               h->number, h->number)
                    : 0;
    int rc = out_add(x, guard, (size_t)size);
    rc = rc == 0 ? line_mark(x, 1, shown) : rc;
    x->open[x->depth++] = reading;
    rc = rc == 0 ? text_expand(x, &t) : rc;
    x->depth--;
    if (rc == 0 && t.comment) {
        rc = out_add(x, "*/\n", 3); /* an open comment must not swallow the rest of the source */
    }
    return rc == 0 && once ? out_add(x, "#endif\n", 7) : rc;
}

/* The open header of that number; NULL: it is not open. */
static const struct reading *reading_of(const struct expansion *x, unsigned number)
{
    for (unsigned i = 0; i < x->depth; i++) {
        if (x->open[i].number == number) {
            return &x->open[i];
        }
    }
    return NULL;
}

static int header_put(struct expansion *x, const struct include_header *found, const char *shown)
{
    bool once = false;
    struct include_header header = *found;
    const struct include_header *h = &header;
    const struct reading *open = reading_of(x, h->number);
    header.text = bytes_without_bom(found->text);
    x->any = true;
    if (open != NULL) {
        return open->guarded ? 0 : err_set(x->e, ERR_INVALID, "%s includes itself", h->path);
    }
    if (x->depth == DEPTH_MAX) {
        return err_set(x->e, ERR_LIMIT, "%s: headers in headers over %u deep", h->path, DEPTH_MAX);
    }
    if (h->number < SEEN_MAX && x->seen[h->number]) {
        return 0;
    }
    struct reading reading = {.number = h->number, .guarded = guarded(h->text, &once)};
    int rc = header_write(x, h, shown, reading, once);
    if (h->number < SEEN_MAX && once && x->certain) {
        x->seen[h->number] = 1;
    }
    return rc;
}

/* Copies the line. The last line of a header gets a newline if it has none. */
static int line_copy(struct expansion *x, const struct text *t, const char *stop)
{
    int rc = out_add(x, t->at, (size_t)(stop - t->at) + (stop < t->end));
    return rc == 0 && stop == t->end && x->depth > 0 ? out_add(x, "\n", 1) : rc;
}

/* Replaces the directive's line by the header. t->comment is already the state after the line: a
 * comment that the line opens continues after the header. */
static int include_put(struct expansion *x, const struct text *t, const struct include_header *h,
                       const char *shown)
{
    bool certain = x->certain;
    x->certain = certain && t->nesting == 0 && !t->unclear;
    int rc = header_put(x, h, shown);
    x->certain = certain;
    rc = rc == 0 ? line_mark(x, t->line + 1, t->shown) : err_wrap(x->e, "%s", t->shown);
    return rc == 0 && t->comment ? out_add(x, "/*", 2) : rc;
}

static int line_put(struct expansion *x, struct text *t, const char *stop)
{
    struct directive d = {.include = false};
    struct include_header h;
    char name[INCLUDE_NAME_MAX + 1];
    int rc = ERR_NOT_FOUND;
    if (!t->comment && !t->joined) {
        d = directive_read(t->at, stop);
    }
    conditions_follow(t, &d, stop);
    t->comment = comment_after(t->at, stop, t->comment);
    t->joined = stop > t->at && stop[-1] == '\\';
    if (d.once && x->depth > 0) {
        return out_add(x, "\n", 1);
    }
    if (d.include && d.size < sizeof name) {
        memcpy(name, d.name, d.size);
        name[d.size] = '\0';
        rc = x->find(x->data, t->path, name, d.angle, &h, x->e);
    }
    if (rc == ERR_NOT_FOUND) {
        return line_copy(x, t, stop);
    }
    return rc != 0 ? rc : include_put(x, t, &h, name);
}

static int text_expand(struct expansion *x, struct text *t)
{
    int rc = 0;
    while (rc == 0 && t->at < t->end) {
        const char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
        const char *stop = newline != NULL ? newline : t->end;
        rc = line_put(x, t, stop);
        t->at = newline != NULL ? newline + 1 : t->end;
        t->line++;
    }
    return rc;
}

int include_expand(const char *path, struct bytes source, include_find_fn find, void *data,
                   struct capbuf *out, bool *ret_any, struct err *e)
{
    const char *slash = strrchr(path, '/');
    struct bytes text = bytes_without_bom(source);
    const char *begin = (const char *)text.data;
    struct text t = {.at = begin,
                     .end = begin + text.size,
                     .path = path,
                     .shown = slash != NULL ? slash + 1 : path,
                     .line = 1};
    struct expansion x = {.find = find, .data = data, .out = out, .certain = true, .e = e};
    int rc = text_expand(&x, &t);
    *ret_any = x.any;
    return rc;
}
