/*
 * A kind of round trip: a server and its clients. gpud and the servers that it is compared with
 * have the same interface here.
 *
 * The server and each client are processes of their own, which have no threads before. Functions
 * end the process with a message on an error: a failed benchmark has no figures.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include <stdbool.h>
#include <stdio.h>

#define ECHO_BYTES 64u /* of a request and of an answer, if the kind has content */
#define ECHO_SLOTS 64u /* round trips under way at once, at most */

struct echo; /* a client; one thread */

struct echo_kind {
    const char *name; /* "unix", "relay", "nng", "grpc", "gpud" */
    const char *what; /* one line for people */
    /* Serves at an address (a path) until killed. NULL: another process serves. */
    void (*serve)(const char *address);
    struct echo *(*open)(const char *address, unsigned outstanding);
    void (*send)(struct echo *c, unsigned slot); /* begins a round trip; the slot is free */
    /* Waits for the slot's answer and checks it. Slots are taken in the order of sending. */
    void (*take)(struct echo *c, unsigned slot);
    void (*close)(struct echo *c);
};

extern const struct echo_kind echo_unix;
extern const struct echo_kind echo_relay; /* the way of a job, by sockets only */
extern const struct echo_kind echo_nng;
extern const struct echo_kind echo_grpc; /* only if BENCH_GRPC */
extern const struct echo_kind echo_gpud; /* a program without steps; the address is gpud's URL */

/* The kind of this name; NULL: not known or not built. */
const struct echo_kind *echo_find(const char *name);

/* Prints "bench: …" to stderr and ends the process. */
#define bench_die(...) (bench_say(), (void)fprintf(stderr, __VA_ARGS__), bench_fail())
void bench_say(void);
_Noreturn void bench_fail(void);

#endif
