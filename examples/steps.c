/* A program of 20 steps on resident buffers, sent once and replayed with another parameter. */
#include "example.h"

#define N     100000u
#define STEPS 20

int main(void)
{
    gpud_client *c;
    gpud_kernel axpy;
    gpud_buffer x, y;
    gpud_program *p;
    static float result[N];
    gpud_shape shape = gpud_shape_1d(GPUD_F32, N);

    must(gpud_open(NULL, NULL, &c));
    must(gpud_kernel_find(c, "axpy", &axpy));
    must(gpud_buffer_create(c, shape, 0, "x", &x));
    must(gpud_buffer_create(c, shape, 0, "y", &y));
    must(gpud_fill(c, gpud_out(x), gpud_f32(1)));
    must(gpud_fill(c, gpud_out(y), gpud_f32(0)));

    must(gpud_program_create(c, "integrate", &p));
    gpud_arg dt = gpud_program_param(p, "dt", GPUD_PARAM_SCALAR, gpud_shape_1d(GPUD_F32, 1));
    for (int i = 0; i < STEPS; i++) {
        gpud_arg args[] = {dt, gpud_in(x), gpud_inout(y)};
        must(gpud_program_launch(p, axpy, args, 3, NULL));
    }
    must(gpud_program_seal(p));

    for (int i = 1; i <= 3; i++) {
        gpud_arg value = gpud_f32((float)i);
        gpud_job *job;
        must(gpud_run(c, p, &value, 1, NULL, &job));
        gpud_job_times times = {.size = sizeof times};
        must(gpud_job_timing(job, &times));
        (void)printf("dt %d: %d steps in %.3f ms\n", i, STEPS, (double)times.executed_ns / 1e6);
        gpud_job_free(job);
    }
    must(gpud_read(c, y, GPUD_F32, 0, GPUD_REST, result, NULL));
    (void)printf("y = %g\n", (double)result[N - 1]);
    gpud_program_free(p);
    gpud_close(c);
    return result[0] == 120 && result[N - 1] == 120 ? 0 : 1;
}
