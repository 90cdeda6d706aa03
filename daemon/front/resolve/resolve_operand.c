#include "daemon/front/resolve/resolve_int.h"

#include "daemon/front/model/arena.h"
#include "daemon/front/model/buffer.h"
#include "daemon/front/model/session.h"

static int slice(struct operand *o, const struct shape *whole, const struct proto_arg *arg,
                 struct err *e)
{
    uint64_t total = shape_count(whole);
    if (arg->first == 0 && (arg->count == 0 || arg->count == total)) {
        o->shape = *whole;
        o->offset = 0;
        o->bytes = shape_bytes(whole);
        return 0;
    }
    uint64_t count = arg->count;
    if (arg->first > total || count > total - arg->first) {
        return err_set(e, ERR_RANGE, "elements %llu to %llu of a buffer with %llu",
                       (unsigned long long)arg->first, (unsigned long long)(arg->first + count),
                       (unsigned long long)total);
    }
    if (count == 0) {
        count = total - arg->first;
    }
    o->shape = (struct shape){.dtype = whole->dtype, .ndim = 1, .dim = {count}};
    o->offset = arg->first * dtype_size(whole->dtype);
    o->bytes = count * dtype_size(whole->dtype);
    return 0;
}

static int of_buffer(struct resolver *r, const struct proto_arg *arg, struct operand *o,
                     struct err *e)
{
    int rc = buffer_find_for(r->in->buffers, arg->handle, r->in->session, &o->buffer, e);
    if (rc != 0) {
        return rc;
    }
    if (buffer_state(o->buffer) == BUFFER_LOST) {
        char title[BUFFER_TITLE];
        return err_set(e, ERR_BUFFER_LOST, "%s was lost with its worker: free it",
                       buffer_title(o->buffer, title));
    }
    o->kind = OPERAND_BUFFER;
    return slice(o, &o->buffer->shape, arg, e);
}

static int of_temp(struct resolver *r, const struct proto_arg *arg, struct operand *o,
                   struct err *e)
{
    if (arg->handle >= r->temp_count) {
        return err_set(e, ERR_BAD_HANDLE, "there is no temporary %llu, the program has %u",
                       (unsigned long long)arg->handle, r->temp_count);
    }
    o->kind = OPERAND_TEMP;
    o->temp = (unsigned)arg->handle;
    return slice(o, &r->temps[o->temp].shape, arg, e);
}

static int of_inline(const struct proto_arg *arg, struct operand *o, struct err *e)
{
    uint64_t dims[] = {arg->d0, arg->d1, arg->d2, arg->d3};
    int rc = shape_make((int)arg->dtype, (unsigned)arg->ndim, dims, &o->shape, e);
    if (rc != 0) {
        return rc;
    }
    o->kind = OPERAND_INLINE;
    o->bytes = shape_bytes(&o->shape);
    o->data = arg->data;
    if (o->bytes > PROTO_INLINE_MAX) {
        return err_set(e, ERR_LIMIT, "inline array of %llu bytes, at most %u: use a buffer",
                       (unsigned long long)o->bytes, PROTO_INLINE_MAX);
    }
    bool carries = arg->access != ACCESS_OUT;
    if (carries && arg->data.size != o->bytes) {
        return err_set(e, ERR_ARG_SHAPE, "inline array of %llu bytes has %zu bytes of data",
                       (unsigned long long)o->bytes, arg->data.size);
    }
    return 0;
}

/* An array in an arena. Its byte offset must be a multiple of its elements' size. */
static int of_arena(struct resolver *r, const struct proto_arg *arg, struct operand *o,
                    struct err *e)
{
    uint64_t dims[] = {arg->d0, arg->d1, arg->d2, arg->d3};
    int rc = arena_find(r->in->arenas, arg->handle, r->in->session, &o->arena, e);
    if (rc == 0) {
        rc = shape_make((int)arg->dtype, (unsigned)arg->ndim, dims, &o->shape, e);
    }
    if (rc != 0) {
        return rc;
    }
    o->kind = OPERAND_ARENA;
    o->bytes = shape_bytes(&o->shape);
    o->offset = arg->first;
    o->limit = (int)arg->access;
    o->direct = (arg->bits & ARENA_DIRECT) != 0;
    if (arg->first > o->arena->bytes || o->bytes > o->arena->bytes - arg->first) {
        return err_set(e, ERR_RANGE, "%llu bytes from byte %llu on exceed an arena of %llu bytes",
                       (unsigned long long)o->bytes, (unsigned long long)arg->first,
                       (unsigned long long)o->arena->bytes);
    }
    if (arg->first % dtype_size(o->shape.dtype) != 0) {
        return err_set(e, ERR_RANGE, "%s at byte %llu of an arena: not a multiple of its size",
                       dtype_name(o->shape.dtype), (unsigned long long)arg->first);
    }
    return 0;
}

/* Checks a bound value against the kind, type and shape of its parameter. */
static int check_binding(const struct proto_param *p, const struct operand *o, struct err *e)
{
    static const char *const kinds[] = {"", "a buffer", "a scalar", "an inline array"};
    bool fits = (p->kind == PARAM_BUFFER && o->kind == OPERAND_BUFFER) ||
                (p->kind == PARAM_SCALAR && o->kind == OPERAND_SCALAR) ||
                (p->kind == PARAM_DATA && operand_is_host(o));
    if (!fits) {
        return err_set(e, ERR_ARG_TYPE, "the program needs %s", kinds[p->kind]);
    }
    int dtype = o->kind == OPERAND_SCALAR ? o->dtype : o->shape.dtype;
    if (p->dtype != DTYPE_NONE && (int)p->dtype != dtype) {
        return err_set(e, ERR_ARG_TYPE, "%s was bound, the program needs %s", dtype_name(dtype),
                       dtype_name((int)p->dtype));
    }
    if (o->kind == OPERAND_SCALAR || p->ndim == 0) {
        return 0;
    }
    struct shape wanted = {
        .dtype = o->shape.dtype, .ndim = (uint8_t)p->ndim, .dim = {p->d0, p->d1, p->d2, p->d3}};
    if (!shape_equal(&wanted, &o->shape)) {
        char have[96];
        char need[96];
        return err_set(e, ERR_ARG_SHAPE, "%s was bound, the program needs %s",
                       shape_text(&o->shape, have, sizeof have),
                       shape_text(&wanted, need, sizeof need));
    }
    return 0;
}

static int of_param(struct resolver *r, const struct proto_arg *arg, struct operand *o,
                    struct err *e)
{
    if (arg->handle >= r->in->params.count) {
        return err_set(e, ERR_BAD_HANDLE, "there is no parameter %llu, the program has %llu",
                       (unsigned long long)arg->handle, (unsigned long long)r->in->params.count);
    }
    const struct proto_param *p = &r->params[arg->handle];
    if (r->in->unbound) {
        o->kind = OPERAND_UNBOUND;
        o->param_kind = (int)p->kind;
        return 0;
    }
    struct proto_arg bound = r->bindings[arg->handle];
    if (bound.tag == ARG_PARAM || bound.tag == ARG_TEMP) {
        return err_set(e, ERR_ARG_TYPE,
                       "a parameter must be bound to a buffer, scalar, inline array or arena");
    }
    int rc = operand_of(r, &bound, o, e);
    if (rc == 0) {
        rc = check_binding(p, o, e);
    }
    if (rc == 0 && o->kind == OPERAND_BUFFER && (arg->first != 0 || arg->count != 0)) {
        struct shape whole = o->shape;
        uint64_t base = o->offset;
        rc = slice(o, &whole, arg, e);
        o->offset += base;
    }
    if (rc != 0) {
        (void)err_wrap(e, "parameter %.*s", (int)p->name.size, (const char *)p->name.data);
    }
    return rc;
}

/* Views the same bytes as elements of another type. The last dimension is scaled if its bytes are
 * whole elements, else the array gets one dimension. */
static int view_as(struct operand *o, uint64_t view, struct err *e)
{
    size_t size = dtype_size((int)view);
    struct shape *s = &o->shape;
    if (view == DTYPE_NONE || o->kind == OPERAND_UNBOUND) {
        return 0;
    }
    if (!operand_is_array(o) || size == 0) {
        return err_set(e, ERR_ARG_TYPE, "a view as type %llu needs an array",
                       (unsigned long long)view);
    }
    if (o->bytes % size != 0 || o->offset % size != 0) {
        return err_set(e, o->bytes % size != 0 ? ERR_ARG_SHAPE : ERR_RANGE,
                       "%llu bytes from byte %llu on are no whole elements of %s",
                       (unsigned long long)o->bytes, (unsigned long long)o->offset,
                       dtype_name((int)view));
    }
    uint64_t row = s->dim[s->ndim - 1] * dtype_size(s->dtype);
    if (row % size == 0) {
        s->dim[s->ndim - 1] = row / size;
    } else {
        *s = (struct shape){.ndim = 1, .dim = {o->bytes / size}};
    }
    s->dtype = (uint8_t)view;
    return 0;
}

int operand_of(struct resolver *r, const struct proto_arg *arg, struct operand *ret_operand,
               struct err *e)
{
    struct operand o = {.access = (int)arg->access, .dtype = (int)arg->dtype, .bits = arg->bits};
    int rc = 0;
    switch (arg->tag) {
    case ARG_BUFFER:
        rc = of_buffer(r, arg, &o, e);
        break;
    case ARG_TEMP:
        rc = of_temp(r, arg, &o, e);
        break;
    case ARG_INLINE:
        rc = of_inline(arg, &o, e);
        break;
    case ARG_ARENA:
        rc = of_arena(r, arg, &o, e);
        break;
    case ARG_PARAM:
        rc = of_param(r, arg, &o, e);
        if (rc == 0 && arg->access != ACCESS_NONE) {
            o.access = (int)arg->access;
        }
        break;
    case ARG_SCALAR:
        o.kind = OPERAND_SCALAR;
        rc = dtype_size(o.dtype) > 0
                 ? 0
                 : err_set(e, ERR_ARG_TYPE, "scalar of unknown type %d", o.dtype);
        break;
    case ARG_STRUCT:
        o.kind = OPERAND_STRUCT;
        o.data = arg->data;
        break;
    case ARG_LOCAL:
        o.kind = OPERAND_LOCAL;
        o.bytes = arg->count;
        break;
    default:
        rc =
            err_set(e, ERR_ARG_TYPE, "argument of unknown kind %llu", (unsigned long long)arg->tag);
        break;
    }
    rc = rc == 0 ? view_as(&o, arg->view, e) : rc;
    if (rc == 0) {
        *ret_operand = o;
    }
    return rc;
}

bool operand_is_array(const struct operand *o)
{
    return o->kind == OPERAND_BUFFER || o->kind == OPERAND_TEMP || operand_is_host(o);
}

bool operand_is_host(const struct operand *o)
{
    return o->kind == OPERAND_INLINE || o->kind == OPERAND_ARENA;
}

/* Lists the part of the arena with its access, once, in the order of first use. */
static int arena_use(struct resolver *r, const struct operand *o, int access, struct err *e)
{
    if (o->limit != ACCESS_NONE && (o->limit & access) == 0) {
        return err_set(e, ERR_ARG_ACCESS, "declared %s, but it is %s", access_name(o->limit),
                       access == ACCESS_IN ? "read" : "written");
    }
    struct work *w = r->work;
    uint64_t end = o->offset + o->bytes;
    for (unsigned i = 0; i < w->arena_count; i++) {
        struct work_arena *u = &w->arenas[i];
        if (u->arena == o->arena && u->begin == o->offset && u->end == end) {
            u->access |= access;
            return 0;
        }
    }
    struct work_arena *u = work_add_arena(w, o->arena);
    if (u == NULL) {
        return err_set(e, ERR_LIMIT, "more than %u parts of arenas in a job", WORK_USES_MAX);
    }
    u->access = access;
    u->begin = o->offset;
    u->end = end;
    return 0;
}

int operand_reads(struct resolver *r, const struct operand *o, struct err *e)
{
    if (o->kind == OPERAND_TEMP) {
        /* steps with unbound parameters are not resolved, so what they write is not known */
        return r->temps[o->temp].written || o->bytes == 0 || r->in->unbound
                   ? 0
                   : err_set(e, ERR_UNDEFINED, "temporary %u is read before it was written",
                             o->temp);
    }
    if (o->kind == OPERAND_ARENA) {
        return arena_use(r, o, ACCESS_IN, e);
    }
    if (o->kind != OPERAND_BUFFER) {
        return 0;
    }
    struct work_use *u = work_use_of(r->work, o->buffer);
    if (u == NULL) {
        return err_set(e, ERR_LIMIT, "more than %u buffers in a job", WORK_USES_MAX);
    }
    u->access |= ACCESS_IN;
    uint64_t end = o->offset + o->bytes;
    if (!span_cover(u->part, u->part_count, o->offset, end)) {
        if (!u->reads_before_write) {
            u->step = r->step;
            u->reader = r->kernel;
            u->arg = r->arg;
        }
        u->read_begin =
            u->reads_before_write && u->read_begin < o->offset ? u->read_begin : o->offset;
        u->read_end = u->reads_before_write && u->read_end > end ? u->read_end : end;
        u->reads_before_write = true;
    }
    return 0;
}

int buffer_may_write(const struct resolver *r, const struct buffer *b, struct err *e)
{
    if (b->sealed) {
        char title[BUFFER_TITLE];
        return err_set(e, ERR_SEALED, "%s is sealed and cannot be written", buffer_title(b, title));
    }
    bool opened = b->name[0] != '\0' || b->openers > 0;
    if (opened && b->owner != r->in->session && (b->rights & ACCESS_OUT) == 0) {
        char title[BUFFER_TITLE];
        return err_set(e, ERR_PERMISSION, "%s %s may be read only",
                       b->name[0] != '\0' ? "published buffer" : "another session's",
                       b->name[0] != '\0' ? b->name : buffer_title(b, title));
    }
    return 0;
}

/* Grows the bounds of the written parts. */
static void hull_add(struct work_use *u, uint64_t begin, uint64_t end)
{
    bool first = u->write_begin == u->write_end;
    if (begin == end && !first) {
        return;
    }
    u->write_begin = first || begin < u->write_begin ? begin : u->write_begin;
    u->write_end = first || end > u->write_end ? end : u->write_end;
    span_add(u->part, &u->part_count, WORK_PARTS, begin, end);
}

int operand_writes(struct resolver *r, const struct operand *o, struct err *e)
{
    if (o->kind == OPERAND_TEMP) {
        r->temps[o->temp].written = true;
        return 0;
    }
    if (o->kind == OPERAND_ARENA) {
        return arena_use(r, o, ACCESS_OUT, e);
    }
    if (o->kind != OPERAND_BUFFER) {
        return 0;
    }
    int rc = buffer_may_write(r, o->buffer, e);
    if (rc != 0) {
        return rc;
    }
    struct work_use *u = work_use_of(r->work, o->buffer);
    if (u == NULL) {
        return err_set(e, ERR_LIMIT, "more than %u buffers in a job", WORK_USES_MAX);
    }
    u->access |= ACCESS_OUT;
    hull_add(u, o->offset, o->offset + o->bytes);
    return 0;
}

int operand_ref(struct resolver *r, const struct operand *o, struct err *e)
{
    return operand_ref_as(r, o, ACCESS_NONE, e);
}

int operand_ref_as(struct resolver *r, const struct operand *o, int access, struct err *e)
{
    struct work_ref *ref = work_add_ref(r->work);
    if (ref == NULL) {
        return err_set(e, ERR_LIMIT, "more than %u arguments of all steps", WORK_REFS_MAX);
    }
    if (o->kind == OPERAND_ARENA) {
        ref->tag = REF_ARENA;
        ref->id = o->arena->handle;
    } else if (o->kind == OPERAND_BUFFER) {
        ref->tag = REF_BUFFER;
        ref->id = o->buffer->handle;
    } else {
        ref->tag = REF_TEMP;
        ref->id = r->temps[o->temp].index;
    }
    ref->offset = o->offset;
    ref->size = o->bytes;
    ref->access = access;
    return 0;
}

int operand_write_from(struct resolver *r, const struct operand *dst, const struct operand *src,
                       struct err *e)
{
    struct work_step *s = work_add_step(r->work, OP_WRITE, r->step, e);
    if (s == NULL) {
        return e->code;
    }
    int rc = operand_ref(r, dst, e);
    if (rc == 0) {
        rc = src->kind == OPERAND_ARENA ? operand_ref(r, src, e)
                                        : work_add_input(r->work, src->data, &s->stage, e);
    }
    return rc;
}
