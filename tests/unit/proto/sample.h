/*
 * Messages for tests: random ones of any schema, comparison, and the property that whatever was
 * decoded can be encoded and decoded again. Thread: one per struct sample.
 */
#ifndef TESTS_PROTO_SAMPLE_H
#define TESTS_PROTO_SAMPLE_H

#include "proto/codec.h"

/* Room for any message or record. */
struct sample_value {
    uint64_t words[64];
};

extern const struct schema *const sample_schemas[]; /* every message and frame, NULL at the end */

struct sample {
    uint64_t state; /* of the generator: the seed decides all */
    void **owned;   /* what the messages made so far refer to */
    size_t count;
    bool small; /* short texts and lists only */
};

void sample_init(struct sample *s, uint64_t seed, bool small);
void sample_finish(struct sample *s); /* frees all that was made */
uint64_t sample_next(struct sample *s);
void sample_make(struct sample *s, const struct schema *schema, struct sample_value *ret_value);

bool sample_equal(const struct schema *schema, const struct sample_value *a,
                  const struct sample_value *b);

/* Decodes `message`; if it is accepted, encodes it and decodes that: both must be equal, and a
 * second encoding the same as the first. NULL if all is well, also when it is refused; else what
 * is wrong. ret_accepted may be NULL. */
const char *sample_check(const struct schema *schema, struct bytes message, bool *ret_accepted);

#endif
