/* Modules: their builds, and their kernels as the compiler reported them. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/model/module.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"

static struct module *module_new(void)
{
    struct module *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    return m;
}

START_TEST(there_is_one_build_for_each_architecture)
{
    struct module *m = module_new();
    ck_assert_ptr_null(module_build(m, "sim", "a"));
    struct build *a = module_build_obtain(m, "sim", "a");
    struct build *b = module_build_obtain(m, "sim", "b");
    struct build *c = module_build_obtain(m, "opencl", "a");
    ck_assert(a != b && b != c && a != c);
    ck_assert_ptr_eq(module_build_obtain(m, "sim", "a"), a);
    ck_assert_ptr_eq(module_build(m, "opencl", "a"), c);
    ck_assert_int_eq(a->state, BUILD_NONE);
    ck_assert_int_eq(a->binary_fd, -1);
    module_destroy(m);
    module_destroy(NULL);
}
END_TEST

START_TEST(only_what_cannot_be_compiled_fails_for_good)
{
    struct build b = {.state = BUILD_FAILED, .failed_ns = 1000, .error = ERR_INIT};
    const uint64_t much_later = 1000 + 3600 * NS_PER_S;
    (void)err_set(&b.error, ERR_COMPILE_LIMIT, "time");
    ck_assert(build_failed(&b, 1001));
    ck_assert(!build_failed(&b, much_later));
    (void)err_set(&b.error, ERR_COMPILE, "line 1");
    ck_assert(build_failed(&b, much_later));
    b.state = BUILD_DONE;
    ck_assert(!build_failed(&b, 1001));
}
END_TEST

struct report {
    struct capbuf kernels;
    struct capbuf args;
    uint64_t count, arg_count;
};

static void report_init(struct report *r)
{
    *r = (struct report){.count = 0};
    capbuf_init(&r->kernels, 65536);
    capbuf_init(&r->args, 65536);
}

static void report_finish(struct report *r)
{
    capbuf_finish(&r->kernels);
    capbuf_finish(&r->args);
}

static void report_kernel(struct report *r, const char *entry, const char *signature)
{
    struct proto_ckernel k = {.entry = bytes_str(entry),
                              .signature = bytes_str(signature),
                              .args = proto_list_of(&r->args, r->arg_count)};
    ck_assert_int_eq(proto_list_add(&schema_ckernel, &k, &r->kernels, NULL), 0);
    r->count++;
    capbuf_reset(&r->args);
    r->arg_count = 0;
}

static void report_arg(struct report *r, const char *name, uint64_t kind, int access)
{
    struct proto_carg a = {
        .name = bytes_str(name), .kind = kind, .access = (uint64_t)access, .bytes = 4};
    ck_assert_int_eq(proto_list_add(&schema_carg, &a, &r->args, NULL), 0);
    r->arg_count++;
}

static int take(struct module *m, const struct report *r, struct err *e)
{
    struct compile_response response = {.kernels = proto_list_of(&r->kernels, r->count)};
    return module_set_kernels(m, &response, e);
}

START_TEST(kernels_are_what_the_compiler_reported)
{
    struct module *m = module_new();
    struct report r;
    struct err e = ERR_INIT;
    report_init(&r);
    report_kernel(&r, "twice", "twice<T: f32 f64>(inout T x[n]) over n");
    report_arg(&r, "count", 1, ACCESS_NONE);
    report_arg(&r, "data", 2, ACCESS_IN);
    report_kernel(&r, "spin", NULL);
    ck_assert_int_eq(take(m, &r, &e), 0);
    report_finish(&r); /* what is kept is the module's own */
    ck_assert_uint_eq(m->kernel_count, 2);
    ck_assert_str_eq(m->kernels[0].name, "twice");
    ck_assert_ptr_nonnull(m->kernels[0].signature);
    ck_assert_ptr_null(m->kernels[1].signature);
    ck_assert_uint_eq(m->kernels[1].arg_count, 2);
    ck_assert(bytes_equal_str(m->kernels[1].args[0].name, "count"));
    ck_assert(bytes_equal_str(m->kernels[1].args[1].name, "data"));
    ck_assert_uint_eq(m->kernels[1].args[1].access, ACCESS_IN);
    ck_assert_ptr_eq(m->kernels[1].module, m);
    module_destroy(m);
}
END_TEST

START_TEST(a_kernel_may_be_unfit)
{
    struct module *m = module_new();
    struct report r;
    struct err e = ERR_INIT;
    report_init(&r);
    struct proto_ckernel k = {.entry = bytes_str("blur"), .unfit = bytes_str("it has an image")};
    ck_assert_int_eq(proto_list_add(&schema_ckernel, &k, &r.kernels, NULL), 0);
    r.count++;
    report_arg(&r, "n", 1, ACCESS_NONE);
    report_kernel(&r, "spin", NULL);
    ck_assert_int_eq(take(m, &r, &e), 0);
    report_finish(&r);
    ck_assert_str_eq(m->kernels[0].unfit, "it has an image");
    ck_assert_ptr_null(m->kernels[1].unfit);
    ck_assert(bytes_equal_str(m->kernels[1].args[0].name, "n"));
    module_destroy(m);
}
END_TEST

START_TEST(a_kernel_may_be_called_otherwise_than_in_its_binary)
{
    struct module *m = module_new();
    struct report r;
    struct err e = ERR_INIT;
    struct proto_ckernel k = {.entry = bytes_str("_Z1fIfEvPT_"), .name = bytes_str("f<float>")};
    report_init(&r);
    ck_assert_int_eq(proto_list_add(&schema_ckernel, &k, &r.kernels, NULL), 0);
    r.count = 1;
    ck_assert_int_eq(take(m, &r, &e), 0);
    report_finish(&r);
    ck_assert_str_eq(m->kernels[0].name, "f<float>");
    ck_assert_str_eq(m->kernels[0].entry, "_Z1fIfEvPT_");
    module_destroy(m);
}
END_TEST

START_TEST(reports_that_cannot_be_are_refused)
{
    struct module *m = module_new();
    struct report r;
    struct err e = ERR_INIT;
    char name[2 * PROTO_NAME_MAX];
    memset(name, 'k', sizeof name);
    name[PROTO_NAME_MAX + 1] = '\0';
    report_init(&r);
    report_kernel(&r, name, NULL);
    ck_assert_int_eq(take(m, &r, &e), ERR_LIMIT);
    report_finish(&r);
    module_destroy(m);
    m = module_new();
    report_init(&r);
    report_kernel(&r, "bad", "bad(in f32");
    ck_assert_int_eq(take(m, &r, &e), ERR_COMPILE);
    report_finish(&r);
    module_destroy(m);
}
END_TEST

START_TEST(strikes_are_counted_for_content_and_entry)
{
    struct module a = {.hash = hash_of("a", 1)};
    struct module b = {.hash = hash_of("b", 1)};
    struct module same = {.hash = hash_of("a", 1)};
    ck_assert(hash_equal(kernel_hash(&a, "spin"), kernel_hash(&same, "spin")));
    ck_assert(!hash_equal(kernel_hash(&a, "spin"), kernel_hash(&b, "spin")));
    ck_assert(!hash_equal(kernel_hash(&a, "spin"), kernel_hash(&a, "spam")));
}
END_TEST

SUITE_MAIN("module", there_is_one_build_for_each_architecture,
           only_what_cannot_be_compiled_fails_for_good, kernels_are_what_the_compiler_reported,
           a_kernel_may_be_unfit, a_kernel_may_be_called_otherwise_than_in_its_binary,
           reports_that_cannot_be_are_refused, strikes_are_counted_for_content_and_entry)
