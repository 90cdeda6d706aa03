/*
 * Places. A device has [domains] per_device_max places for workers of single tenants. A domain has
 * a place while it has a worker, or is to start the next one after a pause. A domain that wants a
 * worker and finds no place waits; places go in the order in which domains asked.
 *
 * While a domain waits, places come free. The least recently used domain rests that has been idle
 * for a second. If there is none, the domain that has had its place longest yields it, once its
 * worker has served for [domains] place_s: it takes no new jobs, its jobs in flight end, its
 * buffers go to the host, and then its worker ends. What it still has to do asks for a place like
 * any other. A domain whose buffers cannot go to the host keeps its place. Where all do, a newcomer
 * is refused: nothing bounds its wait.
 *
 * The spare domain (domains.h) asks for nothing, and leaves by itself when a place is wanted.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_WORKERS_PLACES_H
#define FRONT_WORKERS_PLACES_H

#include "daemon/front/model/front.h"
#include "daemon/front/workers/evacuate.h"

/* What all buffers say about the workers that have them. */
struct survey {
    struct evacuation_load load[PLACES_MAX]; /* what the worker has */
    struct device_set any;                   /* devices that have buffers */
    struct device_set asked; /* devices for whose workers requests about buffers wait */
};

/* Visits all buffers. */
void survey_make(struct front *f, struct survey *ret_survey);
/* Why what the worker has cannot go to the host. Workers that began to end after the survey have
 * taken some of the room. */
enum keeper survey_keeper(const struct front *f, const struct survey *s, const struct device *d);
/* Do jobs, or requests about its buffers, wait for the worker of the domain? */
bool survey_wants(const struct front *f, const struct survey *s, const struct device *d);

/* The spare domain, which is no tenant's yet. */
bool place_is_spare(const struct front *f, const struct device *d);
/* Has the domain nothing to do, whatever buffers it has? */
bool place_is_quiet(const struct front *f, const struct device *d);
/* When the domain last did something, or was asked for. */
uint64_t place_used_ns(const struct device *d);
/* Domains of the device that have a place or want one. */
unsigned places_used(const struct device *base);
/* The idle domain that ends first, if one has to; NULL: none is idle, or none can go. */
struct device *place_least_used(struct front *f, const struct device *base);

/* Can no place of the device come free, as of the last look? */
bool places_kept(const struct front *f, const struct device *base);
/* Whether the tenant may ask for a place of the device. ERR_BUSY, with the time of the next try:
 * all are taken, and none can come free. */
int place_check(struct front *f, const struct tenant *t, struct device *base, struct err *e);
/* The domain, which rests, wants a place from now on. */
void place_ask(struct front *f, struct device *d);
/* Is there a place for the domain, which wants one and has no worker, before those that have asked
 * after it? */
bool place_free(const struct front *f, const struct device *d);
/* Its reason to rest is that it waits for a place. */
void place_say_waits(const struct front *f, struct device *d);
/* It has a place from now on. */
void place_taken(struct front *f, struct device *d);
/* Does the domain wait for a place? */
bool place_waits(const struct front *f, const struct device *d);
/* Has places of the device come free, as long as domains wait. */
void places_watch(struct front *f, struct device *base, uint64_t now);

#endif
