/* Jobs of a daemon that uses the double of the CUDA driver, and how its devices are. */
#ifndef SYSTEM_CUDA_JOBS_H
#define SYSTEM_CUDA_JOBS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/double.h"

#define ITEMS    64u
#define NO_NVRTC 77 /* exit status of a program that is skipped */

/* Prepares a daemon whose workers see these devices. The double writes calls that it objects to
 * into a file of the daemon's folder. */
static inline void cuda_prepare(struct daemon *d, const char *script, const char *option,
                                const char *value)
{
    daemon_prepare(d, "--backend", "cuda", option, value, NULL);
    double_state(d);
    double_prepare(d, script);
}

/* The same, its start, and a client. */
static inline gpud_client *cuda_begin(struct daemon *d, const char *script, const char *option,
                                      const char *value)
{
    cuda_prepare(d, script, option, value);
    daemon_spawn(d);
    daemon_wait_ready(d);
    return client_open(d->url);
}

struct axpy {
    gpud_job *job;
    float x[3], y[3];
};

static inline void axpy_start(gpud_client *c, struct axpy *a, float factor)
{
    *a = (struct axpy){.x = {1, 2, 3}, .y = {10, 20, 30}};
    gpud_arg args[] = {gpud_f32(factor), gpud_host(a->x, 3, GPUD_F32),
                       gpud_host(a->y, 3, GPUD_F32)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &a->job));
}

static inline void axpy_check(struct axpy *a, float factor)
{
    ck_gpud_ok(gpud_wait(a->job, 2 * PATIENCE));
    ck_assert_float_eq(a->y[2], 30 + 3 * factor);
    gpud_job_free(a->job);
}

static inline void unharmed(gpud_client *c)
{
    struct axpy a;
    axpy_start(c, &a, 2);
    axpy_check(&a, 2);
}

static inline gpud_buffer filled(gpud_client *c, float value)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, ITEMS), 0, "values", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(value)));
    return b;
}

static inline void state_of(gpud_client *c, const char *device, char *out, size_t size)
{
    query_text(c, "devices", device, "state", out, size);
}

static inline void wait_state(gpud_client *c, const char *device, const char *want)
{
    char text[64];
    ck_until((state_of(c, device, text, sizeof text), strcmp(text, want) == 0));
}

static inline void reason_holds(gpud_client *c, const char *device, const char *want)
{
    char text[1024];
    query_text(c, "devices", device, "reason", text, sizeof text);
    ck_assert_msg(strstr(text, want) != NULL, "\"%s\" is not in: %s", want, text);
}

/* In a process of its own: what such a library leaves behind is not ours. */
static inline bool nvrtc_there(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so",
                                        "/usr/local/cuda/lib/libnvrtc.so"};
    int status = 1;
    pid_t pid = fork();
    for (unsigned i = 0; i < sizeof names / sizeof names[0] && pid == 0; i++) {
        if (dlopen(names[i], RTLD_LAZY | RTLD_LOCAL) != NULL) {
            _exit(0);
        }
    }
    if (pid == 0) {
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* system_main(), if built-in kernels can be compiled where they are not built yet. */
static inline int nvrtc_main(Suite *suite)
{
    if (!nvrtc_there()) {
        (void)fprintf(stderr, "there is no libnvrtc to compile the built-in kernels: skipped\n");
        srunner_free(srunner_create(suite));
        return NO_NVRTC;
    }
    return system_main(suite);
}

#endif
