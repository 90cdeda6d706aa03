/* camera FROM TO: these frames, without the last one, as bytes. camera check N: reads the lines of
 * a service for the first N frames and compares them with what the CPU computes. */
#include <math.h>
#include <string.h>

#include "frames.h"

/* A bright square goes over a slope of grey. */
static void draw(int frame, uint8_t *pixels)
{
    for (int i = 0; i < PIXELS; i++) {
        int x = i % WIDTH - frame * 8 % WIDTH;
        int y = i / WIDTH - HEIGHT / 2;
        bool inside = x >= 0 && x < 64 && y >= 0 && y < 64;
        pixels[i] = (uint8_t)(inside ? 255 : i % WIDTH / 5);
    }
}

static int limit(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static float blur(const uint8_t *pixels, const float *weights, int x, int y)
{
    float sum = 0;
    for (int i = 0; i < 25; i++) {
        int from = limit(y + i / 5 - 2, HEIGHT - 1) * WIDTH + limit(x + i % 5 - 2, WIDTH - 1);
        sum += weights[i] * (float)pixels[from];
    }
    return sum;
}

static float motion(const uint8_t *pixels, float *background)
{
    float weights[25];
    double sum = 0;
    frame_weights(weights);
    for (int i = 0; i < PIXELS; i++) {
        float difference = blur(pixels, weights, i % WIDTH, i / WIDTH) - background[i];
        background[i] += difference / 8;
        sum += fabs((double)difference);
    }
    return (float)(sum / PIXELS);
}

/* A line: the frame's number and its motion, or "dropped"; "anew" where the background began anew.
 */
static int check(int frames)
{
    static uint8_t pixels[PIXELS];
    static float background[PIXELS];
    int dropped = 0;
    int anew = 0;
    char line[80];
    for (int i = 0; i < frames; i++) {
        char *rest = line;
        if (fgets(line, sizeof line, stdin) == NULL || strtol(line, &rest, 10) != i) {
            (void)printf("frame %d: no answer\n", i);
            return 1;
        }
        if (strstr(rest, "dropped") != NULL) {
            dropped++;
            continue;
        }
        if (strstr(rest, "anew") != NULL) {
            memset(background, 0, sizeof background);
            anew++;
        }
        draw(i, pixels);
        float wanted = motion(pixels, background);
        if (fabsf(strtof(rest, NULL) - wanted) > wanted * 1e-4f) {
            (void)printf("frame %d:%s is not %g\n", i, rest, (double)wanted);
            return 1;
        }
    }
    (void)printf("%d frames, %d dropped, the others as on the CPU; %d times anew\n", frames,
                 dropped, anew);
    return 0;
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
    static uint8_t pixels[PIXELS];
    if (argc == 3 && strcmp(argv[1], "check") == 0) {
        return check(number(argv[2]));
    }
    if (argc != 3) {
        (void)fprintf(stderr, "usage: camera FROM TO | camera check N\n");
        return 2;
    }
    for (int i = number(argv[1]); i < number(argv[2]); i++) {
        draw(i, pixels);
        if (fwrite(pixels, sizeof pixels, 1, stdout) != 1 || fflush(stdout) != 0) {
            return 1;
        }
    }
    return 0;
}
