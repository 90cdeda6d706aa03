/* Wishes from the environment; one that is empty is none. Thread: any, where nobody changes the
 * environment meanwhile. */
#ifndef CLIENT_WIRE_ENVIRONMENT_H
#define CLIENT_WIRE_ENVIRONMENT_H

#include <stdint.h>

#include "common/err.h"

const char *environment_text(const char *name); /* NULL: none; not owned */
/* A whole number of digits up to `most`; `otherwise` without a wish. INVALID names the variable. */
int environment_number(const char *name, uint64_t most, uint64_t otherwise, uint64_t *ret_number,
                       struct err *e);

#endif
