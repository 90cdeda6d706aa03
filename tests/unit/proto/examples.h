/* The example messages of PROTOCOL.md, by the names of their blocks there. */
#ifndef TESTS_PROTO_EXAMPLES_H
#define TESTS_PROTO_EXAMPLES_H

#include "common/bytes.h"

/* Writes the i-th example's bytes; returns its name, NULL behind the last one. */
const char *example_make(unsigned i, struct capbuf *out);

#endif
