/*
 * The Mandelbrot set as gray levels: one work item for each pixel of a width x height picture whose
 * centre and width in the complex plane are given.
 */
#ifndef MAX_ITERATIONS
#define MAX_ITERATIONS 255
#endif

__kernel void mandelbrot(__global uchar *picture, int width, int height, float centre_x,
                         float centre_y, float span)
{
    int column = get_global_id(0);
    int row = get_global_id(1);
    if (column >= width || row >= height) {
        return;
    }
    float scale = span / (float)width;
    float2 c = (float2)(centre_x + scale * ((float)column - 0.5f * (float)width),
                        centre_y + scale * ((float)row - 0.5f * (float)height));
    float2 z = c;
    int steps = 0;
    while (steps < MAX_ITERATIONS && dot(z, z) <= 4.0f) {
        z = (float2)(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
        steps++;
    }
    picture[row * width + column] = (uchar)(255 - 255 * steps / MAX_ITERATIONS);
}
