/*
 * The numbers of one scrape, collected on the loop and written as text by the thread that serves
 * them. Plain data, owned by one of the two at a time, which frees it. Thread: the
 * owner's.
 */
#ifndef FRONT_METRICS_FIGURES_H
#define FRONT_METRICS_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/metrics/tally.h"
#include "daemon/front/model/account.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/front.h"
#include "daemon/front/modules/compiler.h"
#include "proto/health.h"

struct class_figures {
    uint64_t ready_ns; /* that ready jobs are expected to take */
    uint64_t flying;
};

struct device_figures {
    unsigned index;
    char backend[sizeof((struct device *)0)->backend];
    char name[sizeof((struct device *)0)->name];
    char driver[sizeof((struct device *)0)->driver];
    char arch[sizeof((struct device *)0)->arch];
    char uuid[sizeof((struct device *)0)->pin];
    const char *kind; /* static */
    uint64_t up, drain, memory, in_flight, domains, granted, buffers;
    uint64_t turns, overruns;
    uint64_t held;                            /* its driver asks for a recovery */
    struct health_value health[HEALTH_KINDS]; /* as the driver reports it, while that is known */
    struct msg_w_pool pool;
    uint64_t restarts[RESTART_REASONS];
    struct class_figures of_class[CLASS_COUNT];
    struct tally tally;
};

struct tenant_figures {
    char name[sizeof((struct account *)0)->name]; /* "": there is none */
    uint64_t weight, sessions, unfinished, in_flight, held, spilled, arenas, strikes, paused;
    uint64_t to_device, from_device, energy_uj;
    uint64_t jobs[ACCOUNT_RESULTS];
};

struct front_figures {
    bool ready;
    uint64_t reload_good; /* the settings that files have are in use */
    uint64_t started_ns;  /* wall clock */
    uint64_t tls_end_s;   /* wall clock: when the first certificate ends; 0: there is none */
    uint64_t sessions, queued, running, replayed, longest_turn, access_lost, tokens_refused;
    struct front_counters count;
    struct listener_stats listener;
    struct lanes_stats lanes;
    struct compiler_stats compiler;
    uint64_t to_device, from_device;       /* copied for all tenants */
    struct class_figures any[CLASS_COUNT]; /* jobs that any device may run */
    struct tally none;
};

struct figures {
    const char *build; /* static */
    struct front_figures front;
    unsigned device_count;
    struct device_figures *device; /* owned */
    struct tenant_figures tenant[TENANT_ROWS];
    uint64_t *busy_ns; /* owned, as the next: of each device, of each row of tenants */
    uint64_t *buffers; /* bytes, as they were asked for */
};

struct figures *figures_create(unsigned devices); /* zeroed; NULL: no memory */
void figures_destroy(struct figures *n);          /* NULL is accepted */

/* The place of a device and a row of tenants in busy_ns and buffers. */
static inline unsigned figures_at(const struct figures *n, unsigned row, unsigned device)
{
    return row * n->device_count + device;
}

#endif
