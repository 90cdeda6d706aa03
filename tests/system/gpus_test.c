/* Many GPUs, on the double of the driver: which are opened, by which name, and what crosses them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/system/double.h"

#define GPUS 8u
#define UUID "fa4ec0da-0000-4000-8000-0000000000"

static struct daemon daemon_of_test;

static gpud_client *begin(const char *script, const char *option, const char *value)
{
    daemon_prepare(&daemon_of_test, "--backend", "cuda", option, value, NULL);
    return double_begin(&daemon_of_test, script);
}

static void end(gpud_client *c)
{
    daemon_end_clean(&daemon_of_test, c);
}

static void pin_of(gpud_client *c, unsigned device, char *out, size_t size)
{
    char row[16];
    (void)snprintf(row, sizeof row, "%u", device);
    query_text(c, "devices", row, "pin", out, size);
}

/* Jobs run on each; a device's number is its place on the bus, whatever order the driver has. */
START_TEST(all_eight_serve)
{
    static const char *const orders[] = {"FASTEST_FIRST", "PCI_BUS_ID"};
    char pin[96];
    char want[96];
    (void)setenv("CUDA_DEVICE_ORDER", orders[_i], 1);
    gpud_client *c = begin("devices=8", "--set", "daemon.min_devices=8");
    for (unsigned i = 0; i < GPUS; i++) {
        gpud_job *job = NULL;
        float x[] = {1, 2};
        const gpud_arg args[] = {gpud_f32(3), gpud_host(x, 2, GPUD_F32), gpud_host(x, 2, GPUD_F32)};
        gpud_submit_options o = {.size = sizeof o, .device = i + 1};
        pin_of(c, i, pin, sizeof pin);
        (void)snprintf(want, sizeof want, "uuid=" UUID "%02x", i);
        ck_assert_str_eq(pin, want);
        ck_gpud_ok(gpud_launch(c, kernel_find(c, "scale"), args, 3, NULL, &o, &job));
        ck_gpud_ok(gpud_wait(job, PATIENCE));
        gpud_job_times times = {.size = sizeof times};
        ck_gpud_ok(gpud_job_timing(job, &times));
        ck_assert_uint_eq(times.device, i);
        gpud_job_free(job);
    }
    end(c);
    (void)unsetenv("CUDA_DEVICE_ORDER");
}
END_TEST

START_TEST(some_are_chosen_by_index)
{
    gpud_client *c = begin("devices=8", "--devices", "2,5");
    char pin[96];
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    pin_of(c, 0, pin, sizeof pin);
    ck_assert_str_eq(pin, "uuid=" UUID "02");
    pin_of(c, 1, pin, sizeof pin);
    ck_assert_str_eq(pin, "uuid=" UUID "05");
    end(c);
}
END_TEST

/* As nvidia-smi writes it, several joined by '+'. Of instances a process sees one, so there are as
 * many as are named, in that order, each by a worker of its own. */
START_TEST(some_are_chosen_by_uuid)
{
    static const struct {
        const char *script, *option, *pin[2];
    } ways[] = {{"devices=8", "uuid=GPU-" UUID "06+" UUID "03", {UUID "03", UUID "06"}},
                {"devices=7;mig=1",
                 "uuid=MIG-" UUID "06+MIG-" UUID "03",
                 {"MIG-" UUID "06", "MIG-" UUID "03"}}};
    gpud_client *c = begin(ways[_i].script, "--backend-options", ways[_i].option);
    char pin[96];
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    for (unsigned i = 0; i < 2; i++) {
        pin_of(c, i, pin, sizeof pin);
        ck_assert_str_eq(pin + strlen("uuid="), ways[_i].pin[i]);
    }
    end(c);
}
END_TEST

/* Jobs run on each of them, which have these pins. */
static void all_run(gpud_client *c, const char *const *pins, unsigned count)
{
    char pin[96];
    ck_until(query_value(c, "status", NULL, "serving") == count);
    for (unsigned i = 0; i < count; i++) {
        gpud_job *job = NULL;
        float x[] = {1, 2};
        const gpud_arg args[] = {gpud_f32(3), gpud_host(x, 2, GPUD_F32), gpud_host(x, 2, GPUD_F32)};
        gpud_submit_options o = {.size = sizeof o, .device = i + 1};
        pin_of(c, i, pin, sizeof pin);
        ck_assert_str_eq(pin, pins[i]);
        ck_gpud_ok(gpud_launch(c, kernel_find(c, "scale"), args, 3, NULL, &o, &job));
        ck_gpud_ok(gpud_wait(job, PATIENCE));
        gpud_job_free(job);
    }
}

/* No GPU is named: the first is the one that the driver lists first (the double's order is the
 * reverse of the bus), the others are those of the management library. */
START_TEST(all_instances_serve)
{
    static const char *const want[] = {"uuid=MIG-" UUID "02", "uuid=MIG-" UUID "00",
                                       "uuid=MIG-" UUID "01"};
    (void)setenv("CUDA_FAKE_NVML", "mig=3", 1);
    gpud_client *c = begin("devices=3;mig=1", NULL, NULL);
    all_run(c, want, 3);
    end(c);
    (void)unsetenv("CUDA_FAKE_NVML");
}
END_TEST

/* Two GPUs as a whole and one that is divided, which is no device itself. The driver shows one
 * instance first, or the GPUs that are none. */
START_TEST(gpus_beside_instances_serve)
{
    static const struct {
        const char *order, *pin[4];
    } ways[] = {
        {"FASTEST_FIRST",
         {"uuid=MIG-" UUID "03", "uuid=GPU-" UUID "00", "uuid=GPU-" UUID "01",
          "uuid=MIG-" UUID "02"}},
        {"PCI_BUS_ID",
         {"uuid=" UUID "00", "uuid=" UUID "01", "uuid=MIG-" UUID "02", "uuid=MIG-" UUID "03"}}};
    (void)setenv("CUDA_DEVICE_ORDER", ways[_i].order, 1);
    (void)setenv("CUDA_FAKE_NVML", "devices=3;whole=2;mig=2", 1);
    gpud_client *c = begin("devices=4;mig=1;whole=2", NULL, NULL);
    all_run(c, ways[_i].pin, 4);
    ck_assert_uint_eq(query_value(c, "status", NULL, "devices"), 4);
    end(c);
    (void)unsetenv("CUDA_FAKE_NVML");
    (void)unsetenv("CUDA_DEVICE_ORDER");
}
END_TEST

static bool state_is(gpud_client *c, const char *device, const char *state)
{
    char text[64];
    query_text(c, "devices", device, "state", text, sizeof text);
    return strcmp(text, state) == 0;
}

static unsigned monitors(void)
{
    pid_t pids[4];
    return daemon_children(daemon_launcher(&daemon_of_test), "gpud-monitor", pids, 4);
}

/* The management library has all GPUs open, so it is closed, too. An exported buffer keeps the GPU
 * until its client frees it. The next front keeps both to it. */
START_TEST(a_drained_gpu_is_no_process_s)
{
    char text[512];
    gpud_buffer b = {0};
    (void)setenv("CUDA_FAKE_NVML", "devices=2", 1);
    gpud_client *c = begin("devices=2", NULL, NULL);
    ck_until(query_value(c, "status", NULL, "serving") == 2 && monitors() == 1);
    ck_gpud_ok(gpud_buffer_create_on(c, 1, gpud_shape_1d(GPUD_F32, 8), GPUD_BUFFER_EXPORT, "", &b));
    ck_gpud_ok(gpud_control(c, "drain-device", "1"));
    query_text(c, "devices", "1", "reason", text, sizeof text);
    ck_until((query_text(c, "devices", "1", "reason", text, sizeof text),
              strstr(text, "kept by 1 exported buffer,") != NULL));
    ck_assert_uint_eq(monitors(), 1);
    ck_gpud_ok(gpud_buffer_free(c, b));
    ck_until(state_is(c, "1", "drained"));
    ck_assert_uint_eq(monitors(), 0);
    query_text(c, "devices", "0", "health", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "not known: device 1 is drained"));
    daemon_kill(&daemon_of_test);
    daemon_spawn(&daemon_of_test);
    ck_until(state_is(c, "1", "drained") && state_is(c, "0", "ready"));
    ck_assert_uint_eq(monitors(), 0);
    ck_assert_uint_eq(query_value(c, "devices", "1", "worker"), 0);
    ck_gpud_ok(gpud_control(c, "resume-device", "1"));
    ck_until(state_is(c, "1", "ready") && monitors() == 1);
    end(c);
    (void)unsetenv("CUDA_FAKE_NVML");
}
END_TEST

/* A process sees one instance, and the management library, which lists all, has the GPU open. So
 * the next front, without any worker to take over, knows the instances from the last one. */
START_TEST(instances_beside_a_drained_one_serve)
{
    char text[512];
    const char *drained = _i == 0 ? "0" : "2";
    (void)setenv("CUDA_FAKE_NVML", "mig=3", 1);
    gpud_client *c = begin("devices=3;mig=1", NULL, NULL);
    ck_until(query_value(c, "status", NULL, "serving") == 3 && monitors() == 1);
    ck_gpud_ok(gpud_control(c, "drain-device", drained));
    ck_until(state_is(c, drained, "drained"));
    pid_t launcher = daemon_launcher(&daemon_of_test);
    daemon_kill(&daemon_of_test);
    ck_assert_int_eq(kill(launcher, SIGKILL), 0);
    ck_until(daemon_launcher(&daemon_of_test) == 0);
    daemon_spawn(&daemon_of_test);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    ck_assert_uint_eq(query_value(c, "status", NULL, "devices"), 3);
    ck_assert(state_is(c, drained, "drained"));
    query_text(c, "devices", "1", "health", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "is drained, and the management library would open it"));
    ck_assert_uint_eq(monitors(), 0);
    ck_gpud_ok(gpud_control(c, "resume-device", drained));
    ck_until(query_value(c, "status", NULL, "serving") == 3 && monitors() == 1);
    end(c);
    (void)unsetenv("CUDA_FAKE_NVML");
}
END_TEST

/* More than one piece; a part of one buffer to a part of the other. Through memory that the workers
 * share, and where there is none through the client. */
START_TEST(a_copy_crosses_devices)
{
    enum { N = 3000000, FIRST = 1000, COUNT = 2500000 };
    static const char *const ways[] = {"jobs.arenas_max=1", "jobs.arenas_max=0"};
    gpud_client *c = begin("devices=2", "--set", ways[_i]);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    gpud_buffer a = {0};
    gpud_buffer b = {0};
    float *x = malloc(N * sizeof *x);
    float *y = malloc(N * sizeof *y);
    ck_assert(x != NULL && y != NULL);
    for (unsigned i = 0; i < N; i++) {
        x[i] = (float)i;
    }
    ck_gpud_ok(gpud_buffer_create_on(c, 0, gpud_shape_1d(GPUD_F32, N), 0, "a", &a));
    ck_gpud_ok(gpud_buffer_create_on(c, 1, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_ZERO, "b", &b));
    ck_gpud_ok(gpud_write(c, a, GPUD_F32, 0, N, x, NULL));
    ck_gpud_ok(gpud_copy(c, gpud_slice(b, FIRST, COUNT), gpud_slice(a, 7, COUNT)));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, N, y, NULL));
    ck_assert_float_eq(y[FIRST - 1], 0);
    for (unsigned i = 0; i < COUNT; i++) {
        if (y[FIRST + i] != x[7 + i]) {
            ck_abort_msg("element %u is %g", i, (double)y[FIRST + i]);
        }
    }
    ck_assert_float_eq(y[FIRST + COUNT], 0);
    ck_gpud_ok(gpud_copy(c, gpud_out(b), gpud_in(a)));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, N - 1, 1, y, NULL));
    ck_assert_float_eq(y[0], N - 1);
    ck_gpud_ok(gpud_buffer_seal(c, b)); /* no session can write it any more */
    ck_gpud_err(gpud_copy(c, gpud_out(b), gpud_in(a)), GPUD_ERR_SEALED);
    free(x);
    free(y);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpus");
    suite_add_loop(suite, all_eight_serve, 2);
    suite_add(suite, some_are_chosen_by_index);
    suite_add_loop(suite, some_are_chosen_by_uuid, 2);
    suite_add(suite, all_instances_serve);
    suite_add_loop(suite, gpus_beside_instances_serve, 2);
    suite_add(suite, a_drained_gpu_is_no_process_s);
    suite_add_loop(suite, instances_beside_a_drained_one_serve, 2);
    suite_add_loop(suite, a_copy_crosses_devices, 2);
    return system_main(suite);
}
