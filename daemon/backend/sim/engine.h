/*
 * The engines of a simulated device: one for kernels, fills and copies inside it, one for copies to
 * it and one for copies from it. An engine runs as many commands at once as it has slots. Waiting
 * commands begin in order of their streams' priority, then of their age. Times are those of the
 * model: a command begins when its stream and a slot are free in the model, not when a thread wakes
 * up, so that a slow host does not slow the device down.
 */
#ifndef BACKEND_SIM_ENGINE_H
#define BACKEND_SIM_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_SLOTS_MAX 16u

struct sim_turn { /* on the stack of the thread that waits */
    struct sim_turn *prev, *next;
    int priority;
};

struct sim_engine {
    unsigned slots;
    bool busy[SIM_SLOTS_MAX];
    uint64_t free_ns[SIM_SLOTS_MAX]; /* time in the model since which each slot is free */
    struct sim_turn *waiting;
};

/* Waits for a slot under `lock`, woken by `changed`; -1 when *stop was set first. ret_begin_ns:
 * when a command that was ready at ready_ns begins. */
int sim_engine_take(struct sim_engine *e, int priority, const bool *stop, pthread_cond_t *changed,
                    pthread_mutex_t *lock, uint64_t ready_ns, uint64_t *ret_begin_ns);
/* Called with the device's lock. */
void sim_engine_give(struct sim_engine *e, int slot, uint64_t end_ns, pthread_cond_t *changed);

#endif
