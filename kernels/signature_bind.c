#include <stdio.h>
#include <string.h>

#include "kernels/signature_int.h"

struct binder {
    const struct signature *s;
    const struct sig_value *values;
    struct sig_binding b;
    bool known[SIG_DIMS];
    struct err *e;
};

static int refuse(struct binder *x, unsigned arg, int code, const char *why)
{
    char what[64] = "scalar";
    const struct sig_value *v = &x->values[arg];
    if (v->array) {
        shape_text(&v->shape, what, sizeof(what));
    } else if (dtype_size(v->dtype) != 0) {
        snprintf(what, sizeof(what), "%s scalar", dtype_name(v->dtype));
    }
    int r = err_set(x->e, code, "argument %s: %s, %s", x->s->arg[arg].name, what, why);
    if (x->e != NULL) {
        x->e->arg = (int)arg;
    }
    return r;
}

/* Writes the members of a family: "f32 f64". */
static void family_text(const struct signature *s, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (unsigned t = 0; t < s->type_count && used < size; t++) {
        int n =
            snprintf(out + used, size - used, "%s%s", t == 0 ? "" : " ", dtype_name(s->type[t]));
        used += n > 0 ? (size_t)n : 0;
    }
}

static int choose_type(struct binder *x)
{
    const struct signature *s = x->s;
    char family[64], why[128];
    int from = -1;
    x->b.dtype = DTYPE_NONE;
    if (s->type_count == 0) {
        return 0;
    }
    /* arrays decide T before scalars do, because scalars can be converted */
    for (unsigned a = 0; a < s->arg_count; a++) {
        bool generic = s->arg[a].dtype == DTYPE_NONE;
        if (generic &&
            (from < 0 || (s->arg[a].kind == SIG_ARRAY && s->arg[from].kind == SIG_SCALAR))) {
            from = (int)a;
        }
    }
    if (from < 0 && s->type_count == 1) {
        x->b.dtype = s->type[0];
        return 0;
    }
    if (from < 0) {
        return err_set(x->e, ERR_ARG_TYPE, "kernel %s: no argument determines its type", s->name);
    }
    const struct sig_value *v = &x->values[from];
    int dtype = v->array ? v->shape.dtype : v->dtype;
    for (unsigned t = 0; t < s->type_count; t++) {
        if (s->type[t] == dtype) {
            x->b.dtype = dtype;
            return 0;
        }
    }
    family_text(s, family, sizeof(family));
    snprintf(why, sizeof(why), "kernel %s is made for %s", s->name, family);
    return refuse(x, (unsigned)from, ERR_ARG_TYPE, why);
}

static int check_scalar(struct binder *x, unsigned a, int dtype)
{
    const struct sig_value *v = &x->values[a];
    struct err why = ERR_INIT;
    int r = scalar_convert(v->dtype, v->bits, dtype, &x->b.scalar[a], &why);
    if (r != 0) {
        err_set(x->e, r, "argument %s: %s", x->s->arg[a].name, why.text);
        if (x->e != NULL) {
            x->e->arg = (int)a;
        }
    }
    return r;
}

static int check_arg(struct binder *x, unsigned a)
{
    const struct sig_arg *p = &x->s->arg[a];
    const struct sig_value *v = &x->values[a];
    int dtype = p->dtype == DTYPE_NONE ? x->b.dtype : p->dtype;
    char why[96];
    if ((p->kind == SIG_ARRAY) != v->array) {
        snprintf(why, sizeof(why), "kernel needs %s %s", dtype_name(dtype),
                 v->array ? "scalar" : "array");
        return refuse(x, a, ERR_ARG_TYPE, why);
    }
    if (!v->array) {
        return check_scalar(x, a, dtype);
    }
    if (v->shape.dtype != dtype) {
        snprintf(why, sizeof(why), "kernel needs %s", dtype_name(dtype));
        return refuse(x, a, ERR_ARG_TYPE, why);
    }
    if (v->shape.ndim < 1 || v->shape.ndim > SHAPE_MAX_DIMS) {
        return refuse(x, a, ERR_ARG_SHAPE, "no shape");
    }
    /* a declared inout is always accepted */
    if (v->access != ACCESS_NONE && v->access != ACCESS_INOUT && v->access != p->access) {
        snprintf(why, sizeof(why), "declared %s, kernel needs %s", access_name(v->access),
                 access_name(p->access));
        return refuse(x, a, ERR_ARG_ACCESS, why);
    }
    return 0;
}

/* Computes mul * value + add; false on overflow or a negative result. */
static bool extent_value(const struct sig_extent *x, uint64_t value, uint64_t *ret_value)
{
    uint64_t v = 0;
    if (x->dim == -1) {
        *ret_value = (uint64_t)x->add;
        return true;
    }
    if (__builtin_mul_overflow(value, x->mul, &v)) {
        return false;
    }
    uint64_t add = x->add < 0 ? 0 - (uint64_t)x->add : (uint64_t)x->add;
    if (x->add < 0 ? __builtin_sub_overflow(v, add, &v) : __builtin_add_overflow(v, add, &v)) {
        return false;
    }
    *ret_value = v;
    return true;
}

/* Writes an extent, for example "n*2 + 1". */
static void extent_text(const struct signature *s, const struct sig_extent *x, char *out,
                        size_t size)
{
    char mul[32] = "", add[32] = "";
    if (x->mul != 1) {
        snprintf(mul, sizeof(mul), "*%llu", (unsigned long long)x->mul);
    }
    if (x->add != 0) {
        snprintf(add, sizeof(add), " %c %lld", x->add < 0 ? '-' : '+',
                 (long long)(x->add < 0 ? -x->add : x->add));
    }
    snprintf(out, size, "%s%s%s", x->dim == SIG_GROUPS ? "groups" : s->dim[x->dim], mul, add);
}

static int refuse_extent(struct binder *x, unsigned a, unsigned d, uint64_t needed)
{
    const struct sig_extent *p = &x->s->arg[a].extent[d];
    char name[SIG_NAME + 64], why[SIG_NAME + 128];
    if (p->dim == -1) {
        snprintf(why, sizeof(why), "kernel needs %llu in dimension %u", (unsigned long long)needed,
                 d);
    } else {
        extent_text(x->s, p, name, sizeof(name));
        snprintf(why, sizeof(why), "kernel needs %s = %llu", name, (unsigned long long)needed);
    }
    return refuse(x, a, ERR_ARG_SHAPE, why);
}

static int match_extent(struct binder *x, unsigned a, unsigned d, uint64_t actual)
{
    const struct sig_extent *p = &x->s->arg[a].extent[d];
    uint64_t needed = 0;
    if (p->dim == SIG_GROUPS) {
        return 0; /* not known before the launch is derived */
    }
    if (p->dim >= 0 && !x->known[p->dim]) {
        uint64_t v = 0;
        char name[SIG_NAME + 64], why[SIG_NAME + 128];
        uint64_t add = p->add < 0 ? 0 - (uint64_t)p->add : (uint64_t)p->add;
        bool bad = p->add < 0 ? __builtin_add_overflow(actual, add, &v)
                              : __builtin_sub_overflow(actual, add, &v);
        if (bad || v % p->mul != 0) {
            extent_text(x->s, p, name, sizeof(name));
            snprintf(why, sizeof(why), "kernel needs %s, %llu is none", name,
                     (unsigned long long)actual);
            return refuse(x, a, ERR_ARG_SHAPE, why);
        }
        x->b.dim[p->dim] = v / p->mul;
        x->known[p->dim] = true;
        return 0;
    }
    if (!extent_value(p, p->dim >= 0 ? x->b.dim[p->dim] : 0, &needed)) {
        return refuse(x, a, ERR_ARG_SHAPE, "the kernel's size for it is not possible");
    }
    return needed == actual ? 0 : refuse_extent(x, a, d, needed);
}

static bool takes_count(const struct binder *x, unsigned a)
{
    return x->s->arg[a].ndim == 1;
}

/* Matches arrays by their dimensions, and parameters of one dimension by the count of any shape. */
static int match_shapes(struct binder *x)
{
    for (unsigned a = 0; a < x->s->arg_count; a++) {
        const struct sig_arg *p = &x->s->arg[a];
        const struct shape *v = &x->values[a].shape;
        int r = 0;
        if (p->kind != SIG_ARRAY) {
            continue;
        }
        if (takes_count(x, a)) {
            r = match_extent(x, a, 0, shape_count(v));
        } else if (v->ndim == p->ndim) {
            for (unsigned d = 0; r == 0 && d < p->ndim; d++) {
                r = match_extent(x, a, d, v->dim[d]);
            }
        }
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

static int match_flat(struct binder *x, unsigned a)
{
    const struct sig_arg *p = &x->s->arg[a];
    const struct shape *v = &x->values[a].shape;
    uint64_t count = 1, extent = 0;
    char why[96];
    for (unsigned d = 0; d < p->ndim; d++) {
        int dim = p->extent[d].dim;
        if (v->ndim != 1 || dim == SIG_GROUPS || (dim >= 0 && !x->known[dim])) {
            snprintf(why, sizeof(why), "kernel needs %u dimensions", (unsigned)p->ndim);
            return refuse(x, a, ERR_ARG_SHAPE, why);
        }
        if (!extent_value(&p->extent[d], dim >= 0 ? x->b.dim[dim] : 0, &extent) ||
            __builtin_mul_overflow(count, extent, &count)) {
            return refuse(x, a, ERR_ARG_SHAPE, "the kernel's size for it is not possible");
        }
    }
    if (count != v->dim[0]) {
        snprintf(why, sizeof(why), "kernel needs %llu elements", (unsigned long long)count);
        return refuse(x, a, ERR_ARG_SHAPE, why);
    }
    return 0;
}

/* Matches arrays of one dimension to shapes that are known from other arguments. */
static int match_flats(struct binder *x)
{
    for (unsigned a = 0; a < x->s->arg_count; a++) {
        const struct sig_arg *p = &x->s->arg[a];
        if (p->kind == SIG_ARRAY && !takes_count(x, a) && x->values[a].shape.ndim != p->ndim) {
            int r = match_flat(x, a);
            if (r != 0) {
                return r;
            }
        }
    }
    return 0;
}

/* Work items of a group if the signature leaves it free. A few fixed sizes keep the number of
 * variants that a device compiles small. Rounding up is harmless with a guard. */
static uint64_t default_group(const struct signature *s, unsigned axis)
{
    static const uint64_t sizes[SIG_OVER][3] = {{256, 1, 1}, {16, 16, 1}, {8, 8, 4}};
    return s->guarded ? sizes[s->over_count - 1][axis] : 0;
}

static int derive_axis(struct binder *x, unsigned axis)
{
    const struct signature *s = x->s;
    unsigned o = s->over_count - 1 - axis;
    const struct sig_extent *p = &s->over[o];
    uint64_t items = 0;
    if (!extent_value(p, p->dim >= 0 ? x->b.dim[p->dim] : 0, &items)) {
        return err_set(x->e, ERR_ARG_SHAPE, "kernel %s: its range is not possible", s->name);
    }
    uint64_t per = axis == 0 ? s->per_item : 1;
    items = items / per + (items % per != 0);
    uint64_t group = s->group[o] != 0 ? s->group[o] : default_group(s, axis);
    uint64_t groups = group == 0 ? items : items / group + (items % group != 0);
    if (items > (UINT64_C(1) << 62)) {
        return err_set(x->e, ERR_LIMIT, "kernel %s: too many work items", s->name);
    }
    x->b.local[axis] = group;
    x->b.global[axis] = group == 0 ? items : groups * group;
    if (axis == 0) {
        x->b.groups = groups;
    }
    return 0;
}

/* Without `over` the caller chooses the sizes; only a group in the signature is known. */
static void derive_group(struct binder *x)
{
    unsigned count = 0;
    while (count < SIG_OVER && x->s->group[count] != 0) {
        count++;
    }
    for (unsigned axis = 0; count != 0 && axis < 3; axis++) {
        x->b.local[axis] = axis < count ? x->s->group[count - 1 - axis] : 1;
    }
}

static int derive_launch(struct binder *x)
{
    const struct signature *s = x->s;
    bool empty = false;
    if (s->over_count == 0) {
        derive_group(x);
        return 0;
    }
    for (unsigned axis = 0; axis < 3; axis++) {
        x->b.global[axis] = 1;
        x->b.local[axis] = 1;
    }
    for (unsigned axis = 0; axis < s->over_count; axis++) {
        int r = derive_axis(x, axis);
        if (r != 0) {
            return r;
        }
        empty = empty || x->b.global[axis] == 0;
    }
    if (x->b.local[0] == 0) {
        memset(x->b.local, 0, sizeof(x->b.local));
    }
    if (empty) {
        memset(x->b.global, 0, sizeof(x->b.global));
        x->b.groups = 0;
    }
    return 0;
}

static int match_groups(struct binder *x)
{
    for (unsigned a = 0; a < x->s->arg_count; a++) {
        const struct sig_arg *p = &x->s->arg[a];
        for (unsigned d = 0; p->kind == SIG_ARRAY && d < p->ndim; d++) {
            uint64_t needed = 0;
            uint64_t actual =
                takes_count(x, a) ? shape_count(&x->values[a].shape) : x->values[a].shape.dim[d];
            if (p->extent[d].dim != SIG_GROUPS) {
                continue;
            }
            if (!extent_value(&p->extent[d], x->b.groups, &needed) || needed != actual) {
                return refuse_extent(x, a, d, needed);
            }
        }
    }
    return 0;
}

static int check_orders(struct binder *x)
{
    for (unsigned o = 0; o < x->s->order_count; o++) {
        const struct sig_order *order = &x->s->order[o];
        const struct sig_arg *low = &x->s->arg[order->low], *high = &x->s->arg[order->high];
        int dtype = low->dtype == DTYPE_NONE ? x->b.dtype : low->dtype;
        uint64_t least = x->b.scalar[order->low], most = x->b.scalar[order->high];
        char low_text[32], high_text[32];
        if (scalar_less(dtype, most, least)) {
            err_set(x->e, ERR_RANGE,
                    "arguments %s and %s: %s is more than %s, kernel needs %s <= %s", low->name,
                    high->name, scalar_text(dtype, least, low_text, sizeof(low_text)),
                    scalar_text(dtype, most, high_text, sizeof(high_text)), low->name, high->name);
            if (x->e != NULL) {
                x->e->arg = (int)order->low;
            }
            return ERR_RANGE;
        }
    }
    return 0;
}

int signature_bind(const struct signature *s, const struct sig_value *values, unsigned count,
                   struct sig_binding *ret_binding, struct err *e)
{
    struct binder x = {.s = s, .values = values, .e = e};
    if (count != s->arg_count) {
        return err_set(e, ERR_ARG_COUNT, "it takes %u argument%s, not %u", s->arg_count,
                       s->arg_count == 1 ? "" : "s", count);
    }
    int r = choose_type(&x);
    for (unsigned a = 0; r == 0 && a < count; a++) {
        r = check_arg(&x, a);
    }
    if (r == 0) {
        r = check_orders(&x);
    }
    if (r == 0) {
        r = match_shapes(&x);
    }
    if (r == 0) {
        r = match_flats(&x);
    }
    if (r == 0) {
        r = derive_launch(&x);
    }
    if (r == 0) {
        r = match_groups(&x);
    }
    if (r == 0) {
        *ret_binding = x.b;
    }
    return r;
}
