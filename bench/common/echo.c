#include "bench/common/echo.h"

#include <stdlib.h>
#include <string.h>

static const struct echo_kind *const kinds[] = {
    &echo_unix,
    &echo_nng,
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

void bench_say(void)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "bench: ");
}

_Noreturn void bench_fail(void)
{
    (void)fprintf(stderr, "\n");
    _Exit(EXIT_FAILURE);
}
