/* From programs as clients send them to the work of a job, or to the error that says what is wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/sessions.h"
#include "daemon/front/modules/building.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/recipe.h"

static struct fake *k;
static struct recipe r;
static struct buffer *a; /* f32 16 */
static struct buffer *b; /* f32 16 */
static struct kernel *reported;

static const uint8_t bytes[1024];

static void setup(void)
{
    k = fake_create();
    ck_assert_int_eq(building_init(&k->f, NULL), 0);
    a = fake_buffer(k, 0, 64, true);
    b = fake_buffer(k, 0, 64, true);
    recipe_init(&r, k);
    reported = calloc(1, sizeof *reported);
    ck_assert_ptr_nonnull(reported);
    reported->args = calloc(PROTO_ARGS_MAX, sizeof *reported->args);
    ck_assert_ptr_nonnull(reported->args);
    reported->module = k->module;
    k->module->owner = k->session;
    (void)strcpy(reported->name, "spin");
    (void)strcpy(reported->entry, "spin");
    reported->handle = idmap_add(&k->f.kernels, reported);
}

static void teardown(void)
{
    recipe_finish(&r);
    (void)idmap_remove(&k->f.kernels, reported->handle);
    free(reported->args);
    free(reported);
    building_finish(&k->f);
    fake_destroy(k);
}

static void simple(enum proto_op op, struct proto_arg dst, const struct proto_arg *src)
{
    recipe_arg(&r, dst);
    if (src != NULL) {
        recipe_arg(&r, *src);
    }
    recipe_step(&r, (struct proto_step){.op = op});
}

static void copy(struct proto_arg dst, struct proto_arg src)
{
    simple(OP_COPY, dst, &src);
}

static void fill(struct proto_arg dst, struct proto_arg value)
{
    simple(OP_FILL, dst, &value);
}

static void write_to(struct proto_arg dst, struct proto_arg src)
{
    simple(OP_WRITE, dst, &src);
}

static void read_from(struct proto_arg src)
{
    simple(OP_READ, src, NULL);
}

#define LAUNCH(name, ...) RECIPE_LAUNCH(&r, name, __VA_ARGS__)

/* Resolves, expects the code and starts the next recipe. A refusal leaves no work. */
static void expect(int code)
{
    int rc = recipe_resolve(&r);
    ck_assert_msg(rc == code, "%s wanted, got %s: %s", err_name(code), err_name(rc), r.e.text);
    if (rc != 0) {
        ck_assert_int_eq(r.e.code, code);
        ck_assert_uint_gt(strlen(r.e.text), 0);
        ck_assert_uint_eq(r.work.step_count + r.work.use_count + r.work.temp_count, 0);
    }
    recipe_reset(&r);
}

START_TEST(handles_are_checked)
{
    struct proto_arg unknown = {.tag = ARG_BUFFER, .handle = 0x9900000077};
    read_from(unknown);
    expect(ERR_BAD_HANDLE);
    struct buffer *gone = fake_buffer(k, 0, 64, true);
    struct proto_arg stale = arg_buffer(gone, 0, 0);
    fake_drop(k, gone);
    read_from(arg_buffer(a, 0, 0));
    read_from(stale);
    ck_assert_int_eq(recipe_resolve(&r), ERR_STALE_HANDLE);
    ck_assert_int_eq(r.e.step, 1);
    ck_assert_int_eq(r.e.arg, 0);
    recipe_reset(&r);
    struct tenant other = {.key = 2};
    b->tenant = &other;
    read_from(arg_buffer(b, 0, 0));
    expect(ERR_BAD_HANDLE);
    ck_assert_ptr_null(strstr(r.e.text, "tenant"));
    b->tenant = k->tenant;
    struct session *another = session_create(&(struct session_key){.uid = 7}, k->tenant, 9);
    buffer_own(b, another); /* not published: nobody else's */
    read_from(arg_buffer(b, 0, 0));
    expect(ERR_BAD_HANDLE);
    ck_assert(buffer_opener_add(b, k->session, 1)); /* it had been, when it was opened */
    read_from(arg_buffer(b, 0, 0));
    expect(0);
    ck_assert(buffer_opener_remove(b, k->session));
    buffer_unown(b);
    session_destroy(another);
    buffer_set_state(b, BUFFER_LOST);
    read_from(arg_buffer(b, 0, 0));
    expect(ERR_BUFFER_LOST);
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = 77});
    expect(ERR_BAD_HANDLE);
}
END_TEST

START_TEST(what_may_not_be_written_is_not)
{
    a->sealed = true;
    fill(arg_buffer(a, 0, 0), arg_scalar(DTYPE_F32, 0));
    expect(ERR_SEALED);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(b, 0, 0), arg_buffer(a, 0, 0));
    expect(ERR_SEALED);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(0);
    buffer_rename(b, "shared");
    b->rights = ACCESS_IN;
    fill(arg_buffer(b, 0, 0), arg_scalar(DTYPE_F32, 0));
    expect(ERR_PERMISSION);
    b->rights = ACCESS_INOUT;
    fill(arg_buffer(b, 0, 0), arg_scalar(DTYPE_F32, 0));
    expect(0);
    b->rights = ACCESS_IN;
    buffer_own(b, k->session);
    fill(arg_buffer(b, 0, 0), arg_scalar(DTYPE_F32, 0));
    expect(0);
    buffer_unown(b);
}
END_TEST

static const struct {
    uint64_t first, count;
    int code;
} slices[] = {
    {0, 0, 0},
    {0, 16, 0},
    {15, 1, 0},
    {16, 0, 0},
    {0, 17, ERR_RANGE},
    {17, 0, ERR_RANGE},
    {16, 1, ERR_RANGE},
    {1, 16, ERR_RANGE},
    {1, UINT64_MAX, ERR_RANGE},
    {UINT64_MAX, 1, ERR_RANGE},
    {UINT64_MAX, UINT64_MAX, ERR_RANGE},
    {UINT64_MAX - 7, 16, ERR_RANGE},
    {UINT64_MAX / 4 + 1, 4, ERR_RANGE}, /* times four bytes it is 0 again */
    {8, UINT64_MAX - 3, ERR_RANGE},
};

START_TEST(slices_stay_inside)
{
    read_from(arg_buffer(a, slices[_i].first, slices[_i].count));
    expect(slices[_i].code);
    recipe_temp(&r, DTYPE_F32, 16);
    fill(arg_temp(0, slices[_i].first, slices[_i].count), arg_scalar(DTYPE_F32, 0));
    expect(slices[_i].code);
}
END_TEST

START_TEST(slices_are_offsets_in_bytes)
{
    write_to(arg_buffer(a, 4, 8), arg_inline(ACCESS_IN, DTYPE_F32, 8, bytes_of(bytes, 32)));
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.step_count, 1);
    ck_assert_uint_eq(r.work.refs[0].tag, REF_BUFFER);
    ck_assert_uint_eq(r.work.refs[0].id, a->handle);
    ck_assert_uint_eq(r.work.refs[0].offset, 16);
    ck_assert_uint_eq(r.work.refs[0].size, 32);
    ck_assert_uint_eq(r.work.uses[0].write_begin, 16);
    ck_assert_uint_eq(r.work.uses[0].write_end, 48);
    ck_assert(work_fills(&r.work.uses[0]));
    ck_assert(!r.work.uses[0].reads_before_write);
    ck_assert_uint_eq(r.work.input_bytes, 256);
}
END_TEST

START_TEST(simple_steps_check_their_arguments)
{
    read_from(arg_scalar(DTYPE_F32, 0));
    expect(ERR_ARG_TYPE);
    recipe_step(&r, (struct proto_step){.op = OP_READ});
    expect(ERR_ARG_COUNT);
    recipe_step(&r, (struct proto_step){.op = 0});
    expect(ERR_INVALID);
    fill(arg_buffer(a, 0, 0), arg_scalar(DTYPE_F64, 0));
    expect(ERR_ARG_TYPE);
    fill(arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(ERR_ARG_TYPE);
    fill(arg_buffer(a, 0, 0), arg_scalar(99, 0));
    expect(ERR_ARG_TYPE);
    write_to(arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(ERR_ARG_TYPE);
    write_to(arg_buffer(a, 0, 0), arg_inline(ACCESS_IN, DTYPE_F32, 4, bytes_of(bytes, 16)));
    expect(ERR_ARG_SHAPE);
    write_to(arg_buffer(a, 0, 0), arg_inline(ACCESS_IN, DTYPE_I32, 16, bytes_of(bytes, 64)));
    expect(ERR_ARG_TYPE);
    write_to(arg_buffer(a, 0, 0), arg_inline(ACCESS_IN, DTYPE_F32, 16, bytes_of(bytes, 60)));
    expect(ERR_ARG_SHAPE);
    write_to(arg_buffer(a, 0, 0),
             arg_inline(ACCESS_OUT, DTYPE_F32, 16, (struct bytes){0})); /* nothing came */
    expect(ERR_ARG_SHAPE);
    copy(arg_buffer(a, 0, 0), arg_scalar(DTYPE_F32, 0));
    expect(ERR_ARG_TYPE);
    copy(arg_buffer(a, 0, 4), arg_buffer(b, 0, 8));
    expect(ERR_ARG_SHAPE);
    struct proto_arg other_type = arg_buffer(b, 0, 4);
    other_type.view = DTYPE_I32;
    copy(arg_buffer(a, 0, 4), other_type);
    expect(ERR_ARG_TYPE);
    read_from((struct proto_arg){.tag = 0});
    expect(ERR_ARG_TYPE);
    read_from(arg_inline(ACCESS_IN, DTYPE_F32, UINT64_MAX / 4, (struct bytes){0}));
    ck_assert_int_ne(recipe_resolve(&r), 0);
}
END_TEST

START_TEST(copies_do_not_overlap)
{
    copy(arg_buffer(a, 0, 8), arg_buffer(a, 4, 8));
    expect(ERR_RANGE);
    copy(arg_buffer(a, 0, 0), arg_buffer(a, 0, 0));
    expect(ERR_RANGE);
    copy(arg_buffer(a, 0, 8), arg_buffer(a, 8, 8));
    expect(0);
    copy(arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(0);
    recipe_temp(&r, DTYPE_F32, 16);
    recipe_temp(&r, DTYPE_F32, 16);
    fill(arg_temp(0, 0, 0), arg_scalar(DTYPE_F32, 0));
    copy(arg_temp(1, 0, 0), arg_temp(0, 0, 0));
    expect(0);
    recipe_temp(&r, DTYPE_F32, 16);
    fill(arg_temp(0, 0, 0), arg_scalar(DTYPE_F32, 0));
    copy(arg_temp(0, 0, 8), arg_temp(0, 7, 8));
    expect(ERR_RANGE);
}
END_TEST

START_TEST(temporaries_are_written_before_they_are_read)
{
    recipe_temp(&r, DTYPE_F32, 16);
    read_from(arg_temp(0, 0, 0));
    expect(ERR_UNDEFINED);
    recipe_temp(&r, DTYPE_F32, 16);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(a, 0, 0), arg_temp(0, 0, 0));
    expect(ERR_UNDEFINED);
    recipe_temp(&r, DTYPE_F32, 16);
    LAUNCH("add", arg_buffer(a, 0, 0), arg_buffer(b, 0, 0), arg_temp(0, 0, 0));
    read_from(arg_temp(0, 0, 0));
    expect(0);
    read_from(arg_temp(0, 0, 0));
    expect(ERR_BAD_HANDLE);
    recipe_temp(&r, DTYPE_F32, UINT64_MAX / 2);
    read_from(arg_temp(0, 0, 0));
    ck_assert_int_ne(recipe_resolve(&r), 0);
}
END_TEST

START_TEST(outputs_have_a_limit)
{
    struct buffer *large = fake_buffer(k, 0, PROTO_INLINE_MAX, true);
    read_from(arg_buffer(large, 0, 0));
    expect(0);
    read_from(arg_buffer(large, 0, 0));
    read_from(arg_buffer(a, 0, 1));
    expect(ERR_LIMIT);
    struct buffer *larger = fake_buffer(k, 0, PROTO_INLINE_MAX + 4, true);
    read_from(arg_buffer(larger, 0, 0));
    expect(ERR_LIMIT);
}
END_TEST

START_TEST(what_is_read_and_written_is_noted)
{
    fill(arg_buffer(a, 0, 8), arg_scalar(DTYPE_F32, 0));
    read_from(arg_buffer(a, 0, 8)); /* its own writing: needs nothing defined */
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.use_count, 1);
    ck_assert_int_eq(r.work.uses[0].access, ACCESS_INOUT);
    ck_assert(!r.work.uses[0].reads_before_write);
    recipe_reset(&r);
    read_from(arg_buffer(a, 4, 4));
    read_from(arg_buffer(a, 12, 4));
    fill(arg_buffer(a, 0, 2), arg_scalar(DTYPE_F32, 0));
    fill(arg_buffer(a, 8, 2), arg_scalar(DTYPE_F32, 0)); /* a hole between them */
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert(r.work.uses[0].reads_before_write);
    ck_assert_uint_eq(r.work.uses[0].read_begin, 16);
    ck_assert_uint_eq(r.work.uses[0].read_end, 64);
    ck_assert_uint_eq(r.work.uses[0].write_begin, 0);
    ck_assert_uint_eq(r.work.uses[0].write_end, 40);
    ck_assert(!work_fills(&r.work.uses[0]));
    fill(arg_buffer(a, 0, 12), arg_scalar(DTYPE_F32, 0)); /* over the hole */
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.uses[0].write_end, 48);
    ck_assert(work_fills(&r.work.uses[0]));
}
END_TEST

/* Parts apart from each other are defined, each of them, and all of them when the hole is filled.
 */
START_TEST(parts_are_written_in_any_order)
{
    fill(arg_buffer(a, 0, 4), arg_scalar(DTYPE_F32, 0));
    fill(arg_buffer(a, 8, 4), arg_scalar(DTYPE_F32, 0));
    read_from(arg_buffer(a, 8, 4));
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert(!r.work.uses[0].reads_before_write);
    ck_assert(!work_fills(&r.work.uses[0]));
    ck_assert_uint_eq(r.work.uses[0].part_count, 2);
    ck_assert_uint_eq(r.work.uses[0].part[1].begin, 32);
    ck_assert_uint_eq(r.work.uses[0].part[1].end, 48);
    fill(arg_buffer(a, 4, 4), arg_scalar(DTYPE_F32, 0));
    read_from(arg_buffer(a, 0, 12));
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert(work_fills(&r.work.uses[0]));
    ck_assert(!r.work.uses[0].reads_before_write);
    for (unsigned i = 0; i < 2 * WORK_PARTS; i++) {
        fill(arg_buffer(b, 2 * i, i + 1 < 2 * WORK_PARTS ? 1 : 0), arg_scalar(DTYPE_F32, 0));
    }
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.uses[1].part_count, WORK_PARTS);
    ck_assert(!work_fills(&r.work.uses[1]));
}
END_TEST

START_TEST(nothing_to_do_gives_no_steps)
{
    struct buffer *empty = fake_buffer(k, 0, 0, true);
    fill(arg_buffer(empty, 0, 0), arg_scalar(DTYPE_F32, 0));
    read_from(arg_buffer(empty, 0, 0));
    copy(arg_buffer(empty, 0, 0), arg_buffer(a, 16, 0));
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(empty, 0, 0),
           arg_buffer(empty, 0, 0));
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.step_count, 0);
    ck_assert_uint_eq(r.work.output_count, 1); /* an empty one all the same */
    ck_assert_uint_eq(r.work.outputs[0].size, 0);
}
END_TEST

/* ---- launches ----------------------------------------------------------------------------- */

START_TEST(scalars_go_as_values_of_their_size)
{
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.step_count, 1);
    const struct work_step *s = &r.work.steps[0];
    ck_assert_str_eq(s->entry, "axpy_f32");
    ck_assert_uint_eq(s->ref_count, 4);
    ck_assert_uint_eq(r.work.refs[0].tag, REF_VALUE);
    ck_assert_uint_eq(r.work.refs[0].size, 4);
    uint32_t bits = F32_ONE;
    ck_assert_mem_eq(r.work.refs[0].value, &bits, 4);
    ck_assert_uint_eq(r.work.refs[1].tag, REF_BUFFER);
    uint64_t n = 16;
    ck_assert_uint_eq(r.work.refs[3].size, 8);
    ck_assert_mem_eq(r.work.refs[3].value, &n, 8);
    ck_assert_uint_ge(s->global[0], 16);
    ck_assert_uint_eq(r.work.module_count, 1);
}
END_TEST

START_TEST(signatures_are_checked)
{
    LAUNCH("axpy", arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(ERR_ARG_COUNT);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(a, 0, 0), arg_buffer(b, 0, 8));
    ck_assert_int_eq(recipe_resolve(&r), ERR_ARG_SHAPE);
    ck_assert_int_eq(r.e.step, 0);
    ck_assert_int_eq(r.e.arg, 2);
    recipe_reset(&r);
    b->shape.dtype = DTYPE_I32;
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(ERR_ARG_TYPE);
    b->shape.dtype = DTYPE_F32;
    LAUNCH("axpy", arg_buffer(a, 0, 0), arg_buffer(a, 0, 0), arg_buffer(b, 0, 0));
    expect(ERR_ARG_TYPE);
    struct proto_arg out = arg_buffer(a, 0, 0);
    out.access = ACCESS_OUT;
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), out, arg_buffer(b, 0, 0));
    expect(ERR_ARG_ACCESS);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), (struct proto_arg){.tag = ARG_LOCAL, .count = 4},
           arg_buffer(b, 0, 0));
    expect(ERR_ARG_TYPE);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE), (struct proto_arg){.tag = ARG_STRUCT},
           arg_buffer(b, 0, 0));
    expect(ERR_ARG_TYPE);
}
END_TEST

/* Sizes that would be ignored are refused. _i: which one is given. */
START_TEST(sizes_that_follow_from_the_data_are_not_given)
{
    struct proto_step step = {.op = OP_LAUNCH, .kernel = recipe_kernel(k, "axpy")};
    uint64_t *const sizes[] = {NULL,     &step.gx, &step.gy, &step.gz,
                               &step.lx, &step.ly, &step.lz, &step.shared};
    if (sizes[_i] != NULL) {
        *sizes[_i] = 1;
    }
    recipe_arg(&r, arg_scalar(DTYPE_F32, F32_ONE));
    recipe_arg(&r, arg_buffer(a, 0, 0));
    recipe_arg(&r, arg_buffer(b, 0, 0));
    recipe_step(&r, step);
    ck_assert_int_eq(recipe_resolve(&r), _i == 0 ? 0 : ERR_INVALID);
    ck_assert(_i == 0 || strstr(r.e.text, "leave the grid out") != NULL);
    recipe_reset(&r);
}
END_TEST

START_TEST(inline_arrays_travel_both_ways)
{
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE),
           arg_inline(ACCESS_IN, DTYPE_F32, 4, bytes_of(bytes, 16)),
           arg_inline(ACCESS_INOUT, DTYPE_F32, 4, bytes_of(bytes, 16)));
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.step_count, 4); /* two writes, the launch, a read */
    ck_assert_uint_eq(r.work.input_count, 2);
    ck_assert_uint_eq(r.work.output_count, 1);
    ck_assert_uint_eq(r.work.outputs[0].arg, 2);
    ck_assert_uint_eq(r.work.outputs[0].size, 16);
    ck_assert_uint_eq(r.work.temp_count, 2);
    ck_assert_uint_eq(r.work.use_count, 0);
    recipe_reset(&r);
    LAUNCH("axpy", arg_scalar(DTYPE_F32, F32_ONE),
           arg_inline(ACCESS_IN, DTYPE_F32, 4, bytes_of(bytes, 16)),
           arg_inline(ACCESS_OUT, DTYPE_F32, 4, (struct bytes){0}));
    expect(ERR_ARG_ACCESS); /* it is read too */
}
END_TEST

/* Operations of several launches: what they use between them are temporaries of the job. */
START_TEST(operations_expand)
{
    struct buffer *x = fake_buffer(k, 0, 400000, true);
    struct buffer *y = fake_buffer(k, 0, 400000, true);
    struct buffer *one = fake_buffer(k, 0, 4, false);
    static const char *const names[] = {"reduce_sum", "dot", "scan_inclusive", "scan"};
    unsigned found = 0;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (recipe_kernel(k, names[i]) == 0) {
            continue;
        }
        found++;
        struct proto_arg in = arg_buffer(x, 0, 0);
        if (i == 0) {
            LAUNCH(names[i], in, arg_buffer(one, 0, 0));
        } else if (i == 1) {
            LAUNCH(names[i], in, arg_buffer(y, 0, 0), arg_buffer(one, 0, 0));
        } else {
            LAUNCH(names[i], in, arg_buffer(y, 0, 0));
        }
        ck_assert_msg(recipe_resolve(&r) == 0, "%s: %s", names[i], r.e.text);
        ck_assert_uint_gt(r.work.step_count, 1);
        ck_assert_uint_gt(r.work.temp_count, 0);
        for (unsigned n = 0; n < r.work.ref_count; n++) {
            const struct work_ref *ref = &r.work.refs[n];
            if (ref->tag == REF_TEMP) {
                ck_assert_uint_lt(ref->id, r.work.temp_count);
                ck_assert_uint_le(ref->offset + ref->size, r.work.temps[ref->id]);
            }
        }
        recipe_reset(&r);
    }
    ck_assert_uint_ge(found, 3);
}
END_TEST

START_TEST(a_quarantined_kernel_is_not_run)
{
    reported->arg_count = 0;
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = reported->handle, .gx = 1});
    ck_assert_int_eq(recipe_resolve(&r), 0);
    for (int i = 0; i < STRIKES_MAX; i++) {
        (void)tenant_strike(k->tenant, kernel_hash(k->module, "spin"));
    }
    expect(ERR_QUARANTINED);
}
END_TEST

static unsigned steps_of_launch(const struct buffer *x)
{
    struct proto_arg part = arg_buffer(x, 4, 8);
    part.access = ACCESS_IN;
    recipe_arg(&r, part);
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = reported->handle, .gx = 1});
    ck_assert_msg(recipe_resolve(&r) == 0, "%s", r.e.text);
    unsigned count = r.work.step_count;
    if (count == 2) {
        ck_assert_uint_eq(r.work.steps[0].op, OP_COPY);
        ck_assert_uint_eq(r.work.refs[1].id, x->handle);
        ck_assert_uint_eq(r.work.refs[1].offset, 16);
        ck_assert_uint_eq(r.work.refs[2].tag, REF_TEMP);
        ck_assert_uint_eq(r.work.temps[0], 32);
        ck_assert_uint_eq(r.work.copy.bytes, 32);
    } else {
        ck_assert_uint_eq(r.work.refs[0].id, x->handle);
        ck_assert_uint_eq(r.work.copy.bytes, 0);
    }
    recipe_reset(&r);
    return count;
}

/* A kernel gets a copy of what its session may not write, unless the compiler has shown, for the
 * device's architecture and this argument, that the code writes nothing there. */
START_TEST(what_may_not_be_written_is_copied_unless_it_is_shown)
{
    static const uint8_t second = 2;
    static const uint8_t both = 3;
    struct capbuf list;
    reported->arg_count = 1;
    reported->args[0] = (struct proto_karg){.kind = 2, .access = ACCESS_IN, .dtype = DTYPE_F32};
    ck_assert_uint_eq(steps_of_launch(a), 1); /* one's own: what is declared is believed */
    a->sealed = true;
    ck_assert_uint_eq(steps_of_launch(a), 2);
    buffer_rename(b, "shared");
    b->rights = ACCESS_IN;
    struct session *nobody = b->owner;
    buffer_own(b, k->session);
    ck_assert_uint_eq(steps_of_launch(b), 1);
    b->owner = nobody;
    ck_assert_uint_eq(steps_of_launch(b), 2);
    b->rights = ACCESS_INOUT;
    ck_assert_uint_eq(steps_of_launch(b), 1);
    struct build *build = module_build_obtain(k->module, k->device[0].backend, k->device[0].arch);
    ck_assert_ptr_nonnull(build);
    for (unsigned i = 0; i < 3; i++) {
        struct proto_wkernel told = {.entry = bytes_str("spin"),
                                     .only_reads = bytes_of(i == 0 ? &second : &both, 1)};
        capbuf_init(&list, 4096);
        ck_assert_int_eq(proto_list_add(&schema_wkernel, &told, &list, NULL), 0);
        resource_list_take(&build->needs, proto_list_of(&list, 1));
        if (i != 1) { /* a worker's word is not taken */
            resource_list_take_reads(&build->needs, proto_list_of(&list, 1));
        }
        capbuf_finish(&list);
        ck_assert_uint_eq(steps_of_launch(a), i == 2 ? 1 : 2);
    }
    struct proto_arg built_in[] = {arg_scalar(DTYPE_F32, 0), arg_buffer(a, 0, 0),
                                   arg_buffer(fake_buffer(k, 0, 64, true), 0, 0)};
    recipe_launch(&r, "axpy", 3, built_in);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.copy.bytes, 0);
    recipe_reset(&r);
}
END_TEST

START_TEST(kernels_of_other_sessions_are_not_run)
{
    struct session *other = session_create(&(struct session_key){.uid = 7}, k->tenant, 9);
    k->module->owner = other;
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = reported->handle, .gx = 1});
    expect(ERR_BAD_HANDLE);
    k->module->owner = k->session;
    session_destroy(other);
}
END_TEST

/* ---- code without a signature ------------------------------------------------------------- */

static void karg(uint64_t kind, int access, int dtype, uint64_t size)
{
    reported->args[reported->arg_count++] = (struct proto_karg){.name = bytes_str("x"),
                                                                .kind = kind,
                                                                .access = (uint64_t)access,
                                                                .dtype = (uint64_t)dtype,
                                                                .bytes = size};
}

static void run_reported(struct proto_step sizes, unsigned count, const struct proto_arg *args)
{
    for (unsigned i = 0; i < count; i++) {
        recipe_arg(&r, args[i]);
    }
    sizes.op = OP_LAUNCH;
    sizes.kernel = reported->handle;
    recipe_step(&r, sizes);
}

#define ONE ((struct proto_step){.gx = 16})

static void expect_arg(struct proto_arg arg, int code)
{
    run_reported(ONE, 1, &arg);
    expect(code);
}

START_TEST(reported_values_are_checked)
{
    run_reported(ONE, 0, NULL);
    expect(0);
    expect_arg(arg_buffer(a, 0, 0), ERR_ARG_COUNT);
    karg(1, 0, DTYPE_F32, 4);
    expect_arg(arg_buffer(a, 0, 0), ERR_ARG_TYPE);
    expect_arg(arg_scalar(DTYPE_F32, F32_ONE), 0);
    expect_arg(arg_scalar(DTYPE_U64, UINT64_MAX), ERR_RANGE);
    reported->args[0].dtype = DTYPE_NONE;
    expect_arg(arg_scalar(DTYPE_F64, 0), ERR_ARG_TYPE);
    reported->args[0] = (struct proto_karg){.kind = 3, .bytes = 100};
    expect_arg((struct proto_arg){.tag = ARG_STRUCT, .data = bytes_of(bytes, 99)}, ERR_ARG_TYPE);
    struct proto_arg large = {.tag = ARG_STRUCT, .data = bytes_of(bytes, 100)};
    run_reported(ONE, 1, &large);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.refs[0].size, 100);
    ck_assert_ptr_nonnull(r.work.refs[0].large);
    recipe_reset(&r);
    reported->args[0] = (struct proto_karg){.kind = 4};
    expect_arg(arg_scalar(DTYPE_F32, 0), ERR_ARG_TYPE);
    struct proto_arg local = {.tag = ARG_LOCAL, .count = 512};
    run_reported(ONE, 1, &local);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.refs[0].tag, REF_LOCAL);
    ck_assert_uint_eq(r.work.refs[0].size, 512);
}
END_TEST

START_TEST(reported_arrays_are_checked)
{
    karg(2, ACCESS_IN, DTYPE_F32, 0);
    expect_arg(arg_scalar(DTYPE_F32, 0), ERR_ARG_TYPE);
    struct proto_arg x = arg_buffer(a, 0, 0);
    x.access = ACCESS_INOUT;
    expect_arg(x, ERR_ARG_ACCESS); /* the pointer is const */
    reported->args[0].dtype = DTYPE_F64;
    expect_arg(arg_buffer(a, 0, 0), ERR_ARG_TYPE);
    reported->args[0] = (struct proto_karg){.kind = 2};
    x.access = ACCESS_NONE; /* nobody knows: it may do everything */
    run_reported(ONE, 1, &x);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_int_eq(r.work.uses[0].access, ACCESS_INOUT);
    recipe_reset(&r);
    x.access = ACCESS_OUT;
    run_reported(ONE, 1, &x);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_int_eq(r.work.uses[0].access, ACCESS_OUT);
}
END_TEST

START_TEST(what_the_code_does_not_tell_may_be_an_array_or_a_value)
{
    karg(0, 0, DTYPE_NONE, 8);
    struct proto_arg x = arg_buffer(a, 0, 0);
    run_reported(ONE, 1, &x);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_int_eq(r.work.uses[0].access, ACCESS_INOUT);
    recipe_reset(&r);
    expect_arg(arg_scalar(DTYPE_U64, 7), 0);
    expect_arg(arg_scalar(DTYPE_F32, F32_ONE), ERR_ARG_TYPE); /* of another size */
}
END_TEST

START_TEST(sizes_are_given_and_fit)
{
    run_reported((struct proto_step){.gx = 0}, 0, NULL);
    expect(ERR_INVALID);
    run_reported((struct proto_step){.gx = 100, .lx = 64}, 0, NULL);
    expect(ERR_INVALID);
    run_reported((struct proto_step){.gx = UINT64_MAX}, 0, NULL);
    expect(ERR_RANGE);
    run_reported((struct proto_step){.gx = 1 << 20, .lx = 1 << 20}, 0, NULL);
    expect(ERR_RANGE);
    run_reported((struct proto_step){.gx = 128, .gy = 3, .lx = 64, .shared = 32}, 0, NULL);
    ck_assert_int_eq(recipe_resolve(&r), 0);
    const struct work_step *s = &r.work.steps[0];
    ck_assert_uint_eq(s->global[1], 3);
    ck_assert_uint_eq(s->global[2], 1);
    ck_assert_uint_eq(s->local[1], 1);
    ck_assert_uint_eq(s->shared, 32);
    ck_assert_str_eq(s->entry, "spin");
}
END_TEST

/* ---- parameters --------------------------------------------------------------------------- */

static void parameter(enum proto_param_kind kind, int dtype, uint64_t count)
{
    recipe_param(&r, (struct proto_param){.name = bytes_str("p"),
                                          .kind = kind,
                                          .dtype = (uint64_t)dtype,
                                          .ndim = count > 0 ? 1 : 0,
                                          .d0 = count});
}

static void expect_binding(enum proto_param_kind kind, int dtype, uint64_t count,
                           struct proto_arg bound, int code)
{
    parameter(kind, dtype, count);
    if (kind == PARAM_BUFFER) {
        read_from(arg_param(0));
    } else if (kind == PARAM_SCALAR) {
        fill(arg_buffer(a, 0, 0), arg_param(0));
    } else {
        write_to(arg_buffer(a, 0, 0), arg_param(0));
    }
    recipe_bind(&r, bound);
    expect(code);
}

START_TEST(bindings_are_checked)
{
    const struct proto_arg whole = arg_buffer(b, 0, 0);
    const struct proto_arg data = arg_inline(ACCESS_IN, DTYPE_F32, 16, bytes_of(bytes, 64));
    expect_binding(PARAM_BUFFER, DTYPE_F32, 16, whole, 0);
    expect_binding(PARAM_BUFFER, DTYPE_NONE, 0, whole, 0);
    expect_binding(PARAM_BUFFER, DTYPE_F64, 0, whole, ERR_ARG_TYPE);
    expect_binding(PARAM_BUFFER, DTYPE_F32, 17, whole, ERR_ARG_SHAPE);
    expect_binding(PARAM_BUFFER, DTYPE_F32, 0, arg_scalar(DTYPE_F32, 0), ERR_ARG_TYPE);
    expect_binding(PARAM_BUFFER, DTYPE_F32, 0, arg_param(0), ERR_ARG_TYPE);
    expect_binding(PARAM_BUFFER, DTYPE_F32, 0, arg_temp(0, 0, 0), ERR_ARG_TYPE);
    expect_binding(PARAM_SCALAR, DTYPE_F32, 0, arg_scalar(DTYPE_F32, 0), 0);
    expect_binding(PARAM_SCALAR, DTYPE_F32, 0, arg_scalar(DTYPE_I32, 0), ERR_ARG_TYPE);
    expect_binding(PARAM_SCALAR, DTYPE_F32, 0, whole, ERR_ARG_TYPE);
    expect_binding(PARAM_SCALAR, DTYPE_NONE, 0, arg_scalar(DTYPE_F32, 0), ERR_INVALID);
    expect_binding(PARAM_DATA, DTYPE_F32, 16, data, 0);
    expect_binding(PARAM_DATA, DTYPE_F32, 0, whole, ERR_ARG_TYPE);
    expect_binding((enum proto_param_kind)0, DTYPE_F32, 0, whole, ERR_INVALID);
}
END_TEST

START_TEST(parameters_are_all_bound_and_there)
{
    parameter(PARAM_BUFFER, DTYPE_F32, 0);
    read_from(arg_param(0));
    expect(ERR_ARG_COUNT);
    recipe_bind(&r, arg_buffer(a, 0, 0));
    expect(ERR_ARG_COUNT);
    read_from(arg_param(0));
    expect(ERR_BAD_HANDLE);
    parameter(PARAM_BUFFER, DTYPE_F32, 0);
    recipe_bind(&r, arg_buffer(a, 2, 8));
    struct proto_arg part = arg_param(0);
    part.first = 4;
    part.count = 4;
    read_from(part); /* a slice of the slice */
    ck_assert_int_eq(recipe_resolve(&r), 0);
    ck_assert_uint_eq(r.work.refs[0].offset, 24);
    ck_assert_uint_eq(r.work.refs[0].size, 16);
    recipe_reset(&r);
    parameter(PARAM_BUFFER, DTYPE_F32, 0);
    recipe_bind(&r, arg_buffer(a, 2, 8));
    part.count = 5;
    read_from(part);
    expect(ERR_RANGE);
}
END_TEST

START_TEST(programs_are_checked_before_they_are_bound)
{
    r.unbound = true;
    parameter(PARAM_BUFFER, DTYPE_F32, 0);
    parameter(PARAM_SCALAR, DTYPE_F32, 0);
    recipe_temp(&r, DTYPE_F32, 16);
    fill(arg_param(0), arg_param(1));
    LAUNCH("axpy", arg_param(1), arg_param(0), arg_temp(0, 0, 0));
    read_from(arg_temp(0, 0, 0));
    expect(0);
    r.unbound = true;
    parameter(PARAM_SCALAR, DTYPE_F32, 0);
    read_from(arg_param(0));
    expect(ERR_ARG_TYPE);
    r.unbound = true;
    read_from(arg_param(3));
    expect(ERR_BAD_HANDLE);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {handles_are_checked,
                                  what_may_not_be_written_is_not,
                                  slices_are_offsets_in_bytes,
                                  simple_steps_check_their_arguments,
                                  copies_do_not_overlap,
                                  temporaries_are_written_before_they_are_read,
                                  outputs_have_a_limit,
                                  parts_are_written_in_any_order,
                                  what_is_read_and_written_is_noted,
                                  nothing_to_do_gives_no_steps,
                                  scalars_go_as_values_of_their_size,
                                  signatures_are_checked,
                                  inline_arrays_travel_both_ways,
                                  operations_expand,
                                  a_quarantined_kernel_is_not_run,
                                  kernels_of_other_sessions_are_not_run,
                                  what_may_not_be_written_is_copied_unless_it_is_shown,
                                  reported_values_are_checked,
                                  reported_arrays_are_checked,
                                  what_the_code_does_not_tell_may_be_an_array_or_a_value,
                                  sizes_are_given_and_fit,
                                  bindings_are_checked,
                                  parameters_are_all_bound_and_there,
                                  programs_are_checked_before_they_are_bound};
    Suite *suite = suite_create("resolve");
    TCase *tcase = tcase_create("resolve");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, sizes_that_follow_from_the_data_are_not_given, 0, 8);
    tcase_add_loop_test(tcase, slices_stay_inside, 0, (int)(sizeof slices / sizeof slices[0]));
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
