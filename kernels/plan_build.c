/* Builds a plan: references of steps, and the steps. */
#include <math.h>
#include <string.h>

#include "kernels/plan_int.h"

void plan_failed(struct plan_build *b, int code)
{
    b->code = code;
    (void)err_wrap(b->e, "%s", b->sig->name);
}

struct plan_ref plan_user(const struct plan_build *b, unsigned arg)
{
    const struct sig_value *v = &b->values[arg];
    if (!v->array) {
        int dtype = b->sig->arg[arg].dtype;
        return plan_scalar(dtype == DTYPE_NONE ? b->binding->dtype : dtype,
                           b->binding->scalar[arg]);
    }
    return (struct plan_ref){.kind = PLAN_USER, .index = arg, .shape = v->shape};
}

struct plan_ref plan_array(struct plan_ref ref, unsigned ndim, const uint64_t *dims)
{
    ref.shape.ndim = (uint8_t)ndim;
    memset(ref.shape.dim, 0, sizeof(ref.shape.dim));
    memcpy(ref.shape.dim, dims, ndim * sizeof(dims[0]));
    return ref;
}

struct plan_ref plan_temp(struct plan_build *b, int dtype, uint64_t count)
{
    struct plan_ref ref = {.kind = PLAN_TEMP, .index = b->plan->temp_count};
    struct err why = ERR_INIT;
    if (b->code != 0) {
        return ref;
    }
    int r = shape_make(dtype, 1, &count, &ref.shape, &why);
    if (r != 0) {
        plan_fail(b, ERR_LIMIT, "temporary: %s", why.text);
    } else if (b->plan->temp_count == PLAN_TEMPS) {
        plan_fail(b, ERR_LIMIT, "more than %d temporaries", PLAN_TEMPS);
    } else {
        b->plan->temp[b->plan->temp_count++] = shape_bytes(&ref.shape);
    }
    return ref;
}

struct plan_ref plan_scalar(int dtype, uint64_t bits)
{
    return (struct plan_ref){.kind = PLAN_SCALAR, .dtype = dtype, .bits = bits};
}

struct plan_ref plan_u32(uint32_t value)
{
    return plan_scalar(DTYPE_U32, value);
}

struct plan_ref plan_u64(uint64_t value)
{
    return plan_scalar(DTYPE_U64, value);
}

struct plan_ref plan_real(int dtype, double value)
{
    uint64_t bits = 0;
    float narrow = (float)value;
    if (dtype == DTYPE_F32) {
        memcpy(&bits, &narrow, sizeof(narrow));
    } else {
        memcpy(&bits, &value, sizeof(value));
    }
    return plan_scalar(dtype, bits);
}

uint64_t plan_lowest(int dtype)
{
    if (dtype_is_float(dtype)) {
        return plan_real(dtype, -(double)INFINITY).bits;
    }
    return dtype_is_signed(dtype) ? UINT64_C(1) << (dtype_size(dtype) * 8 - 1) : 0;
}

uint64_t plan_highest(int dtype)
{
    if (dtype_is_float(dtype)) {
        return plan_real(dtype, (double)INFINITY).bits;
    }
    return UINT64_MAX >> (64 - dtype_size(dtype) * 8 + (dtype_is_signed(dtype) ? 1 : 0));
}

static struct plan_step *add_step(struct plan_build *b, enum plan_op op)
{
    if (b->code == 0 && b->plan->step_count == PLAN_STEPS) {
        plan_fail(b, ERR_LIMIT, "more than %d steps", PLAN_STEPS);
    }
    if (b->code != 0) {
        return NULL;
    }
    struct plan_step *s = &b->plan->step[b->plan->step_count++];
    memset(s, 0, sizeof(*s));
    s->op = op;
    return s;
}

void plan_launch(struct plan_build *b, const char *kernel, const struct plan_ref *args,
                 unsigned count)
{
    struct plan_step *s = add_step(b, PLAN_LAUNCH);
    if (s != NULL) {
        s->kernel = kernel;
        s->arg_count = count;
        memcpy(s->arg, args, count * sizeof(args[0]));
    }
}

void plan_copy(struct plan_build *b, struct plan_ref dst, struct plan_ref src)
{
    struct plan_step *s = add_step(b, PLAN_COPY);
    if (s != NULL) {
        s->arg_count = 2;
        s->arg[0] = dst;
        s->arg[1] = src;
    }
}

void plan_fill(struct plan_build *b, struct plan_ref dst, struct plan_ref value)
{
    struct plan_step *s = add_step(b, PLAN_FILL);
    if (s != NULL) {
        s->arg_count = 2;
        s->arg[0] = dst;
        s->arg[1] = value;
    }
}
