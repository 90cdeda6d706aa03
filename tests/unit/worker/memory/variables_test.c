/* Variables of modules: gpud-worker as a process on the CUDA driver's double. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

#define COUNT 2097152u /* of the variable: two chunks of a copy */
#define BYTES (UINT64_C(4) * COUNT)

enum { MODULE = 7, TABLE = 1, ADDRESS = 2, ARENA = 1 };

static const char PTX[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".global .align 4 .u32 table[2097152];\n"
    ".visible .entry fake_where(.param .u64 p, .param .u64 at)\n{\n ret;\n}\n"
    ".visible .entry fake_sleep(.param .u32 ms)\n{\n ret;\n}\n"
    ".visible .entry fake_increment(.param .u64 p, .param .u64 n)\n{\n ret;\n}\n";

static void module_make(struct fake *f)
{
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    fake_compile("cuda", f->arch, LANG_PTX, "table.ptx", bytes_str(PTX), &compiled, &memory);
    ck_assert_msg(compiled.code == 0, "%.*s", (int)compiled.text.size, compiled.text.data);
    ck_assert_int_eq(fake_module(f, MODULE, compiled.binary), 0);
    memfd_finish(&memory);
}

static void variable_make(struct fake *f)
{
    const struct msg_f_buffer_create msg = {
        .id = TABLE, .size = BYTES, .module = MODULE, .variable = bytes_str("table")};
    struct msg_w_buffer answer;
    fake_send(f, &schema_msg_f_buffer_create, &msg, -1);
    fake_expect(f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_msg(answer.code == 0, "%.*s", (int)answer.text.size, answer.text.data);
}

static void arena_make(struct fake *f, struct memfd *ret_arena)
{
    struct err e = ERR_INIT;
    const struct msg_f_arena msg = {.arena = ARENA, .size = BYTES};
    ck_assert_int_eq(memfd_create_sealed("arena", BYTES, ret_arena, &e), 0);
    fake_send(f, &schema_msg_f_arena, &msg, ret_arena->fd);
}

/* The arena may come to be known meanwhile. */
static void done(struct fake *f)
{
    struct msg_w_done done;
    unsigned kind;
    do {
        kind = fake_next(f);
    } while (kind == FRAME_KIND_W_ARENA || fake_turns(kind));
    ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
    ck_assert_int_eq(proto_decode(&schema_msg_w_done, bytes_of(f->frame, f->size), &done, NULL), 0);
    ck_assert_msg(done.code == 0, "step %lld: %.*s", (long long)done.step, (int)done.text.size,
                  done.text.data);
}

/* Where the variable lies: kernels of the double know it in no other way, unless they name it. */
static uint64_t where(struct fake *f)
{
    struct job_draft d;
    uint64_t address = 0;
    const struct proto_ref args[] = {ref_as(ref_buffer(TABLE, 0, BYTES), ACCESS_IN),
                                     ref_as(ref_buffer(ADDRESS, 0, 8), ACCESS_OUT)};
    draft_init(&d, 1, 0);
    draft_launch(&d, MODULE, "fake_where", 1, args, 2);
    draft_move(&d, OP_READ, ref_buffer(ADDRESS, 0, 8), 0);
    draft_send(&d, f);
    done(f);
    memcpy(&address, f->output.data, sizeof address);
    ck_assert_uint_ne(address, 0);
    return address;
}

/* Adds 1 to all of it, after a while, and names it nowhere. */
static void draft_count(struct job_draft *d, uint64_t address, uint32_t ms)
{
    static const uint64_t n = COUNT;
    const struct proto_ref time = ref_value(&ms, sizeof ms);
    const struct proto_ref args[] = {ref_value(&address, sizeof address), ref_value(&n, sizeof n)};
    draft_launch(d, MODULE, "fake_sleep", 1, &time, 1);
    draft_launch(d, MODULE, "fake_increment", 1, args, 2);
}

static void holds(const uint8_t *bytes, uint32_t value)
{
    const uint32_t *at = (const uint32_t *)(const void *)bytes;
    unsigned i = 0;
    while (i < COUNT && at[i] == value) {
        i++;
    }
    ck_assert_msg(i == COUNT, "%u: %u instead of %u", i, at[i % COUNT], value);
}

/* Large copies of a variable keep their order with launches of its module, although those do not
 * name it: copies that are slow, and into memory that the driver does not know. */
START_TEST(copies_keep_their_order_with_launches)
{
    static const char *const DOUBLE[] = {"copy_rate=64M", "copy_rate=64M,cuMemHostRegister@1+=801"};
    struct fake f;
    struct job_draft d;
    struct memfd arena = MEMFD_NONE;
    const struct proto_ref table = ref_buffer(TABLE, 0, BYTES);
    const struct proto_ref outside = {.tag = REF_ARENA, .id = ARENA, .size = BYTES};
    if (backend_find("cuda") == NULL) {
        return;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", DOUBLE[_i], 1);
    fake_start(&f, "cuda", NULL);
    ck_assert(!f.absent);
    module_make(&f);
    variable_make(&f);
    ck_assert_int_eq(fake_buffer(&f, ADDRESS, 4096, false), 0);
    uint64_t address = where(&f);
    arena_make(&f, &arena);
    draft_init(&d, 2, 0); /* what the kernel left is read */
    draft_count(&d, address, 100);
    draft_move_arena(&d, OP_READ, table, outside);
    draft_send(&d, &f);
    done(&f);
    holds(arena.data, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        ((uint32_t *)(void *)f.input.data)[i] = 10;
    }
    draft_init(&d, 3, 0); /* what was written is what the kernel works on */
    draft_move(&d, OP_WRITE, table, 0);
    draft_count(&d, address, 0);
    draft_move(&d, OP_READ, table, 0);
    draft_send(&d, &f);
    done(&f);
    holds(f.output.data, 11);
    fake_stop(&f);
    memfd_finish(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("variables of modules");
    TCase *tc = tcase_create("variables of modules");
    tcase_set_timeout(tc, 90);
    tcase_add_loop_test(tc, copies_keep_their_order_with_launches, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
