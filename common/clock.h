/* Monotonic time. Deadlines and durations are nanoseconds; wall-clock time is never used for them.
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

uint64_t clock_now_ns(void);  /* CLOCK_MONOTONIC; the same for all processes of the host */
uint64_t clock_wall_ns(void); /* CLOCK_REALTIME since the epoch; for display, and to
                               * distinguish starts */
uint64_t ns_add(uint64_t a, uint64_t b); /* saturates at UINT64_MAX ("never") */
#define NS_NEVER UINT64_MAX

#endif
