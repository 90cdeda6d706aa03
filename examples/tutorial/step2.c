/* Step 2: what lasts stays on the device, and a frame is one job: write, two kernels, read. */
#include <gpud/gpud.h>

#include "frames.h"
#include "kernels.h"

struct service {
    gpud_client *client;
    gpud_program *program;
    gpud_buffer weights, background;
};

static void buffers(struct service *s)
{
    float weights[25];
    frame_weights(weights);
    must(gpud_buffer_create(s->client, gpud_shape_1d(GPUD_F32, 25), 0, "weights", &s->weights));
    must(gpud_write(s->client, s->weights, GPUD_F32, 0, GPUD_REST, weights, NULL));
    must(gpud_buffer_seal(s->client, s->weights));
    must(gpud_buffer_create(s->client, gpud_shape_1d(GPUD_F32, PIXELS), GPUD_BUFFER_ZERO,
                            "background", &s->background));
}

static void program(struct service *s, const struct kernels *k)
{
    const gpud_shape floats = gpud_shape_1d(GPUD_F32, PIXELS);
    const gpud_grid points = {.size = sizeof points, .global = {WIDTH, HEIGHT}, .local = {16, 16}};
    const gpud_grid groups = {.size = sizeof groups, .global = {PIXELS}, .local = {GROUP}};
    gpud_program *p;
    must(gpud_program_create(s->client, "frame", &p));
    gpud_arg frame =
        gpud_program_param(p, "frame", GPUD_PARAM_DATA, gpud_shape_1d(GPUD_U8, PIXELS));
    gpud_arg background = gpud_program_param(p, "background", GPUD_PARAM_BUFFER, floats);
    gpud_arg pixels = gpud_program_temp(p, gpud_shape_1d(GPUD_U8, PIXELS));
    gpud_arg blurred = gpud_program_temp(p, floats);
    gpud_arg sums = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, GROUPS));
    const gpud_arg first[] = {pixels, gpud_in(s->weights), gpud_arg_with(blurred, GPUD_OUT),
                              gpud_i32(WIDTH), gpud_i32(HEIGHT)};
    const gpud_arg second[] = {blurred, background, gpud_arg_with(sums, GPUD_OUT),
                               gpud_i32(PIXELS)};
    must(gpud_program_write(p, pixels, frame));
    must(gpud_program_launch(p, k->blur, first, 5, &points));
    must(gpud_program_launch(p, k->motion, second, 4, &groups));
    must(gpud_program_read(p, sums)); /* step 3 */
    must(gpud_program_seal(p));
    s->program = p;
}

static float frame(struct service *s, const uint8_t *pixels)
{
    const gpud_arg args[] = {gpud_host_in(pixels, PIXELS, GPUD_U8), gpud_inout(s->background)};
    gpud_job *job;
    const void *sums;
    size_t bytes;
    must(gpud_run(s->client, s->program, args, 2, NULL, &job));
    must(gpud_job_output(job, 3, 0, &sums, &bytes));
    float mean = frame_mean(sums);
    gpud_job_free(job);
    return mean;
}

int main(int argc, char **argv)
{
    static uint8_t pixels[PIXELS];
    struct service s;
    struct kernels k;
    must(gpud_open(NULL, NULL, &s.client));
    kernels_load(s.client, argc > 1 ? argv[1] : "frame.cl", &k);
    buffers(&s);
    program(&s, &k);
    for (int i = 0; frame_read(pixels); i++) {
        (void)printf("%d %g\n", i, (double)frame(&s, pixels));
    }
    gpud_program_free(s.program);
    gpud_close(s.client);
    return 0;
}
