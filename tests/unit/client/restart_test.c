/* What another daemon, or another session, does not have any more: requests that name it say why.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/client/fixture.h"

#define COUNT 16u

static void says(const char *what)
{
    ck_assert_msg(strstr(gpud_last_error()->text, what) != NULL, "\"%s\" does not say \"%s\"",
                  gpud_last_error()->text, what);
}

/* As a daemon that let the session end: the next one has nothing of it. */
static void end_session(void)
{
    fake_forget_buffers(fake);
    fake_restart(fake, false);
}

static void end_session_between(void)
{
    end_session();
    OK(gpud_ping(client, NULL));
}

static gpud_program *program(gpud_kernel k, gpud_arg x)
{
    gpud_program *p = NULL;
    gpud_arg args[] = {gpud_f32(1), x};
    OK(gpud_program_create(client, "p", &p));
    ck_assert_int_eq(gpud_program_launch(p, k, args, 2, NULL), 0);
    return p;
}

static int submit(const gpud_program *p)
{
    gpud_job *job = NULL;
    int rc = gpud_submit(client, p, NULL, 0, NULL, &job);
    gpud_job_free(job);
    return rc;
}

/* ---- buffers -------------------------------------------------------------------------------- */

START_TEST(a_buffer_that_ended_with_its_session_is_lost)
{
    float data[COUNT];
    char handle[32];
    gpud_buffer_desc desc = {.size = sizeof desc};
    gpud_buffer b = make(COUNT);
    end_session_between();
    FAILS(gpud_read(client, b, GPUD_F32, 0, COUNT, data, NULL), GPUD_ERR_BUFFER_LOST);
    (void)snprintf(handle, sizeof handle, "buffer 0x%llx ", (unsigned long long)b.id);
    says(handle);
    says("lost with its session");
    FAILS(gpud_fill(client, gpud_slice(b, 0, GPUD_REST), gpud_f32(1)), GPUD_ERR_BUFFER_LOST);
    FAILS(gpud_buffer_info(client, b, &desc), GPUD_ERR_BUFFER_LOST);
    says("lost with its session");
    OK(gpud_buffer_free(client, b));
    FAILS(gpud_read(client, b, GPUD_F32, 0, COUNT, data, NULL), GPUD_ERR_STALE_HANDLE);
}
END_TEST

/* A published buffer may outlive the session, but the next session has not opened it. */
START_TEST(a_buffer_that_outlives_its_session_is_lost_too)
{
    float data[COUNT];
    gpud_buffer b = make(COUNT);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_uint_eq(fake_live(fake), 1);
    FAILS(gpud_read(client, b, GPUD_F32, 0, COUNT, data, NULL), GPUD_ERR_BUFFER_LOST);
    says("lost with its session");
}
END_TEST

START_TEST(a_buffer_of_a_session_that_goes_on_is_there)
{
    float data[COUNT];
    gpud_buffer b = make(COUNT);
    fake_restart(fake, true);
    OK(gpud_ping(client, NULL));
    OK(gpud_read(client, b, GPUD_F32, 0, COUNT, data, NULL));
}
END_TEST

START_TEST(a_buffer_that_is_lost_with_its_worker_is_refused_here)
{
    float data[COUNT];
    gpud_buffer b = make(COUNT);
    gpud_buffer other = make(COUNT);
    fake_lose(fake, 1); /* the first handle of the fake daemon */
    while (gpud_read(client, b, GPUD_F32, 0, COUNT, data, NULL) == 0) {
        OK(gpud_ping(client, NULL));
    }
    ck_assert_int_eq(gpud_last_error()->code, GPUD_ERR_BUFFER_LOST);
    says("lost with its worker");
    OK(gpud_read(client, other, GPUD_F32, 0, COUNT, data, NULL));
}
END_TEST

/* The daemon has had the job, and may have run it. */
START_TEST(a_job_in_flight_says_that_its_buffer_was_lost)
{
    gpud_job *job = NULL;
    gpud_error e = {.size = sizeof e};
    gpud_kernel k = find();
    gpud_arg args[] = {gpud_f32(1), gpud_inout(make(COUNT))};
    fake_mode(fake, FAKE_HOLD);
    OK(gpud_launch(client, k, args, 2, NULL, NULL, &job));
    fake_wait_held(fake, 1);
    fake_mode(fake, FAKE_SERVE);
    end_session();
    FAILS(gpud_wait(job, GPUD_FOREVER), GPUD_ERR_BUFFER_LOST);
    OK(gpud_job_error(job, &e));
    ck_assert_int_eq(e.effects, GPUD_EFFECTS_MAYBE);
    ck_assert_ptr_nonnull(strstr(e.text, "lost with its session"));
    ck_assert_uint_eq(fake_executed(fake), 0);
    gpud_job_free(job);
    OK(gpud_ping(client, NULL)); /* the number of the job is filled */
    ck_assert_uint_eq(fake_gaps(fake), 0);
}
END_TEST

/* ---- programs, modules, kernels ------------------------------------------------------------- */

/* sealed or not */
START_TEST(a_program_says_that_its_buffer_was_lost)
{
    gpud_program *p = program(find(), gpud_inout(make(COUNT)));
    if (_i > 0) {
        OK(gpud_program_seal(p));
    }
    end_session_between();
    if (_i > 0) {
        FAILS(submit(p), GPUD_ERR_BUFFER_LOST);
        says("program could not be restored");
    } else {
        FAILS(gpud_program_seal(p), GPUD_ERR_BUFFER_LOST);
    }
    says("lost with its session");
    gpud_program_free(p);
}
END_TEST

/* The program is in flight with its job. */
START_TEST(a_job_in_flight_says_why_its_program_is_gone)
{
    gpud_job *job = NULL;
    gpud_program *p = program(find(), gpud_inout(make(COUNT)));
    OK(gpud_program_seal(p));
    fake_mode(fake, FAKE_HOLD);
    OK(gpud_submit(client, p, NULL, 0, NULL, &job));
    fake_wait_held(fake, 1);
    fake_mode(fake, FAKE_SERVE);
    end_session();
    FAILS(gpud_wait(job, GPUD_FOREVER), GPUD_ERR_BUFFER_LOST);
    says("program could not be restored");
    ck_assert_uint_eq(fake_stale(fake), 0);
    gpud_job_free(job);
    gpud_program_free(p);
}
END_TEST

static gpud_module load(void)
{
    gpud_module module = {0};
    OK(gpud_module_load(client, GPUD_LANG_OPENCL, "kernel", 6, NULL, &module));
    return module;
}

/* A later daemon may take what an earlier one refused. */
START_TEST(a_kernel_says_why_its_module_was_not_restored)
{
    uint32_t data = 0;
    gpud_kernel k = {0};
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_host_inout(&data, 1, GPUD_U32)};
    OK(gpud_module_kernel(client, load(), "mine", &k));
    gpud_program *p = program(k, gpud_inout(make(COUNT)));
    OK(gpud_program_seal(p));
    fake_refuse_loads(fake, GPUD_ERR_LIMIT);
    fake_restart(fake, true);
    OK(gpud_ping(client, NULL));
    FAILS(gpud_launch(client, k, args, 2, NULL, NULL, &job), GPUD_ERR_LIMIT);
    says("kernel could not be restored");
    says("module could not be restored");
    FAILS(submit(p), GPUD_ERR_LIMIT);
    says("program could not be restored");
    ck_assert_uint_eq(fake_stale(fake), 0);
    fake_refuse_loads(fake, 0);
    fake_restart(fake, true);
    OK(gpud_ping(client, NULL));
    OK(submit(p));
    gpud_program_free(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("restart");
    TCase *t = tcase_create("restart");
    tcase_add_checked_fixture(t, start, stop);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, a_buffer_that_ended_with_its_session_is_lost);
    tcase_add_test(t, a_buffer_that_outlives_its_session_is_lost_too);
    tcase_add_test(t, a_buffer_of_a_session_that_goes_on_is_there);
    tcase_add_test(t, a_buffer_that_is_lost_with_its_worker_is_refused_here);
    tcase_add_test(t, a_job_in_flight_says_that_its_buffer_was_lost);
    tcase_add_loop_test(t, a_program_says_that_its_buffer_was_lost, 0, 2);
    tcase_add_test(t, a_job_in_flight_says_why_its_program_is_gone);
    tcase_add_test(t, a_kernel_says_why_its_module_was_not_restored);
    suite_add_tcase(suite, t);
    return run_tests(suite);
}
