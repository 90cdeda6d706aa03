/* What gpuctl tells while a call hangs. Blocks for some seconds. Thread: the storm's. */
#ifndef STORM_WITNESS_H
#define STORM_WITNESS_H

#include "tests/system/harness/harness.h"

/* Appends to the daemon's log: its state, and why each unfinished job waits. */
void witness(const struct daemon *d);

#endif
