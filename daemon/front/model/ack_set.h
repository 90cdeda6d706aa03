/*
 * A set of request numbers, stored as ranges: numbers whose answers a client has, or whose answers
 * a front knows when it starts. It has at most one range more than the client has unanswered
 * requests. Pure.
 */
#ifndef FRONT_MODEL_ACK_SET_H
#define FRONT_MODEL_ACK_SET_H

#include "common/err.h"
#include "proto/codec.h"

struct ack_range {
    uint64_t first;
    uint64_t end; /* exclusive */
};

struct ack_set {
    struct ack_range *ranges; /* owned; ascending, not adjacent */
    unsigned count;
};

/* Adds a number above all numbers in the set. `ranges` must have room for one more range. */
void ack_set_add(struct ack_set *t, uint64_t number);
/* Reads SPAN records. Ignores a record that is not above earlier records, or whose numbers exceed
 * UINT64_MAX / 2. ERR_NOMEM. */
int ack_set_read(struct proto_list spans, struct ack_set *ret_set, struct err *e);
void ack_set_finish(struct ack_set *t); /* empty afterwards */
/* The end of the range that contains the number; 0: no range does. */
uint64_t ack_set_end(const struct ack_set *t, uint64_t number);
/* The end of the last range; 0: the set is empty. */
uint64_t ack_set_last(const struct ack_set *t);

#endif
