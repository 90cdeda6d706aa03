/*
 * How well times were predicted: the distribution of |predicted - actual| / actual over recent
 * jobs, in classes of a quarter of an octave. Pure data of a fixed size. Thread: the loop's.
 */
#ifndef FRONT_MODEL_ACCURACY_H
#define FRONT_MODEL_ACCURACY_H

#include <stdint.h>

#define ACCURACY_CLASSES 64u

/* Zeroed: nothing was predicted. */
struct accuracy {
    uint32_t count[ACCURACY_CLASSES]; /* by error in thousandths; halved now and then */
    uint32_t total;
};

/* A time that was predicted, and what became of it. actual 0: nothing happens. */
void accuracy_note(struct accuracy *a, uint64_t predicted_ns, uint64_t actual_ns);
/* The error, in parts per million, that so many percent of predictions did not exceed, to about a
 * tenth of it. 0 if nothing was predicted. */
uint64_t accuracy_ppm(const struct accuracy *a, unsigned percent);

#endif
