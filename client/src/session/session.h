/*
 * The session: who we are to the daemon, across connections. Says hello, sends again what was not
 * answered, restores modules, kernels and programs after the daemon has restarted, keeps one WAIT
 * request held for notices and results.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_SESSION_H
#define CLIENT_SESSION_SESSION_H

#include "client/src/wire/request.h"

/* The daemon's minor from which on it takes numbers as ranges (TAKEN), cancels by number. */
#define MINOR_RANGES 3u

enum session_state { SESSION_DOWN, SESSION_HELLO, SESSION_RESTORE, SESSION_READY };

struct session {
    enum session_state state;
    uint8_t client_id[PROTO_CLIENT_ID_BYTES];
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    bool known; /* a daemon has welcomed us before */
    char name[PROTO_NAME_MAX + 1];
    uint8_t token[PROTO_TOKEN_MAX];
    size_t token_size;

    /* what WELCOME told */
    uint64_t major, minor;
    uint64_t max_message;
    uint64_t max_inflight;
    uint64_t max_arena;
    uint64_t max_requests, max_unacked, max_early, max_reorder;
    uint64_t max_buffers, max_arenas, max_modules, max_programs;
    uint64_t max_kept;
    uint64_t linger_ns;
    uint64_t number;
    bool may_load;
    char build[PROTO_NAME_MAX + 1];
    char tenant[PROTO_NAME_MAX + 1];
    char shm[PROTO_SOCKET_MAX + 1]; /* the socket for descriptors, "": none */

    struct request hello;
    struct request wait;
    struct request tell; /* TAKEN */
    unsigned untold;     /* answers over the socket since the last one, and their bytes */
    uint64_t untold_bytes;
    uint64_t taken;     /* number of the last EVENTS */
    uint64_t wait_ns;   /* when to ask again after WAIT was refused; NS_NEVER: not */
    uint64_t again_ns;  /* when a request that was not admitted is sent again; NS_NEVER: none */
    uint64_t told_from; /* HELLO told the fate of all numbers between these two */
    uint64_t told_to;

    bool restoring; /* what was made before is not all known to this daemon yet */
    int restore_stage;
    uint32_t restore_cursor; /* of the buffers: those from there on were not asked for */
    unsigned restores;       /* not answered yet */
    uint64_t epoch;          /* grows when handles of the daemon change */

    uint64_t retry_ns; /* when to connect again */
    uint64_t backoff_ns;
    uint64_t attempt_ns; /* when an attempt that got no WELCOME is given up; NS_NEVER: none */
    uint64_t lost_ns;    /* since when there is no connection; NS_NEVER: there is one */
    bool opening;        /* gpud_open waits; a daemon that is not there may come */
    struct err failure;  /* why it is down; code 0: not */
};

struct gpud_client;

int session_init(struct session *s, const char *name, const void *token, size_t token_size,
                 struct err *e);
void session_finish(struct gpud_client *c);

/* Goes on as time has passed: connects, gives up. Returns when it wants to be called again. */
uint64_t session_tick(struct gpud_client *c, uint64_t now_ns);
/* While opening: nothing more will be tried, `failure` says why. */
bool session_gave_up(const struct gpud_client *c);
/* A message came in. */
int session_message(struct gpud_client *c, struct message *m, struct err *e);
/* The connection is unusable: drops it, plans the next. */
void session_lost(struct gpud_client *c, const struct err *why);
/* Sends a request that is in the table, at once or when the session is ready; a sequenced one not
 * before the daemon would take it, nor before those in front of it. */
void session_send(struct gpud_client *c, struct request *r);
/* Sends what waited for that. Called when answers came, and a millisecond after it had to wait. */
void session_go_on(struct gpud_client *c);
/* Adds a request of this connection and sends it ahead of all that waits for the session. */
int session_ask(struct gpud_client *c, struct request *r, request_fn answered, struct err *e);
/* What went by the ring and was not answered goes over the socket. */
void session_resend_ring(struct gpud_client *c);
/* Withdraws a sequenced one that the daemon does not have, not sent yet or not admitted: a question
 * without effect takes its number when its turn comes. False: the daemon may have it, or there was
 * no memory. It is in the table no more, and was not answered. */
bool session_withdraw(struct gpud_client *c, struct request *r);
/* For restore.c: sends one that is in the table ahead of all that waits for the session. */
void session_send_own(struct gpud_client *c, struct request *r);
/* For restore.c: sends one of those again after a pause, under the same id; 0: as session.c thinks.
 */
void session_send_later(struct gpud_client *c, struct request *r, uint64_t pause_ns);
/* The answers of a stage of restoring are there. */
void session_restored(struct gpud_client *c);
/* Ends every request with an error. */
void session_fail(struct gpud_client *c, const struct err *why);

#endif
