#include "bench/common/echo.h"

#include <stdlib.h>

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
