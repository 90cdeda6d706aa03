/* Reports to the service manager, if there is one (sd_notify). Thread: the loop's. */
#ifndef FRONT_VIEWS_NOTIFY_H
#define FRONT_VIEWS_NOTIFY_H

#include "daemon/front/model/front.h"

void notify_ready(unsigned devices);
void notify_status(const struct front *f); /* how many devices serve, and the diagnosis */
void notify_watchdog(void);
void notify_starting(uint64_t ns); /* asks for this much more time to get ready */
bool notify_expected(void);        /* a service manager waits for READY */
/* ns between two calls of notify_watchdog; NS_NEVER: the service manager wants none */
uint64_t notify_watchdog_period(void);
void notify_reloading(void);
void notify_stopping(void);

#endif
