#include "runner.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/plan.h"

#define GUARD  64u /* bytes behind each array */
#define POISON 0xa5

static uint64_t seed_now = 1;

void random_seed(uint64_t seed)
{
    seed_now = seed * 2654435761u + 1;
}

uint64_t random_u64(void)
{
    uint64_t z = seed_now += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double random_in(double low, double high)
{
    return low + (high - low) * ((double)(random_u64() >> 11) * 0x1p-53);
}

double unit_roundoff(int dtype)
{
    return dtype == DTYPE_F64 ? 0x1p-53 : 0x1p-24;
}

long double value_at(int dtype, const void *data, uint64_t index)
{
    switch (dtype) {
    case DTYPE_F32:
        return ((const float *)data)[index];
    case DTYPE_F64:
        return ((const double *)data)[index];
    case DTYPE_I32:
        return ((const int32_t *)data)[index];
    case DTYPE_U32:
        return ((const uint32_t *)data)[index];
    case DTYPE_U8:
        return ((const uint8_t *)data)[index];
    default:
        ck_abort_msg("type %d", dtype);
    }
}

void value_set(int dtype, void *data, uint64_t index, double value)
{
    switch (dtype) {
    case DTYPE_F32:
        ((float *)data)[index] = (float)value;
        break;
    case DTYPE_F64:
        ((double *)data)[index] = value;
        break;
    case DTYPE_I32:
        ((int32_t *)data)[index] = (int32_t)value;
        break;
    case DTYPE_U32:
        ((uint32_t *)data)[index] = (uint32_t)value;
        break;
    case DTYPE_U8:
        ((uint8_t *)data)[index] = (uint8_t)value;
        break;
    default:
        ck_abort_msg("type %d", dtype);
    }
}

void *array_new(int dtype, uint64_t count)
{
    size_t size = (size_t)count * dtype_size(dtype);
    void *data = malloc(size + 1);
    ck_assert_ptr_nonnull(data);
    memset(data, POISON, size + 1);
    return data;
}

void *array_random(int dtype, uint64_t count, double low, double high)
{
    void *data = array_new(dtype, count);
    for (uint64_t n = 0; n < count; n++) {
        value_set(dtype, data, n, random_in(low, high));
    }
    return data;
}

void check_close(const char *what, uint64_t index, long double actual, long double expected,
                 long double bound)
{
    /* an assertion that holds costs a system call, too much for millions */
    if (!(fabsl(actual - expected) <= bound)) {
        ck_abort_msg("%s: %s[%llu] is %.17Lg, not %.17Lg +- %.3Lg", runner_target.name, what,
                     (unsigned long long)index, actual, expected, bound);
    }
}

static const uint64_t sizes[] = {0,    1,    2,    7,    255,  256,  257,  1023,
                                 1024, 1025, 4095, 4096, 4097, 8191, 16411};

unsigned size_count(void)
{
    return sizeof(sizes) / sizeof(sizes[0]) + 1;
}

uint64_t size_at(unsigned index)
{
    return index + 1 < size_count() ? sizes[index] : runner_target.size_max;
}

struct operand op_scalar(int dtype, double v)
{
    struct operand o = {.dtype = dtype};
    uint8_t room[8] = {0};
    value_set(dtype, room, 0, v);
    memcpy(&o.bits, room, sizeof(o.bits));
    return o;
}

struct operand op_f32(float v)
{
    return op_scalar(DTYPE_F32, (double)v);
}

struct operand op_f64(double v)
{
    return op_scalar(DTYPE_F64, v);
}

struct operand op_u32(uint32_t v)
{
    return op_scalar(DTYPE_U32, v);
}

struct operand op_array(int dtype, void *data, unsigned ndim, const uint64_t *dims)
{
    struct operand o = {.array = true, .data = data};
    ck_assert_int_eq(shape_make(dtype, ndim, dims, &o.shape, NULL), 0);
    return o;
}

struct operand op_vector(int dtype, void *data, uint64_t count)
{
    return op_array(dtype, data, 1, &count);
}

/* Device memory with guard bytes; content or poison. */
static void *mem_make(const void *data, uint64_t size)
{
    uint8_t *room = malloc(size + GUARD);
    ck_assert_ptr_nonnull(room);
    memset(room, POISON, size + GUARD);
    if (data != NULL && size != 0) {
        memcpy(room, data, size);
    }
    void *memory = runner_target.mem_create(room, size + GUARD);
    free(room);
    return memory;
}

static void mem_end(void *memory, void *data, uint64_t size, const char *what)
{
    uint8_t *room = malloc(size + GUARD);
    ck_assert_ptr_nonnull(room);
    runner_target.mem_read(memory, room, size + GUARD);
    for (unsigned b = 0; b < GUARD; b++) {
        ck_assert_msg(room[size + b] == POISON, "%s: written behind %s", runner_target.name, what);
    }
    if (data != NULL && size != 0) {
        memcpy(data, room, size);
    }
    free(room);
    runner_target.mem_free(memory);
}

struct execution {
    void *user[SIG_ARGS];
    void *temp[PLAN_TEMPS];
};

static void *memory_of(const struct execution *x, const struct plan_ref *ref)
{
    ck_assert_uint_eq(ref->offset, 0);
    return ref->kind == PLAN_TEMP ? x->temp[ref->index] : x->user[ref->index];
}

static void execute_launch(const struct execution *x, const struct plan_step *s)
{
    unsigned module = 0;
    const struct signature *sig = NULL;
    struct sig_value values[SIG_ARGS] = {0};
    struct runner_arg args[SIG_ARGS + SIG_DIMS] = {0};
    struct sig_binding b;
    struct err e = ERR_INIT;
    char entry[SIG_NAME + 8];
    ck_assert_msg(builtin_find(s->kernel, &module, &sig), "no kernel %s", s->kernel);
    for (unsigned a = 0; a < s->arg_count; a++) {
        const struct plan_ref *ref = &s->arg[a];
        values[a] = (struct sig_value){.array = ref->kind != PLAN_SCALAR,
                                       .shape = ref->shape,
                                       .dtype = ref->dtype,
                                       .bits = ref->bits};
    }
    ck_assert_msg(signature_bind(sig, values, s->arg_count, &b, &e) == 0, "%s: %s", s->kernel,
                  e.text);
    if (b.global[0] == 0) {
        return;
    }
    ck_assert_int_eq(signature_entry(sig, b.dtype, entry, sizeof(entry), &e), 0);
    for (unsigned a = 0; a < s->arg_count; a++) {
        int dtype = sig->arg[a].dtype == DTYPE_NONE ? b.dtype : sig->arg[a].dtype;
        args[a] =
            (struct runner_arg){.array = values[a].array, .value = &b.scalar[a], .dtype = dtype};
        args[a].memory = values[a].array ? memory_of(x, &s->arg[a]) : NULL;
    }
    for (unsigned d = 0; d < sig->dim_count; d++) {
        args[s->arg_count + d] = (struct runner_arg){.value = &b.dim[d], .dtype = DTYPE_U64};
    }
    runner_target.launch(module, entry, &b, args, s->arg_count + sig->dim_count);
}

static void execute_write(const struct execution *x, const struct plan_step *s)
{
    uint64_t size = shape_bytes(&s->arg[0].shape);
    uint32_t unit = dtype_size(s->arg[0].shape.dtype);
    uint8_t *room = malloc(size + 1);
    ck_assert_ptr_nonnull(room);
    if (s->op == PLAN_COPY) {
        ck_assert_uint_eq(size, shape_bytes(&s->arg[1].shape));
        runner_target.mem_read(memory_of(x, &s->arg[1]), room, size);
    } else {
        for (uint64_t at = 0; at < size; at += unit) {
            memcpy(room + at, &s->arg[1].bits, unit);
        }
    }
    runner_target.mem_write(memory_of(x, &s->arg[0]), room, size);
    free(room);
}

/* Did a library do it? Then only the steps behind its call are left. */
static bool execute_library(const struct execution *x, const struct plan *plan,
                            const struct signature *sig, const struct sig_binding *b)
{
    struct runner_arg args[SIG_ARGS + SIG_DIMS] = {0};
    bool offered = plan->library || plan_library(sig->name);
    for (unsigned a = 0; a < sig->arg_count; a++) {
        args[a] = (struct runner_arg){.array = x->user[a] != NULL,
                                      .value = &b->scalar[a],
                                      .dtype = sig->arg[a].dtype == DTYPE_NONE ? b->dtype
                                                                               : sig->arg[a].dtype,
                                      .memory = x->user[a]};
    }
    for (unsigned d = 0; d < sig->dim_count; d++) {
        args[sig->arg_count + d] = (struct runner_arg){.value = &b->dim[d], .dtype = DTYPE_U64};
    }
    return offered && runner_target.library != NULL &&
           runner_target.library(sig->name, b->dtype, args, sig->arg_count + sig->dim_count);
}

static void execute_steps(const struct execution *x, const struct plan *plan, unsigned from,
                          unsigned to)
{
    for (unsigned s = from; s < to; s++) {
        if (plan->step[s].op == PLAN_LAUNCH) {
            execute_launch(x, &plan->step[s]);
        } else {
            execute_write(x, &plan->step[s]);
        }
    }
}

/* The first operand with the same host memory: a itself if it is alone. */
static unsigned owner_of(const struct operand *operands, unsigned a)
{
    for (unsigned b = 0; b < a; b++) {
        if (operands[b].array && operands[b].data == operands[a].data) {
            return b;
        }
    }
    return a;
}

/* Inputs of the operation have their contents, outputs are poisoned. */
static void user_make(struct execution *x, const struct signature *sig,
                      const struct operand *operands)
{
    bool read[SIG_ARGS] = {false};
    for (unsigned a = 0; a < sig->arg_count; a++) {
        read[owner_of(operands, a)] |= (sig->arg[a].access & ACCESS_IN) != 0;
    }
    for (unsigned a = 0; a < sig->arg_count; a++) {
        const struct operand *o = &operands[a];
        unsigned owner = owner_of(operands, a);
        if (o->array && owner == a) {
            x->user[a] = mem_make(read[a] ? o->data : NULL, shape_bytes(&o->shape));
        } else if (o->array) {
            ck_assert_uint_eq(shape_bytes(&o->shape), shape_bytes(&operands[owner].shape));
            x->user[a] = x->user[owner];
        }
    }
}

static void user_end(const struct execution *x, const struct signature *sig,
                     const struct operand *operands)
{
    bool written[SIG_ARGS] = {false};
    for (unsigned a = 0; a < sig->arg_count; a++) {
        written[owner_of(operands, a)] |= (sig->arg[a].access & ACCESS_OUT) != 0;
    }
    for (unsigned a = 0; a < sig->arg_count; a++) {
        if (operands[a].array && owner_of(operands, a) == a) {
            mem_end(x->user[a], written[a] ? operands[a].data : NULL,
                    shape_bytes(&operands[a].shape), sig->arg[a].name);
        }
    }
}

static void execute(const struct plan *plan, const struct signature *sig,
                    const struct sig_binding *b, const struct operand *operands)
{
    struct execution x = {0};
    user_make(&x, sig, operands);
    for (unsigned t = 0; t < plan->temp_count; t++) {
        x.temp[t] = mem_make(NULL, plan->temp[t]);
    }
    bool done = execute_library(&x, plan, sig, b);
    execute_steps(&x, plan, done ? 0 : plan->after, done ? plan->after : plan->step_count);
    for (unsigned t = 0; t < plan->temp_count; t++) {
        mem_end(x.temp[t], NULL, plan->temp[t], "a temporary");
    }
    user_end(&x, sig, operands);
}

void run_operation(const char *name, const struct operand *operands, unsigned count)
{
    const struct signature *sig = plan_signature(name);
    struct plan *plan = malloc(sizeof(*plan));
    struct sig_value values[SIG_ARGS] = {0};
    struct sig_binding b;
    struct err e = ERR_INIT;
    unsigned module = 0;
    ck_assert_ptr_nonnull(plan);
    if (sig == NULL) {
        ck_assert_msg(builtin_find(name, &module, &sig), "no operation %s", name);
    }
    for (unsigned a = 0; a < count; a++) {
        values[a] = (struct sig_value){.array = operands[a].array,
                                       .shape = operands[a].shape,
                                       .dtype = operands[a].dtype,
                                       .bits = operands[a].bits};
    }
    ck_assert_msg(signature_bind(sig, values, count, &b, &e) == 0, "%s: %s", name, e.text);
    ck_assert_msg(plan_make(name, values, count, &b, plan, &e) == 0, "%s: %s", name, e.text);
    execute(plan, sig, &b, operands);
    free(plan);
}
