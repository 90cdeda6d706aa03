/* A separate file: a benchmark that does not use the list needs none of the kinds' libraries. */
#include <string.h>

#include "bench/common/echo.h"

static const struct echo_kind *const kinds[] = {
    &echo_unix, &echo_relay, &echo_nng,
#ifdef BENCH_GRPC
    &echo_grpc,
#endif
    &echo_gpud,
};

const struct echo_kind *echo_find(const char *name)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}
