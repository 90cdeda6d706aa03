/*
 * A ring of records in shared memory: one producer, one consumer, usually in two processes that do
 * not trust each other. A record is a word (`id`) and bytes of any length up to half of the ring.
 *
 * Neither side trusts shared memory. The producer checks the consumer's position. The consumer
 * checks the producer's position and each record's length, once, on a copy of its own, and hands
 * out copies only. When the other side has broken the rules, each call returns ERR_PROTOCOL from
 * then on, and the shared memory is not read any more.
 *
 * Sleeping: a side announces its sleep in a word that only it writes, checks the ring once more,
 * and then waits for its doorbell. (Doorbells belong to the owners of the sides.) The other side
 * rings if the word is odd after it has moved its position. The word grows with each sleep, so each
 * sleep gets one ring. Model: tests/spin/ring.pml.
 *
 * Thread: each side has one owner at a time. Never blocks, makes no system call.
 */
#ifndef COMMON_RING_H
#define COMMON_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"

#define RING_LINE        64u /* bytes of a cache line */
#define RING_RECORD_HEAD 8u  /* length and id */
#define RING_ALIGN       8u  /* records begin at multiples of it */
#define RING_MIN         128u
#define RING_MAX         (1u << 24)

/* In shared memory, zeros at first. Positions count bytes and wrap at 2^32. */
struct ring_control {
    _Alignas(RING_LINE) atomic_uint head; /* producer: records end here */
    atomic_uint full;                     /* producer: odd while it sleeps until there is room */
    _Alignas(RING_LINE) atomic_uint tail; /* consumer: end of the records released */
    atomic_uint sleep; /* consumer: odd while it sleeps until there is a record */
};

struct ring_producer {
    struct ring_control *shared; /* not owned */
    uint8_t *data;               /* not owned */
    uint32_t size;               /* bytes, a power of two */
    uint32_t head;               /* end of the records put */
    uint32_t published;          /* end of the records published */
    uint32_t tail;               /* the consumer's position when last read */
    uint32_t full;               /* as in shared memory */
    uint32_t rung;               /* the consumer's sleep word of the last ring */
    bool broken;
};

struct ring_consumer {
    struct ring_control *shared; /* not owned */
    const uint8_t *data;         /* not owned */
    uint32_t size;               /* bytes, a power of two */
    uint32_t head;               /* the producer's position when last read */
    uint32_t tail;               /* end of the records taken */
    uint32_t released;           /* end of the room released to the producer */
    uint32_t sleep;              /* as in shared memory */
    uint32_t rung;               /* the producer's full word of the last ring */
    bool broken;
};

/* Bytes that a record of `size` bytes takes in the ring. */
uint32_t ring_space(size_t size);
/* The longest record that a ring of so many bytes accepts. */
uint32_t ring_record_max(uint32_t ring_size);
/* Whether a ring may have this size. */
bool ring_size_valid(size_t ring_size);

/* control and data: `size` bytes, aligned to RING_LINE, outlive the side. */
void ring_producer_init(struct ring_producer *p, struct ring_control *control, void *data,
                        uint32_t size);
/* Puts a record of two parts, of which either may be empty. 1: put, not published yet; 0: no room
 * now; ERR_LIMIT: longer than a record may be; ERR_PROTOCOL: the consumer broke the rules. */
int ring_put(struct ring_producer *p, uint32_t id, struct bytes first, struct bytes second,
             struct err *e);
/* Whether a record of `size` bytes has room now. 1, 0, or an error as ring_put. */
int ring_room(struct ring_producer *p, size_t size, struct err *e);
/* Makes the records visible to the consumer. true: it sleeps, ring its doorbell. */
bool ring_publish(struct ring_producer *p);
/* The consumer's position: the end of the records that it has released. ERR_PROTOCOL. */
int ring_consumed(struct ring_producer *p, uint32_t *ret_tail, struct err *e);
/* Announces a sleep until a record of `size` bytes has room. false: there is room, or the consumer
 * broke the rules: do not sleep. */
bool ring_full_sleep(struct ring_producer *p, size_t size);
void ring_full_wake(struct ring_producer *p);

void ring_consumer_init(struct ring_consumer *c, struct ring_control *control, const void *data,
                        uint32_t size);
/* The next record's id and length. 1: there is one, ring_take takes it; 0: none; ERR_PROTOCOL: the
 * producer broke the rules. */
int ring_next(struct ring_consumer *c, uint32_t *ret_id, uint32_t *ret_size, struct err *e);
/* Copies the record that ring_next returned into out[size] and moves past it. */
void ring_take(struct ring_consumer *c, uint32_t size, void *out);
/* Returns the room of the records taken. true: the producer waits for room, ring its doorbell. */
bool ring_release(struct ring_consumer *c);
/* Announces a sleep until there is a record. false: there is one, or the producer broke the rules:
 * do not sleep. The producer rings once for each sleep, which may be for a record that was taken
 * before: after each ring a sleep is announced anew, whether there was a record or not. */
bool ring_sleep(struct ring_consumer *c);
void ring_wake(struct ring_consumer *c);
/* Whether ring_next has a record or an error to return. Cheap: for polling. */
bool ring_ready(const struct ring_consumer *c);

#endif
