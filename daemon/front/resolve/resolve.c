#include "daemon/front/resolve/resolve.h"

#include <string.h>

#include "daemon/front/model/buffer.h"
#include "daemon/front/resolve/resolve_int.h"
#include "proto/codec.h"

/* Checks that both have the same number of bytes and the same type. */
static int check_match(uint64_t bytes, int dtype, const struct operand *to, struct err *e)
{
    if (bytes != to->bytes) {
        return err_set(e, ERR_ARG_SHAPE, "%llu bytes of %s for a destination of %llu bytes of %s",
                       (unsigned long long)bytes, dtype_name(dtype), (unsigned long long)to->bytes,
                       dtype_name(to->shape.dtype));
    }
    if (dtype != to->shape.dtype) {
        return err_set(e, ERR_ARG_TYPE, "a source of %s for a destination of %s", dtype_name(dtype),
                       dtype_name(to->shape.dtype));
    }
    return 0;
}

static int step_write(struct resolver *r, const struct operand *dst, const struct operand *src,
                      struct err *e)
{
    if (src->kind == OPERAND_UNBOUND) {
        return 0;
    }
    if (!operand_is_host(src)) {
        return err_set(e, ERR_ARG_TYPE,
                       "the source of a write must be an inline array or an arena");
    }
    uint64_t bytes = src->kind == OPERAND_INLINE ? src->data.size : src->bytes;
    int rc = check_match(bytes, src->shape.dtype, dst, e);
    rc = rc == 0 ? operand_reads(r, src, e) : rc;
    rc = rc == 0 ? operand_writes(r, dst, e) : rc;
    if (rc != 0 || dst->bytes == 0) {
        return rc;
    }
    return operand_write_from(r, dst, src, e);
}

static int step_fill(struct resolver *r, const struct operand *dst, const struct operand *value,
                     struct err *e)
{
    if (value->kind == OPERAND_UNBOUND) {
        return 0;
    }
    if (value->kind != OPERAND_SCALAR) {
        return err_set(e, ERR_ARG_TYPE, "a fill needs a scalar");
    }
    if (value->dtype != dst->shape.dtype) {
        return err_set(e, ERR_ARG_TYPE, "a value of %s for a buffer of %s",
                       dtype_name(value->dtype), dtype_name(dst->shape.dtype));
    }
    int rc = operand_writes(r, dst, e);
    if (rc != 0 || dst->bytes == 0) {
        return rc;
    }
    struct work_step *s = work_add_step(r->work, OP_FILL, r->step, e);
    if (s == NULL) {
        return e->code;
    }
    s->pattern_size = dtype_size(value->dtype);
    memcpy(s->pattern, &value->bits, s->pattern_size);
    return operand_ref(r, dst, e);
}

static int step_copy(struct resolver *r, const struct operand *dst, const struct operand *src,
                     struct err *e)
{
    if (!operand_is_array(src) || operand_is_host(src)) {
        return err_set(e, ERR_ARG_TYPE, "the source of a copy must be a buffer");
    }
    int rc = check_match(src->bytes, src->shape.dtype, dst, e);
    if (rc != 0) {
        return rc;
    }
    if (src->kind == dst->kind && src->buffer == dst->buffer && src->temp == dst->temp &&
        src->offset < dst->offset + dst->bytes && dst->offset < src->offset + src->bytes) {
        return err_set(e, ERR_RANGE, "source and destination overlap");
    }
    rc = operand_reads(r, src, e);
    if (rc == 0) {
        rc = operand_writes(r, dst, e);
    }
    if (rc != 0 || dst->bytes == 0) {
        return rc;
    }
    if (work_add_step(r->work, OP_COPY, r->step, e) == NULL) {
        return e->code;
    }
    rc = operand_ref(r, dst, e);
    return rc != 0 ? rc : operand_ref(r, src, e);
}

/* A read into an arena, instead of an output of the job. */
static int read_to(struct resolver *r, const struct operand *src, const struct operand *dst,
                   struct err *e)
{
    if (dst->kind != OPERAND_ARENA) {
        return err_set(e, ERR_ARG_TYPE, "the destination of a read must be an arena");
    }
    int rc = check_match(src->bytes, src->shape.dtype, dst, e);
    rc = rc == 0 ? operand_writes(r, dst, e) : rc;
    if (rc != 0 || src->bytes == 0) {
        return rc;
    }
    if (work_add_step(r->work, OP_READ, r->step, e) == NULL) {
        return e->code;
    }
    rc = operand_ref(r, src, e);
    return rc != 0 ? rc : operand_ref(r, dst, e);
}

static int step_read(struct resolver *r, const struct operand *src, const struct operand *dst,
                     struct err *e)
{
    int rc = operand_reads(r, src, e);
    if (rc != 0) {
        return rc;
    }
    if (dst != NULL && dst->kind == OPERAND_UNBOUND) {
        return dst->param_kind == PARAM_DATA
                   ? 0
                   : err_set(e, ERR_ARG_TYPE, "the parameter must be host memory");
    }
    if (dst != NULL) {
        return read_to(r, src, dst, e);
    }
    uint64_t stage = 0;
    rc = work_add_output(r->work, r->step, 0, src->bytes, &stage, e);
    if (rc != 0 || src->bytes == 0) {
        return rc;
    }
    struct work_step *s = work_add_step(r->work, OP_READ, r->step, e);
    if (s == NULL) {
        return e->code;
    }
    s->stage = stage;
    return operand_ref(r, src, e);
}

static int step_of(struct resolver *r, const struct proto_step *step,
                   const struct operand operand[2], struct err *e)
{
    switch (step->op) {
    case OP_WRITE:
        return step_write(r, &operand[0], &operand[1], e);
    case OP_FILL:
        return step_fill(r, &operand[0], &operand[1], e);
    case OP_COPY:
        return operand[1].kind == OPERAND_UNBOUND ? 0 : step_copy(r, &operand[0], &operand[1], e);
    default:
        return step_read(r, &operand[0], step->args.count == 2 ? &operand[1] : NULL, e);
    }
}

/* Copies and similar steps: one or two operands, of which the first is an array on the device. */
static int resolve_simple(struct resolver *r, const struct proto_step *step, struct err *e)
{
    static const unsigned wanted[] = {[OP_WRITE] = 2, [OP_FILL] = 2, [OP_COPY] = 2, [OP_READ] = 1};
    bool to = step->op == OP_READ && step->args.count == 2;
    if (step->args.count != wanted[step->op] && !to) {
        return err_set(e, ERR_ARG_COUNT, "%llu arguments, %u are needed",
                       (unsigned long long)step->args.count, wanted[step->op]);
    }
    struct operand operand[2] = {{.kind = OPERAND_UNBOUND}, {.kind = OPERAND_UNBOUND}};
    struct proto_iter it = proto_iter_of(step->args);
    struct proto_arg arg;
    for (int i = 0; proto_list_next(&it, &schema_arg, &arg); i++) {
        int rc = operand_of(r, &arg, &operand[i], e);
        if (rc != 0) {
            if (e != NULL) {
                e->arg = i;
            }
            return rc;
        }
    }
    if (operand[0].kind == OPERAND_UNBOUND) {
        return operand[0].param_kind == PARAM_BUFFER
                   ? 0
                   : err_set(e, ERR_ARG_TYPE, "the parameter must be a buffer");
    }
    if (operand[0].kind != OPERAND_BUFFER && operand[0].kind != OPERAND_TEMP) {
        return err_set(e, ERR_ARG_TYPE, "a buffer or temporary is needed");
    }
    return step_of(r, step, operand, e);
}

static int resolve_step(struct resolver *r, const struct proto_step *step, struct err *e)
{
    const char *name = work_op_name(step->op);
    if (name == NULL) {
        return err_set(e, ERR_INVALID, "step %u: operation %llu is unknown", r->step,
                       (unsigned long long)step->op);
    }
    struct err inner = ERR_INIT;
    int rc =
        step->op == OP_LAUNCH ? resolve_launch(r, step, &inner) : resolve_simple(r, step, &inner);
    if (rc != 0 && e != NULL) {
        *e = inner;
        e->step = (int)r->step;
        (void)err_wrap(e, "step %u, %s", r->step, name);
    }
    return rc;
}

static int take_params(struct resolver *r, struct err *e)
{
    const struct resolve_input *in = r->in;
    if (!in->unbound && in->params.count != in->bindings.count) {
        return err_set(e, ERR_ARG_COUNT, "%llu parameters bound, the program has %llu",
                       (unsigned long long)in->bindings.count,
                       (unsigned long long)in->params.count);
    }
    struct proto_iter params = proto_iter_of(in->params);
    struct proto_iter bindings = proto_iter_of(in->bindings);
    for (unsigned i = 0; i < in->params.count; i++) {
        struct proto_param *p = &r->params[i];
        if (!proto_list_next(&params, &schema_param, p)) {
            break;
        }
        if (p->kind < PARAM_BUFFER || p->kind > PARAM_DATA ||
            (p->kind == PARAM_SCALAR && dtype_size((int)p->dtype) == 0)) {
            return err_set(e, ERR_INVALID, "parameter %u (%.*s): kind %llu of type %llu", i,
                           (int)p->name.size, (const char *)p->name.data,
                           (unsigned long long)p->kind, (unsigned long long)p->dtype);
        }
        r->bindings[i] = (struct proto_arg){0};
        (void)proto_list_next(&bindings, &schema_arg, &r->bindings[i]);
    }
    return 0;
}

static int take_temps(struct resolver *r, struct err *e)
{
    struct proto_iter it = proto_iter_of(r->in->temps);
    struct proto_temp t;
    while (proto_list_next(&it, &schema_temp, &t)) {
        struct temp_info *info = &r->temps[r->temp_count];
        *info = (struct temp_info){0};
        uint64_t dims[] = {t.d0, t.d1, t.d2, t.d3};
        int rc = shape_make((int)t.dtype, (unsigned)t.ndim, dims, &info->shape, e);
        if (rc == 0) {
            rc = work_add_temp(r->work, shape_bytes(&info->shape), &info->index, e);
        }
        if (rc != 0) {
            (void)err_wrap(e, "temporary %u", r->temp_count);
            return rc;
        }
        r->temp_count++;
    }
    return 0;
}

static int resolve_steps(struct resolver *r, struct err *e)
{
    struct proto_iter it = proto_iter_of(r->in->steps);
    struct proto_step step;
    for (r->step = 0; proto_list_next(&it, &schema_step, &step); r->step++) {
        int rc = resolve_step(r, &step, e);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int resolve(const struct resolve_input *in, struct work *ret_work, struct err *e)
{
    work_init(ret_work);
    struct resolver r; /* not zeroed: its lists are long, and filled before use */
    r.in = in;
    r.work = ret_work;
    r.temp_count = 0;
    r.step = 0;
    r.kernel = NULL;
    r.arg = 0;
    int rc = take_params(&r, e);
    if (rc == 0) {
        rc = take_temps(&r, e);
    }
    if (rc == 0) {
        rc = resolve_steps(&r, e);
    }
    if (rc != 0) {
        if (ret_work->no_memory) {
            rc = err_set(e, ERR_NOMEM, "no memory for the steps of a job");
        }
        work_finish(ret_work);
    }
    return rc;
}
