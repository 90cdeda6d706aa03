/* What kernels take, as compilers and workers told it, and how the table of kernels shows it. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/requests/requests.h"
#include "daemon/front/views/table_query.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct capbuf told;

static struct proto_list tell(const struct proto_wkernel *k, unsigned count)
{
    capbuf_finish(&told);
    capbuf_init(&told, 1u << 20);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(proto_list_add(&schema_wkernel, &k[i], &told, NULL), 0);
    }
    return proto_list_of(&told, count);
}

START_TEST(what_is_known_better_replaces_what_was_known)
{
    struct resource_list l = {.count = 0};
    const struct proto_wkernel compiler = {
        .entry = bytes_str("f"), .registers = 30, .shared_bytes = 64};
    const struct proto_wkernel worker[] = {
        {.entry = bytes_str("g"), .max_group = 7},
        {.entry = bytes_str("f"), .registers = 32, .max_group = 512}};
    ck_assert_ptr_null(resource_list_find(&l, "f"));
    resource_list_take(&l, tell(&compiler, 1));
    resource_list_take(&l, tell(worker, 2));
    const struct resources *r = resource_list_find(&l, "f");
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->registers, 32);
    ck_assert_uint_eq(r->group_bytes, 64);
    ck_assert_uint_eq(r->max_group, 512);
    ck_assert_uint_eq(l.count, 2);
    resource_list_finish(&l);
    ck_assert_ptr_null(resource_list_find(&l, "f"));
    capbuf_finish(&told);
}
END_TEST

/* Nor does a worker that tells other names each time fill the front. */
START_TEST(entries_have_a_limit)
{
    struct resource_list l = {.count = 0};
    for (unsigned round = 0; round < 3; round++) {
        static struct proto_wkernel k[PROTO_KERNELS_MAX];
        static char name[PROTO_KERNELS_MAX][16];
        for (unsigned i = 0; i < PROTO_KERNELS_MAX; i++) {
            snprintf(name[i], sizeof name[i], "k%u_%u", round, i);
            k[i] = (struct proto_wkernel){.entry = bytes_str(name[i]), .registers = 1};
        }
        resource_list_take(&l, tell(k, PROTO_KERNELS_MAX));
        ck_assert_uint_eq(l.count, PROTO_KERNELS_MAX);
    }
    ck_assert_ptr_nonnull(resource_list_find(&l, "k0_255"));
    ck_assert_ptr_null(resource_list_find(&l, "k1_0"));
    resource_list_finish(&l);
    capbuf_finish(&told);
}
END_TEST

static void take_family(struct build *b)
{
    const struct proto_wkernel family[] = {
        {.entry = bytes_str("f_f32"), .registers = 30, .shared_bytes = 1024, .max_group = 1024},
        {.entry = bytes_str("f_f64"), .registers = 60, .shared_bytes = 2048, .max_group = 512},
        {.entry = bytes_str("f_i32"), .registers = 99},
    };
    resource_list_take(&b->needs, tell(family, 3));
}

START_TEST(of_a_family_the_most_is_told)
{
    struct signature sig;
    struct err e = ERR_INIT;
    ck_assert_int_eq(signature_parse(bytes_str("f<T: f32 f64>(inout T x[n]) over n"), &sig, &e), 0);
    struct kernel k = {.signature = &sig};
    struct build b = {.state = BUILD_DONE};
    take_family(&b);
    struct resources r = kernel_needs(&k, &b);
    ck_assert_uint_eq(r.registers, 60);
    ck_assert_uint_eq(r.group_bytes, 2048);
    ck_assert_uint_eq(r.max_group, 512); /* the smaller allows both */
    ck_assert_uint_eq(kernel_needs(&k, NULL).registers, 0);
    ck_assert_int_eq(signature_parse(bytes_str("f_i32(inout i32 x[n]) over n"), &sig, &e), 0);
    ck_assert_uint_eq(kernel_needs(&k, &b).registers, 99);
    struct kernel plain = {.entry = "f_f32"};
    ck_assert_uint_eq(kernel_needs(&plain, &b).registers, 30);
    resource_list_finish(&b.needs);
    capbuf_finish(&told);
}
END_TEST

struct shown {
    unsigned rows;
    char arch[4][16];
    char registers_text[4][8];
    uint64_t registers[4];
};

static unsigned column_of(const struct msg_table *t, const char *name)
{
    struct proto_column c;
    unsigned at = 0;
    for (struct proto_iter it = proto_iter_of(t->columns); proto_list_next(&it, &schema_column, &c);
         at++) {
        if (bytes_equal_str(c.name, name)) {
            return at;
        }
    }
    ck_abort_msg("no column %s", name);
    return 0;
}

static void read_row(const struct proto_row *row, unsigned arch, unsigned registers,
                     struct shown *shown)
{
    struct proto_cell cell;
    unsigned at = 0;
    ck_assert_uint_lt(shown->rows, 4);
    for (struct proto_iter it = proto_iter_of(row->cells);
         proto_list_next(&it, &schema_cell, &cell); at++) {
        if (at == arch) {
            (void)bytes_to_str(cell.text, shown->arch[shown->rows], 16);
        } else if (at == registers) {
            shown->registers[shown->rows] = cell.value;
            (void)bytes_to_str(cell.text, shown->registers_text[shown->rows], 8);
        }
    }
    shown->rows++;
}

static void look(struct fake *f, struct shown *shown)
{
    struct capbuf out;
    struct request r = {.slot = NULL};
    struct err e = ERR_INIT;
    struct msg_table t;
    struct proto_row row;
    capbuf_init(&out, 1u << 20);
    r.msg.query.what = bytes_str("kernels");
    struct request_context c = {.f = &f->f, .s = f->session, .r = &r, .out = &out};
    ck_assert_int_eq(request_query(&c, &e), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_table, capbuf_view(&out), &t, &e), 0);
    unsigned arch = column_of(&t, "arch");
    unsigned registers = column_of(&t, "registers");
    *shown = (struct shown){.rows = 0};
    for (struct proto_iter it = proto_iter_of(t.rows); proto_list_next(&it, &schema_row, &row);) {
        read_row(&row, arch, registers, shown);
    }
    capbuf_finish(&out);
}

/* One row for each kind of device that it was made for, one if for none. */
START_TEST(the_table_tells_each_device_kind)
{
    struct fake *f = fake_create();
    struct shown shown;
    struct kernel k = {.module = f->module, .name = "f", .entry = "f_f32"};
    k.handle = idmap_add(&f->f.kernels, &k);
    look(f, &shown);
    ck_assert_uint_eq(shown.rows, 1);
    ck_assert_str_eq(shown.registers_text[0], "-");
    ck_assert_str_eq(shown.arch[0], "");
    struct build *a = module_build_obtain(f->module, "cuda", "sm_90");
    struct build *b = module_build_obtain(f->module, "opencl", "cpu");
    struct build *bad = module_build_obtain(f->module, "opencl", "bad");
    a->state = BUILD_DONE;
    b->state = BUILD_DONE;
    bad->state = BUILD_FAILED;
    take_family(a);
    ck_assert_ptr_eq(module_build_made(f->module), a);
    ck_assert_ptr_null(module_build_made(NULL));
    look(f, &shown);
    ck_assert_uint_eq(shown.rows, 2);
    for (unsigned i = 0; i < 2; i++) {
        bool known = strcmp(shown.arch[i], "sm_90") == 0;
        ck_assert_uint_eq(shown.registers[i], known ? 30 : 0);
        ck_assert_str_eq(shown.registers_text[i], known ? "" : "-");
    }
    ck_assert_str_ne(shown.arch[0], shown.arch[1]);
    (void)idmap_remove(&f->f.kernels, k.handle);
    fake_destroy(f);
    capbuf_finish(&told);
}
END_TEST

SUITE_MAIN("resources", what_is_known_better_replaces_what_was_known, entries_have_a_limit,
           of_a_family_the_most_is_told, the_table_tells_each_device_kind)
