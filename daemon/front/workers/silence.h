/*
 * How long a worker was silent although it could have beaten. A thread that waits for a processor,
 * or for a disk, cannot beat: on a host that is overloaded a sound worker falls silent, too. So
 * silence counts by the processor time that the thread got meanwhile, and fully while it sleeps or
 * is stopped. A limit bounds the excuse. Pure: it reads neither the clock nor /proc. Thread: any,
 * one at a time.
 */
#ifndef FRONT_WORKERS_SILENCE_H
#define FRONT_WORKERS_SILENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "daemon/front/model/device.h"

#define SILENCE_EXCUSED_MAX_NS (60 * NS_PER_S) /* beyond the limit, whatever the thread lacks */
#define SILENCE_LOOK_NS        NS_PER_S /* between two looks at a thread that lacks something */
#define SILENCE_TEXT           160

/* The thread that beats, at one moment. */
struct thread_look {
    char state; /* as in /proc/PID/stat: 'R' */
    enum thread_lack lack;
    uint64_t ran_ns; /* processor time that it has had since its start */
};

enum thread_lack silence_lack(char state);
/* The worker's last sign of life, at beat_ns, is limit_ns old or older. look NULL: the state of its
 * thread is not known. true: the worker counts as hung. false: look again after SILENCE_LOOK_NS. */
bool silence_judge(struct silence *s, uint64_t beat_ns, uint64_t limit_ns, uint64_t now_ns,
                   const struct thread_look *look);
/* The device's worker is silent, and was last seen to lack something. */
bool silence_excused(const struct device *d);
/* "no heartbeat for 4.2 s: its thread waits for a processor" */
void silence_text(const struct device *d, uint64_t now_ns, char *out, size_t size);
/* The same for a table: "silent for 4 s: waits for a processor" */
void silence_note(const struct device *d, uint64_t now_ns, char *out, size_t size);

#endif
