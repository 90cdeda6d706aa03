/*
 * What the demonstration's program computes, computed here in double precision, and how far a
 * single-precision result may be from it. Pure.
 */
#ifndef GPUCTL_DEMO_REFERENCE_H
#define GPUCTL_DEMO_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuctl/demo/pixels.h"

/* Edges of the picture: luma, Gaussian blur of `sigma`, length of Sobel's gradient, divided by the
 * greatest one. width * height values of 0 … 1, to be freed; NULL if memory is out. *ret_most is
 * the greatest length. */
double *reference_edges(const struct image *photo, double sigma, double *ret_most);

/* How far a value of the same edges in single precision may be off; reference.c derives it. */
double reference_bound(double sigma, double most);

#endif
