#include "kernels/signature.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/signature_int.h"

struct parser {
    struct bytes text;
    size_t pos;
    struct signature *s;
    unsigned column; /* of the error, from 1 */
    unsigned group_count;
    struct err *e;
};

static int fail_at(struct parser *p, size_t pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int fail_at(struct parser *p, size_t pos, const char *fmt, ...)
{
    char text[192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    p->column = (unsigned)pos + 1;
    return err_set(p->e, ERR_COMPILE, "%s", text);
}

static void skip_space(struct parser *p)
{
    while (p->pos < p->text.size && lex_is_space(p->text.data[p->pos])) {
        p->pos++;
    }
}

static int peek(struct parser *p)
{
    skip_space(p);
    return p->pos < p->text.size ? p->text.data[p->pos] : -1;
}

static bool accept(struct parser *p, char c)
{
    if (peek(p) != c) {
        return false;
    }
    p->pos++;
    return true;
}

static int fail_expected(struct parser *p, const char *what)
{
    int c = peek(p);
    if (c < 0) {
        return fail_at(p, p->pos, "expected %s, not the end of the line", what);
    }
    if (c < 0x20 || c > 0x7e) {
        return fail_at(p, p->pos, "expected %s, not byte 0x%02x", what, (unsigned)c);
    }
    return fail_at(p, p->pos, "expected %s, not '%c'", what, c);
}

static int expect(struct parser *p, char c)
{
    char what[4] = {'\'', c, '\'', 0};
    return accept(p, c) ? 0 : fail_expected(p, what);
}

static int take_word(struct parser *p, const char *what, char ret_word[SIG_NAME])
{
    int c = peek(p);
    if (c < 0 || !lex_is_name_start(c)) {
        return fail_expected(p, what);
    }
    size_t begin = p->pos;
    while (p->pos < p->text.size && lex_is_name(p->text.data[p->pos])) {
        p->pos++;
    }
    if (p->pos - begin >= SIG_NAME) {
        return fail_at(p, begin, "name is longer than %d bytes", SIG_NAME - 1);
    }
    memset(ret_word, 0, SIG_NAME);
    memcpy(ret_word, p->text.data + begin, p->pos - begin);
    return 0;
}

/* Skips the next word if it is `word`. */
static bool accept_word(struct parser *p, const char *word)
{
    size_t before = p->pos;
    char found[SIG_NAME];
    int c = peek(p);
    if (c >= 0 && lex_is_name_start(c)) {
        struct err *e = p->e;
        p->e = NULL;
        int r = take_word(p, word, found);
        p->e = e;
        if (r == 0 && strcmp(found, word) == 0) {
            return true;
        }
    }
    p->pos = before;
    return false;
}

static int take_number(struct parser *p, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    int c = peek(p);
    size_t begin = p->pos;
    uint64_t n = 0;
    if (c < '0' || c > '9') {
        return fail_expected(p, "a number");
    }
    for (; p->pos < p->text.size && lex_is_name(p->text.data[p->pos]); p->pos++) {
        c = p->text.data[p->pos];
        if (c < '0' || c > '9') {
            return fail_at(p, p->pos, "not a decimal number");
        }
        n = n * 10 + (uint64_t)(c - '0');
        if (n > max) {
            break;
        }
    }
    if (n < min || n > max) {
        return fail_at(p, begin, "number must be %llu to %llu", (unsigned long long)min,
                       (unsigned long long)max);
    }
    *ret_number = n;
    return 0;
}

static bool is_reserved(const char *word)
{
    static const char *const words[] = {
        "T",        "T_LOWEST", "T_HIGHEST", "i",        "lid",      "gid",     "group_size",
        "groups",   "barrier",  "in",        "out",      "inout",    "local",   "global",
        "constant", "helper",   "kernel",    "private",  "auto",     "break",   "case",
        "char",     "const",    "continue",  "default",  "do",       "double",  "else",
        "enum",     "extern",   "float",     "for",      "goto",     "half",    "if",
        "inline",   "int",      "long",      "register", "restrict", "return",  "short",
        "signed",   "sizeof",   "static",    "struct",   "switch",   "typedef", "union",
        "unsigned", "void",     "volatile",  "while",    "bool",     "class",   "template",
        "this",     "new",      "delete",    "uint",     "ulong",    "uchar",   "ushort",
        "min",      "max",      "main",
    };
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (strcmp(word, words[w]) == 0) {
            return true;
        }
    }
    return dtype_from_name(word) != DTYPE_NONE || strncmp(word, "__", 2) == 0;
}

/* Reads a name that the kernel defines; it must not be reserved by the dialect or the languages. */
static int take_name(struct parser *p, const char *what, char ret_name[SIG_NAME])
{
    char word[SIG_NAME];
    peek(p);
    size_t begin = p->pos;
    int r = take_word(p, what, word);
    if (r == 0 && is_reserved(word)) {
        r = fail_at(p, begin, "'%s' is a word of the language", word);
    }
    if (r == 0) {
        memcpy(ret_name, word, SIG_NAME);
    }
    return r;
}

/* Reads a type. *ret_dtype: DTYPE_NONE for the family's T. */
static int take_type(struct parser *p, int *ret_dtype)
{
    char word[SIG_NAME];
    peek(p);
    size_t begin = p->pos;
    int r = take_word(p, "a type", word);
    if (r != 0) {
        return r;
    }
    if (strcmp(word, "T") == 0) {
        if (p->s->type_count == 0) {
            return fail_at(p, begin, "T is used but no family <T: …> is given");
        }
        *ret_dtype = DTYPE_NONE;
        return 0;
    }
    int dtype = dtype_from_name(word);
    if (dtype == DTYPE_NONE || dtype == DTYPE_F16) {
        return fail_at(p, begin, "unknown type '%s'", word);
    }
    *ret_dtype = dtype;
    return 0;
}

static int parse_family(struct parser *p)
{
    struct signature *s = p->s;
    if (!accept(p, '<')) {
        return 0;
    }
    if (!accept_word(p, "T")) {
        return fail_expected(p, "'T'");
    }
    int r = expect(p, ':');
    while (r == 0 && !accept(p, '>')) {
        int dtype = DTYPE_NONE;
        peek(p);
        size_t begin = p->pos;
        if (s->type_count == SIG_TYPES) {
            return fail_at(p, begin, "more than %d types", SIG_TYPES);
        }
        s->type_count++; /* take_type then accepts T, and the error is the one below */
        r = take_type(p, &dtype);
        s->type_count--;
        if (r == 0 && dtype == DTYPE_NONE) {
            return fail_at(p, begin, "T cannot be a member of its own family");
        }
        for (unsigned t = 0; r == 0 && t < s->type_count; t++) {
            if (s->type[t] == dtype) {
                return fail_at(p, begin, "type %s is given twice", dtype_name(dtype));
            }
        }
        if (r == 0) {
            s->type[s->type_count++] = dtype;
            accept(p, ',');
        }
    }
    if (r == 0 && s->type_count == 0) {
        return fail_at(p, p->pos, "the family has no types");
    }
    return r;
}

static int take_dim(struct parser *p, int *ret_dim)
{
    struct signature *s = p->s;
    char name[SIG_NAME];
    peek(p);
    size_t begin = p->pos;
    int r = take_name(p, "a size", name);
    if (r != 0) {
        return r;
    }
    for (unsigned d = 0; d < s->dim_count; d++) {
        if (strcmp(s->dim[d], name) == 0) {
            *ret_dim = (int)d;
            return 0;
        }
    }
    if (s->dim_count == SIG_DIMS) {
        return fail_at(p, begin, "more than %d named sizes", SIG_DIMS);
    }
    memcpy(s->dim[s->dim_count], name, SIG_NAME);
    *ret_dim = (int)s->dim_count++;
    return 0;
}

/* NUMBER | (NAME | groups) ['*' NUMBER] [('+' | '-') NUMBER] */
static int parse_extent(struct parser *p, struct sig_extent *ret_extent)
{
    struct sig_extent x = {.dim = -1};
    uint64_t n = 0;
    int c = peek(p);
    int r = 0;
    if (c >= '0' && c <= '9') {
        r = take_number(p, 0, SIG_CONST_MAX, &n);
        x.add = (int64_t)n;
        *ret_extent = x;
        return r;
    }
    x.mul = 1;
    if (accept_word(p, "groups")) {
        x.dim = SIG_GROUPS;
    } else {
        r = take_dim(p, &x.dim);
    }
    if (r == 0 && accept(p, '*')) {
        r = take_number(p, 1, SIG_CONST_MAX, &x.mul);
    }
    if (r == 0 && (peek(p) == '+' || peek(p) == '-')) {
        bool minus = accept(p, '-') || !accept(p, '+');
        r = take_number(p, 0, SIG_CONST_MAX, &n);
        x.add = minus ? -(int64_t)n : (int64_t)n;
    }
    if (r == 0) {
        *ret_extent = x;
    }
    return r;
}

static int parse_shape(struct parser *p, struct sig_arg *a)
{
    int r = 0;
    do {
        peek(p);
        if (a->ndim == SHAPE_MAX_DIMS) {
            return fail_at(p, p->pos, "more than %d dimensions", SHAPE_MAX_DIMS);
        }
        r = parse_extent(p, &a->extent[a->ndim]);
        if (r == 0) {
            a->ndim++;
        }
    } while (r == 0 && accept(p, ','));
    return r == 0 ? expect(p, ']') : r;
}

static int parse_access(struct parser *p)
{
    if (accept_word(p, "in")) {
        return ACCESS_IN;
    }
    if (accept_word(p, "out")) {
        return ACCESS_OUT;
    }
    return accept_word(p, "inout") ? ACCESS_INOUT : ACCESS_NONE;
}

static int parse_arg(struct parser *p)
{
    struct signature *s = p->s;
    peek(p);
    size_t begin = p->pos;
    if (s->arg_count == SIG_ARGS) {
        return fail_at(p, begin, "more than %d arguments", SIG_ARGS);
    }
    struct sig_arg *a = &s->arg[s->arg_count];
    a->access = parse_access(p);
    int r = take_type(p, &a->dtype);
    if (r == 0) {
        r = take_name(p, "the argument's name", a->name);
    }
    if (r != 0) {
        return r;
    }
    bool array = accept(p, '[');
    a->kind = array ? SIG_ARRAY : SIG_SCALAR;
    if (array && a->access == ACCESS_NONE) {
        return fail_at(p, begin, "array %s needs in, out or inout", a->name);
    }
    if (!array && a->access != ACCESS_NONE) {
        return fail_at(p, begin, "%s is declared %s but is no array: write %s[n]", a->name,
                       access_name(a->access), a->name);
    }
    if (array) {
        r = parse_shape(p, a);
    }
    if (r == 0) {
        s->arg_count++;
    }
    return r;
}

static int parse_args(struct parser *p)
{
    int r = expect(p, '(');
    if (r != 0 || accept(p, ')')) {
        return r;
    }
    do {
        r = parse_arg(p);
    } while (r == 0 && accept(p, ','));
    return r == 0 ? expect(p, ')') : r;
}

static int parse_over(struct parser *p)
{
    struct signature *s = p->s;
    int r = 0;
    do {
        peek(p);
        size_t begin = p->pos;
        if (s->over_count == SIG_OVER) {
            return fail_at(p, begin, "over has more than %d extents", SIG_OVER);
        }
        r = parse_extent(p, &s->over[s->over_count]);
        if (r == 0 && s->over[s->over_count].dim == SIG_GROUPS) {
            return fail_at(p, begin, "groups follow from over, not over from groups");
        }
        if (r == 0) {
            s->over_count++;
        }
    } while (r == 0 && accept(p, ','));
    return r;
}

static int parse_group(struct parser *p)
{
    struct signature *s = p->s;
    uint64_t items = 1;
    int r = 0;
    do {
        peek(p);
        size_t begin = p->pos;
        if (p->group_count == SIG_OVER) {
            return fail_at(p, begin, "group has more than %d extents", SIG_OVER);
        }
        r = take_number(p, 1, SIG_GROUP_MAX, &s->group[p->group_count]);
        if (r == 0) {
            items *= s->group[p->group_count++];
            if (items > SIG_GROUP_MAX) {
                return fail_at(p, begin, "a group has at most %u work items", SIG_GROUP_MAX);
            }
        }
    } while (r == 0 && accept(p, ','));
    return r;
}

static int parse_local(struct parser *p)
{
    struct signature *s = p->s;
    uint64_t bytes = 0;
    int r = 0;
    do {
        peek(p);
        size_t begin = p->pos;
        if (s->local_count == SIG_LOCALS) {
            return fail_at(p, begin, "more than %d local arrays", SIG_LOCALS);
        }
        struct sig_local *l = &s->local[s->local_count];
        r = take_type(p, &l->dtype);
        if (r == 0) {
            r = take_name(p, "the local array's name", l->name);
        }
        if (r == 0) {
            r = expect(p, '[');
        }
        if (r == 0) {
            r = take_number(p, 1, SIG_LOCAL_BYTES_MAX, &l->count);
        }
        if (r == 0) {
            r = expect(p, ']');
        }
        if (r == 0) {
            bytes += l->count * (l->dtype == DTYPE_NONE ? 4 : dtype_size(l->dtype));
            s->local_count++;
        }
        if (r == 0 && bytes > SIG_LOCAL_BYTES_MAX) {
            return fail_at(p, begin, "local arrays take more than %u bytes", SIG_LOCAL_BYTES_MAX);
        }
    } while (r == 0 && accept(p, ','));
    return r;
}

static int parse_alias(struct parser *p)
{
    static const char *const words[] = {
        [SIG_ALIAS_NONE] = "none", [SIG_ALIAS_SAME] = "same", [SIG_ALIAS_ANY] = "any"};
    for (unsigned w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (accept_word(p, words[w])) {
            p->s->alias = (enum sig_alias)w;
            return 0;
        }
    }
    return fail_expected(p, "none, same or any");
}

static int take_scalar(struct parser *p, unsigned *ret_arg)
{
    char name[SIG_NAME];
    peek(p);
    size_t begin = p->pos;
    int r = take_word(p, "a scalar's name", name);
    for (unsigned a = 0; r == 0 && a < p->s->arg_count; a++) {
        if (p->s->arg[a].kind == SIG_SCALAR && strcmp(p->s->arg[a].name, name) == 0) {
            *ret_arg = a;
            return 0;
        }
    }
    return r == 0 ? fail_at(p, begin, "%s is no scalar argument", name) : r;
}

/* NAME '<=' NAME [',' …] */
static int parse_where(struct parser *p)
{
    struct signature *s = p->s;
    int r = 0;
    do {
        struct sig_order o = {0};
        peek(p);
        size_t begin = p->pos;
        if (s->order_count == SIG_ORDERS) {
            return fail_at(p, begin, "where has more than %d conditions", SIG_ORDERS);
        }
        r = take_scalar(p, &o.low);
        r = r == 0 ? expect(p, '<') : r;
        r = r == 0 ? expect(p, '=') : r;
        r = r == 0 ? take_scalar(p, &o.high) : r;
        if (r == 0 && s->arg[o.low].dtype != s->arg[o.high].dtype) {
            return fail_at(p, begin, "%s and %s are of two types", s->arg[o.low].name,
                           s->arg[o.high].name);
        }
        if (r == 0) {
            s->order[s->order_count++] = o;
        }
    } while (r == 0 && accept(p, ','));
    return r;
}

typedef int (*parse_fn)(struct parser *p);

static int parse_per(struct parser *p)
{
    return take_number(p, 1, SIG_PER_MAX, &p->s->per_item);
}

static const struct {
    const char *word;
    parse_fn parse;
} clauses[] = {{"over", parse_over},   {"group", parse_group}, {"per", parse_per},
               {"local", parse_local}, {"alias", parse_alias}, {"where", parse_where}};

static int parse_clause(struct parser *p, unsigned *seen)
{
    peek(p);
    size_t begin = p->pos;
    for (unsigned c = 0; c < sizeof(clauses) / sizeof(clauses[0]); c++) {
        if (!accept_word(p, clauses[c].word)) {
            continue;
        }
        if ((*seen & 1u << c) != 0) {
            return fail_at(p, begin, "given twice");
        }
        *seen |= 1u << c;
        return clauses[c].parse(p);
    }
    return fail_expected(p, "over, group, per, local, alias or where");
}

static bool extent_uses(const struct sig_extent *x, unsigned count, int dim)
{
    for (unsigned d = 0; d < count; d++) {
        if (x[d].dim == dim) {
            return true;
        }
    }
    return false;
}

static bool args_use(const struct signature *s, int dim)
{
    for (unsigned a = 0; a < s->arg_count; a++) {
        if (extent_uses(s->arg[a].extent, s->arg[a].ndim, dim)) {
            return true;
        }
    }
    return false;
}

static int check_dims(struct parser *p)
{
    struct signature *s = p->s;
    for (unsigned d = 0; d < s->dim_count; d++) {
        if (!args_use(s, (int)d)) {
            return fail_at(p, p->text.size, "size %s is in no argument's shape", s->dim[d]);
        }
    }
    if (args_use(s, SIG_GROUPS) && s->over_count != 1) {
        return fail_at(p, p->text.size, "groups as a size needs over with one extent");
    }
    if (args_use(s, SIG_GROUPS) && s->group[0] == 0) {
        return fail_at(p, p->text.size, "groups as a size needs group");
    }
    return 0;
}

static const char *name_at(const struct signature *s, unsigned index)
{
    if (index < s->arg_count) {
        return s->arg[index].name;
    }
    index -= s->arg_count;
    if (index < s->dim_count) {
        return s->dim[index];
    }
    index -= s->dim_count;
    return s->local[index].name;
}

static int check_names(struct parser *p)
{
    struct signature *s = p->s;
    unsigned count = s->arg_count + s->dim_count + s->local_count;
    bool has_j = s->over_count != 1;
    bool has_k = s->over_count == 0 || s->over_count == 3;
    for (unsigned a = 0; a < count; a++) {
        const char *name = name_at(s, a);
        if ((has_j && strcmp(name, "j") == 0) || (has_k && strcmp(name, "k") == 0)) {
            return fail_at(p, p->text.size, "'%s' is an index of this kernel", name);
        }
        for (unsigned b = 0; b < a; b++) {
            if (strcmp(name_at(s, b), name) == 0) {
                return fail_at(p, p->text.size, "name %s is used twice", name);
            }
        }
    }
    return 0;
}

static int check_group(struct parser *p)
{
    struct signature *s = p->s;
    if (s->over_count != 0 && p->group_count != 0 && p->group_count != s->over_count) {
        return fail_at(p, p->text.size, "over has %u extents, group has %u", s->over_count,
                       p->group_count);
    }
    if (s->per_item != 1 && s->over_count == 0) {
        return fail_at(p, p->text.size, "per needs over");
    }
    for (unsigned t = 0, bytes = 0; t < s->type_count; t++, bytes = 0) {
        for (unsigned l = 0; l < s->local_count; l++) {
            int dtype = s->local[l].dtype == DTYPE_NONE ? s->type[t] : s->local[l].dtype;
            bytes += (unsigned)s->local[l].count * dtype_size(dtype);
        }
        if (bytes > SIG_LOCAL_BYTES_MAX) {
            return fail_at(p, p->text.size, "local arrays take more than %u bytes for %s",
                           SIG_LOCAL_BYTES_MAX, dtype_name(s->type[t]));
        }
    }
    return 0;
}

static void skip_mark(struct parser *p)
{
    static const char mark[] = "//@kernel";
    peek(p);
    if (p->text.size - p->pos >= sizeof(mark) - 1 &&
        memcmp(p->text.data + p->pos, mark, sizeof(mark) - 1) == 0) {
        p->pos += sizeof(mark) - 1;
    }
    peek(p);
}

static int parse_all(struct parser *p)
{
    struct signature *s = p->s;
    unsigned seen = 0;
    while (p->text.size > 0 && (lex_is_space(p->text.data[p->text.size - 1]) ||
                                p->text.data[p->text.size - 1] == '\n')) {
        p->text.size--;
    }
    skip_mark(p);
    if (!bytes_to_str(bytes_of(p->text.data + p->pos, p->text.size - p->pos), s->text,
                      sizeof(s->text))) {
        return fail_at(p, p->pos, "signature is longer than %zu bytes or has a NUL",
                       sizeof(s->text) - 1);
    }
    int r = take_name(p, "the kernel's name", s->name);
    if (r == 0) {
        r = parse_family(p);
    }
    if (r == 0) {
        r = parse_args(p);
    }
    while (r == 0 && peek(p) >= 0) {
        r = parse_clause(p, &seen);
    }
    if (r == 0) {
        r = check_dims(p);
    }
    if (r == 0) {
        r = check_names(p);
    }
    return r == 0 ? check_group(p) : r;
}

int signature_parse_at(struct bytes line, struct signature *ret_sig, unsigned *ret_col,
                       struct err *e)
{
    struct signature s;
    memset(&s, 0, sizeof(s));
    s.per_item = 1;
    s.line = 1;
    struct parser p = {.text = line, .s = &s, .column = 1, .e = e};
    int r = parse_all(&p);
    if (r != 0) {
        *ret_col = p.column;
        return r;
    }
    s.guarded = s.local_count == 0;
    *ret_sig = s;
    return 0;
}

int signature_parse(struct bytes line, struct signature *ret_sig, struct err *e)
{
    unsigned column = 0;
    struct err why = ERR_INIT;
    int r = signature_parse_at(line, ret_sig, &column, &why);
    return r == 0 ? 0 : err_set(e, r, "column %u: %s", column, why.text);
}

int signature_entry(const struct signature *s, int dtype, char *ret_entry, size_t size,
                    struct err *e)
{
    char text[SIG_NAME + 8];
    bool member = s->type_count == 0 && dtype == DTYPE_NONE;
    for (unsigned t = 0; t < s->type_count; t++) {
        member = member || s->type[t] == dtype;
    }
    if (!member) {
        return err_set(e, ERR_ARG_TYPE, "kernel %s is not made for %s", s->name, dtype_name(dtype));
    }
    snprintf(text, sizeof(text), "%s%s%s", s->name, dtype == DTYPE_NONE ? "" : "_",
             dtype == DTYPE_NONE ? "" : dtype_name(dtype));
    if (strlen(text) >= size) {
        return err_set(e, ERR_LIMIT, "entry %s needs more than %zu bytes", text, size);
    }
    memcpy(ret_entry, text, strlen(text) + 1);
    return 0;
}
