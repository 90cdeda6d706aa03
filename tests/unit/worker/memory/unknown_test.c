/* Memory that the device does not know: gpud-worker as a process on the CUDA driver's double. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

#define BULK (UINT64_C(32) << 20)

/* Of many arenas the driver takes the first ones only. */
static void arenas_make(struct fake *f, uint64_t count, uint64_t size)
{
    for (uint64_t id = 1; id <= count; id++) {
        struct err e = ERR_INIT;
        struct memfd m = MEMFD_NONE;
        const struct msg_f_arena msg = {.arena = id, .size = size};
        ck_assert_int_eq(memfd_create_sealed("arena", size, &m, &e), 0);
        memset(m.data, (int)id, size);
        fake_send(f, &schema_msg_f_arena, &msg, m.fd);
        memfd_finish(&m);
    }
}

/* The next job that ends, and well. */
static void done_next(struct fake *f, uint64_t job)
{
    struct msg_w_done done;
    unsigned kind = fake_next(f);
    while (kind == FRAME_KIND_W_ARENA || fake_turns(kind)) {
        kind = fake_next(f);
    }
    ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
    ck_assert_int_eq(proto_decode(&schema_msg_w_done, bytes_of(f->frame, f->size), &done, NULL), 0);
    ck_assert_uint_eq(done.job, job);
    ck_assert_msg(done.code == 0, "%.*s", (int)done.text.size, done.text.data);
}

/* With a module 7, whose kernel never ends. */
static void start_hanging(struct fake *f, const char *driver)
{
    static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry fake_hang(.param .u64 p)\n{\n ret;\n}\n";
    const char *const args[] = {"--spill-limit", "0", NULL};
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", driver, 1);
    fake_start(f, "cuda", args);
    ck_assert(!f->absent);
    fake_compile("cuda", f->arch, LANG_PTX, "hang.ptx", bytes_str(PTX), &compiled, &memory);
    ck_assert_msg(compiled.code == 0, "%.*s", (int)compiled.text.size, compiled.text.data);
    ck_assert_int_eq(fake_module(f, 7, compiled.binary), 0);
    memfd_finish(&memory);
}

/* Copies into memory that the driver does not know run only when all commands before them are over,
 * however small they are. So do copies from such memory if they are large, or (_i 2) always. The
 * driver blocks the caller meanwhile, so the worker does not enqueue them before. */
START_TEST(copies_of_unknown_memory_hold_up_no_job)
{
    enum { ARENAS = 12, LITTLE = 4096, MORE = 128 << 10 };
    const uint64_t size = _i == 1 ? MORE : LITTLE;
    struct fake f;
    struct job_draft d;
    if (backend_find("cuda") == NULL) {
        return;
    }
    start_hanging(&f, _i == 2 ? "cuMemHostRegister@20+=CUDA_ERROR_OUT_OF_MEMORY,pageable_waits=1"
                              : "cuMemHostRegister@20+=CUDA_ERROR_OUT_OF_MEMORY");
    ck_assert_int_eq(fake_buffer(&f, 1, MORE, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, LITTLE, false), 0);
    arenas_make(&f, ARENAS, MORE);
    const struct proto_ref arg = ref_as(ref_buffer(1, 0, MORE), ACCESS_INOUT);
    const struct proto_ref arena = {.tag = REF_ARENA, .id = ARENAS, .size = size};
    draft_init(&d, 1, 0);
    draft_launch(&d, 7, "fake_hang", 1, &arg, 1);
    draft_move_arena(&d, _i == 0 ? OP_READ : OP_WRITE, ref_buffer(1, 0, size), arena);
    draft_send(&d, &f);
    draft_init(&d, 2, 1);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, LITTLE), 0);
    draft_send(&d, &f);
    done_next(&f, 2);
    fake_finish(&f);
}
END_TEST

/* Copies of staging memory hold up no other work until the driver knows it, however long that
 * takes. */
START_TEST(copies_of_staging_hold_up_no_job)
{
    enum { LITTLE = 4096 };
    struct fake f;
    struct job_draft d;
    if (backend_find("cuda") == NULL) {
        return;
    }
    start_hanging(&f, "cuMemHostRegister@2+=block,pageable_waits=1");
    ck_assert_int_eq(fake_buffer(&f, 1, LITTLE, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, LITTLE, false), 0);
    const struct proto_ref arg = ref_as(ref_buffer(1, 0, LITTLE), ACCESS_INOUT);
    draft_init(&d, 1, 0);
    draft_launch(&d, 7, "fake_hang", 1, &arg, 1);
    draft_move(&d, _i == 0 ? OP_READ : OP_WRITE, ref_buffer(1, 0, LITTLE), 0);
    draft_send(&d, &f);
    draft_init(&d, 2, 1);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, LITTLE), 0);
    draft_move(&d, OP_READ, ref_buffer(2, 0, LITTLE), LITTLE);
    draft_send(&d, &f);
    done_next(&f, 2);
    ck_assert_int_eq(memcmp(f.output.data + LITTLE, f.input.data, LITTLE), 0);
    fake_finish(&f);
}
END_TEST

/* Consecutive small writes go in one batch, which the device reads: not those from memory that it
 * does not know, while it is being registered and if that failed. The double counts such a batch as
 * a fault. */
START_TEST(small_writes_come_from_what_the_device_knows)
{
    static const char *const ways[] = {"cuMemHostRegister@20+=block",
                                       "cuMemHostRegister@20+=CUDA_ERROR_OUT_OF_MEMORY"};
    enum { ARENAS = 32, EACH = 256, WRITES = 8 };
    struct fake f;
    struct job_draft d;
    if (backend_find("cuda") == NULL) {
        return;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", ways[_i], 1);
    const char *const args[] = {"--spill-limit", "0", NULL};
    fake_start(&f, "cuda", args);
    ck_assert(!f.absent);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    arenas_make(&f, ARENAS, 4096);
    draft_init(&d, 1, 0);
    for (uint64_t i = 0; i < WRITES; i++) { /* every second one of staging memory */
        const struct proto_ref arena = {
            .tag = REF_ARENA, .id = ARENAS, .offset = i * EACH, .size = EACH};
        const struct proto_ref to = ref_buffer(1, (WRITES - 1 - i) * EACH, EACH);
        memset(f.input.data + i * EACH, (int)(i + 100), EACH);
        if (i % 2 == 0) {
            draft_move_arena(&d, OP_WRITE, to, arena);
        } else {
            draft_move(&d, OP_WRITE, to, i * EACH);
        }
    }
    draft_move(&d, OP_READ, ref_buffer(1, 0, WRITES * EACH), 0);
    draft_send(&d, &f);
    done_next(&f, 1);
    for (size_t i = 0; i < WRITES * EACH; i++) {
        size_t from = WRITES - 1 - i / EACH;
        ck_assert_uint_eq(f.output.data[i], from % 2 == 0 ? ARENAS : from + 100);
    }
    fake_finish(&f);
}
END_TEST

/* However long the registration of staging memory takes, or if it fails: the worker serves, copies
 * arrive, and it ends on request. The driver takes the worker's own piece of memory. Of staging
 * memory it takes nothing, or the input only once it is writable, or not even then. */
START_TEST(registering_staging_holds_up_no_job)
{
    static const char *const ways[] = {"cuMemHostRegister@2+=block",
                                       "cuMemHostRegister@2+=CUDA_ERROR_OUT_OF_MEMORY",
                                       "cuMemHostRegister@2=801,cuMemHostRegister@3=801",
                                       "cuMemHostRegister@2=801,cuMemHostRegister@3=801,"
                                       "cuMemHostRegister@4=801,cuMemHostRegister@5=801"};
    enum { BYTES = 8 << 20 };
    struct fake f;
    struct job_draft d;
    if (backend_find("cuda") == NULL) {
        return;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", ways[_i], 1);
    const char *const args[] = {"--spill-limit", "0", NULL};
    fake_start(&f, "cuda", args);
    ck_assert(!f.absent);
    ck_assert_int_eq(fake_buffer(&f, 1, BYTES, false), 0);
    memset(f.input.data, 5, BYTES);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, BYTES), 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, BYTES), 0);
    draft_send(&d, &f);
    done_next(&f, 1);
    ck_assert_int_eq(memcmp(f.output.data, f.input.data, BYTES), 0);
    fake_stop(&f);
}
END_TEST

/* A job whose kernel works on an arena may come before the arena is registered, when the front sent
 * it to another worker first. It waits for that; it fails if the driver does not take the arena,
 * and then its memory is free again. */
START_TEST(kernels_wait_for_their_arena)
{
    static const char *const ways[] = {"unknown=noop,host_us=10000",
                                       "unknown=noop,host_us=10000,"
                                       "cuMemHostRegister@20+=CUDA_ERROR_OUT_OF_MEMORY"};
    static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry works(.param .u64 p)\n{\n ret;\n}\n";
    enum { ARENAS = 24, EACH = 4096 };
    struct fake f;
    struct job_draft d;
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    struct msg_w_done done;
    if (backend_find("cuda") == NULL) {
        return;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", ways[_i], 1);
    const char *const args[] = {"--spill-limit", "0", NULL};
    fake_start(&f, "cuda", args);
    ck_assert(!f.absent);
    fake_compile("cuda", f.arch, LANG_PTX, "works.ptx", bytes_str(PTX), &compiled, &memory);
    ck_assert_int_eq(fake_module(&f, 7, compiled.binary), 0);
    memfd_finish(&memory);
    arenas_make(&f, ARENAS, EACH);
    const struct proto_ref arena =
        ref_as((struct proto_ref){.tag = REF_ARENA, .id = ARENAS, .size = EACH}, ACCESS_INOUT);
    draft_init(&d, 1, 0);
    draft_launch(&d, 7, "works", 1, &arena, 1);
    draft_send(&d, &f);
    bool known = false; /* the arena, before the job's end */
    unsigned kind = fake_next(&f);
    while (kind == FRAME_KIND_W_ARENA || kind == FRAME_KIND_W_WAITING || fake_turns(kind)) {
        struct msg_w_arena now;
        known = known ||
                (kind == FRAME_KIND_W_ARENA &&
                 proto_decode(&schema_msg_w_arena, bytes_of(f.frame, f.size), &now, NULL) == 0 &&
                 now.arena == ARENAS);
        kind = fake_next(&f);
    }
    ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
    ck_assert_int_eq(proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &done, NULL), 0);
    ck_assert_int_eq((int)done.code, _i == 0 ? 0 : ERR_UNSUPPORTED);
    ck_assert(known == (_i == 0));
    fake_stop(&f);
}
END_TEST

/* However long the registration of arenas takes: reads into an unregistered arena, and all commands
 * behind them, arrive. Of these arenas the driver registers only the first ones. */
START_TEST(registering_arenas_holds_up_no_job)
{
    enum { ARENAS = 32 };
    struct fake f;
    struct job_draft d;
    if (backend_find("cuda") == NULL) {
        return;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", "cuMemHostRegister@20+=block", 1);
    const char *const args[] = {"--spill-limit", "0", NULL};
    fake_start(&f, "cuda", args);
    ck_assert(!f.absent);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    f.tenant = 2;
    ck_assert_int_eq(fake_buffer(&f, 2, BULK, false), 0);
    arenas_make(&f, ARENAS, 4096);
    const struct proto_ref arena = {.tag = REF_ARENA, .id = ARENAS, .size = 4096};
    f.tenant = 1;
    draft_init(&d, 1, 0);
    draft_move_arena(&d, OP_READ, ref_buffer(1, 0, 4096), arena);
    draft_send(&d, &f);
    f.tenant = 2;
    draft_init(&d, 2, 1);
    draft_move(&d, OP_READ, ref_buffer(2, 0, BULK), 0);
    draft_send(&d, &f);
    done_next(&f, 1);
    done_next(&f, 2);
    fake_finish(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unknown memory");
    TCase *tc = tcase_create("unknown memory");
    tcase_set_timeout(tc, 90);
    tcase_add_loop_test(tc, copies_of_unknown_memory_hold_up_no_job, 0, 3);
    tcase_add_loop_test(tc, copies_of_staging_hold_up_no_job, 0, 2);
    tcase_add_loop_test(tc, small_writes_come_from_what_the_device_knows, 0, 2);
    tcase_add_loop_test(tc, registering_staging_holds_up_no_job, 0, 4);
    tcase_add_loop_test(tc, kernels_wait_for_their_arena, 0, 2);
    tcase_add_test(tc, registering_arenas_holds_up_no_job);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
