#include "daemon/backend/cuda/source/name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"

#define SEEN_MAX     64u /* limit of parts that a substitution can name */
#define TEMPLATE_MAX 16u
#define DEPTH_MAX    16u

struct reader {
    const char *at;
    struct param_type seen[SEEN_MAX];
    unsigned seen_count;
    struct param_type argument[TEMPLATE_MAX]; /* arguments of the function's template */
    unsigned argument_count;
    unsigned depth;
    struct name_info *info;
    bool function; /* a template's argument was a function type: its parameters are in `info` */
};

static bool type_read(struct reader *r, struct param_type *out);

static bool see(struct reader *r, const struct param_type *type)
{
    if (r->seen_count == SEEN_MAX) {
        return false;
    }
    r->seen[r->seen_count++] = *type;
    return true;
}

static struct param_type class_of(const char *name)
{
    struct param_type type = {.known = true};
    if (strcmp(name, "__half") == 0) {
        (void)param_builtin(name, &type);
    }
    snprintf(type.name, sizeof type.name, "%s", name);
    return type;
}

/* Reads "_" as 0, "0_" as 1, …, in base `base`. */
static bool sequence_read(struct reader *r, unsigned base, unsigned *ret_index)
{
    unsigned index = 0;
    bool digits = false;
    for (; *r->at != '_'; r->at++) {
        char c = *r->at;
        unsigned digit = isdigit((unsigned char)c)           ? (unsigned)(c - '0')
                         : base > 10 && c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10
                                                             : base;
        if (digit >= base || index > 1000) {
            return false;
        }
        index = index * base + digit;
        digits = true;
    }
    r->at++;
    *ret_index = digits ? index + 1 : 0;
    return true;
}

static bool source_name(struct reader *r, char *out, size_t size)
{
    char *end = NULL;
    unsigned long length = strtoul(r->at, &end, 10);
    if (!isdigit((unsigned char)*r->at) || length == 0 || length > strlen(end)) {
        return false;
    }
    snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), end);
    r->at = end + length;
    return true;
}

/* ---- template arguments --------------------------------------------------------------------- */

/* Reads a literal like "Li3E"; its text is the number. */
static bool literal_read(struct reader *r, struct param_type *out)
{
    struct param_type type;
    size_t used = 0;
    r->at++;
    if (!type_read(r, &type) || type.pointers > 0 || type.dtype == DTYPE_NONE) {
        return false;
    }
    *out = (struct param_type){.known = true};
    if (*r->at == 'n') {
        out->name[used++] = '-';
        r->at++;
    }
    while (isdigit((unsigned char)*r->at) && used + 1 < sizeof out->name) {
        out->name[used++] = *r->at++;
    }
    if (strcmp(type.name, "bool") == 0) {
        snprintf(out->name, sizeof out->name, "%s", out->name[0] == '1' ? "true" : "false");
    }
    return used > 0 && *r->at++ == 'E';
}

static bool text_add(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);
    return (size_t)snprintf(out + used, size - used, "%s", text) < size - used;
}

static bool argument_text(const struct param_type *type, char *out, size_t size)
{
    char stars[8];
    snprintf(stars, sizeof stars, "%.*s", (int)(type->pointers < 4 ? type->pointers : 4), "****");
    return type->name[0] != '\0' && (!type->constant || text_add(out, size, "const ")) &&
           text_add(out, size, type->name) && text_add(out, size, stars);
}

/* Appends "I…E" to the name as "<…>". keep: they are the arguments of the function's template. */
static bool arguments_read(struct reader *r, bool keep, char *name, size_t size)
{
    bool ok = text_add(name, size, "<");
    unsigned count = 0;
    for (r->at++; ok && *r->at != 'E' && count < TEMPLATE_MAX; count++) {
        struct param_type type;
        ok = *r->at == 'L' ? literal_read(r, &type) : type_read(r, &type);
        ok = ok && (count == 0 || text_add(name, size, ",")) && argument_text(&type, name, size);
        if (ok && keep) {
            r->argument[count] = type;
            r->argument_count = count + 1;
        }
    }
    return ok && *r->at++ == 'E' && text_add(name, size, ">");
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Appends one part of a nested name. Anonymous namespaces are left out. */
static bool part_read(struct reader *r, char *name, size_t size, char *plain, size_t plain_size)
{
    char part[128];
    if (*r->at == 'L') {
        r->at++;
    }
    if (!source_name(r, part, sizeof part)) {
        return false;
    }
    if (strncmp(part, "_GLOBAL__N_", 11) == 0) {
        return true;
    }
    snprintf(plain, plain_size, "%s", part);
    return (name[0] == '\0' || text_add(name, size, "::")) && text_add(name, size, part);
}

/* Reads "N…E". A later substitution can refer to each beginning of it, and to all of it unless
 * it is the function's own name. */
static bool nested_read(struct reader *r, bool function, char *name, size_t size, char *plain,
                        size_t plain_size)
{
    struct param_type type;
    unsigned index;
    for (r->at++; *r->at != 'E';) {
        bool read;
        bool substitution = *r->at == 'S' && r->at[1] != 't';
        if (substitution) {
            r->at++;
            read = sequence_read(r, 36, &index) && index < r->seen_count &&
                   text_add(name, size, r->seen[index].name);
        } else if (*r->at == 'S') {
            r->at += 2;
            read = text_add(name, size, "std");
            substitution = true; /* never a part that substitutions refer to */
        } else if (*r->at == 'I') {
            read = arguments_read(r, function, name, size);
        } else {
            read = part_read(r, name, size, plain, plain_size);
        }
        type = class_of(name);
        if (!read || ((!function || *r->at != 'E') && !substitution && !see(r, &type))) {
            return false;
        }
    }
    r->at++;
    return true;
}

static bool function_name(struct reader *r, struct name_info *info)
{
    if (*r->at == 'N') {
        return nested_read(r, true, info->name, sizeof info->name, info->plain, sizeof info->plain);
    }
    if (!part_read(r, info->name, sizeof info->name, info->plain, sizeof info->plain)) {
        return false;
    }
    if (*r->at != 'I') {
        return true;
    }
    struct param_type type = class_of(info->name);
    return see(r, &type) && arguments_read(r, true, info->name, sizeof info->name);
}

/* ---- types ---------------------------------------------------------------------------------- */

static bool builtin_read(struct reader *r, struct param_type *out)
{
    static const struct {
        char letter;
        const char *name;
    } letters[] = {
        {'b', "bool"},  {'c', "char"},           {'a', "signed char"}, {'h', "unsigned char"},
        {'s', "short"}, {'t', "unsigned short"}, {'i', "int"},         {'j', "unsigned int"},
        {'l', "long"},  {'m', "unsigned long"},  {'x', "long long"},   {'y', "unsigned long long"},
        {'f', "float"}, {'d', "double"},
    };
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (*r->at == letters[i].letter) {
            r->at++;
            return param_builtin(letters[i].name, out);
        }
    }
    if (*r->at == 'v') {
        r->at++;
        *out = (struct param_type){.name = "void", .known = true};
        return true;
    }
    return false;
}

static bool class_read(struct reader *r, struct param_type *out)
{
    char name[128] = "";
    char plain[64];
    if (*r->at == 'N') {
        bool ok = nested_read(r, false, name, sizeof name, plain, sizeof plain);
        *out = class_of(name);
        return ok;
    }
    if (!source_name(r, name, sizeof name)) {
        return false;
    }
    *out = class_of(name);
    if (!see(r, out) || *r->at != 'I') {
        return r->seen_count < SEEN_MAX;
    }
    bool ok = arguments_read(r, false, name, sizeof name);
    *out = class_of(name);
    return ok && see(r, out);
}

static bool reference_read(struct reader *r, struct param_type *out)
{
    bool argument = *r->at++ == 'T';
    unsigned index = 0;
    if (!sequence_read(r, argument ? 10 : 36, &index)) {
        return false;
    }
    if (index >= (argument ? r->argument_count : r->seen_count)) {
        return false;
    }
    *out = argument ? r->argument[index] : r->seen[index];
    return !argument || see(r, out);
}

static bool qualified_read(struct reader *r, struct param_type *out)
{
    bool constant = false;
    for (; *r->at == 'r' || *r->at == 'V' || *r->at == 'K'; r->at++) {
        constant = constant || *r->at == 'K';
    }
    if (!type_read(r, out)) {
        return false;
    }
    out->constant = out->constant || (constant && out->pointers == 0);
    return see(r, out);
}

/* Reads "F…E": the result, then the parameters. Only one function type is supported. */
static bool function_read(struct reader *r, struct param_type *out)
{
    struct name_info *info = r->info;
    struct param_type type;
    r->at += r->at[1] == 'Y' ? 2 : 1;
    if (r->function || !type_read(r, &type)) {
        return false;
    }
    r->function = true;
    if (*r->at == 'v') {
        r->at++;
    }
    while (*r->at != 'E') {
        if (info->param_count == NAME_PARAMS_MAX || !type_read(r, &type)) {
            return false;
        }
        info->param[info->param_count++] = type;
    }
    r->at++;
    *out = (struct param_type){.name = "function", .known = true};
    return see(r, out);
}

static bool type_form(struct reader *r, struct param_type *out)
{
    switch (*r->at) {
    case 'F':
        return function_read(r, out);
    case 'P':
        r->at++;
        if (!type_read(r, out)) {
            return false;
        }
        out->pointers++;
        return see(r, out);
    case 'r':
    case 'V':
    case 'K':
        return qualified_read(r, out);
    case 'S':
    case 'T':
        return reference_read(r, out);
    default:
        return builtin_read(r, out) || class_read(r, out);
    }
}

static bool type_read(struct reader *r, struct param_type *out)
{
    if (r->depth == DEPTH_MAX) {
        return false;
    }
    r->depth++;
    bool ok = type_form(r, out);
    r->depth--;
    return ok;
}

static bool params_read(struct reader *r, struct name_info *info)
{
    struct param_type type;
    if (r->argument_count > 0 && !type_read(r, &type)) { /* a template's result type comes first */
        return false;
    }
    if (strcmp(r->at, "v") == 0 || r->function) {
        return strcmp(r->at, "v") == 0;
    }
    r->function = true; /* a function type among the parameters is not supported */
    while (*r->at != '\0' && *r->at != '.') {
        if (info->param_count == NAME_PARAMS_MAX || !type_read(r, &type)) {
            return false;
        }
        info->param[info->param_count++] = type;
    }
    return true;
}

bool name_read(const char *entry, struct name_info *ret_info)
{
    struct name_info info = {.typed = false};
    struct reader r = {.at = entry + 2, .info = &info};
    bool mangled = strncmp(entry, "_Z", 2) == 0 && function_name(&r, &info);
    if (mangled) {
        info.typed = params_read(&r, &info);
    } else {
        info = (struct name_info){.typed = false};
        snprintf(info.name, sizeof info.name, "%s", entry);
        snprintf(info.plain, sizeof info.plain, "%s", entry);
    }
    info.param_count = info.typed ? info.param_count : 0;
    *ret_info = info;
    return mangled;
}
