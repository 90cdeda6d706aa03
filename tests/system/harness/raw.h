/*
 * A client that speaks the protocol by itself, and sends many requests before it reads an answer:
 * what the library would never do. Every failure of the connection fails the running test.
 * Thread: one. Blocks until the daemon takes and answers, at most PATIENCE.
 */
#ifndef SYSTEM_RAW_H
#define SYSTEM_RAW_H

#include "common/bytes.h"
#include "proto/codec.h"
#include "tests/system/harness/harness.h"

struct raw {
    int fd;
    uint64_t seq;         /* of the next request */
    uint64_t ack;         /* that requests carry */
    bool hoards;          /* otherwise requests acknowledge the answers received */
    unsigned outstanding; /* requests without an answer */
    unsigned told[256];   /* answers of each kind since raw_reset */
    int code;             /* of the last ERROR among them */
    char text[256];
    uint64_t
        *handles; /* owned: of BUFFERs, PROGRAMs, ARENAs, MODULEs in the order in which they came */
    unsigned count, room;
    struct capbuf out;
    uint8_t *in; /* owned */
    size_t size, in_room;
    struct bytes last; /* the last answer; until the next call */
};

/* Connects and says HELLO as the client `id`. WELCOME lies in `last`. */
void raw_open(struct raw *c, const char *url, unsigned id);
/* The same after a restart of the daemon: `seq` is the lowest number without an answer. */
void raw_resume(struct raw *c, const char *url, unsigned id, uint64_t seq);
void raw_close(struct raw *c); /* and clears the gathered bytes */
/* One of `struct msg_*`; seq and ack are filled in where `sequenced`. Answers are awaited later. */
void raw_send(struct raw *c, const struct schema *schema, void *msg, bool sequenced);
/* Until all requests are answered. */
void raw_drain(struct raw *c);
/* Until at most so many are not. */
void raw_await(struct raw *c, unsigned outstanding);
/* Sends all of them. Returns the kind of the answer, which lies in `last`. */
unsigned raw_ask(struct raw *c, const struct schema *schema, void *msg, bool sequenced);
/* Presents the nonce on the socket for descriptors, and closes the descriptors it gets. Returns the
 * kind of the answer. */
unsigned raw_claim(const char *path, struct bytes nonce);
void raw_reset(struct raw *c); /* forgets answers and handles */

#endif
