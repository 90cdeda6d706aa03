#include "tests/unit/client/fixture.h"

struct fake *fake;
gpud_client *client;

void start(void)
{
    fake = fake_start(NULL);
    OK(gpud_open(fake_url(fake), NULL, &client));
}

void stop(void)
{
    gpud_close(client);
    fake_stop(fake);
}

gpud_kernel find(void)
{
    gpud_kernel k = {0};
    OK(gpud_kernel_find(client, "touch", &k));
    return k;
}

gpud_buffer make(uint64_t count)
{
    gpud_buffer b = {0};
    OK(gpud_buffer_create(client, gpud_shape_1d(GPUD_F32, count), 0, "b", &b));
    return b;
}

gpud_job *launch(gpud_kernel k, uint32_t *data, uint32_t flags)
{
    gpud_arg args[] = {gpud_f32(1), gpud_host(data, 1, GPUD_U32)};
    gpud_submit_options o = {.size = sizeof o, .flags = flags};
    gpud_job *job = NULL;
    OK(gpud_launch(client, k, args, 2, NULL, &o, &job));
    return job;
}

int run_tests(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
