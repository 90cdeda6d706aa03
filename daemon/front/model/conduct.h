/*
 * The conduct of a tenant towards others: the strikes against it (sched/conduct.h).
 */
#ifndef FRONT_MODEL_CONDUCT_H
#define FRONT_MODEL_CONDUCT_H

#include <stdint.h>

struct conduct {
    unsigned strikes;  /* at since_ns */
    uint64_t since_ns; /* of the last strike, or the end of its pause */
};

#endif
