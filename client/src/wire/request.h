/*
 * Unanswered requests: each has a number on the wire, by which its answer finds it. Sequenced
 * requests are kept in the order of their sequence numbers, in which a new connection sends them
 * again.
 *
 * Thread: under the client's lock. Nothing here does I/O.
 */
#ifndef CLIENT_WIRE_REQUEST_H
#define CLIENT_WIRE_REQUEST_H

#include "client/src/wire/conn.h"
#include "proto/codec.h"

struct gpud_client;
struct request;
struct request_list;

/*
 * Called for each answer, and once for a failure: then `m` is NULL and `e` has the reason. Runs
 * under the lock; must not block. It takes a reference if it keeps `m`, and calls requests_end
 * unless another answer follows.
 */
typedef void (*request_fn)(struct gpud_client *c, struct request *r, struct message *m,
                           const struct err *e);

#define REQUEST_SHORT 96u /* bytes of a message that needs no memory of its own */

/* A member of its owner's struct, which does not move. The message is encoded with seq 1 and ack 1;
 * each sending puts the current values in front of it. */
struct request {
    struct request *prev;
    struct request *next;
    struct out out;
    struct capbuf msg; /* owned; a short one lies in `room` */
    request_fn answered;
    uint64_t seq; /* 0: not sequenced */
    uint32_t id;  /* of the SP request, 0: not in the table */
    unsigned kind;
    uint64_t again_ns; /* when a request that was not admitted is sent again; 0: it is not */
    unsigned refusals; /* times that it was not admitted, up to REFUSALS_MAX */
    bool sent;         /* it went to a daemon */
    bool by_ring;      /* sent by the ring lane */
    bool own;          /* belongs to this connection: the next one does not send it again */
    bool accepted;     /* its job is accepted; this daemon need not keep its answer */
    struct request_list *list; /* the list that it is in */
    uint8_t room[REQUEST_SHORT];
};

#define REQUESTS_MAX 32768u

/* HELLO reports the answered numbers to the next daemon as ranges between unanswered numbers, at
 * most GAPS_MAX. New numbers run at most FAR_MAX ahead of the number from which there may be more
 * ranges. */
#define GAPS_MAX 1000u
#define FAR_MAX  8192u

/* Requests keep their order on one way; requests of different ways may overtake each other. */
enum way { WAY_SOCKET, WAY_RING, WAYS };

struct request_slot {
    struct request *request;
    uint16_t generation;
    uint16_t next_free; /* slot + 1 */
};

struct request_list {
    struct request *first;
    struct request *last;
};

struct requests {
    struct request_slot *slots; /* owned */
    uint32_t capacity;
    uint32_t used;
    uint32_t first_free; /* slot + 1 */
    uint32_t live;
    struct request_list sequenced; /* ascending */
    struct request *open; /* the first sequenced request that is not accepted; NULL: none */
    uint32_t waiting;     /* number of sequenced requests */
    struct request *mark; /* the GAPS_MAX-th sequenced request; NULL: there are fewer */
    struct request_list plain;
    struct request_list fillers; /* for numbers of withdrawn requests; ascending */
    uint64_t next_seq;
    uint64_t ahead_max; /* how far answers are acknowledged from the lowest number on */
    uint64_t admitted;  /* the highest number that the daemon has admitted: see requests_answered */
    uint64_t went[WAYS];    /* the highest number that went each way on this connection */
    struct request *unsent; /* the first sequenced request that may not be sent yet; NULL: none */
};

void requests_init(struct requests *t);
void requests_finish(struct requests *t);

/* Encodes `msg`, whose first two fields are seq and ack, as the request's message. */
int request_encode(struct request *r, const struct schema *s, void *msg, struct err *e);
void request_finish(struct request *r); /* frees the message; must not be in the table */

/* Gives the request its id, and its sequence number if `sequenced`. ERR_NOMEM, ERR_LIMIT. */
int requests_add(struct requests *t, struct request *r, bool sequenced, struct err *e);
/* Gives the request its id, and the number of a withdrawn request. */
int requests_add_filler(struct requests *t, struct request *r, uint64_t seq, struct err *e);
/* Gives `r` its id, and the place and number of a sequenced request, which leaves the table. */
int requests_replace(struct requests *t, struct request *old, struct request *r, struct err *e);
void requests_end(struct requests *t,
                  struct request *r); /* no effect on a request that is not in the table */
/* Takes the request from the table and frees its message. */
void requests_retire(struct requests *t, struct request *r);
struct request *requests_find(const struct requests *t, uint32_t id); /* NULL if none */

/* The lowest unanswered number, fillers included; next_seq without unanswered requests. */
uint64_t requests_lowest(const struct requests *t);
/* Writes the head for sending the request now. */
void requests_head(const struct requests *t, struct request *r, enum sp_transport transport);
/* The same for a ring. */
void requests_ring_head(const struct requests *t, struct request *r);
/* A sequenced request was accepted. It remains in the table for another daemon, but the answers of
 * later requests are acknowledged past it. */
void requests_accepted(struct requests *t, struct request *r);
/* Another daemon: it has accepted no request. */
void requests_forget_accepted(struct requests *t);
/* An answer means that the daemon has admitted all requests before it. The exception is a job that
 * was cancelled while it waited for its turn: a request that is then sent too far ahead is not
 * admitted, and is sent again. */
void requests_answered(struct requests *t, const struct request *r);
/* Is the number so far ahead that HELLO could not report all numbers before it? */
bool requests_far(const struct requests *t, uint64_t seq);
/* The number up to which the daemon may forget its answers. */
uint64_t requests_acknowledged(const struct requests *t);
/* Appends SPANs of the answered numbers from `from` on, as many as a message can have. *ret_until:
 * the number after the last one that they cover. NOMEM. */
int requests_spans(const struct requests *t, uint64_t from, struct capbuf *out, uint64_t *ret_count,
                   uint64_t *ret_until, struct err *e);
/* Would the daemon take the number now, even if requests on the other way arrive later? */
bool requests_may_go(const struct requests *t, uint64_t seq, enum way way);
void requests_went(struct requests *t, uint64_t seq, enum way way);
/* A new connection: the daemon may not know the unanswered requests. */
void requests_begin_again(struct requests *t);

#endif
