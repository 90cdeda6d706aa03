/* Settings from the environment. An empty variable counts as unset. Thread: any, while no thread
 * changes the environment. */
#ifndef CLIENT_WIRE_ENVIRONMENT_H
#define CLIENT_WIRE_ENVIRONMENT_H

#include <stdint.h>

#include "common/err.h"

const char *environment_text(const char *name); /* NULL: unset; not owned */
/* A decimal number up to `most`; `otherwise` if unset. INVALID names the variable. */
int environment_number(const char *name, uint64_t most, uint64_t otherwise, uint64_t *ret_number,
                       struct err *e);

#endif
