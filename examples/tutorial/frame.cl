#define GROUP 256

/* 5 x 5 points around each pixel, by their weights. */
__kernel void blur(__global const uchar *pixels, __global const float *weights,
                   __global float *blurred, int width, int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    float sum = 0;
    if (x >= width || y >= height) {
        return;
    }
    for (int v = -2; v <= 2; v++) {
        for (int u = -2; u <= 2; u++) {
            int from = clamp(y + v, 0, height - 1) * width + clamp(x + u, 0, width - 1);
            sum += weights[(v + 2) * 5 + u + 2] * pixels[from];
        }
    }
    blurred[y * width + x] = sum;
}

/* How far each point is from the background, which follows slowly; a sum for each group. */
__kernel void motion(__global const float *blurred, __global float *background,
                     __global float *sums, int count)
{
    __local float scratch[GROUP];
    int i = get_global_id(0);
    int me = get_local_id(0);
    float difference = 0;
    if (i < count) {
        difference = blurred[i] - background[i];
        background[i] += difference / 8;
    }
    scratch[me] = fabs(difference);
    for (int step = GROUP / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < step) {
            scratch[me] += scratch[me + step];
        }
    }
    if (me == 0) {
        sums[get_group_id(0)] = scratch[0];
    }
}
