#include "kernels/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dialect_int.h"
#include "kernels/signature_int.h"

struct emitter {
    struct bytes source;
    const char *file;
    enum dialect_target target;
    const struct dialect_lang *lang;
    const struct dialect_piece *piece;
    int dtype; /* the member's T */
    unsigned
        outside;   /* variables that text between kernels uses (macros): bits of variable_names */
    unsigned uses; /* `outside` and the variables of the kernel's body */
    struct capbuf *out;
};

/* The variables that a prologue can declare, each for three axes. */
enum variable { VAR_LID, VAR_GID, VAR_GROUP_SIZE, VAR_GROUPS, VAR_INDEX, VARS };
static const char *const variable_names[VARS][3] = {
    [VAR_LID] = {"lid", "lid_y", "lid_z"},
    [VAR_GID] = {"gid", "gid_y", "gid_z"},
    [VAR_GROUP_SIZE] = {"group_size", "group_size_y", "group_size_z"},
    [VAR_GROUPS] = {"groups", "groups_y", "groups_z"},
    [VAR_INDEX] = {"i", "j", "k"},
};

static unsigned variable_bit(enum variable v, unsigned axis)
{
    return 1u << ((unsigned)v * 3 + axis);
}

static unsigned variables_used(struct bytes text)
{
    unsigned used = 0;
    for (unsigned v = 0; v < VARS; v++) {
        for (unsigned axis = 0; axis < 3; axis++) {
            if (lex_uses(text, variable_names[v][axis])) {
                used |= variable_bit(v, axis);
            }
        }
    }
    return used;
}

static const char *type_of(const struct emitter *m, int dtype)
{
    return m->lang->type[dtype == DTYPE_NONE ? m->dtype : dtype];
}

/* Writes #line, so that the compiler's messages have positions in the user's file. */
static void emit_line(const struct emitter *m, unsigned line, unsigned column)
{
    capbuf_printf(m->out, "\n#line %u \"", line);
    for (const char *c = m->file; *c != 0; c++) {
        bool plain = (unsigned char)*c >= 0x20 && *c != '"' && *c != '\\';
        capbuf_printf(m->out, "%c", plain ? *c : '_');
    }
    capbuf_printf(m->out, "\"\n%*s", (int)column - 1, "");
}

static void emit_text(const struct emitter *m)
{
    capbuf_printf(m->out, "%s", m->lang->enter);
    emit_line(m, m->piece->line, m->piece->column);
    capbuf_append(m->out, m->piece->text.data, m->piece->text.size);
    capbuf_printf(m->out, "\n%s", m->lang->leave);
}

static void emit_axis_value(const struct emitter *m, const char *format, unsigned axis)
{
    static const char *const letters[] = {"x", "y", "z"};
    static const char *const numbers[] = {"0", "1", "2"};
    const char *name = m->lang->axis_letter ? letters[axis] : numbers[axis];
    const char *at = strstr(format, "%s");
    capbuf_append(m->out, format, (size_t)(at - format));
    capbuf_printf(m->out, "%s%s", name, at + 2);
}

/* Declares a variable if it is used, so that compilers do not report unused variables. */
static void emit_variable(const struct emitter *m, enum variable v, const char *type,
                          const char *format, unsigned axis)
{
    if ((m->uses & variable_bit(v, axis)) == 0) {
        return;
    }
    capbuf_printf(m->out, "const %s %s = (%s)", type, variable_names[v][axis], type);
    emit_axis_value(m, format, axis);
    capbuf_printf(m->out, "; ");
}

static void emit_index(const struct emitter *m, unsigned axis)
{
    const struct signature *s = &m->piece->sig;
    bool needed = s->guarded && axis < s->over_count;
    if (axis > 0 && s->over_count != 0 && axis >= s->over_count) {
        return;
    }
    if (!needed && (m->uses & variable_bit(VAR_INDEX, axis)) == 0) {
        return;
    }
    capbuf_printf(m->out, "const u64 %s = ((u64)", variable_names[VAR_INDEX][axis]);
    emit_axis_value(m, m->lang->gid, axis);
    capbuf_printf(m->out, " * ");
    emit_axis_value(m, m->lang->group_size, axis);
    capbuf_printf(m->out, " + ");
    emit_axis_value(m, m->lang->lid, axis);
    capbuf_printf(m->out, ") * %lluu; ", axis == 0 ? (unsigned long long)s->per_item : 1ull);
}

static void emit_extent(const struct emitter *m, const struct sig_extent *x)
{
    if (x->dim == -1) {
        capbuf_printf(m->out, "%llullu", (unsigned long long)x->add);
        return;
    }
    capbuf_printf(m->out, "(u64)(%s", m->piece->sig.dim[x->dim]);
    if (x->mul != 1) {
        capbuf_printf(m->out, " * %llu", (unsigned long long)x->mul);
    }
    if (x->add != 0) {
        capbuf_printf(m->out, " %c %llu", x->add < 0 ? '-' : '+',
                      (unsigned long long)(x->add < 0 ? -x->add : x->add));
    }
    capbuf_printf(m->out, ")");
}

static void emit_guard(const struct emitter *m)
{
    static const char index[] = "ijk";
    const struct signature *s = &m->piece->sig;
    if (!s->guarded || s->over_count == 0) {
        return;
    }
    capbuf_printf(m->out, "if (");
    for (unsigned axis = 0; axis < s->over_count; axis++) {
        capbuf_printf(m->out, "%s%c >= ", axis == 0 ? "" : " || ", index[axis]);
        emit_extent(m, &s->over[s->over_count - 1 - axis]);
    }
    capbuf_printf(m->out, ") return; ");
}

static void emit_prologue(const struct emitter *m)
{
    for (unsigned axis = 0; axis < 3; axis++) {
        emit_variable(m, VAR_LID, "u32", m->lang->lid, axis);
        emit_variable(m, VAR_GID, "u64", m->lang->gid, axis);
        emit_variable(m, VAR_GROUP_SIZE, "u32", m->lang->group_size, axis);
        emit_variable(m, VAR_GROUPS, "u64", m->lang->groups, axis);
        emit_index(m, axis);
    }
    emit_guard(m);
}

static void emit_parameters(const struct emitter *m)
{
    const struct signature *s = &m->piece->sig;
    const char *comma = "";
    for (unsigned a = 0; a < s->arg_count; a++) {
        const struct sig_arg *p = &s->arg[a];
        bool array = p->kind == SIG_ARRAY;
        capbuf_printf(m->out, "%s%s%s%s %s%s", comma, array ? m->lang->array : "",
                      array && p->access == ACCESS_IN ? "const " : "", type_of(m, p->dtype),
                      array ? "*" : "", p->name);
        comma = ", ";
    }
    for (unsigned d = 0; d < s->dim_count; d++) {
        capbuf_printf(m->out, "%s%s %s", comma, m->lang->type[DTYPE_U64], s->dim[d]);
        comma = ", ";
    }
}

static void emit_group_attribute(const struct emitter *m)
{
    const struct signature *s = &m->piece->sig;
    uint64_t g[3] = {1, 1, 1};
    unsigned count = 0;
    while (count < SIG_OVER && s->group[count] != 0) {
        count++;
    }
    for (unsigned axis = 0; axis < count; axis++) {
        g[axis] = s->group[count - 1 - axis];
    }
    if (count == 0) {
        return;
    }
    if (m->target == DIALECT_OPENCL) {
        capbuf_printf(m->out, "__attribute__((reqd_work_group_size(%u, %u, %u))) ", (unsigned)g[0],
                      (unsigned)g[1], (unsigned)g[2]);
    } else if (m->target == DIALECT_CUDA) {
        capbuf_printf(m->out, "__launch_bounds__(%u) ", (unsigned)(g[0] * g[1] * g[2]));
    }
}

static void emit_locals(const struct emitter *m)
{
    const struct signature *s = &m->piece->sig;
    for (unsigned l = 0; l < s->local_count; l++) {
        capbuf_printf(m->out, "%s%s %s[%llu]; ", m->lang->local, type_of(m, s->local[l].dtype),
                      s->local[l].name, (unsigned long long)s->local[l].count);
    }
}

/* Declares the arguments of a host function, which come from its struct host_item. */
static uint64_t emit_host_arguments(const struct emitter *m)
{
    const struct signature *s = &m->piece->sig;
    uint64_t offset = 0;
    for (unsigned a = 0; a < s->arg_count; a++) {
        const struct sig_arg *p = &s->arg[a];
        const char *type = type_of(m, p->dtype);
        const char *constant = p->access == ACCESS_IN ? "const " : "";
        if (p->kind == SIG_ARRAY) {
            capbuf_printf(m->out, "%s%s *const %s = gk_item->args[%u]; ", constant, type, p->name,
                          a);
        } else {
            capbuf_printf(m->out, "%s %s = *(const %s *)gk_item->args[%u]; ", type, p->name, type,
                          a);
        }
    }
    for (unsigned d = 0; d < s->dim_count; d++) {
        capbuf_printf(m->out, "const u64 %s = *(const u64 *)gk_item->args[%u]; ", s->dim[d],
                      s->arg_count + d);
    }
    for (unsigned l = 0; l < s->local_count; l++) {
        int dtype = s->local[l].dtype == DTYPE_NONE ? m->dtype : s->local[l].dtype;
        capbuf_printf(m->out, "%s *const %s = (%s *)(gk_item->memory + %llu); ", type_of(m, dtype),
                      s->local[l].name, type_of(m, dtype), (unsigned long long)offset);
        offset += (s->local[l].count * dtype_size(dtype) + 15) / 16 * 16;
    }
    return offset;
}

/* Declares T and the ends of its range, which are the identities of min and max. */
static void emit_family(const struct emitter *m)
{
    static const char *const lowest[] = {[DTYPE_I8] = "(-128)",
                                         [DTYPE_I16] = "(-32768)",
                                         [DTYPE_I32] = "(-2147483647 - 1)",
                                         [DTYPE_I64] = "(-9223372036854775807L - 1)",
                                         [DTYPE_U8] = "0",
                                         [DTYPE_U16] = "0",
                                         [DTYPE_U32] = "0u",
                                         [DTYPE_U64] = "0ul"};
    static const char *const highest[] = {
        [DTYPE_I8] = "127",          [DTYPE_I16] = "32767",
        [DTYPE_I32] = "2147483647",  [DTYPE_I64] = "9223372036854775807L",
        [DTYPE_U8] = "255",          [DTYPE_U16] = "65535",
        [DTYPE_U32] = "4294967295u", [DTYPE_U64] = "18446744073709551615ul"};
    if (m->dtype == DTYPE_NONE) {
        return;
    }
    const char *type = m->lang->type[m->dtype];
    bool real = dtype_is_float(m->dtype);
    const char *low = real ? m->lang->infinity : lowest[m->dtype];
    const char *high = real ? m->lang->infinity : highest[m->dtype];
    capbuf_printf(m->out, "#define T %s\n#define T_LOWEST ((%s)%s%s)\n#define T_HIGHEST ((%s)%s)\n",
                  type, type, real ? "-" : "", low, type, high);
}

static int emit_member(const struct emitter *m, struct err *e)
{
    const struct dialect_piece *piece = m->piece;
    char entry[SIG_NAME + 8];
    int r = signature_entry(&piece->sig, m->dtype, entry, sizeof(entry), e);
    if (r != 0) {
        return r;
    }
    uint64_t local = 0;
    capbuf_printf(m->out, "\n");
    emit_family(m);
    capbuf_printf(m->out, "%s", m->lang->kernel);
    if (m->target == DIALECT_HOST) {
        capbuf_printf(m->out, "void item_%s(const struct host_item *gk_item) { ", entry);
        local = emit_host_arguments(m);
    } else {
        emit_group_attribute(m);
        capbuf_printf(m->out, "void %s(", entry);
        emit_parameters(m);
        capbuf_printf(m->out, ") { ");
        emit_locals(m);
    }
    emit_prologue(m);
    emit_text(m);
    capbuf_printf(m->out, "}\n");
    if (m->dtype != DTYPE_NONE) {
        capbuf_printf(m->out, "#undef T\n#undef T_LOWEST\n#undef T_HIGHEST\n");
    }
    if (m->target == DIALECT_HOST) {
        capbuf_printf(m->out, "HOST_KERNEL(%s, %u, %s, %llu)\n", entry,
                      piece->sig.arg_count + piece->sig.dim_count,
                      piece->sig.guarded ? "false" : "true", (unsigned long long)local);
    }
    return 0;
}

static bool needs_f64(const struct signature *s, int dtype)
{
    bool needs = dtype == DTYPE_F64;
    for (unsigned a = 0; a < s->arg_count; a++) {
        needs = needs || s->arg[a].dtype == DTYPE_F64;
    }
    for (unsigned l = 0; l < s->local_count; l++) {
        needs = needs || s->local[l].dtype == DTYPE_F64;
    }
    return needs;
}

static int emit_kernel(struct emitter *m, bool f64, struct err *e)
{
    const struct signature *s = &m->piece->sig;
    unsigned members = s->type_count == 0 ? 1 : s->type_count;
    m->uses = m->outside | variables_used(m->piece->text);
    for (unsigned t = 0; t < members; t++) {
        m->dtype = s->type_count == 0 ? DTYPE_NONE : s->type[t];
        if (needs_f64(s, m->dtype) && !f64) {
            continue;
        }
        int r = emit_member(m, e);
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

static int scan_outside(struct emitter *m, struct dialect_piece *piece, struct err *e)
{
    struct dialect_scan scan;
    bool end = false;
    int r = 0;
    dialect_scan_init(&scan, m->source, m->file);
    while (r == 0 && !end) {
        r = dialect_scan_next(&scan, piece, &end, e);
        if (r == 0 && !end && !piece->kernel) {
            m->outside |= variables_used(piece->text);
        }
    }
    return r;
}

static int emit_pieces(struct emitter *m, struct dialect_piece *piece, bool f64, struct err *e)
{
    struct dialect_scan scan;
    bool end = false;
    dialect_scan_init(&scan, m->source, m->file);
    int r = dialect_scan_next(&scan, piece, &end, e);
    while (r == 0 && !end) {
        if (piece->kernel) {
            r = emit_kernel(m, f64, e);
        } else {
            emit_text(m);
        }
        if (r == 0) {
            r = dialect_scan_next(&scan, piece, &end, e);
        }
    }
    return r;
}

int dialect_translate(struct bytes source, const char *file, enum dialect_target target, bool f64,
                      struct capbuf *out, struct err *e)
{
    struct dialect_piece *piece = calloc(1, sizeof(*piece));
    if (piece == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for translation of %s", file);
    }
    struct emitter m = {.source = source,
                        .file = file != NULL && file[0] != 0 ? file : "kernel",
                        .target = target,
                        .lang = dialect_lang(target),
                        .piece = piece,
                        .out = out};
    capbuf_printf(out, "%s%s", m.lang->preamble, f64 ? m.lang->preamble_f64 : "");
    int r = scan_outside(&m, piece, e);
    if (r == 0) {
        r = emit_pieces(&m, piece, f64, e);
    }
    free(piece);
    if (r == 0 && out->failed) {
        return err_set(e, ERR_LIMIT, "translation of %s is larger than %zu bytes", m.file,
                       out->limit);
    }
    return r;
}
