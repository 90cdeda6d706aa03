/* Tells the service manager how things are, by its datagram socket; nothing happens without one.
 * Never blocks. */
#ifndef LAUNCHER_NOTIFY_H
#define LAUNCHER_NOTIFY_H

#include <stdint.h>

void notify_send(const char *state); /* "READY=1" */
/* How often "WATCHDOG=1" is to be sent, ns; 0 = not wanted. */
uint64_t notify_watchdog_ns(void);

#endif
