/*
 * A worker ends so that nothing is lost with it: its device rests, its buffers go to the host
 * (evacuate.h), and then the worker goes. So end the workers of idle domains (domains.h), and all
 * workers of a device that is drained (devices/draining.h).
 *
 * Until the worker has gone the device can stay instead: what has gone to the host is dropped.
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_WORKERS_REST_H
#define FRONT_WORKERS_REST_H

#include "daemon/front/model/front.h"

/* The device has no job in flight, and all that it has can move. why: for its reason, and for the
 * log. */
void rest_begin(struct front *f, struct device *d, const char *why);
/* Do its buffers go to the host now, so that it could stay? */
bool rest_evacuates(const struct device *d);
/* While they do: ends the worker when they have gone. It stays if they could not, and ends with
 * what it has if it hangs. */
void rest_go_on(struct front *f, struct device *d, uint64_t now);
/* It serves again, with the worker that was to end. */
void rest_stay(struct front *f, struct device *d);

#endif
