/*
 * The engines of a simulated device: one for kernels, fills and copies inside the device, one for
 * copies to it and one for copies from it. An engine runs as many commands at once as it has slots.
 * Waiting commands begin in the order of their streams' priority, then of their age.
 *
 * Times are the model's: a command begins when its stream and a slot are free in the model, not
 * when a thread wakes up. A slow host therefore does not slow down the device.
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
    uint64_t free_ns[SIM_SLOTS_MAX]; /* ns of the model: when each slot became free */
    struct sim_turn *waiting;
};

/* Waits for a slot under `lock`, woken by `changed`. Returns the slot; -1: *stop was set first.
 * *ret_begin_ns: when a command begins that was ready at ready_ns. */
int sim_engine_take(struct sim_engine *e, int priority, const bool *stop, pthread_cond_t *changed,
                    pthread_mutex_t *lock, uint64_t ready_ns, uint64_t *ret_begin_ns);
/* Gives a slot back at end_ns. The caller has the device's lock. */
void sim_engine_give(struct sim_engine *e, int slot, uint64_t end_ns, pthread_cond_t *changed);

#endif
