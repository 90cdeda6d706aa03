/* Reports the state to the service manager by its datagram socket. Without one it does nothing.
 * Never blocks. */
#ifndef LAUNCHER_NOTIFY_H
#define LAUNCHER_NOTIFY_H

#include <stdint.h>

void notify_send(const char *state); /* "READY=1" */
/* Interval of "WATCHDOG=1", ns; 0: not wanted. */
uint64_t notify_watchdog_ns(void);

#endif
