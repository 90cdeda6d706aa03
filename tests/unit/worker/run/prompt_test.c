/* The frames that all clients use wait for no kernel as long as there is memory: gpud-worker as a
 * process on the CUDA driver's double, whose kernel never ends. */
#include <check.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/fake_front.h"

#define MIB    (UINT64_C(1) << 20)
#define LITTLE "50331648" /* as much as a_wait_for_memory_is_no_beginning uses */

static void start(struct fake *f, const char *bytes)
{
    static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry fake_hang(.param .u64 p)\n{\n ret;\n}\n";
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    const char *const args[] = {"--memory-limit", bytes, "--spill-limit", "0", NULL};
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    fake_start(f, "cuda", args);
    ck_assert(!f->absent);
    fake_compile("cuda", f->arch, LANG_PTX, "hang.ptx", bytes_str(PTX), &compiled, &memory);
    ck_assert_msg(compiled.code == 0, "%.*s", (int)compiled.text.size, compiled.text.data);
    ck_assert_int_eq(fake_module(f, 7, compiled.binary), 0);
    memfd_finish(&memory);
}

/* Makes memory its tenant's: new memory has to be zeroed, and is no tenant's meanwhile. */
static void warm(struct fake *f, uint64_t job)
{
    struct job_draft d;
    draft_init(&d, job, 0);
    draft_fill(&d, ref_temp(draft_temp(&d, 32 * MIB), 32 * MIB), "w", 1);
    draft_send(&d, f);
    ck_assert_int_eq(fake_done(f, job, NULL), 0);
}

/* Enqueued as a whole, it leaves its temporary, a large part of the device's memory, to the
 * commands behind it. */
static void hang(struct fake *f, uint64_t job)
{
    struct job_draft d;
    draft_init(&d, job, 0);
    const struct proto_ref temp = ref_as(ref_temp(draft_temp(&d, 32 * MIB), 32 * MIB), ACCESS_OUT);
    draft_launch(&d, 7, "fake_hang", 1, &temp, 1);
    draft_send(&d, f);
}

/* Buffers with undefined content and with zeros, a write into one of them, and a job with a large
 * copy and a temporary, which the stream of copies uses first. */
START_TEST(a_kernel_holds_up_no_buffers_and_copies)
{
    struct fake f;
    struct job_draft d;
    if (backend_find("cuda") == NULL) {
        return;
    }
    start(&f, "1073741824");
    warm(&f, 9);
    hang(&f, 1);
    ck_assert_int_eq(fake_buffer(&f, 1, 16 * MIB, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, 16 * MIB, true), 0);
    draft_init(&d, 2, 1);
    const struct proto_ref temp = ref_temp(draft_temp(&d, 16 * MIB), 16 * MIB);
    draft_move(&d, OP_WRITE, temp, 0);
    draft_copy(&d, ref_buffer(2, 0, 16 * MIB), temp);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    draft_init(&d, 3, 1);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, 16 * MIB), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 3, NULL), 0);
    fake_finish(&f);
}
END_TEST

/* A job that got the memory of one that does not end, and of which nothing was begun, is cancelled
 * at once: the wait for that memory is all that the device has of it. */
START_TEST(a_wait_for_memory_is_no_beginning)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    const struct msg_f_cancel cancel = {.job = 3};
    if (backend_find("cuda") == NULL) {
        return;
    }
    start(&f, LITTLE);
    ck_assert_int_eq(fake_buffer(&f, 1, 16 * MIB, false), 0);
    warm(&f, 9);
    hang(&f, 1);
    draft_init(&d, 2, 1); /* a copy: it waits for the end of the one before it */
    draft_after(&d, 1);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, 16 * MIB), 0);
    draft_send(&d, &f);
    draft_init(&d, 3, 1);
    draft_after(&d, 2);
    draft_fill(&d, ref_temp(draft_temp(&d, 16 * MIB), 16 * MIB), "t", 1);
    draft_send(&d, &f);
    fake_send(&f, &schema_msg_f_cancel, &cancel, -1);
    ck_assert_int_eq(fake_done(&f, 3, &done), ERR_CANCELLED);
    static const char before[] = "cancelled before it began";
    ck_assert_msg(done.text.size >= strlen(before) &&
                      memcmp(done.text.data, before, strlen(before)) == 0,
                  "%.*s", (int)done.text.size, done.text.data);
    fake_finish(&f);
}
END_TEST

SUITE_MAIN("prompt memory", a_kernel_holds_up_no_buffers_and_copies,
           a_wait_for_memory_is_no_beginning)
