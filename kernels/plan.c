#include "kernels/plan.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/plan_int.h"

static const struct plan_operation *const operations[] = {
    &plan_reduce_sum,     &plan_reduce_min,   &plan_reduce_max, &plan_dot,     &plan_scan_inclusive,
    &plan_scan_exclusive, &plan_histogram,    &plan_sort,       &plan_fft,     &plan_ifft,
    &plan_fft_batched,    &plan_ifft_batched, &plan_fft_2d,     &plan_ifft_2d, &plan_gaussian,
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static struct signature signatures[OPERATIONS];

static void load(void)
{
    for (size_t o = 0; o < OPERATIONS; o++) {
        /* a text that does not parse leaves a nameless row, which no name finds */
        (void)signature_parse(bytes_str(operations[o]->text), &signatures[o], NULL);
    }
}

static int find(const char *operation)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    for (size_t o = 0; o < OPERATIONS; o++) {
        if (operation[0] != 0 && strcmp(signatures[o].name, operation) == 0) {
            return (int)o;
        }
    }
    return -1;
}

const struct signature *plan_signature(const char *operation)
{
    int o = find(operation);
    return o < 0 ? NULL : &signatures[o];
}

unsigned plan_operation_count(void)
{
    return (unsigned)OPERATIONS;
}

const char *plan_operation_name(unsigned index)
{
    (void)find("");
    return index < OPERATIONS ? signatures[index].name : NULL;
}

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

bool plan_library(const char *kernel)
{
    static const char *const names[] = {"gemm", "gemm_add", "gemm_batched", "random_normal"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(kernel, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A primitive kernel called by its own name. */
static void make_single(struct plan_build *b)
{
    struct plan_ref args[SIG_ARGS];
    for (unsigned a = 0; a < b->sig->arg_count; a++) {
        args[a] = plan_user(b, a);
    }
    plan_launch(b, b->sig->name, args, b->sig->arg_count);
}

int plan_make(const char *operation, const struct sig_value *values, unsigned count,
              const struct sig_binding *binding, struct plan *ret_plan, struct err *e)
{
    int o = find(operation);
    unsigned module = 0;
    struct plan_build b = {.plan = ret_plan, .values = values, .binding = binding, .e = e};
    if (o >= 0) {
        b.sig = &signatures[o];
    } else if (!builtin_find(operation, &module, &b.sig)) {
        return err_set(e, ERR_NOT_FOUND, "no operation %s", operation);
    }
    if (count != b.sig->arg_count) {
        return err_set(e, ERR_ARG_COUNT, "%s takes %u arguments, not %u", operation,
                       b.sig->arg_count, count);
    }
    ret_plan->step_count = 0;
    ret_plan->temp_count = 0;
    ret_plan->library = false;
    ret_plan->after = 0;
    if (o >= 0) {
        operations[o]->make(&b);
    } else {
        make_single(&b);
    }
    return b.code;
}
