/* Reports the state to the service manager through its datagram socket. Does nothing without a
 * manager. Never blocks. */
#ifndef LAUNCHER_NOTIFY_H
#define LAUNCHER_NOTIFY_H

#include <stdint.h>

void notify_send(const char *state); /* e.g. "READY=1" */
/* Interval of "WATCHDOG=1" in ns; 0: not wanted. */
uint64_t notify_watchdog_ns(void);

#endif
