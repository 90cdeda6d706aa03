/* Programs in the form in which clients send them, and resolve() on them. */
#ifndef TEST_RECIPE_H
#define TEST_RECIPE_H

#include "daemon/front/resolve/resolve.h"
#include "proto/codec.h"
#include "tests/unit/front/fake_front.h"

struct recipe {
    struct fake *k;
    struct capbuf params, temps, steps, bindings, args;
    uint64_t param_count, temp_count, step_count, binding_count, arg_count;
    bool unbound;
    const struct idmap *arenas; /* stay through recipe_reset, as the next two */
    uint64_t devices, processors;
    struct work work; /* of the last recipe_resolve */
    struct err e;
};

void recipe_init(struct recipe *r, struct fake *k);
void recipe_reset(struct recipe *r);
void recipe_finish(struct recipe *r);
void recipe_arg(struct recipe *r, struct proto_arg arg); /* of the step that comes */
void recipe_step(struct recipe *r, struct proto_step step);
/* A launch of the built-in kernel that is called so. */
void recipe_launch(struct recipe *r, const char *name, unsigned count,
                   const struct proto_arg *args);
void recipe_temp(struct recipe *r, int dtype, uint64_t count);
void recipe_param(struct recipe *r, struct proto_param param);
void recipe_bind(struct recipe *r, struct proto_arg arg);
int recipe_resolve(struct recipe *r); /* the work before is given up */

uint64_t recipe_kernel(const struct fake *k, const char *name); /* 0: none */

#define RECIPE_LAUNCH(r, name, ...)                                                                \
    recipe_launch(                                                                                 \
        r, name, (unsigned)(sizeof((struct proto_arg[]){__VA_ARGS__}) / sizeof(struct proto_arg)), \
        (struct proto_arg[]){__VA_ARGS__})
#define F32_ONE 0x3f800000u

struct proto_arg arg_buffer(const struct buffer *b, uint64_t first, uint64_t count);
struct proto_arg arg_temp(uint64_t index, uint64_t first, uint64_t count);
struct proto_arg arg_scalar(int dtype, uint64_t bits);
struct proto_arg arg_inline(int access, int dtype, uint64_t count, struct bytes data);
struct proto_arg arg_param(uint64_t index);

#endif
