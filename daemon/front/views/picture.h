/*
 * Pictures of the devices' memory pools. Who asks for one waits, the loop does not: every worker is
 * asked, and the answer goes out when all have told or the time is over, saying who did not. The
 * picture stays for a while, so that its pieces and events can be read part by part.
 *
 * A tenant sees its own pieces and events; those of others come as one piece without a name where
 * they touch, unless it may see all (rights.h). Thread: the loop's.
 */
#ifndef FRONT_VIEWS_PICTURE_H
#define FRONT_VIEWS_PICTURE_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

#define PICTURES_MAX        64u /* at once */
#define PICTURES_TENANT_MAX 8u  /* of them one tenant's: then its oldest one goes */
#define PICTURE_ASKED_MAX   4u  /* asks that a worker has not answered */

/* POOL_TAKE: takes the request, answers it later. */
void picture_take(struct front *f, struct session *s, struct request *r);
/* POOL_READ */
int request_pool_read(struct request_context *c, struct err *e);
/* A worker told. The descriptor (-1: none) is the receiver's. */
void picture_told(struct front *f, struct device *d, const struct msg_w_picture *m, int fd);
void picture_device_lost(struct front *f, struct device *d);
/* Answers and forgets what is due; says when the next is. */
void picture_watch(struct front *f, uint64_t now_ns);
void picture_finish_all(struct front *f);

#endif
