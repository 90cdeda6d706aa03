/*
 * Which declarations of a CUDA C source device code needs: what is given to the device and what
 * that mentions, by name and transitively. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_STAY_H
#define BACKEND_CUDA_SOURCE_STAY_H

#include "daemon/backend/cuda/source/item.h"

/* Sets `kept` of each item that stays; `gone` says of each token of the code whether it goes in any
 * case; `expressions` name instances of kernels, whose types stay. false: what is left could mean
 * another thing without the rest, or there is no memory. */
bool stay_find(struct items *items, const bool *gone, const char *const *expressions,
               unsigned expression_count);

#endif
