#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

#define COUNT 1000u
#define HEAD  64u /* elements before the arrays, for launches at an offset */

struct axpy {
    struct backend_module *module;
    struct backend_block *x, *y;
    float *in_x, *in_y, *out;
};

static void axpy_init(struct axpy *a)
{
    const struct signature *sig = NULL;
    size_t bytes = (HEAD + COUNT) * sizeof(float);
    a->module = module_of("axpy", &sig);
    a->x = block_new(bytes);
    a->y = block_new(bytes);
    a->in_x = malloc(bytes);
    a->in_y = malloc(bytes);
    a->out = malloc(bytes);
    ck_assert(a->in_x && a->in_y && a->out);
    for (unsigned i = 0; i < HEAD + COUNT; i++) {
        a->in_x[i] = (float)i * 0.25f - 7.0f;
        a->in_y[i] = 3.0f - (float)(i % 17);
    }
    put(at(a->x, 0), a->in_x, bytes);
    put(at(a->y, 0), a->in_y, bytes);
}

static void axpy_finish(struct axpy *a)
{
    bench.b->module->unload(a->module);
    block_free(a->x);
    block_free(a->y);
    free(a->in_x);
    free(a->in_y);
    free(a->out);
}

static void axpy_call(const struct axpy *a, uint64_t first, uint64_t n, float factor,
                      struct call *c)
{
    *c = (struct call){0};
    call_value(c, &factor, sizeof factor);
    call_memory(c, at(a->x, first * sizeof(float)));
    call_memory(c, at(a->y, first * sizeof(float)));
    call_value(c, &n, sizeof n);
}

/* One product and one sum, rounded each or together: half a unit in the last place of each. */
static void axpy_verify(struct axpy *a, uint64_t first, uint64_t n, float factor)
{
    get(a->out, at(a->y, 0), (HEAD + COUNT) * sizeof(float));
    for (unsigned i = 0; i < HEAD + COUNT; i++) {
        bool inside = i >= first && i < first + n;
        double product = inside ? (double)factor * (double)a->in_x[i] : 0.0;
        double want = product + (double)a->in_y[i];
        double bound = 0x1p-23 * (fabs(product) + fabs(want));
        ck_assert_msg(fabs(want - (double)a->out[i]) <= bound, "element %u: %g, not %g", i,
                      (double)a->out[i], want);
    }
}

static const float factors[] = {2.5f, -0.125f, 3.0e-3f};
static const uint64_t locals[] = {0, 64, 1};

START_TEST(computes)
{
    struct axpy a;
    axpy_init(&a);
    struct call c;
    axpy_call(&a, 0, COUNT, factors[_i], &c);
    uint64_t global = locals[_i] == 64 ? (COUNT + 63) / 64 * 64 : COUNT;
    struct backend_launch l = launch_of(&c, global, locals[_i]);
    ok(bench.b->stream->launch(bench.stream, a.module, "axpy_f32", &l, e));
    axpy_verify(&a, 0, COUNT, factors[_i]);
    axpy_finish(&a);
}
END_TEST

/* The pool's alignment must do everywhere; any element's may be unsupported, but not wrong. */
START_TEST(computes_at_an_offset)
{
    static const uint64_t firsts[] = {HEAD, 1, 3, 33};
    struct axpy a;
    axpy_init(&a);
    uint64_t first = firsts[_i];
    struct call c;
    axpy_call(&a, first, COUNT, 2.0f, &c);
    struct backend_launch l = launch_of(&c, COUNT, 0);
    struct err why = ERR_INIT;
    int rc = bench.b->stream->launch(bench.stream, a.module, "axpy_f32", &l, &why);
    bool aligned = first * sizeof(float) % BACKEND_ALIGN == 0;
    ck_assert_msg(rc == 0 || (!aligned && rc == ERR_UNSUPPORTED), "%s", why.text);
    axpy_verify(&a, first, rc == 0 ? COUNT : 0, 2.0f);
    axpy_finish(&a);
}
END_TEST

/* As the pool hands them out: both arrays lie in one block, at every distance from near to far. Of
 * what lies between them nothing changes. */
START_TEST(computes_on_pieces_of_one_block)
{
    enum { N = 200 };
    const uint64_t distance = UINT64_C(1024) << _i; /* bytes */
    const uint64_t bytes = BACKEND_ALIGN + distance + N * sizeof(float);
    const uint64_t n = N;
    const float factor = 2.0f;
    const struct signature *sig = NULL;
    struct backend_module *module = module_of("axpy", &sig);
    struct backend_block *block = block_new(bytes);
    float *data = malloc(bytes);
    ck_assert_ptr_nonnull(data);
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        data[i] = (float)(i % 1000);
    }
    put(at(block, 0), data, bytes);
    struct call c = {0};
    call_value(&c, &factor, sizeof factor);
    call_memory(&c, at(block, BACKEND_ALIGN));
    call_memory(&c, at(block, BACKEND_ALIGN + distance));
    call_value(&c, &n, sizeof n);
    c.arg[1].size = c.arg[2].size = N * sizeof(float);
    struct backend_launch l = launch_of(&c, N, 0);
    ok(bench.b->stream->launch(bench.stream, module, "axpy_f32", &l, e));
    get(data, at(block, 0), bytes);
    const uint64_t x = BACKEND_ALIGN / sizeof(float);
    const uint64_t y = x + distance / sizeof(float);
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        float want = (float)(i % 1000) + (i >= y ? factor * (float)((i - y + x) % 1000) : 0.0f);
        ck_assert_msg(data[i] == want, "%g, not %g", (double)data[i], (double)want);
    }
    bench.b->module->unload(module);
    block_free(block);
    free(data);
}
END_TEST

START_TEST(values_are_read_during_the_call)
{
    struct axpy a;
    axpy_init(&a);
    struct call c;
    axpy_call(&a, 0, COUNT, 2.0f, &c);
    struct backend_launch l = launch_of(&c, COUNT, 0);
    ok(bench.b->stream->launch(bench.stream, a.module, "axpy_f32", &l, e));
    memset(&c, 0xFF, sizeof c);
    axpy_verify(&a, 0, COUNT, 2.0f);
    axpy_finish(&a);
}
END_TEST

START_TEST(launches_follow_each_other)
{
    struct axpy a;
    axpy_init(&a);
    for (int i = 0; i < 8; i++) {
        struct call c;
        axpy_call(&a, 0, COUNT, 0.5f, &c);
        struct backend_launch l = launch_of(&c, COUNT, 0);
        ok(bench.b->stream->launch(bench.stream, a.module, "axpy_f32", &l, e));
    }
    get(a.out, at(a.y, 0), COUNT * sizeof(float));
    for (unsigned i = 0; i < COUNT; i++) {
        double want = 4.0 * (double)a.in_x[i] + (double)a.in_y[i];
        ck_assert_double_eq((double)a.out[i], want); /* exact: few bits, powers of two */
    }
    axpy_finish(&a);
}
END_TEST

/* Groups, local memory and barriers: partial sums of small integers are exact. */
START_TEST(reduces_through_local_memory)
{
    enum { N = 10000 };
    const struct signature *sig = NULL;
    struct backend_module *m = module_of("reduce_sum_part", &sig);
    uint32_t *in = malloc(N * sizeof *in);
    uint32_t part[3] = {0};
    uint64_t want = 0;
    uint64_t got = 0;
    uint64_t n = N;
    ck_assert_ptr_nonnull(in);
    for (uint32_t i = 0; i < N; i++) {
        in[i] = i * 7 % 1001;
        want += in[i];
    }
    struct backend_block *x = block_new(N * sizeof *in);
    struct backend_block *y = block_new(sizeof part);
    put(at(x, 0), in, N * sizeof *in);
    struct call c = {0};
    call_memory(&c, at(x, 0));
    call_memory(&c, at(y, 0));
    call_value(&c, &n, sizeof n);
    struct backend_launch l = launch_of(&c, 3 * 256, 256);
    ok(bench.b->stream->launch(bench.stream, m, "reduce_sum_part_u32", &l, e));
    get(part, at(y, 0), sizeof part);
    for (unsigned i = 0; i < 3; i++) {
        got += part[i];
    }
    ck_assert_uint_eq(got, want);
    bench.b->module->unload(m);
    block_free(x);
    block_free(y);
    free(in);
}
END_TEST

/* Dynamic shared memory up to the size that a group has by default, and beyond it together with the
 * kernel's own: CUDA needs an attribute for more. */
START_TEST(takes_shared_memory_beside_its_own)
{
    static const uint64_t shared[] = {0, 32 << 10, (48 << 10) - 1024, (48 << 10) - 256, 48 << 10};
    const uint64_t n = 256;
    const struct signature *sig = NULL;
    uint32_t in[256];
    uint32_t part = 0;
    if (bench.b->dialect != BACKEND_LANG_CUDA) {
        return; /* launches elsewhere have none */
    }
    struct backend_module *m = module_of("reduce_sum_part", &sig);
    struct backend_block *x = block_new(sizeof in);
    struct backend_block *y = block_new(sizeof part);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = i;
    }
    put(at(x, 0), in, sizeof in);
    struct call c = {0};
    call_memory(&c, at(x, 0));
    call_memory(&c, at(y, 0));
    call_value(&c, &n, sizeof n);
    struct backend_launch l = launch_of(&c, n, n);
    l.shared = shared[_i];
    ok(bench.b->stream->launch(bench.stream, m, "reduce_sum_part_u32", &l, e));
    get(&part, at(y, 0), sizeof part);
    ck_assert_uint_eq(part, 255 * 256 / 2);
    l.shared = bench.info.local_bytes;
    fails(ERR_LAUNCH, bench.b->stream->launch(bench.stream, m, "reduce_sum_part_u32", &l, e));
    bench.b->module->unload(m);
    block_free(x);
    block_free(y);
}
END_TEST

START_TEST(refuses_wrong_calls)
{
    struct axpy a;
    axpy_init(&a);
    const struct backend_stream_ops *o = bench.b->stream;
    float factor = 2.0f;
    uint64_t n = COUNT;
    struct call c;
    axpy_call(&a, 0, COUNT, 2.0f, &c);
    struct backend_launch l = launch_of(&c, COUNT, 0);
    fails(ERR_NOT_FOUND, o->launch(bench.stream, a.module, "no_such_kernel", &l, e));
    l.arg_count = 3;
    fails(ERR_ARG_COUNT, o->launch(bench.stream, a.module, "axpy_f32", &l, e));
    l.arg_count = 5;
    fails(ERR_ARG_COUNT, o->launch(bench.stream, a.module, "axpy_f32", &l, e));
    struct call value = {0};
    call_value(&value, &factor, sizeof factor);
    call_value(&value, &n, sizeof n);
    call_memory(&value, at(a.y, 0));
    call_value(&value, &n, sizeof n);
    l = launch_of(&value, COUNT, 0);
    fails(ERR_ARG_TYPE, o->launch(bench.stream, a.module, "axpy_f32", &l, e));
    struct call size;
    axpy_call(&a, 0, COUNT, 2.0f, &size);
    size.arg[0].size = 1;
    l = launch_of(&size, COUNT, 0);
    fails(ERR_ARG_TYPE, o->launch(bench.stream, a.module, "axpy_f32", &l, e));
    l = launch_of(&c, 0, 0);
    fails(ERR_LAUNCH, o->launch(bench.stream, a.module, "axpy_f32", &l, e));
    l = launch_of(&c, bench.info.max_group * 4, bench.info.max_group * 2);
    fails(ERR_LAUNCH, o->launch(bench.stream, a.module, "axpy_f32", &l, e));
    axpy_verify(&a, 0, 0, 0.0f);
    axpy_finish(&a);
}
END_TEST

void contract_launch(Suite *suite)
{
    TCase *t = tcase_create("launch");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, bench_open, bench_close);
    tcase_add_loop_test(t, computes, 0, 3);
    tcase_add_loop_test(t, computes_at_an_offset, 0, 4);
    tcase_add_loop_test(t, computes_on_pieces_of_one_block, 0, 8);
    tcase_add_test(t, values_are_read_during_the_call);
    tcase_add_test(t, launches_follow_each_other);
    tcase_add_test(t, reduces_through_local_memory);
    tcase_add_loop_test(t, takes_shared_memory_beside_its_own, 0, 5);
    tcase_add_test(t, refuses_wrong_calls);
    suite_add_tcase(suite, t);
}
