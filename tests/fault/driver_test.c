/* A driver whose calls for memory do not come back: the worker's loop goes on, and so does all work
 * that needs none of that memory. On the double of the driver. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/cuda_jobs.h"

#define WORDS  (UINT64_C(2) << 20) /* of a buffer: 8 MiB */
#define HELD   32u
#define ROUNDS 8u

static struct daemon d;

/* Memory of the device, and memory of the host that the device knows, without an end. */
static int take_memory(void *data)
{
    (void)data;
    static gpud_buffer held[HELD];
    gpud_client *c = client_open(d.url);
    for (unsigned i = 0;; i++) {
        gpud_buffer b = {0};
        void *host = NULL;
        if (i >= HELD) {
            ck_gpud_ok(gpud_buffer_free(c, held[i % HELD]));
        }
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, WORDS), 0, "much", &b));
        held[i % HELD] = b;
        ck_gpud_ok(gpud_host_alloc(c, WORDS * sizeof(float), &host));
        ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(1)));
        ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, host, NULL));
        ck_gpud_ok(gpud_host_free(c, host));
    }
}

static const struct {
    const char *call;
    unsigned nth; /* after the worker has started */
} BLOCKED[] = {
    {"cuMemMap", 40}, {"cuMemSetAccess", 10}, {"cuMemHostRegister", 4}, {"cuMemHostUnregister", 1}};

/* FAULT 47: a call of the driver for memory does not come back: map, access, register, unregister
 * required: the worker's loop goes on: jobs that need none of that memory are done, before and
 *   after the client that waits for it is gone, and no worker is ended
 * defence: `worker/memory/mapper.c`; `worker/memory/registrar.c`
 * also: `test_system_cuda`: new_memory_beside_a_long_kernel, a_load_that_does_not_end,
 *   blocked_driver
 * mutants: register-on-loop */
START_TEST(calls_that_do_not_come_back)
{
    char script[64];
    char fired[DAEMON_PATH + 64];
    (void)snprintf(script, sizeof script, "%s@%u=block", BLOCKED[_i].call, BLOCKED[_i].nth);
    gpud_client *c = cuda_begin(&d, script, "--set", "jobs.window=4");
    (void)snprintf(fired, sizeof fired, "%s/state/rule--1-%s-%u", d.dir, BLOCKED[_i].call,
                   BLOCKED[_i].nth);
    gpud_buffer kept = filled(c, 5);
    float first = 0;
    pid_t taker = process_start(take_memory, NULL);
    ck_until(access(fired, F_OK) == 0);
    for (unsigned i = 0; i < 2 * ROUNDS; i++) {
        unharmed(c);
        ck_gpud_ok(gpud_read(c, kept, GPUD_F32, 0, 1, &first, NULL));
        ck_assert(first == 5);
        if (i == ROUNDS) {
            ck_assert_int_eq(kill(taker, SIGKILL), 0);
            (void)process_wait(taker);
        }
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    daemon_end_clean(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("driver");
    suite_add_loop(suite, calls_that_do_not_come_back, (int)(sizeof BLOCKED / sizeof BLOCKED[0]));
    return nvrtc_main(suite);
}
