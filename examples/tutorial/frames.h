/* What the services of the tutorial share, whatever computes for them: frames, files, weights. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH  320
#define HEIGHT 240
#define PIXELS (WIDTH * HEIGHT)
#define GROUP  256 /* as in the kernels */
#define GROUPS (PIXELS / GROUP)

/* 1 4 6 4 1, in both directions. */
static inline void frame_weights(float weights[25])
{
    static const float line[] = {1, 4, 6, 4, 1};
    for (int i = 0; i < 25; i++) {
        weights[i] = line[i / 5] * line[i % 5] / 256;
    }
}

/* The next frame from the standard input; false at its end. */
static inline bool frame_read(uint8_t *pixels)
{
    return fread(pixels, PIXELS, 1, stdin) == 1;
}

/* The mean motion of a point, from the sums of the groups. */
static inline float frame_mean(const float *sums)
{
    float sum = 0;
    for (int i = 0; i < GROUPS; i++) {
        sum += sums[i];
    }
    return sum / PIXELS;
}

/* A whole file, for the caller to free; ends the program if it cannot be read. */
static inline char *file_read(const char *name, size_t *ret_bytes)
{
    FILE *file = fopen(name, "rb");
    char *text = (char *)malloc(1 << 20);
    *ret_bytes = file != NULL && text != NULL ? fread(text, 1, 1 << 20, file) : 0;
    if (*ret_bytes == 0) {
        perror(name);
        exit(1);
    }
    (void)fclose(file);
    return text;
}

#endif
