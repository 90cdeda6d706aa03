/*
 * Input: what a hostile producer does to a ring's shared memory, as commands of six bytes: an
 * action, a place, four bytes. Between the commands the consumer reads all records that it accepts.
 * In the fuzzing build a second thread scribbles over the memory meanwhile. The consumer may
 * refuse; it must hand out no record longer than a ring allows, and read nothing outside (which the
 * sanitizer sees).
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/ring.h"

#define SIZE     256u
#define COMMAND  6u
#define SCRIBBLE 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    struct ring_control control;
    uint8_t data[SIZE];
} * shared; /* exactly as long as it may be read */

static void take_all(struct ring_consumer *c)
{
    uint8_t out[SIZE];
    uint32_t id;
    uint32_t size;
    int rc;
    while ((rc = ring_next(c, &id, &size, NULL)) == 1) {
        if (size > ring_record_max(SIZE)) {
            abort();
        }
        ring_take(c, size, out);
        (void)ring_release(c);
        if (c->head - c->tail > SIZE || c->tail % RING_ALIGN != 0) {
            abort();
        }
    }
    if (rc < 0 && ring_next(c, &id, &size, NULL) == 1) {
        abort(); /* nonsense is for good */
    }
    (void)ring_sleep(c);
}

static void command(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at + 2, sizeof value);
    switch (at[0] % 4) {
    case 0:
        atomic_store(&shared->control.head, value);
        break;
    case 1: /* a small step: more often believed */
        atomic_fetch_add(&shared->control.head, (value & 15) * RING_ALIGN);
        break;
    case 2:
        atomic_store(&shared->control.full, value);
        break;
    default:
        memcpy(shared->data + at[1] % (SIZE - sizeof value), &value, sizeof value);
        break;
    }
}

#ifdef FUZZ_SCRIBBLE
static atomic_uint turn;

__attribute__((no_sanitize("address", "thread"))) static void *scribble(void *arg)
{
    unsigned seen = 0;
    unsigned seed = 1;
    (void)arg;
    for (;;) {
        while (atomic_load(&turn) == seen) {
            (void)sched_yield();
        }
        seen = atomic_load(&turn);
        for (int i = 0; i < SCRIBBLE; i++) {
            volatile uint32_t *words = (volatile uint32_t *)(void *)shared;
            words[(unsigned)rand_r(&seed) % (sizeof *shared / sizeof *words)] =
                (uint32_t)rand_r(&seed) % 64 * 4;
        }
    }
    return NULL;
}

static void scribbler_start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, scribble, NULL) != 0) {
        abort();
    }
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ring_consumer c;
    if (shared == NULL) {
        shared = aligned_alloc(RING_LINE, sizeof *shared);
        if (shared == NULL) {
            abort();
        }
#ifdef FUZZ_SCRIBBLE
        scribbler_start();
#endif
    }
    memset((void *)shared, 0, sizeof *shared);
    ring_consumer_init(&c, &shared->control, shared->data, SIZE);
    for (size_t at = 0; at + COMMAND <= size; at += COMMAND) {
        command(data + at);
#ifdef FUZZ_SCRIBBLE
        atomic_fetch_add(&turn, 1);
#endif
        if (data[at] >= 128) {
            take_all(&c);
        }
    }
    take_all(&c);
    return 0;
}
