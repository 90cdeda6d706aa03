/* A camera: frames of 2 MB go through a user's kernel with sealed weights, three at a time. They
 * are in memory shared with the daemon, so only the device copies them. */
#include "example.h"

#define PIXELS (512u * 1024u)
#define BYTES  (PIXELS * sizeof(float))
#define FRAMES 100
#define DEPTH  3

static const char source[] =
    "//@kernel weigh(in f32 frame[n], in f32 weight[n], out f32 result[n])  over n\n"
    "{ result[i] = frame[i] * weight[i]; }\n";

int main(void)
{
    gpud_client *c;
    gpud_module module;
    gpud_kernel weigh;
    gpud_buffer weights;
    gpud_program *p;
    gpud_job *job[DEPTH] = {0};
    float *frame[DEPTH], *result[DEPTH];
    gpud_shape shape = gpud_shape_1d(GPUD_F32, PIXELS);

    must(gpud_open(NULL, NULL, &c));
    must(gpud_module_load(c, GPUD_LANG_DIALECT, source, sizeof source - 1, NULL, &module));
    must(gpud_module_kernel(c, module, "weigh", &weigh));
    must(gpud_buffer_create(c, shape, 0, "weights", &weights));
    must(gpud_fill(c, gpud_out(weights), gpud_f32(0.5f)));
    must(gpud_buffer_seal(c, weights));
    for (unsigned i = 0; i < DEPTH; i++) {
        must(gpud_host_alloc(c, BYTES, (void **)&frame[i]));
        must(gpud_host_alloc(c, BYTES, (void **)&result[i]));
    }

    must(gpud_program_create(c, "frame", &p));
    gpud_arg in = gpud_program_param(p, "frame", GPUD_PARAM_DATA, shape);
    gpud_arg out = gpud_program_param(p, "result", GPUD_PARAM_DATA, shape);
    gpud_arg args[] = {in, gpud_in(weights), out};
    must(gpud_program_launch(p, weigh, args, 3, NULL));
    must(gpud_program_seal(p));

    for (unsigned i = 0; i < FRAMES + DEPTH; i++) {
        unsigned at = i % DEPTH;
        if (job[at] != NULL) { /* the frame sent DEPTH frames ago */
            must(gpud_wait(job[at], GPUD_FOREVER));
            if (result[at][7] != (float)(i - DEPTH) * 0.5f) {
                return 1;
            }
            gpud_job_free(job[at]);
        }
        frame[at][7] = (float)i; /* no job uses this frame now */
        gpud_arg values[] = {gpud_host_in(frame[at], PIXELS, GPUD_F32),
                             gpud_host_out(result[at], PIXELS, GPUD_F32)};
        must(i < FRAMES ? gpud_submit(c, p, values, 2, NULL, &job[at]) : 0);
    }
    (void)printf("%d frames\n", FRAMES);
    gpud_program_free(p);
    gpud_close(c);
}
