/*
 * Numbers whose answers a client says that it has, as ranges: however many numbers they are, there
 * are no more ranges than requests of the client that are not answered, and one. Also the numbers
 * whose answers a front knows when it starts. Pure.
 */
#ifndef FRONT_MODEL_TAKEN_H
#define FRONT_MODEL_TAKEN_H

#include "common/err.h"
#include "proto/codec.h"

struct taken_range {
    uint64_t first;
    uint64_t end; /* behind the last */
};

struct taken {
    struct taken_range *ranges; /* owned; ascending, apart */
    unsigned count;
};

/* Adds a number behind all that are in it. Its ranges have room for one more. */
void taken_add(struct taken *t, uint64_t number);
/* Of SPAN records. One that does not come behind those before it, or ends where no number can be,
 * is not believed. ERR_NOMEM. */
int taken_read(struct proto_list spans, struct taken *ret_taken, struct err *e);
void taken_finish(struct taken *t); /* of none again */
/* Where the range ends that the number lies in, which is then more than it; 0: it is in none. */
uint64_t taken_end(const struct taken *t, uint64_t number);
/* The end of the last one; 0: there is none. */
uint64_t taken_last(const struct taken *t);

#endif
