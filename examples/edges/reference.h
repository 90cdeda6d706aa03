/*
 * The same edges, computed by the CPU in double precision, and a bound of the error of a result in
 * single precision. Pure.
 */
#ifndef EDGES_REFERENCE_H
#define EDGES_REFERENCE_H

#include "edges/image.h"

/* Edges of the photograph: luma, Gaussian blur of `sigma` pixels, length of Sobel's gradient,
 * divided by the greatest length. width * height values of 0 … 1, freed by the caller; NULL if
 * memory is out. *ret_most is the greatest length, not yet divided. */
double *reference_edges(const struct image *photo, double sigma, double *ret_most);

/* The largest error of such a value in single precision; reference.c derives it. */
double reference_bound(double sigma, double most);

#endif
