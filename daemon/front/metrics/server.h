/*
 * Serves metrics over HTTP: /metrics, /healthz and /readyz. A thread of its own does all input and
 * output, and writes the texts; the loop only gives it numbers. A request is answered with numbers
 * that were collected after it came, so each collection serves all requests that wait.
 *
 * Scrapers can harm only each other: connections, their memory, and the texts that they have yet to
 * read are limited, a connection serves one request and has a limited life, and collections begin
 * ASK_PAUSE_NS apart.
 *
 * Thread: the loop's. Only start and stop block, for some milliseconds.
 */
#ifndef FRONT_METRICS_SERVER_H
#define FRONT_METRICS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/front/metrics/figures.h"
#include "daemon/front/settings/metrics_address.h"

#define METRICS_CONNECTIONS 128u /* of one address */
#define METRICS_LIFE_NS     (10 * NS_PER_S)
#define ASK_PAUSE_NS        (10 * NS_PER_MS)
#define METRICS_PATIENCE_NS (3 * NS_PER_S)

enum metrics_want {
    WANT_NOTHING = 0,
    WANT_STATE = 1, /* whether the daemon is ready */
    WANT_FIGURES = 2,
};

struct metrics_server;

struct metrics_options {
    struct metrics_addresses addresses;
    uint32_t gid; /* a unix socket is for this group and the daemon's user; UINT32_MAX: none */
    int bell;     /* an eventfd, rung when the thread wants something; it outlives the server */
    uint64_t patience_ns; /* for the loop's answer; then requests are answered with an error */
    uint64_t life_ns;     /* of a connection, until its answer is read; longer than patience_ns */
};

/* Listens at the addresses. ERR_UNSUPPORTED: this build has no server. ERR_EXISTS: an address is in
 * use. */
int metrics_server_start(const struct metrics_options *options, struct metrics_server **ret_server,
                         struct err *e);
/* Closes all connections and removes unix sockets. NULL is accepted. */
void metrics_server_stop(struct metrics_server *s);
/* What the thread wants, as a sum of enum metrics_want. Each want is reported once, and answered
 * once. */
unsigned metrics_server_wants(struct metrics_server *s);
/* text: the worst problem, "": none; copied. */
void metrics_server_give_state(struct metrics_server *s, bool ready, const char *text);
/* Takes the numbers. NULL: there was no memory for them. */
void metrics_server_give_figures(struct metrics_server *s, struct figures *n);

#endif
