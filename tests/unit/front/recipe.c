#include "tests/unit/front/recipe.h"

#include <check.h>
#include <string.h>

void recipe_init(struct recipe *r, struct fake *k)
{
    *r = (struct recipe){.k = k, .e = ERR_INIT};
    capbuf_init(&r->params, 1 << 20);
    capbuf_init(&r->temps, 1 << 20);
    capbuf_init(&r->steps, 1 << 20);
    capbuf_init(&r->bindings, 1 << 20);
    capbuf_init(&r->args, 1 << 20);
    work_init(&r->work);
}

void recipe_reset(struct recipe *r)
{
    capbuf_reset(&r->params);
    capbuf_reset(&r->temps);
    capbuf_reset(&r->steps);
    capbuf_reset(&r->bindings);
    capbuf_reset(&r->args);
    r->param_count = r->temp_count = r->step_count = r->binding_count = r->arg_count = 0;
    r->unbound = false;
    work_finish(&r->work);
}

void recipe_finish(struct recipe *r)
{
    recipe_reset(r);
    capbuf_finish(&r->params);
    capbuf_finish(&r->temps);
    capbuf_finish(&r->steps);
    capbuf_finish(&r->bindings);
    capbuf_finish(&r->args);
}

static void add(const struct schema *s, const void *record, struct capbuf *list, uint64_t *count)
{
    ck_assert_int_eq(proto_list_add(s, record, list, NULL), 0);
    ++*count;
}

void recipe_arg(struct recipe *r, struct proto_arg arg)
{
    add(&schema_arg, &arg, &r->args, &r->arg_count);
}

void recipe_step(struct recipe *r, struct proto_step step)
{
    step.args = proto_list_of(&r->args, r->arg_count);
    add(&schema_step, &step, &r->steps, &r->step_count);
    capbuf_reset(&r->args);
    r->arg_count = 0;
}

void recipe_temp(struct recipe *r, int dtype, uint64_t count)
{
    struct proto_temp t = {.dtype = (uint64_t)dtype, .ndim = 1, .d0 = count};
    add(&schema_temp, &t, &r->temps, &r->temp_count);
}

void recipe_param(struct recipe *r, struct proto_param param)
{
    add(&schema_param, &param, &r->params, &r->param_count);
}

void recipe_bind(struct recipe *r, struct proto_arg arg)
{
    add(&schema_arg, &arg, &r->bindings, &r->binding_count);
}

int recipe_resolve(struct recipe *r)
{
    struct resolve_input in = {.buffers = &r->k->f.buffers,
                               .kernels = &r->k->f.kernels,
                               .builtin = r->k->f.builtin,
                               .arenas = r->arenas,
                               .device = r->k->f.device,
                               .devices = {.word = {r->devices}},
                               .processors = {.word = {r->processors}},
                               .session = r->k->session,
                               .tenant = r->k->tenant,
                               .params = proto_list_of(&r->params, r->param_count),
                               .temps = proto_list_of(&r->temps, r->temp_count),
                               .steps = proto_list_of(&r->steps, r->step_count),
                               .bindings = proto_list_of(&r->bindings, r->binding_count),
                               .unbound = r->unbound};
    work_finish(&r->work);
    r->e = ERR_INIT;
    return resolve(&in, &r->work, &r->e);
}

uint64_t recipe_kernel(const struct fake *k, const char *name)
{
    uint32_t cursor = 0;
    const struct kernel *kernel;
    while ((kernel = idmap_next(&k->f.kernels, &cursor, NULL)) != NULL) {
        if (strcmp(kernel->name, name) == 0) {
            return kernel->handle;
        }
    }
    return 0;
}

void recipe_launch(struct recipe *r, const char *name, unsigned count, const struct proto_arg *args)
{
    for (unsigned i = 0; i < count; i++) {
        recipe_arg(r, args[i]);
    }
    uint64_t handle = recipe_kernel(r->k, name);
    ck_assert_uint_ne(handle, 0);
    recipe_step(r, (struct proto_step){.op = OP_LAUNCH, .kernel = handle});
}

struct proto_arg arg_buffer(const struct buffer *b, uint64_t first, uint64_t count)
{
    return (struct proto_arg){
        .tag = ARG_BUFFER, .handle = b->handle, .first = first, .count = count};
}

struct proto_arg arg_temp(uint64_t index, uint64_t first, uint64_t count)
{
    return (struct proto_arg){.tag = ARG_TEMP, .handle = index, .first = first, .count = count};
}

struct proto_arg arg_scalar(int dtype, uint64_t bits)
{
    return (struct proto_arg){.tag = ARG_SCALAR, .dtype = (uint64_t)dtype, .bits = bits};
}

struct proto_arg arg_inline(int access, int dtype, uint64_t count, struct bytes data)
{
    return (struct proto_arg){.tag = ARG_INLINE,
                              .access = (uint64_t)access,
                              .dtype = (uint64_t)dtype,
                              .ndim = 1,
                              .d0 = count,
                              .data = data};
}

struct proto_arg arg_param(uint64_t index)
{
    return (struct proto_arg){.tag = ARG_PARAM, .handle = index};
}
