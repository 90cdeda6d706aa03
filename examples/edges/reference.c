#include "edges/reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define RADIUS_MAX 64 /* pixels of blur to each side */

struct plane {
    const double *in;
    uint32_t width;
    uint32_t height;
};

/* A pixel; beyond an edge, the nearest pixel of the edge. */
static double at(const struct plane *p, int64_t x, int64_t y)
{
    int64_t column = x < 0 ? 0 : x >= p->width ? p->width - 1 : x;
    int64_t row = y < 0 ? 0 : y >= p->height ? p->height - 1 : y;
    return p->in[row * p->width + column];
}

static void gray(const struct image *photo, double *out)
{
    size_t count = (size_t)photo->width * photo->height;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *rgb = photo->pixels + 3 * i;
        out[i] = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    }
}

static void blur(const struct plane *p, double sigma, bool rows, double *out)
{
    double weight[2 * RADIUS_MAX + 1];
    int radius = (int)fmin(ceil(3 * sigma), RADIUS_MAX);
    double total = 0;
    for (int d = -radius; d <= radius; d++) {
        weight[d + radius] = exp(-0.5 * d * d / (sigma * sigma));
        total += weight[d + radius];
    }
    for (uint32_t y = 0; y < p->height; y++) {
        for (uint32_t x = 0; x < p->width; x++) {
            double sum = 0;
            for (int d = -radius; d <= radius; d++) {
                double value = rows ? at(p, (int64_t)x + d, y) : at(p, x, (int64_t)y + d);
                sum += weight[d + radius] * value;
            }
            out[(size_t)y * p->width + x] = sum / total;
        }
    }
}

static double sobel(const struct plane *p, double *out)
{
    double most = 0;
    for (int64_t y = 0; y < p->height; y++) {
        for (int64_t x = 0; x < p->width; x++) {
            double gx = at(p, x + 1, y - 1) - at(p, x - 1, y - 1) +
                        2 * (at(p, x + 1, y) - at(p, x - 1, y)) + at(p, x + 1, y + 1) -
                        at(p, x - 1, y + 1);
            double gy = at(p, x - 1, y + 1) - at(p, x - 1, y - 1) +
                        2 * (at(p, x, y + 1) - at(p, x, y - 1)) + at(p, x + 1, y + 1) -
                        at(p, x + 1, y - 1);
            double length = sqrt(gx * gx + gy * gy);
            out[y * p->width + x] = length;
            most = fmax(most, length);
        }
    }
    return most;
}

double *reference_edges(const struct image *photo, double sigma, double *ret_most)
{
    size_t count = (size_t)photo->width * photo->height;
    double *a = malloc(count * sizeof *a);
    double *b = malloc(count * sizeof *b);
    if (a == NULL || b == NULL) {
        free(a);
        free(b);
        return NULL;
    }
    struct plane p = {a, photo->width, photo->height};
    gray(photo, a);
    blur(&p, sigma, true, b);
    p.in = b;
    blur(&p, sigma, false, a);
    p.in = a;
    double most = sobel(&p, b);
    for (size_t i = 0; i < count && most > 0; i++) {
        b[i] /= most;
    }
    free(a);
    *ret_most = most;
    return b;
}

/*
 * u = 2^-24, the relative error of one rounding. With r = ceil(3 sigma), to first order:
 *   luma                 3 products, 2 sums, 3 constants                       8 u
 *   weights              exp of at most 4.5 in size: 4 ulp and 3 · 4.5 u from its argument; the
 *                        sum of r of them, a division of 2.5 ulp           30 + r u
 *   blur, each of two    r + 1 products and 2 r sums of positive terms     2 r + 2 u
 * so each blurred pixel is off by at most b = 255 (8 + 2 (30 + r + 2 r + 2)) u. Each component of
 * the gradient weighs pixels by 8 in total, so its length is off by at most 8 √2 b, and roundings
 * of its own on values of at most 8 · 255. The greatest length is off by as much: the quotient by
 * twice that over the greatest length.
 */
double reference_bound(double sigma, double most)
{
    double u = 0x1p-24;
    double r = ceil(3 * sigma);
    double pixel = 255 * (8 + 2 * (32 + 3 * r)) * u;
    double length = 8 * sqrt(2) * pixel + 8 * 255 * 16 * u;
    return most > 0 ? 2 * length / most + 4 * u : 0;
}
