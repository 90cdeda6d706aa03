/*
 * Removes unused tenants, with their counters: those without a section in the settings, without
 * sessions, and without anything in the front or on a device. A tenant is removed some minutes
 * after the end of its last session, or sooner when there are too many tenants. Thread: the loop's.
 */
#ifndef FRONT_TENANTS_FORGET_H
#define FRONT_TENANTS_FORGET_H

#include "daemon/front/model/front.h"

#define TENANTS_MAX      4096u
#define TENANT_KEPT_NS   (600 * NS_PER_S)
#define TENANT_FORGET_NS (60 * NS_PER_S) /* between two checks of all tenants */
/* before the next check after one that found little room */
#define TENANT_ROOM_NS NS_PER_S

/* The tenant's last session ended. */
void forget_later(struct front *f, struct tenant *t);
/* Checks all tenants, if it is time to. */
void forget_tenants(struct front *f, uint64_t now);
/* Is there room for another tenant? With TENANTS_MAX tenants it removes unused ones at once. If
 * that frees little, the next turn forgets ended jobs of tenants without sessions, with their
 * unacknowledged answers, and a later request may find room. */
bool forget_room(struct front *f);

#endif
