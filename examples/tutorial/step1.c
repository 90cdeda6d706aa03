/* Step 1: the kernels through gpud. Each call takes arrays of the host and brings them back. */
#include <gpud/gpud.h>

#include "frames.h"
#include "kernels.h"

static float frame(gpud_client *c, const struct kernels *k, uint8_t *pixels)
{
    static float weights[25], blurred[PIXELS], background[PIXELS], sums[GROUPS];
    const gpud_grid points = {.size = sizeof points, .global = {WIDTH, HEIGHT}, .local = {16, 16}};
    const gpud_grid groups = {.size = sizeof groups, .global = {PIXELS}, .local = {GROUP}};
    frame_weights(weights);
    const gpud_arg first[] = {
        gpud_host_in(pixels, PIXELS, GPUD_U8), gpud_host_in(weights, 25, GPUD_F32),
        gpud_host_out(blurred, PIXELS, GPUD_F32), gpud_i32(WIDTH), gpud_i32(HEIGHT)};
    must(gpud_call(c, k->blur, first, 5, &points));
    const gpud_arg second[] = {gpud_host_in(blurred, PIXELS, GPUD_F32),
                               gpud_host_inout(background, PIXELS, GPUD_F32),
                               gpud_host_out(sums, GROUPS, GPUD_F32), gpud_i32(PIXELS)};
    must(gpud_call(c, k->motion, second, 4, &groups));
    return frame_mean(sums);
}

int main(int argc, char **argv)
{
    static uint8_t pixels[PIXELS];
    gpud_client *c;
    struct kernels k;
    must(gpud_open(NULL, NULL, &c));
    kernels_load(c, argc > 1 ? argv[1] : "frame.cl", &k);
    for (int i = 0; frame_read(pixels); i++) {
        (void)printf("%d %g\n", i, (double)frame(c, &k, pixels));
    }
    gpud_close(c);
    return 0;
}
