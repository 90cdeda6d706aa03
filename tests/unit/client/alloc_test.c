/* Every allocation of the library fails once: the call that needed it says NOMEM or does without,
 * nothing else breaks, and nothing leaks (which the sanitizer tells). */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include "client/include/gpud/gpud.h"
#include "tests/unit/client/fake.h"

/* 0: none fails. Of this thread: the fake daemon's threads are not concerned. */
static _Thread_local unsigned fail_at;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *data, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *data, size_t size);

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    return fails() ? NULL : __real_realloc(data, size);
}

static bool ok(int code)
{
    unsigned kept = fail_at;
    fail_at = 0; /* Check allocates, too */
    ck_assert_msg(code >= 0 || code == GPUD_ERR_NOMEM, "%s: %s", gpud_err_name(code),
                  gpud_last_error()->text);
    fail_at = kept;
    return code >= 0;
}

static void use_kernel(gpud_client *c, gpud_kernel k, gpud_buffer b)
{
    uint32_t x[4] = {0};
    float y[4] = {0};
    gpud_job *job = NULL;
    gpud_program *p = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_host(x, 4, GPUD_U32)};
    (void)ok(gpud_call(c, k, args, 2, NULL));
    gpud_arg resident[] = {gpud_f32(1), gpud_inout(b)};
    if (ok(gpud_launch(c, k, resident, 2, NULL, NULL, &job))) {
        (void)ok(gpud_wait(job, GPUD_FOREVER));
        gpud_job_free(job);
    }
    if (!ok(gpud_program_create(c, "p", &p))) {
        return;
    }
    gpud_arg data = gpud_program_param(p, "x", GPUD_PARAM_DATA, gpud_shape_1d(GPUD_F32, 4));
    (void)ok(gpud_program_write(p, gpud_out(b), data));
    (void)ok(gpud_program_read(p, gpud_in(b)));
    if (ok(gpud_program_seal(p))) {
        gpud_arg value = gpud_host_in(y, 4, GPUD_F32);
        (void)ok(gpud_run(c, p, &value, 1, NULL, NULL));
    }
    gpud_program_free(p);
}

static void use(gpud_client *c)
{
    gpud_kernel k;
    gpud_module m;
    gpud_buffer b;
    gpud_table *t = NULL;
    float x[4] = {1, 2, 3, 4};
    if (ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, "b", &b))) {
        (void)ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, x, NULL));
        (void)ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, x, NULL));
        if (ok(gpud_kernel_find(c, "touch", &k))) {
            use_kernel(c, k, b);
        }
        (void)ok(gpud_buffer_free(c, b));
    }
    if (ok(gpud_module_load(c, GPUD_LANG_OPENCL, "kernel", 6, NULL, &m))) {
        (void)ok(gpud_module_unload(c, m));
    }
    if (ok(gpud_query(c, "devices", NULL, &t))) {
        gpud_table_free(t);
    }
}

START_TEST(each_allocation_fails)
{
    struct fake *fake = fake_start(NULL);
    bool failed = true;
    unsigned n = 0;
    while (failed) {
        gpud_client *c = NULL;
        fail_at = ++n;
        if (ok(gpud_open(fake_url(fake), NULL, &c))) {
            use(c);
            failed = fail_at == 0;
            fail_at = 0;
            int code = gpud_ping(c, NULL); /* it is as good as new */
            ck_assert_msg(code == 0, "%s", gpud_last_error()->text);
        }
        fail_at = 0;
        gpud_close(c);
        if (c == NULL) {
            /* NNG 1.5.2 stops accepting after connections that end before their handshake */
            fake_leave(fake);
            fake = fake_start(NULL);
        }
    }
    ck_assert_uint_gt(n, 50);
    fake_leave(fake);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alloc");
    TCase *t = tcase_create("alloc");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, each_allocation_fails);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
