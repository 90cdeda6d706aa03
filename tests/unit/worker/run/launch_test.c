/* Launches that fail, at once or later: gpud-worker as a process on the CUDA driver's double. */
#include <check.h>
#include <stdlib.h>

#include "daemon/backend/backend.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/fake_front.h"

static bool begin(struct fake *f, const char *script)
{
    static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry fake_nothing()\n{\n ret;\n}\n"
                              ".visible .entry fake_fault_700()\n{\n ret;\n}\n"
                              ".visible .entry fake_sleep(.param .u32 ms)\n{\n ret;\n}\n";
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    if (backend_find("cuda") == NULL) {
        return false;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", script, 1);
    fake_start(f, "cuda", NULL);
    ck_assert(!f->absent);
    fake_compile("cuda", f->arch, LANG_PTX, "nothing.ptx", bytes_str(PTX), &compiled, &memory);
    ck_assert_msg(compiled.code == 0, "%.*s", (int)compiled.text.size, compiled.text.data);
    ck_assert_int_eq(fake_module(f, 7, compiled.binary), 0);
    memfd_finish(&memory);
    return true;
}

static int launched(struct fake *f, uint64_t job)
{
    struct job_draft d;
    draft_init(&d, job, 0);
    draft_launch(&d, 7, "fake_nothing", 1, NULL, 0);
    draft_send(&d, f);
    return fake_done(f, job, NULL);
}

/* Work items' own arrays lie beside the pool, which gives back memory that is not used. */
START_TEST(a_launch_without_memory_is_tried_again)
{
    struct fake f;
    if (!begin(&f, "cuLaunchKernel@1=2")) {
        return;
    }
    ck_assert_int_eq(launched(&f, 1), 0);
    fake_stop(&f);
}
END_TEST

/* If that does not help, only its job fails. */
START_TEST(a_launch_that_finds_none_fails)
{
    struct fake f;
    if (!begin(&f, "cuLaunchKernel@1=2;cuLaunchKernel@2=2")) {
        return;
    }
    ck_assert_int_eq(launched(&f, 1), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(launched(&f, 2), 0);
    fake_stop(&f);
}
END_TEST

/* After an error the driver does not call: the pump's timer finds the jobs that wait for the
 * stream. The kernel sleeps first, so that no other event in the worker checks it. */
START_TEST(a_fault_is_found_without_a_call)
{
    const uint32_t ms = 500;
    const struct proto_ref value = ref_value(&ms, sizeof ms);
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!begin(&f, "")) {
        return;
    }
    draft_init(&d, 1, 0);
    draft_launch(&d, 7, "fake_sleep", 1, &value, 1);
    draft_launch(&d, 7, "fake_fault_700", 1, NULL, 0);
    draft_send(&d, &f);
    draft_init(&d, 2, 1); /* in another stream, behind it */
    draft_after(&d, 1);
    draft_launch(&d, 7, "fake_nothing", 1, NULL, 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, &done), ERR_KERNEL_FAULT);
    ck_assert_int_eq((int)done.vendor, 700);
    while (fake_next(&f) != 0) { /* its context is lost, and the worker ends */
    }
    ck_assert_int_ne(fake_reap(&f), 0);
    fake_finish(&f);
}
END_TEST

SUITE_MAIN("launches", a_fault_is_found_without_a_call, a_launch_without_memory_is_tried_again,
           a_launch_that_finds_none_fails)
