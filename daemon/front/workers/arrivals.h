/*
 * Buffers that move from one device to another (memory/moves.h): the worker of the new device was
 * asked to take their content from the host, and has yet to answer. Until then the old device has
 * the buffer. An answer for a buffer that is not wanted any more is awaited, too: it is no answer
 * for the next move. Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_WORKERS_ARRIVALS_H
#define FRONT_WORKERS_ARRIVALS_H

#include "daemon/front/model/device.h"

bool arrivals_room(const struct device *d);
/* Has its worker to answer for any? Then it does not leave yet. */
bool arrivals_any(const struct device *d);
/* Was the device's worker asked to take the buffer, and has yet to answer? */
bool arrivals_has(const struct device *d, uint64_t id);
/* Its worker was asked. wanted: the buffer is to stay there. Without room nothing happens. */
void arrivals_add(struct device *d, uint64_t id, bool wanted);
/* The worker is to free the buffer when it has answered. It was not asked: nothing happens. */
void arrivals_refuse(struct device *d, uint64_t id);
/* The worker has answered. Returns whether the buffer is still wanted. */
bool arrivals_end(struct device *d, uint64_t id);
/* The worker has ended. */
void arrivals_forget(struct device *d);

#endif
