/*
 * Which tenants have workers of their own, or are to get one: what must hold of their places, of
 * tenants that wait for one, and of those that make room. In worlds where tenants have such
 * workers. Thread: one.
 */
#ifndef TEST_SIM_PLACES_H
#define TEST_SIM_PLACES_H

#include <stdbool.h>

#include "proto/codec.h"

struct device;
struct sim;
struct sim_request;
struct sim_worker;

void places_begin(struct sim *s);
void places_finish(struct sim *s);
void places_check(struct sim *s); /* at every step */
/* The front sends a frame to the worker. */
void places_frame(struct sim *s, const struct device *d, const struct sim_worker *x,
                  const struct schema *schema, const void *msg);
/* The front refuses a fresh request. */
void places_refused(struct sim *s, const struct msg_error *m);
/* It is to end, and its tenant wants one again. */
bool places_wanted(const struct sim *s, const struct sim_worker *x);
/* Does a tenant wait for a place of the device that has this slot? */
bool places_awaited(const struct sim *s, unsigned slot);
/* The worker refuses to copy a buffer. */
void places_copy_refused(struct sim *s, const struct sim_worker *x);

#endif
