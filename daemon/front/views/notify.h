/* What the service manager is told (sd_notify), where there is one. Thread: the loop's. */
#ifndef FRONT_VIEWS_NOTIFY_H
#define FRONT_VIEWS_NOTIFY_H

#include "daemon/front/model/front.h"

void notify_ready(unsigned devices);
void notify_status(const struct front *f); /* how many devices serve, and what is wrong */
void notify_watchdog(void);
void notify_starting(uint64_t ns);     /* not ready yet, and alive: is given so much time more */
bool notify_expected(void);            /* is a service manager waiting to hear that it is ready? */
uint64_t notify_watchdog_period(void); /* how often, ns; NS_NEVER: not at all */
void notify_reloading(void);
void notify_stopping(void);

#endif
