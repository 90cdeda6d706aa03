/* IEEE 754 half precision, round to nearest even. Pure. */
#ifndef GPUCTL_INPUT_HALF_H
#define GPUCTL_INPUT_HALF_H

#include <stdint.h>

uint16_t half_from_double(double value);
double half_to_double(uint16_t bits);

#endif
