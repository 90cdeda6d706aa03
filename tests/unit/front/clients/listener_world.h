/*
 * A listener with real clients in a thread of their own. What the server does is asked for by the
 * value of a PING, so that each test reads top to bottom in its client. Everything fails the test
 * rather than returning an error.
 */
#ifndef TESTS_FRONT_LISTENER_WORLD_H
#define TESTS_FRONT_LISTENER_WORLD_H

#include <nng/nng.h>
#include <pthread.h>

#include "daemon/front/clients/listener.h"
#include "daemon/front/model/request.h"
#include "proto/codec.h"
#include "tests/unit/front/scratch.h"

enum {
    DO_ANSWER = 0,          /* … 99: with the same value */
    DO_HOLD = 100,          /* … 999: do not answer before somebody asks */
    DO_RELEASE = 1000,      /* answer what is held, the last one first */
    DO_DROP = 1001,         /* free the slot, never answer */
    DO_CLOSE = 1002,        /* close this connection */
    DO_AWAIT_END = 1003,    /* answer when a connection that said hello has ended */
    DO_COUNT_UNREAD = 1005, /* answer with how many were closed for what they did not read */
    DO_LONG = 1006,         /* answer with LONG_BYTES bytes that count to 250 */
    DO_COUNT_HELD = 1004,   /* answer with how many are held, once it is more than zero */
};

#define HELD_MAX   256
#define LONG_BYTES 900000u

struct world {
    uv_loop_t loop;
    uv_async_t finished;
    uv_prepare_t turn;
    struct listener *listener;
    char dir[SCRATCH_PATH];
    char url[SCRATCH_PATH + 32];
    void (*client)(struct world *w);
    pthread_t thread;
    struct request *held[HELD_MAX];
    unsigned held_count;
    struct request *waiter;
    unsigned ends;  /* of connections that said hello */
    unsigned turns; /* of the loop */
    struct peer last_peer;
    struct listener_stats stats;
    bool closed;
};

extern struct world w; /* the one */
extern const struct listener_options usual;

/* Makes the listener, which listens on w.url; serves until the client is done, and ends it. */
void start(const struct listener_options *options);
void serve(void (*client)(struct world *w));

nng_socket dial(const char *url);
size_t encode(const struct schema *schema, const void *msg, uint8_t out[512]);
void post(nng_socket s, const void *data, size_t size);
void post_ping(nng_socket s, uint64_t value);
uint64_t pong_of(const void *data, size_t size);
uint64_t take_pong(nng_socket s);
uint64_t ask(nng_socket s, uint64_t value); /* posts a ping, takes the answer's value */
uint64_t say_hello(nng_socket s);
/* Sends what is refused; the answer has a text, and this code. */
void answered_by_error(nng_socket s, const uint8_t *bad, size_t bad_size, int code);
void client_asks(struct world *world); /* 50 pings */

/* A bare socket that has (or has not) said that it speaks REQ. */
int bare(const struct world *world, bool negotiate);
void bare_greet(int fd); /* says that it speaks REQ, to a connection that may be closed */
/* A message of the transport: type, length, request id, then the bytes. Who crowds is closed. */
void bare_send(int fd, const void *data, size_t size, uint64_t claimed);
void bare_ping(int fd, uint64_t value); /* a PING, whose answer is not taken */
void await_end(int fd);                 /* and closes it */

unsigned free_port(void); /* of tcp, on loopback */

#endif
