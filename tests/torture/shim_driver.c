/* Calls of drivers: the double of CUDA's driver asks here (tests/fakecuda/core.c). */
#include "tests/torture/shim.h"

SHIM bool torture_driver_fails(const char *call);

SHIM bool torture_driver_fails(const char *call)
{
    return shim_fails(KIND_DRIVER, call, NULL);
}
