/*
 * A way to make a round trip: a server and a client of it. gpud and the servers that it is compared
 * with have the same interface here.
 *
 * A server runs in a process of its own; so does each client. Neither process had threads before.
 * Functions end the process with a message on an error: a
 * benchmark that failed has no figures.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include <stdbool.h>
#include <stdio.h>

#define ECHO_BYTES 64u /* of a request and of an answer, where the kind has any */
#define ECHO_SLOTS 64u /* round trips under way at once, at most */

struct echo; /* a client; one thread */

struct echo_kind {
    const char *name; /* "unix", "relay", "nng", "grpc", "gpud" */
    const char *what; /* one line for people */
    /* Serves at an address (a path) until killed. NULL: another process serves. */
    void (*serve)(const char *address);
    struct echo *(*open)(const char *address, unsigned outstanding);
    void (*send)(struct echo *c, unsigned slot); /* begins a round trip; the slot is free */
    /* Waits for the slot's end and checks the answer. Slots are taken in the order they were sent.
     */
    void (*take)(struct echo *c, unsigned slot);
    void (*close)(struct echo *c);
};

extern const struct echo_kind echo_unix;
extern const struct echo_kind echo_relay; /* the way of a job by sockets alone */
extern const struct echo_kind echo_nng;
extern const struct echo_kind echo_grpc; /* only if BENCH_GRPC */
extern const struct echo_kind echo_gpud; /* a program without steps; the address is gpud's URL */

/* By name; NULL: not known or not built. */
const struct echo_kind *echo_find(const char *name);

/* Says "bench: …" on stderr and ends the process. */
#define bench_die(...) (bench_say(), (void)fprintf(stderr, __VA_ARGS__), bench_fail())
void bench_say(void);
_Noreturn void bench_fail(void);

#endif
