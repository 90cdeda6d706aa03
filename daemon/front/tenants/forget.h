/*
 * Tenants that nobody needs any more: without a section in the settings, without sessions, and with
 * nothing of theirs in the front or on a device. They go some minutes after their last session
 * ended, with what was counted of them, and before that when there are too many. Thread: the
 * loop's.
 */
#ifndef FRONT_TENANTS_FORGET_H
#define FRONT_TENANTS_FORGET_H

#include "daemon/front/model/front.h"

#define TENANTS_MAX      4096u
#define TENANT_KEPT_NS   (600 * NS_PER_S)
#define TENANT_FORGET_NS (60 * NS_PER_S) /* between two looks */
#define TENANT_ROOM_NS   NS_PER_S        /* between two that found little room */

/* Its last session ended. */
void forget_later(struct front *f, struct tenant *t);
/* Looks at all of them if it is time to. */
void forget_tenants(struct front *f, uint64_t now);
/* Is there room for another one? Looks at all of them, however long they are without sessions, when
 * there are TENANTS_MAX. Where that finds little, ended jobs of those without sessions are
 * forgotten in the next turn, answers that were not taken, too, and who asks again may find room.
 */
bool forget_room(struct front *f);

#endif
