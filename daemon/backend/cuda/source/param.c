#include "daemon/backend/cuda/source/param.h"

#include <stdio.h>
#include <string.h>

#include "common/shape.h"

static const struct {
    const char *name;
    enum dtype dtype;
} types[] = {
    {"char", DTYPE_I8},
    {"signed char", DTYPE_I8},
    {"unsigned char", DTYPE_U8},
    {"bool", DTYPE_U8},
    {"short", DTYPE_I16},
    {"unsigned short", DTYPE_U16},
    {"int", DTYPE_I32},
    {"unsigned int", DTYPE_U32},
    {"long", DTYPE_I64},
    {"unsigned long", DTYPE_U64},
    {"long long", DTYPE_I64},
    {"unsigned long long", DTYPE_U64},
    {"float", DTYPE_F32},
    {"double", DTYPE_F64},
    {"__half", DTYPE_F16},
    {"half", DTYPE_F16},
    {"size_t", DTYPE_U64},
    {"ptrdiff_t", DTYPE_I64},
    {"int8_t", DTYPE_I8},
    {"uint8_t", DTYPE_U8},
    {"int16_t", DTYPE_I16},
    {"uint16_t", DTYPE_U16},
    {"int32_t", DTYPE_I32},
    {"uint32_t", DTYPE_U32},
    {"int64_t", DTYPE_I64},
    {"uint64_t", DTYPE_U64},
    {"i8", DTYPE_I8},
    {"u8", DTYPE_U8},
    {"i16", DTYPE_I16},
    {"u16", DTYPE_U16},
    {"i32", DTYPE_I32},
    {"u32", DTYPE_U32},
    {"i64", DTYPE_I64},
    {"u64", DTYPE_U64},
    {"f32", DTYPE_F32},
    {"f64", DTYPE_F64},
};

bool param_builtin(const char *name, struct param_type *ret_type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *ret_type = (struct param_type){
                .dtype = types[i].dtype, .bytes = dtype_size(types[i].dtype), .known = true};
            snprintf(ret_type->name, sizeof ret_type->name, "%s", name);
            return true;
        }
    }
    return false;
}

void param_describe(const struct param_type *type, struct backend_compiled_arg *arg)
{
    bool scalar = type->pointers == 0 && type->dtype != DTYPE_NONE;
    arg->kind = type->pointers > 0 ? 2 : scalar ? 1 : type->known ? 3 : 0;
    arg->access = 0;
    if (type->pointers > 0) {
        /* the const of a pointer to pointers does not say what may be changed */
        arg->access = type->constant && type->pointers == 1 ? ACCESS_IN : ACCESS_INOUT;
    }
    arg->dtype = type->pointers < 2 ? type->dtype : DTYPE_NONE;
    arg->bytes = type->pointers > 0 ? 8 : type->bytes;
    snprintf(arg->type, sizeof arg->type, "%s%.48s%.*s", type->constant ? "const " : "", type->name,
             (int)(type->pointers < 4 ? type->pointers : 4), "****");
}

/* ---- from the source ------------------------------------------------------------------------ */

struct reading {
    char name[64];         /* the words of the type so far */
    char integer[64];      /* "unsigned", "long long", …, in C's order */
    struct lex_token last; /* the last word, perhaps the parameter's name */
    bool is_signed, is_unsigned, is_int, is_char, is_short, other;
    unsigned longs;
    unsigned words; /* count of words that are not part of an integer type */
};

static bool qualifier(const struct lex_token *t)
{
    return lex_is(t, "volatile") || lex_is(t, "__restrict__") || lex_is(t, "__restrict") ||
           lex_is(t, "restrict") || lex_is(t, "__grid_constant__") || lex_is(t, "struct");
}

/* Takes a word of an integer type of several words. Returns false for other words. */
static bool integer_word(struct reading *r, const struct lex_token *t)
{
    r->is_unsigned = r->is_unsigned || lex_is(t, "unsigned");
    r->is_signed = r->is_signed || lex_is(t, "signed");
    r->is_int = r->is_int || lex_is(t, "int");
    r->is_char = r->is_char || lex_is(t, "char");
    r->is_short = r->is_short || lex_is(t, "short");
    r->longs += lex_is(t, "long");
    return lex_integer(t);
}

static bool integer_any(const struct reading *r)
{
    return r->is_unsigned || r->is_signed || r->is_int || r->is_char || r->is_short || r->longs > 0;
}

static void integer_name(const struct reading *r, char *out, size_t size)
{
    const char *base = r->is_char      ? "char"
                       : r->is_short   ? "short"
                       : r->longs == 1 ? "long"
                       : r->longs > 1  ? "long long"
                                       : "int";
    const char *sign = r->is_unsigned ? "unsigned " : r->is_signed && r->is_char ? "signed " : "";
    snprintf(out, size, "%s%s", sign, base);
}

static void word_copy(const struct lex_token *t, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)(t->size < size ? t->size : size - 1), t->text);
}

/* Takes a word that is not a keyword: first the type's name, then the parameter's. */
static bool other_word(struct reading *r, const struct lex_token *t, bool after_pointer,
                       struct backend_compiled_arg *arg)
{
    bool type = !after_pointer && !integer_any(r) && r->words == 0;
    if (t->size >= sizeof arg->name || (!type && arg->name[0] != '\0')) {
        return false;
    }
    word_copy(t, type ? r->name : arg->name, sizeof arg->name);
    r->words++;
    return true;
}

static bool type_finish(const struct reading *r, struct param_type *type)
{
    unsigned pointers = type->pointers;
    bool constant = type->constant;
    char name[64];
    if (integer_any(r)) {
        if (r->name[0] != '\0') {
            return false;
        }
        integer_name(r, name, sizeof name);
    } else {
        snprintf(name, sizeof name, "%s", r->name);
    }
    if (name[0] == '\0') {
        return false;
    }
    if (!param_builtin(name, type)) {
        *type = (struct param_type){.known = false};
        snprintf(type->name, sizeof type->name, "%s", name);
    }
    type->pointers = pointers;
    type->constant = constant;
    return true;
}

bool param_read(const struct lex_token *token, unsigned count, struct backend_compiled_arg *ret_arg)
{
    struct reading r = {.words = 0};
    struct param_type type = {.pointers = 0};
    struct backend_compiled_arg arg;
    memset(&arg, 0, sizeof arg); /* arguments are compared byte by byte */
    for (unsigned i = 0; i < count; i++) {
        const struct lex_token *t = &token[i];
        if (lex_is(t, "const")) {
            type.constant = type.constant || type.pointers == 0;
        } else if (lex_is(t, "*")) {
            type.pointers++;
        } else if (lex_is(t, "[") && arg.name[0] != '\0') {
            type.pointers++;
            break; /* the extent does not matter, and further extents are not supported */
        } else if (t->kind != LEX_WORD) {
            return false;
        } else if (!qualifier(t) && (type.pointers > 0 || !integer_word(&r, t)) &&
                   !other_word(&r, t, type.pointers > 0, &arg)) {
            return false;
        }
    }
    if (!type_finish(&r, &type)) {
        return false;
    }
    param_describe(&type, &arg);
    *ret_arg = arg;
    return true;
}
