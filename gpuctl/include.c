#include "gpuctl/include.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gpud/gpud.h>

#define DEPTH_MAX 32u  /* headers in headers */
#define FILES_MAX 512u /* different ones */

struct expansion {
    const struct include_dirs *dirs;
    char *out; /* owned */
    size_t size, capacity, limit;
    char *file[FILES_MAX]; /* owned: real paths of headers, for guards of their own */
    unsigned file_count;
    unsigned open[DEPTH_MAX]; /* those that are being read */
    unsigned depth;
    bool any; /* a header was put in */
    struct ctl_err *e;
};

/* A text on its way through. */
struct text {
    const char *at, *end;
    const char *path;
    const char *shown; /* in #line */
    unsigned line;     /* of `at` */
    bool comment;      /* a block comment is open */
    bool joined;       /* the line before ended with a backslash */
};

/* A line that is of interest. */
struct directive {
    bool include, angle, once;
    const char *name; /* in the line */
    size_t size;
};

static int out_add(struct expansion *x, const char *text, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (size > x->limit - x->size) {
        return ctl_err_set(x->e, GPUD_ERR_LIMIT, "with what it includes more than %zu bytes",
                           x->limit);
    }
    if (x->size + size > x->capacity) {
        size_t capacity = 2 * (x->size + size);
        char *grown = realloc(x->out, capacity);
        if (grown == NULL) {
            return ctl_err_set(x->e, GPUD_ERR_NOMEM, "out of memory");
        }
        x->out = grown;
        x->capacity = capacity;
    }
    memcpy(x->out + x->size, text, size);
    x->size += size;
    return 0;
}

static int line_mark(struct expansion *x, unsigned line, const char *shown)
{
    char text[PATH_MAX + 64];
    int size = snprintf(text, sizeof text, "#line %u \"%.1000s\"\n", line, shown);
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

/* `at` begins the line, outside of comments. */
static struct directive directive_read(const char *at, const char *end)
{
    struct directive d = {.include = false};
    at = blanks(at, end);
    if (at == end || *at++ != '#') {
        return d;
    }
    at = blanks(at, end);
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

/* Behind a literal's closing quote. */
static const char *literal_skip(const char *at, const char *end)
{
    char quote = *at++;
    while (at < end && *at != quote) {
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    }
    return at < end ? at + 1 : end;
}

/* Behind a block comment's end, which may be on another line. */
static const char *comment_skip(const char *at, const char *end, bool *ret_open)
{
    const char *close = memmem(at, (size_t)(end - at), "*/", 2);
    *ret_open = close == NULL;
    return close != NULL ? close + 2 : end;
}

/* Is a block comment open behind the line? */
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

/* ---- files ----------------------------------------------------------------------------------- */

static bool file_at(const char *folder, int folder_size, const struct directive *d,
                    char out[PATH_MAX])
{
    struct stat st;
    int n = d->name[0] == '/'
                ? snprintf(out, PATH_MAX, "%.*s", (int)d->size, d->name)
                : snprintf(out, PATH_MAX, "%.*s/%.*s", folder_size, folder, (int)d->size, d->name);
    return n > 0 && n < PATH_MAX && stat(out, &st) == 0 && S_ISREG(st.st_mode);
}

static bool header_find(const struct expansion *x, const char *from, const struct directive *d,
                        char out[PATH_MAX])
{
    const char *slash = strrchr(from, '/');
    if (!d->angle &&
        (slash != NULL ? file_at(from, (int)(slash - from), d, out) : file_at(".", 1, d, out))) {
        return true;
    }
    for (unsigned i = 0; i < x->dirs->count; i++) {
        if (file_at(x->dirs->path[i], (int)strlen(x->dirs->path[i]), d, out)) {
            return true;
        }
    }
    return false;
}

static int file_number(struct expansion *x, const char *path, unsigned *ret_number)
{
    char *real = realpath(path, NULL);
    if (real == NULL) {
        return ctl_err_errno(x->e, "%s", path);
    }
    for (unsigned i = 0; i < x->file_count; i++) {
        if (strcmp(x->file[i], real) == 0) {
            free(real);
            *ret_number = i;
            return 0;
        }
    }
    if (x->file_count == FILES_MAX) {
        free(real);
        return ctl_err_set(x->e, GPUD_ERR_LIMIT, "more than %u headers", FILES_MAX);
    }
    *ret_number = x->file_count;
    x->file[x->file_count++] = real;
    return 0;
}

/* What its own words say against being read twice. */
static bool guarded(const struct file *file, bool *ret_once)
{
    const char *at = file->data;
    const char *end = at + file->size;
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

static int text_expand(struct expansion *x, struct text *t);

/* The header's text where it is included, in a guard of ours if it asks to be read once. */
static int file_put(struct expansion *x, const char *path, const char *shown, unsigned number,
                    const struct file *file, bool once)
{
    char guard[96] = "";
    struct text t = {.at = file->data,
                     .end = (const char *)file->data + file->size,
                     .path = path,
                     .shown = shown,
                     .line = 1};
    int size = once ? snprintf(guard, sizeof guard,
                               "#ifndef GPUCTL_ONCE_%u\n#define GPUCTL_ONCE_%u\n", number, number)
                    : 0;
    int rc = out_add(x, guard, (size_t)size);
    rc = rc == 0 ? line_mark(x, 1, shown) : rc;
    x->open[x->depth++] = number;
    rc = rc == 0 ? text_expand(x, &t) : rc;
    x->depth--;
    if (rc == 0 && t.comment) {
        rc = out_add(x, "*/\n", 3); /* the compiler would have said so */
    }
    return rc == 0 && once ? out_add(x, "#endif\n", 7) : rc;
}

static int header_put(struct expansion *x, const char *path, const char *shown)
{
    struct file file;
    unsigned number = 0;
    bool once = false;
    bool open = false;
    int rc = file_number(x, path, &number);
    rc = rc == 0 ? file_load(path, (struct file_limit){x->limit, x->limit}, &file, x->e) : rc;
    if (rc != 0) {
        return rc;
    }
    bool guard = guarded(&file, &once);
    for (unsigned i = 0; i < x->depth; i++) {
        open = open || x->open[i] == number;
    }
    if (open && !guard) {
        rc = ctl_err_set(x->e, GPUD_ERR_INVALID, "%s includes itself", path);
    } else if (x->depth == DEPTH_MAX) {
        rc = ctl_err_set(x->e, GPUD_ERR_LIMIT, "%s: headers in headers over %u deep", path,
                         DEPTH_MAX);
    } else if (!open) {
        rc = file_put(x, path, shown, number, &file, once);
    }
    x->any = true;
    file_finish(&file);
    return rc;
}

/* A line as it is; the last one of a header gets an end. */
static int line_copy(struct expansion *x, const struct text *t, const char *stop)
{
    int rc = out_add(x, t->at, (size_t)(stop - t->at) + (stop < t->end));
    return rc == 0 && stop == t->end && x->depth > 0 ? out_add(x, "\n", 1) : rc;
}

/* `t` is behind it already where comments are concerned. */
static int include_put(struct expansion *x, const struct text *t, const struct directive *d,
                       const char *path)
{
    char shown[256];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)(d->size < 255 ? d->size : 255), d->name);
    int rc = header_put(x, path, shown);
    rc = rc == 0 ? line_mark(x, t->line + 1, t->shown) : ctl_err_wrap(x->e, "%s", t->shown);
    return rc == 0 && t->comment ? out_add(x, "/*", 2) : rc;
}

static int line_put(struct expansion *x, struct text *t, const char *stop)
{
    struct directive d = {.include = false};
    char path[PATH_MAX];
    if (!t->comment && !t->joined) {
        d = directive_read(t->at, stop);
    }
    t->comment = comment_after(t->at, stop, t->comment);
    t->joined = stop > t->at && stop[-1] == '\\';
    if (d.once && x->depth > 0) {
        return out_add(x, "\n", 1);
    }
    return d.include && header_find(x, t->path, &d, path) ? include_put(x, t, &d, path)
                                                          : line_copy(x, t, stop);
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

int include_expand(const char *path, const struct include_dirs *dirs, size_t limit,
                   struct file *file, struct ctl_err *e)
{
    struct expansion *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    const char *slash = strrchr(path, '/');
    struct text t = {.at = file->data,
                     .end = (const char *)file->data + file->size,
                     .path = path,
                     .shown = slash != NULL ? slash + 1 : path,
                     .line = 1};
    *x = (struct expansion){.dirs = dirs, .limit = limit, .e = e};
    int rc = text_expand(x, &t);
    if (rc == 0 && x->any) {
        file_finish(file);
        *file = (struct file){x->out, x->size};
        x->out = NULL;
    }
    for (unsigned i = 0; i < x->file_count; i++) {
        free(x->file[i]);
    }
    free(x->out);
    free(x);
    return rc;
}
