#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/arena.h"
#include "daemon/front/model/buffer.h"
#include "daemon/front/model/module.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/resolve/resolve_int.h"
#include "kernels/builtin.h"
#include "kernels/plan.h"
#include "kernels/signature.h"
#include "proto/codec.h"

/* A launch with its resolved arguments. */
struct launch {
    const struct kernel *kernel;
    const struct proto_step *step;
    struct operand arg[PROTO_ARGS_MAX];
    unsigned arg_count;
    /* `arg`, with temporaries for staged arrays and copies */
    struct operand device[PROTO_ARGS_MAX];
    char entry[2 * PROTO_NAME_MAX + 1]; /* the kernel's entry point, once its types are known */
};

static int name_arg(const struct kernel *k, unsigned index, struct err *e, int rc)
{
    if (e != NULL) {
        kernel_name_arg(k, index, e);
    }
    return rc;
}

static int take_args(struct resolver *r, struct launch *l, bool *ret_unbound, struct err *e)
{
    struct proto_iter it = proto_iter_of(l->step->args);
    struct proto_arg arg;
    *ret_unbound = false;
    while (proto_list_next(&it, &schema_arg, &arg)) {
        int rc = operand_of(r, &arg, &l->arg[l->arg_count], e);
        if (rc != 0) {
            return name_arg(l->kernel, l->arg_count, e, rc);
        }
        *ret_unbound = *ret_unbound || l->arg[l->arg_count].kind == OPERAND_UNBOUND;
        l->arg_count++;
    }
    return 0;
}

/* ---- arrays: reads, writes, inputs and outputs ----------------------------------------------- */

/* Replaces the argument by a temporary of its size. */
static int temp_for(struct resolver *r, struct launch *l, unsigned i, struct err *e)
{
    struct operand *o = &l->device[i];
    if (r->temp_count == RESOLVE_TEMPS_MAX) {
        return err_set(e, ERR_LIMIT, "more than %u temporaries and inline arrays",
                       RESOLVE_TEMPS_MAX);
    }
    struct temp_info *t = &r->temps[r->temp_count];
    *t = (struct temp_info){.shape = o->shape, .written = true};
    int rc = work_add_temp(r->work, o->bytes, &t->index, e);
    if (rc != 0) {
        return rc;
    }
    o->kind = OPERAND_TEMP;
    o->temp = r->temp_count++;
    o->offset = 0;
    return 0;
}

/* Replaces an array of the host by a temporary on the device, which is written before the
 * launch. */
static int stage_in(struct resolver *r, struct launch *l, unsigned i, int access, struct err *e)
{
    const struct operand *from = &l->arg[i];
    struct operand *o = &l->device[i];
    int rc = temp_for(r, l, i, e);
    if (rc != 0) {
        return rc;
    }
    if ((access & ACCESS_IN) == 0 || o->bytes == 0) {
        return 0;
    }
    if (from->kind == OPERAND_INLINE && o->data.size != o->bytes) {
        return err_set(e, ERR_ARG_ACCESS,
                       "the kernel reads this array, but the request has no data for it");
    }
    return operand_write_from(r, o, from, e);
}

/* Does the kernel read its arrays in one launch only, and never as an index? A client may write to
 * its arena meanwhile, so two launches could see different values. */
static bool touches_once(const struct kernel *k)
{
    static const char *const once[] = {"dot", "reduce_sum", "reduce_min", "reduce_max"};
    bool found = k->module != NULL && strncmp(k->name, "histogram", strlen("histogram")) != 0;
    for (size_t i = 0; i < sizeof once / sizeof once[0] && !found; i++) {
        found = k->module == NULL && strcmp(k->name, once[i]) == 0;
    }
    return found;
}

/* May the kernel work in the arena itself, without a copy on the device? */
static bool works_on(const struct resolver *r, const struct launch *l, const struct operand *o,
                     int access)
{
    const struct device_set *all = &r->in->devices;
    bool near = o->direct || device_set_covers(&r->in->processors, all);
    bool able = device_set_any(all) && device_set_covers(&o->arena->mapped, all) &&
                o->offset % o->arena->align == 0;
    bool plan = l->kernel->module == NULL; /* a plan, which may fill and copy what it writes */
    return (!plan || access == ACCESS_IN) && near && able && o->bytes > 0 &&
           touches_once(l->kernel);
}

/* Is the kernel known to only read the argument? Kernels of the daemon are, others by a report on
 * their build. For a new architecture there is no build yet, and the answer is no. */
static bool only_reads(const struct resolver *r, const struct launch *l, unsigned i)
{
    struct module *m = l->kernel->module;
    if (m == NULL || m->tenant == NULL) {
        return true; /* a kernel of the daemon */
    }
    const struct device *d = r->in->device != NULL ? r->in->device[l->arg[i].buffer->device] : NULL;
    const struct build *b = d != NULL ? module_build(m, d->backend, d->arch) : NULL;
    return b != NULL && resource_list_only_reads(&b->needs, l->entry, i);
}

/* Does the kernel get a copy of a buffer that it is declared to read? A kernel gets the buffer
 * itself if the session may write it, or if the kernel's code is known to only read. Else (sealed,
 * or opened for reading only) it gets a copy. */
static bool needs_copy(const struct resolver *r, const struct launch *l, unsigned i, int access)
{
    const struct operand *o = &l->arg[i];
    return o->kind == OPERAND_BUFFER && access == ACCESS_IN && o->bytes > 0 &&
           buffer_may_write(r, o->buffer, NULL) != 0 && !only_reads(r, l, i);
}

static int copy_in(struct resolver *r, struct launch *l, unsigned i, struct err *e)
{
    const struct operand *from = &l->arg[i];
    struct work_copy *largest = &r->work->copy;
    int rc = temp_for(r, l, i, e);
    if (rc == 0 && work_add_step(r->work, OP_COPY, r->step, e) == NULL) {
        rc = e->code;
    }
    rc = rc == 0 ? operand_ref(r, &l->device[i], e) : rc;
    rc = rc == 0 ? operand_ref(r, from, e) : rc;
    if (rc == 0 && from->bytes > largest->bytes) {
        *largest = (struct work_copy){.step = r->step, .arg = i, .bytes = from->bytes};
    }
    return rc == 0
               ? 0
               : err_wrap(e, "a copy, as the kernel may write buffer %#llx and this client may not",
                          (unsigned long long)from->buffer->handle);
}

static int use_array(struct resolver *r, struct launch *l, unsigned i, int access, struct err *e)
{
    const struct operand *o = &l->arg[i];
    l->device[i] = *o;
    r->kernel = l->kernel;
    r->arg = i;
    int rc = (access & ACCESS_IN) != 0 ? operand_reads(r, o, e) : 0;
    r->kernel = NULL;
    rc = rc == 0 && (access & ACCESS_OUT) != 0 ? operand_writes(r, o, e) : rc;
    if (rc == 0 && operand_is_host(o) && !(o->kind == OPERAND_ARENA && works_on(r, l, o, access))) {
        rc = stage_in(r, l, i, access, e);
    } else if (rc == 0 && needs_copy(r, l, i, access)) {
        rc = copy_in(r, l, i, e);
    }
    return rc;
}

/* Reads a staged array back that the kernel has written: an inline array becomes an output of the
 * job, an array in an arena is copied there. */
static int stage_out(struct resolver *r, struct launch *l, unsigned i, int access, struct err *e)
{
    const struct operand *o = &l->device[i];
    const struct operand *to = &l->arg[i];
    if (!operand_is_host(to) || o->kind != OPERAND_TEMP || (access & ACCESS_OUT) == 0) {
        return 0;
    }
    uint64_t stage = 0;
    int rc =
        to->kind == OPERAND_INLINE ? work_add_output(r->work, r->step, i, o->bytes, &stage, e) : 0;
    if (rc != 0 || o->bytes == 0) {
        return rc;
    }
    struct work_step *s = work_add_step(r->work, OP_READ, r->step, e);
    if (s == NULL) {
        return e->code;
    }
    s->stage = stage;
    rc = operand_ref(r, o, e);
    return rc == 0 && to->kind == OPERAND_ARENA ? operand_ref(r, to, e) : rc;
}

static int add_value(struct resolver *r, const void *data, size_t size, struct err *e)
{
    struct work_ref *ref = work_add_ref(r->work);
    if (ref == NULL) {
        return err_set(e, ERR_LIMIT, "more than %u arguments of all steps", WORK_REFS_MAX);
    }
    ref->tag = REF_VALUE;
    ref->size = size;
    void *to = ref->value;
    if (size > sizeof ref->value) {
        ref->large = malloc(size);
        if (ref->large == NULL) {
            return err_set(e, ERR_NOMEM, "no memory for an argument of %zu bytes", size);
        }
        to = ref->large;
    }
    memcpy(to, data, size);
    return 0;
}

/* Each launch of a module uses its open variables. A freed variable still counts while a job has
 * yet to write it, unless it is lost. */
static int variables_use(struct resolver *r, const struct module *m, struct err *e)
{
    for (const struct variable *v = m->variables; v != NULL; v = v->hh.next) {
        struct buffer *b = v->buffer;
        if (b->freed && (b->writers == 0 || buffer_state(b) == BUFFER_LOST)) {
            continue;
        }
        if (buffer_state(b) == BUFFER_LOST) {
            return err_set(e, ERR_BUFFER_LOST,
                           "variable %s was lost with its worker: free it, and set it anew",
                           v->name);
        }
        const struct operand o = {
            .kind = OPERAND_BUFFER, .buffer = b, .shape = b->shape, .bytes = b->bytes};
        int rc = operand_reads(r, &o, e);
        rc = rc == 0 && (v->access & ACCESS_OUT) != 0 ? operand_writes(r, &o, e) : rc;
        if (rc != 0) {
            return err_wrap(e, "variable %s", v->name);
        }
    }
    return 0;
}

static struct work_step *add_launch(struct resolver *r, struct module *m, const char *entry,
                                    struct err *e)
{
    if (work_add_module(r->work, m, e) != 0 || variables_use(r, m, e) != 0) {
        return NULL;
    }
    if (kernel_check(r->in->tenant, m, entry, e) != 0) {
        return NULL;
    }
    struct work_step *s = work_add_step(r->work, OP_LAUNCH, r->step, e);
    if (s == NULL) {
        return NULL;
    }
    s->module = m;
    size_t size = strlen(entry) < sizeof s->entry ? strlen(entry) : sizeof s->entry - 1;
    memcpy(s->entry, entry, size);
    return s;
}

/* ---- kernels with a signature ---------------------------------------------------------------- */

static struct sig_value value_of(const struct operand *o)
{
    return (struct sig_value){.array = operand_is_array(o),
                              .access = o->access,
                              .shape = o->shape,
                              .dtype = o->dtype,
                              .bits = o->bits};
}

/* The memory of the caller's array; a staged array counts as the caller's. */
static struct sig_place place_of(const struct resolver *r, const struct operand *o)
{
    const void *memory = o->kind == OPERAND_BUFFER  ? (const void *)o->buffer
                         : o->kind == OPERAND_ARENA ? (const void *)o->arena
                         : o->kind == OPERAND_TEMP  ? (const void *)&r->temps[o->temp]
                                                    : NULL;
    return (struct sig_place){memory, o->offset, o->offset + o->bytes};
}

/* Adds one primitive launch: arguments in order, then the named sizes. */
static int emit(struct resolver *r, struct module *m, const struct signature *sig,
                const struct sig_binding *b, const struct operand *args, struct err *e)
{
    if (b->global[0] == 0 && sig->over_count > 0) {
        return 0; /* nothing to do */
    }
    char entry[2 * PROTO_NAME_MAX];
    int rc = signature_entry(sig, b->dtype, entry, sizeof entry, e);
    if (rc != 0) {
        return rc;
    }
    struct work_step *s = add_launch(r, m, entry, e);
    if (s == NULL) {
        return e != NULL ? e->code : ERR_NOMEM;
    }
    memcpy(s->global, b->global, sizeof s->global);
    memcpy(s->local, b->local, sizeof s->local);
    for (unsigned i = 0; rc == 0 && i < sig->arg_count; i++) {
        const struct sig_arg *a = &sig->arg[i];
        int dtype = a->dtype != DTYPE_NONE ? a->dtype : b->dtype;
        rc = a->kind == SIG_ARRAY ? operand_ref_as(r, &args[i], a->access, e)
                                  : add_value(r, &b->scalar[i], dtype_size(dtype), e);
    }
    for (unsigned i = 0; rc == 0 && i < sig->dim_count; i++) {
        rc = add_value(r, &b->dim[i], sizeof b->dim[i], e);
    }
    return rc;
}

/* Adds a step that calls a library of the device's vendor in place of the steps that follow; the
 * worker decides whether it does. ret_index: of this step in the work. The caller sets which steps
 * it covers. */
static int emit_library(struct resolver *r, const char *name, const struct signature *sig,
                        const struct sig_binding *b, const struct operand *args,
                        unsigned *ret_index, struct err *e)
{
    struct work_step *s = work_add_step(r->work, FRAME_OP_LIBRARY, r->step, e);
    if (s == NULL) {
        return e->code;
    }
    s->dtype = b->dtype;
    memcpy(s->entry, name, strlen(name) < sizeof s->entry ? strlen(name) : 0);
    *ret_index = r->work->step_count - 1;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < sig->arg_count; i++) {
        const struct sig_arg *a = &sig->arg[i];
        int dtype = a->dtype != DTYPE_NONE ? a->dtype : b->dtype;
        rc = a->kind == SIG_ARRAY ? operand_ref(r, &args[i], e)
                                  : add_value(r, &b->scalar[i], dtype_size(dtype), e);
    }
    for (unsigned i = 0; rc == 0 && i < sig->dim_count; i++) {
        rc = add_value(r, &b->dim[i], sizeof b->dim[i], e);
    }
    return rc;
}

/* Launches one kernel with a signature, built-in or a client's. */
static int emit_builtin(struct resolver *r, const struct launch *l, const struct sig_binding *b,
                        struct err *e)
{
    const struct kernel *k = l->kernel;
    bool offered = k->module->tenant == NULL && b->global[0] != 0 && plan_library(k->name);
    unsigned library = 0;
    int rc = offered ? emit_library(r, k->name, k->signature, b, l->device, &library, e) : 0;
    rc = rc == 0 ? emit(r, k->module, k->signature, b, l->device, e) : rc;
    if (offered) {
        r->work->steps[library].covers = 1;
    }
    return rc;
}

/* Translates an argument of a plan's step into an operand. */
static int plan_operand(const struct launch *l, const struct plan_ref *ref, unsigned first_temp,
                        struct operand *ret_operand, struct err *e)
{
    struct operand o = {.shape = ref->shape, .dtype = ref->dtype, .bits = ref->bits};
    if (ref->kind == PLAN_SCALAR) {
        o.kind = OPERAND_SCALAR;
        *ret_operand = o;
        return 0;
    }
    o.bytes = shape_bytes(&ref->shape);
    o.offset = ref->offset;
    if (ref->kind == PLAN_TEMP) {
        o.kind = OPERAND_TEMP;
        o.temp = first_temp + ref->index;
    } else {
        const struct operand *user = &l->device[ref->index];
        if (ref->index >= l->arg_count || o.offset + o.bytes > user->bytes) {
            return err_set(e, ERR_INTERNAL, "plan reaches outside of argument %u", ref->index);
        }
        o.kind = user->kind;
        o.buffer = user->buffer;
        o.arena = user->arena;
        o.temp = user->temp;
        o.offset += user->offset;
    }
    *ret_operand = o;
    return 0;
}

static int plan_launch(struct resolver *r, const char *name, const struct operand *args,
                       unsigned count, struct err *e)
{
    unsigned module = 0;
    const struct signature *sig = NULL;
    if (!builtin_find(name, &module, &sig)) {
        return err_set(e, ERR_INTERNAL, "plan names kernel %s, which is not built in", name);
    }
    struct sig_value values[SIG_ARGS];
    for (unsigned i = 0; i < count; i++) {
        values[i] = value_of(&args[i]);
    }
    struct sig_binding b;
    int rc = signature_bind(sig, values, count, &b, e);
    if (rc != 0) {
        (void)err_wrap(e, "kernel %s", name);
        return rc;
    }
    return emit(r, r->in->builtin[module], sig, &b, args, e);
}

static int plan_step(struct resolver *r, const struct launch *l, const struct plan_step *p,
                     unsigned first_temp, struct err *e)
{
    struct operand args[SIG_ARGS] = {0};
    for (unsigned i = 0; i < p->arg_count; i++) {
        int rc = plan_operand(l, &p->arg[i], first_temp, &args[i], e);
        if (rc != 0) {
            return rc;
        }
    }
    if (p->op == PLAN_LAUNCH) {
        return plan_launch(r, p->kernel, args, p->arg_count, e);
    }
    const struct sig_place to = place_of(r, &args[0]), from = place_of(r, &args[1]);
    bool onto_itself = p->op == PLAN_COPY && to.memory == from.memory && to.begin == from.begin;
    if (args[0].bytes == 0 || onto_itself) {
        return 0;
    }
    struct work_step *s =
        work_add_step(r->work, p->op == PLAN_COPY ? OP_COPY : OP_FILL, r->step, e);
    if (s == NULL) {
        return e->code;
    }
    if (p->op == PLAN_FILL) {
        s->pattern_size = dtype_size(args[1].dtype);
        memcpy(s->pattern, &args[1].bits, s->pattern_size);
    }
    int rc = operand_ref(r, &args[0], e);
    return rc == 0 && p->op == PLAN_COPY ? operand_ref(r, &args[1], e) : rc;
}

static int plan_temps(struct resolver *r, const struct plan *plan, struct err *e)
{
    for (unsigned i = 0; i < plan->temp_count; i++) {
        if (r->temp_count == RESOLVE_TEMPS_MAX) {
            return err_set(e, ERR_LIMIT, "more than %u temporaries", RESOLVE_TEMPS_MAX);
        }
        struct temp_info *t = &r->temps[r->temp_count];
        *t = (struct temp_info){.written = true};
        int rc = work_add_temp(r->work, plan->temp[i], &t->index, e);
        if (rc != 0) {
            return rc;
        }
        r->temp_count++;
    }
    return 0;
}

static int run_plan(struct resolver *r, const struct launch *l, const struct sig_value *values,
                    const struct sig_binding *b, struct err *e)
{
    struct plan *plan = malloc(sizeof *plan);
    if (plan == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a plan of %s", l->kernel->name);
    }
    unsigned first_temp = r->temp_count;
    int rc = plan_make(l->kernel->name, values, l->arg_count, b, plan, e);
    if (rc == 0) {
        rc = plan_temps(r, plan, e);
    }
    unsigned library = 0;
    if (rc == 0 && plan->library) {
        rc = emit_library(r, l->kernel->name, l->kernel->signature, b, l->device, &library, e);
    }
    unsigned first = r->work->step_count;
    for (unsigned i = 0; rc == 0 && i < plan->step_count; i++) {
        if (i == plan->after && plan->library) {
            r->work->steps[library].after = r->work->step_count - first;
        }
        rc = plan_step(r, l, &plan->step[i], first_temp, e);
    }
    if (rc == 0 && plan->library) {
        struct work_step *s = &r->work->steps[library];
        s->covers = r->work->step_count - first - s->after;
    }
    free(plan);
    return rc;
}

static void user_sizes(const struct launch *l, struct sig_binding *b)
{
    const struct proto_step *s = l->step;
    if (l->kernel->signature->over_count == 0) {
        b->global[0] = s->gx;
        b->global[1] = s->gy > 0 ? s->gy : 1;
        b->global[2] = s->gz > 0 ? s->gz : 1;
        if (b->local[0] > 0) {
            return; /* the signature defines the group */
        }
        b->local[0] = s->lx;
        b->local[1] = s->ly > 0 || s->lx == 0 ? s->ly : 1;
        b->local[2] = s->lz > 0 || s->lx == 0 ? s->lz : 1;
    }
}

/* Refuses sizes that would be ignored. */
static int refuse_sizes(const struct launch *l, struct err *e)
{
    const struct proto_step *s = l->step;
    bool from_data = l->kernel->signature->over_count > 0 || l->kernel->module == NULL;
    bool given = (s->gx | s->gy | s->gz | s->lx | s->ly | s->lz | s->shared) != 0;
    if (!from_data || !given) {
        return 0;
    }
    return err_set(e, ERR_INVALID,
                   "its sizes follow from its arrays: leave the grid out (its signature: %s)",
                   l->kernel->signature->text);
}

static int launch_signed(struct resolver *r, struct launch *l, struct err *e)
{
    const struct signature *sig = l->kernel->signature;
    struct sig_value values[SIG_ARGS];
    struct sig_place places[SIG_ARGS];
    if (refuse_sizes(l, e) != 0) {
        return ERR_INVALID;
    }
    for (unsigned i = 0; i < l->arg_count && i < SIG_ARGS; i++) {
        if (!operand_is_array(&l->arg[i]) && l->arg[i].kind != OPERAND_SCALAR) {
            return name_arg(l->kernel, i, e, err_set(e, ERR_ARG_TYPE, "neither array nor scalar"));
        }
        values[i] = value_of(&l->arg[i]);
        places[i] = place_of(r, &l->arg[i]);
    }
    struct sig_binding b;
    int rc = signature_bind(sig, values, l->arg_count, &b, e);
    rc = rc == 0 ? signature_alias(sig, values, places, e) : rc;
    if (rc != 0) {
        return rc;
    }
    user_sizes(l, &b);
    rc = signature_entry(sig, b.dtype, l->entry, sizeof l->entry, e);
    if (rc != 0) {
        return rc;
    }
    for (unsigned i = 0; i < l->arg_count; i++) {
        l->device[i] = l->arg[i];
        if (sig->arg[i].kind == SIG_ARRAY) {
            rc = use_array(r, l, i, sig->arg[i].access, e);
            if (rc != 0) {
                return name_arg(l->kernel, i, e, rc);
            }
        }
    }
    rc = l->kernel->module == NULL ? run_plan(r, l, values, &b, e) : emit_builtin(r, l, &b, e);
    for (unsigned i = 0; rc == 0 && i < l->arg_count; i++) {
        rc = stage_out(r, l, i, sig->arg[i].access, e);
    }
    return rc;
}

/* ---- code without a signature: the compiler's report ----------------------------------------- */

static int check_scalar(const struct proto_karg *k, struct operand *o, struct err *e)
{
    if (o->kind == OPERAND_STRUCT) {
        return k->bytes == 0 || k->bytes == o->data.size
                   ? 0
                   : err_set(e, ERR_ARG_TYPE, "%zu bytes by value, the kernel takes %llu",
                             o->data.size, (unsigned long long)k->bytes);
    }
    if (o->kind != OPERAND_SCALAR) {
        return err_set(e, ERR_ARG_TYPE, "an array, the kernel takes a value");
    }
    if (k->dtype != DTYPE_NONE) {
        int rc = scalar_convert(o->dtype, o->bits, (int)k->dtype, &o->bits, e);
        o->dtype = (int)k->dtype;
        return rc;
    }
    return k->bytes == 0 || k->bytes == dtype_size(o->dtype)
               ? 0
               : err_set(e, ERR_ARG_TYPE, "a %s, the kernel takes %llu bytes", dtype_name(o->dtype),
                         (unsigned long long)k->bytes);
}

/* Arrays behind const pointers are read only. For others the declared access counts, because the
 * compiler cannot know it. */
static int check_array(const struct proto_karg *k, struct operand *o, int *ret_access,
                       struct err *e)
{
    if (!operand_is_array(o)) {
        return err_set(e, ERR_ARG_TYPE, "a value, the kernel takes an array");
    }
    /* as in C, a pointer to char may point to anything, as one to void does (no dtype) */
    bool any = k->dtype == DTYPE_NONE || k->dtype == DTYPE_I8 || k->dtype == DTYPE_U8;
    if (!any && (int)k->dtype != o->shape.dtype) {
        return err_set(e, ERR_ARG_TYPE,
                       "%s, the kernel takes %s (to pass its bytes as they are: gpud_arg_as, "
                       "gpuctl run --arg inout:%s/%s)",
                       dtype_name(o->shape.dtype), dtype_name((int)k->dtype),
                       dtype_name(o->shape.dtype), dtype_name((int)k->dtype));
    }
    int access = o->access != ACCESS_NONE ? o->access : (int)k->access;
    if (k->access == ACCESS_IN && (access & ACCESS_OUT) != 0) {
        return err_set(e, ERR_ARG_ACCESS,
                       "declared %s, but the kernel's pointer is const: declare it in",
                       access_name(access));
    }
    *ret_access = access != ACCESS_NONE ? access : ACCESS_INOUT;
    return 0;
}

static int check_reported(struct resolver *r, struct launch *l, int *access, struct err *e)
{
    const struct kernel *kernel = l->kernel;
    if (l->arg_count != kernel->arg_count) {
        return err_set(e, ERR_ARG_COUNT, "%u arguments, the kernel takes %u", l->arg_count,
                       kernel->arg_count);
    }
    for (unsigned i = 0; i < l->arg_count; i++) {
        const struct proto_karg *k = &kernel->args[i];
        bool array = k->kind == 2 || (k->kind == 0 && operand_is_array(&l->arg[i]));
        int rc = 0;
        if (k->kind == 4) {
            rc = l->arg[i].kind == OPERAND_LOCAL
                     ? 0
                     : err_set(e, ERR_ARG_TYPE, "the kernel takes local memory: give its size");
        } else if (array) {
            rc = check_array(k, &l->arg[i], &access[i], e);
        } else {
            rc = check_scalar(k, &l->arg[i], e);
        }
        l->device[i] = l->arg[i];
        if (rc == 0 && array) {
            rc = use_array(r, l, i, access[i], e);
        }
        if (rc != 0) {
            return name_arg(kernel, i, e, rc);
        }
    }
    return 0;
}

/* Limits for one dimension. A group that the device chooses counts as one of GROUP_MOST work items.
 * A worker refuses what is too much for its device. */
#define GROUPS_MOST INT32_MAX
#define GROUP_MOST  1024u

static int groups_check(const struct work_step *s, int i, struct err *e)
{
    uint64_t group = s->local[i] > 0 ? s->local[i] : GROUP_MOST;
    return s->global[i] / group <= GROUPS_MOST
               ? 0
               : err_set(e, ERR_RANGE,
                         "size %llu x %llu in dimension %d: more than %d groups: let each work "
                         "item do more",
                         (unsigned long long)s->global[i], (unsigned long long)s->local[i], i,
                         GROUPS_MOST);
}

static int sizes_of(const struct proto_step *step, struct work_step *s, struct err *e)
{
    const uint64_t global[] = {step->gx, step->gy, step->gz};
    const uint64_t local[] = {step->lx, step->ly, step->lz};
    if (step->gx == 0) {
        return err_set(e, ERR_INVALID, "this kernel has no signature: give its global size");
    }
    bool some_local = step->lx > 0 || step->ly > 0 || step->lz > 0;
    for (int i = 0; i < 3; i++) {
        s->global[i] = global[i] > 0 ? global[i] : 1;
        s->local[i] = some_local && local[i] == 0 ? 1 : local[i];
        if (s->local[i] > UINT16_MAX) {
            return err_set(e, ERR_RANGE, "local size %llu in dimension %d, at most %u",
                           (unsigned long long)s->local[i], i, UINT16_MAX);
        }
        if (some_local && s->global[i] % s->local[i] != 0) {
            return err_set(e, ERR_INVALID,
                           "global size %llu is no multiple of local size %llu in dimension %d",
                           (unsigned long long)s->global[i], (unsigned long long)s->local[i], i);
        }
        int rc = groups_check(s, i, e);
        if (rc != 0) {
            return rc;
        }
    }
    s->shared = step->shared;
    return 0;
}

static int emit_reported(struct resolver *r, struct launch *l, const int *access, struct err *e)
{
    struct work_step *s = add_launch(r, l->kernel->module, l->kernel->entry, e);
    if (s == NULL) {
        return e != NULL ? e->code : ERR_NOMEM;
    }
    int rc = sizes_of(l->step, s, e);
    for (unsigned i = 0; rc == 0 && i < l->arg_count; i++) {
        const struct operand *o = &l->device[i];
        if (o->kind == OPERAND_LOCAL) {
            struct work_ref *ref = work_add_ref(r->work);
            if (ref == NULL) {
                return err_set(e, ERR_LIMIT, "more than %u arguments of all steps", WORK_REFS_MAX);
            }
            *ref = (struct work_ref){.tag = REF_LOCAL, .size = o->bytes};
        } else if (o->kind == OPERAND_SCALAR) {
            rc = add_value(r, &o->bits, dtype_size(o->dtype), e);
        } else if (o->kind == OPERAND_STRUCT) {
            rc = add_value(r, o->data.data, o->data.size, e);
        } else {
            rc = operand_ref_as(r, o, access[i], e);
        }
    }
    return rc;
}

static int launch_reported(struct resolver *r, struct launch *l, struct err *e)
{
    int access[PROTO_ARGS_MAX] = {0};
    memcpy(l->entry, l->kernel->entry, sizeof l->entry);
    int rc = check_reported(r, l, access, e);
    if (rc == 0) {
        rc = emit_reported(r, l, access, e);
    }
    for (unsigned i = 0; rc == 0 && i < l->arg_count; i++) {
        rc = stage_out(r, l, i, access[i], e);
    }
    return rc;
}

static int find_kernel(struct resolver *r, uint64_t handle, const struct kernel **ret_kernel,
                       struct err *e)
{
    const struct kernel *k = idmap_get(r->in->kernels, handle);
    bool users = k != NULL && k->module != NULL && k->module->tenant != NULL;
    if (k == NULL || (users && k->module->owner != r->in->session)) {
        return session_lacks(r->in->session, r->in->kernels, handle, "kernel", e);
    }
    if (k->unfit != NULL) {
        return err_set(e, ERR_UNSUPPORTED, "kernel %s: %s", k->name, k->unfit);
    }
    *ret_kernel = k;
    return 0;
}

int resolve_launch(struct resolver *r, const struct proto_step *step, struct err *e)
{
    struct launch *l =
        malloc(sizeof *l); /* not zeroed: its lists are long, and filled before use */
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a launch");
    }
    l->kernel = NULL;
    l->step = step;
    l->arg_count = 0;
    bool unbound = false;
    int rc = find_kernel(r, step->kernel, &l->kernel, e);
    if (rc == 0) {
        rc = take_args(r, l, &unbound, e);
        if (rc == 0 && !unbound) {
            rc = l->kernel->signature != NULL ? launch_signed(r, l, e) : launch_reported(r, l, e);
        }
        if (rc != 0) {
            (void)err_wrap(e, "%s", l->kernel->name);
        }
    }
    free(l);
    return rc;
}
