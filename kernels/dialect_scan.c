#include <stdlib.h>
#include <string.h>

#include "kernels/dialect_int.h"
#include "kernels/signature_int.h"

static const char mark[] = "//@kernel";

void dialect_scan_init(struct dialect_scan *scan, struct bytes source, const char *file)
{
    *scan = (struct dialect_scan){.source = source,
                                  .file = file != NULL && file[0] != 0 ? file : "kernel",
                                  .line = 1,
                                  .column = 1};
}

static void advance(struct dialect_scan *s, size_t to)
{
    for (; s->pos < to; s->pos++) {
        if (s->source.data[s->pos] == '\n') {
            s->line++;
            s->column = 1;
        } else {
            s->column++;
        }
    }
}

static int fail(const struct dialect_scan *s, unsigned line, unsigned column, const char *why,
                struct err *e)
{
    return err_set(e, ERR_COMPILE, "%s:%u:%u: %s", s->file, line, column, why);
}

static bool at_mark(const struct dialect_scan *s)
{
    size_t len = sizeof(mark) - 1;
    struct bytes b = s->source;
    if (b.size - s->pos < len || memcmp(b.data + s->pos, mark, len) != 0 ||
        (s->pos + len < b.size && lex_is_name(b.data[s->pos + len]))) {
        return false;
    }
    for (size_t p = s->pos; p > 0 && b.data[p - 1] != '\n'; p--) {
        if (!lex_is_space(b.data[p - 1])) {
            return false;
        }
    }
    return true;
}

/* Moves to the next signature line, or to the end. */
static void scan_text(struct dialect_scan *s)
{
    while (s->pos < s->source.size && !at_mark(s)) {
        size_t after = lex_skip(s->source, s->pos);
        advance(s, after != s->pos ? after : s->pos + 1);
    }
}

static bool is_blank(struct bytes text)
{
    for (size_t p = 0; p < text.size; p++) {
        if (text.data[p] != '\n' && !lex_is_space(text.data[p])) {
            return false;
        }
    }
    return true;
}

static int scan_signature(struct dialect_scan *s, struct signature *ret_sig, struct err *e)
{
    size_t end = s->pos;
    unsigned column = 0;
    struct err why = ERR_INIT;
    while (end < s->source.size && s->source.data[end] != '\n') {
        end++;
    }
    struct bytes line = bytes_of(s->source.data + s->pos, end - s->pos);
    int r = signature_parse_at(line, ret_sig, &column, &why);
    if (r != 0) {
        return fail(s, s->line, s->column + column - 1, why.text, e);
    }
    ret_sig->line = s->line;
    advance(s, end);
    return 0;
}

/* Moves to the body's opening brace. Only blanks and comments may precede it. */
static int scan_to_body(struct dialect_scan *s, const struct signature *sig, struct err *e)
{
    while (s->pos < s->source.size && s->source.data[s->pos] != '{') {
        int c = s->source.data[s->pos];
        size_t after = lex_skip(s->source, s->pos);
        if (after == s->pos && c != '\n' && !lex_is_space(c)) {
            break;
        }
        if (at_mark(s) || c == '"' || c == '\'') {
            break;
        }
        advance(s, after != s->pos ? after : s->pos + 1);
    }
    if (s->pos == s->source.size || s->source.data[s->pos] != '{') {
        struct err why = ERR_INIT;
        err_set(&why, ERR_COMPILE, "expected '{': the body of kernel %s", sig->name);
        return fail(s, s->line, s->column, why.text, e);
    }
    return 0;
}

static int scan_body(struct dialect_scan *s, struct dialect_piece *piece, struct err *e)
{
    size_t begin = s->pos;
    unsigned depth = 0;
    piece->line = s->line;
    piece->column = s->column;
    while (s->pos < s->source.size) {
        int c = s->source.data[s->pos];
        size_t after = lex_skip(s->source, s->pos);
        if (after != s->pos) {
            advance(s, after);
            continue;
        }
        advance(s, s->pos + 1);
        depth += c == '{';
        depth -= c == '}';
        if (depth == 0) {
            piece->text = bytes_of(s->source.data + begin, s->pos - begin);
            return 0;
        }
    }
    return fail(s, piece->line, piece->column, "this brace is never closed", e);
}

static int scan_kernel(struct dialect_scan *s, struct dialect_piece *piece, struct err *e)
{
    int r = scan_signature(s, &piece->sig, e);
    if (r == 0) {
        r = scan_to_body(s, &piece->sig, e);
    }
    if (r == 0) {
        r = scan_body(s, piece, e);
    }
    if (r == 0) {
        piece->kernel = true;
        piece->sig.guarded = piece->sig.local_count == 0 && !lex_uses(piece->text, "barrier");
    }
    return r;
}

int dialect_scan_next(struct dialect_scan *s, struct dialect_piece *ret_piece, bool *ret_end,
                      struct err *e)
{
    struct dialect_piece *piece = ret_piece;
    piece->kernel = false;
    piece->line = s->line;
    piece->column = s->column;
    size_t begin = s->pos;
    scan_text(s);
    piece->text = bytes_of(s->source.data + begin, s->pos - begin);
    if (!is_blank(piece->text)) {
        /* barriers decide whether a kernel has a guard, so they must be visible in its body */
        if (lex_uses(piece->text, "barrier")) {
            return fail(s, piece->line, piece->column, "barrier() outside a kernel's body", e);
        }
        *ret_end = false;
        return 0;
    }
    *ret_end = s->pos == s->source.size;
    return *ret_end ? 0 : scan_kernel(s, piece, e);
}

static int add_signature(const struct dialect_scan *scan, const struct dialect_piece *piece,
                         struct signature *sigs, unsigned max, unsigned *count, struct err *e)
{
    struct err why = ERR_INIT;
    for (unsigned k = 0; k < *count; k++) {
        if (strcmp(sigs[k].name, piece->sig.name) == 0) {
            err_set(&why, ERR_COMPILE, "kernel %s is defined twice", piece->sig.name);
            return fail(scan, piece->sig.line, 1, why.text, e);
        }
    }
    if (*count == max) {
        err_set(&why, ERR_COMPILE, "more than %u kernels", max);
        return fail(scan, piece->sig.line, 1, why.text, e);
    }
    sigs[(*count)++] = piece->sig;
    return 0;
}

int dialect_signatures(struct bytes source, const char *file, struct signature *ret_sigs,
                       unsigned max, unsigned *ret_count, struct err *e)
{
    struct dialect_scan scan;
    struct dialect_piece *piece = calloc(1, sizeof(*piece));
    unsigned count = 0;
    bool end = false;
    if (piece == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for signatures of %s", file);
    }
    dialect_scan_init(&scan, source, file);
    int r = dialect_scan_next(&scan, piece, &end, e);
    while (r == 0 && !end) {
        if (piece->kernel) {
            r = add_signature(&scan, piece, ret_sigs, max, &count, e);
        }
        if (r == 0) {
            r = dialect_scan_next(&scan, piece, &end, e);
        }
    }
    free(piece);
    if (r == 0 && count == 0) {
        return fail(&scan, 1, 1, "no kernel: a line that begins with //@kernel is needed", e);
    }
    if (r == 0) {
        *ret_count = count;
    }
    return r;
}
