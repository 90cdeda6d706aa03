/* Jobs for prometheus_test.py: metrics_load URL. All of them have a trace id. */
#include <gpud/gpud.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 4096u
#define JOBS  50u
#define TRACE 0xffu

static void need(int code, const char *what)
{
    if (code != 0) {
        (void)fprintf(stderr, "metrics_load: %s: %s\n", what, gpud_last_error()->text);
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    static float values[COUNT];
    gpud_client *c = NULL;
    gpud_buffer b = {0};
    gpud_kernel fill = {0};
    need(gpud_open(argc > 1 ? argv[1] : NULL, NULL, &c), "open");
    need(gpud_kernel_find(c, "fill", &fill), "kernel");
    need(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, COUNT), 0, NULL, &b), "buffer");
    need(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, values, NULL), "write");
    for (unsigned i = 0; i < JOBS; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_arg_with(gpud_slice(b, 0, COUNT), GPUD_OUT)};
        const gpud_submit_options options = {.size = sizeof options, .trace_id = TRACE};
        gpud_job *job = NULL;
        need(gpud_launch(c, fill, args, 2, NULL, &options, &job), "launch");
        need(gpud_wait(job, GPUD_FOREVER), "wait");
        gpud_job_free(job);
    }
    need(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, values, NULL), "read");
    gpud_close(c);
    return EXIT_SUCCESS;
}
