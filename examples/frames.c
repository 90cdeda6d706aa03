/* A camera: frames of 2 MB go through a kernel of one's own with sealed weights, three at a time.
 */
#include "example.h"

#define PIXELS (512u * 1024u)
#define FRAMES 100
#define DEPTH  3

static const char source[] =
    "//@kernel weigh(in f32 frame[n], in f32 weight[n], out f32 result[n])  over n\n"
    "{ result[i] = frame[i] * weight[i]; }\n";

int main(void)
{
    static float frame[PIXELS];
    gpud_client *c;
    gpud_module module;
    gpud_kernel weigh;
    gpud_buffer weights;
    gpud_program *p;
    gpud_job *job[DEPTH] = {0};
    gpud_shape shape = gpud_shape_1d(GPUD_F32, PIXELS);

    must(gpud_open(NULL, NULL, &c));
    must(gpud_module_load(c, GPUD_LANG_DIALECT, source, sizeof source - 1, NULL, &module));
    must(gpud_module_kernel(c, module, "weigh", &weigh));
    must(gpud_buffer_create(c, shape, 0, "weights", &weights));
    must(gpud_fill(c, gpud_out(weights), gpud_f32(0.5f)));
    must(gpud_buffer_seal(c, weights));

    must(gpud_program_create(c, "frame", &p));
    gpud_arg image = gpud_program_param(p, "image", GPUD_PARAM_DATA, shape);
    gpud_arg in = gpud_program_temp(p, shape), out = gpud_program_temp(p, shape);
    gpud_arg args[] = {in, gpud_in(weights), out};
    must(gpud_program_write(p, in, image));
    must(gpud_program_launch(p, weigh, args, 3, NULL));
    int result = gpud_program_read(p, out);
    must(gpud_program_seal(p));

    for (unsigned i = 0; i < FRAMES + DEPTH; i++) {
        gpud_job **slot = &job[i % DEPTH];
        if (*slot != NULL) { /* the frame that was sent DEPTH frames ago */
            const void *data;
            size_t bytes;
            must(gpud_wait(*slot, GPUD_FOREVER));
            must(gpud_job_output(*slot, (uint32_t)result, 0, &data, &bytes));
            if (((const float *)data)[7] != (float)(i - DEPTH) * 0.5f) {
                return 1;
            }
            gpud_job_free(*slot);
        }
        frame[7] = (float)i;
        gpud_arg value = gpud_host_in(frame, PIXELS, GPUD_F32);
        must(i < FRAMES ? gpud_submit(c, p, &value, 1, NULL, slot) : 0);
    }
    (void)printf("%d frames\n", FRAMES);
    gpud_program_free(p);
    gpud_close(c);
    return 0;
}
