/*
 * Requests that wait for their answers: numbered for the wire, found again by that number, and kept
 * in the order of their sequence numbers, in which they are sent again after a reconnection.
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
 * Told once for each answer and once for a failure (then `m` is NULL and `e` says why). Runs under
 * the lock; must not block. It takes a reference if it keeps `m`, and calls requests_end unless
 * more is to come.
 */
typedef void (*request_fn)(struct gpud_client *c, struct request *r, struct message *m,
                           const struct err *e);

#define REQUEST_SHORT 96u /* bytes of a message that needs no memory of its own */

/* Lies in its owner's struct, where it stays. The message is encoded with seq 1 and ack 1; the real
 * ones are put in front of it each time it is sent. */
struct request {
    struct request *prev;
    struct request *next;
    struct out out;
    struct capbuf msg; /* owned; a short one lies in `room` */
    request_fn answered;
    uint64_t seq; /* 0: not sequenced */
    uint32_t id;  /* of the SP request, 0: not in the table */
    unsigned kind;
    uint64_t again_ns;         /* not admitted: when it is sent again, 0: it is not */
    unsigned refusals;         /* so often was it not, up to REFUSALS_MAX */
    bool by_ring;              /* sent by the ring lane; not to be answered by the socket alone */
    bool own;                  /* of this connection: not sent again on the next */
    bool accepted;             /* what it asked for goes on; this daemon need not keep its answer */
    struct request_list *list; /* the one it is in */
    uint8_t room[REQUEST_SHORT];
};

#define REQUESTS_MAX 32768u

/* The next daemon is told what was answered already as ranges between what was not. Numbers run no
 * further than FAR_MAX ahead of the one behind which there may be too many of these. */
#define GAPS_MAX 1000u
#define FAR_MAX  8192u

/* Requests keep their order on each way, but those of one may overtake those of the other. */
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
    struct request *open;          /* the first of them that is not accepted; NULL: none */
    uint32_t waiting;              /* so many sequenced ones */
    struct request *mark;          /* the GAPS_MAX-th of them; NULL: there are fewer */
    struct request_list plain;
    struct request_list fillers; /* of numbers that nobody here waits for any more; ascending */
    uint64_t next_seq;
    uint64_t ahead_max; /* how far answers are acknowledged from the lowest number on */
    uint64_t admitted;  /* so far the daemon has come, as its answers tell: see requests_answered */
    uint64_t went[WAYS]; /* the highest number that went each way on this connection */
    struct request
        *unsent; /* the first sequenced one that waits until it may be sent; NULL: none */
};

void requests_init(struct requests *t);
void requests_finish(struct requests *t);

/* Encodes `msg`, whose first two fields are seq and ack, as the request's message. */
int request_encode(struct request *r, const struct schema *s, void *msg, struct err *e);
void request_finish(struct request *r); /* frees the message; must not be in the table */

/* Gives the request its id, and its sequence number if `sequenced`. ERR_NOMEM, ERR_LIMIT. */
int requests_add(struct requests *t, struct request *r, bool sequenced, struct err *e);
/* Gives it its id and a number that another one had. */
int requests_add_filler(struct requests *t, struct request *r, uint64_t seq, struct err *e);
/* Gives `r` its id and the place and number of a sequenced one, which is in the table no more. */
int requests_replace(struct requests *t, struct request *old, struct request *r, struct err *e);
void requests_end(struct requests *t, struct request *r); /* not in the table: nothing happens */
struct request *requests_find(const struct requests *t, uint32_t id); /* NULL if none */

/* The lowest number that is not answered, be it that of a filler; next_seq if all are. */
uint64_t requests_lowest(const struct requests *t);
/* Writes the head for sending it (again) now. */
void requests_head(const struct requests *t, struct request *r, enum sp_transport transport);
/* The same for a ring. */
void requests_ring_head(const struct requests *t, struct request *r);
/* A sequenced one was accepted: it stays in the table, for another daemon, but holds no answers of
 * later ones back. */
void requests_accepted(struct requests *t, struct request *r);
/* Another daemon: it has accepted none. */
void requests_forget_accepted(struct requests *t);
/* It was answered: what came before it was admitted. Not so before a job that was cancelled while
 * it waited for its turn: what is sent too far ahead then is not admitted, and sent again. */
void requests_answered(struct requests *t, const struct request *r);
/* Is the number so far ahead that a next daemon could not be told of all before it? */
bool requests_far(const struct requests *t, uint64_t seq);
/* Up to here the daemon may forget its answers. */
uint64_t requests_acknowledged(const struct requests *t);
/* Appends SPANs of numbers from `from` on that are answered, as many as a message takes.
 * *ret_until: behind the last number that they tell of. NOMEM. */
int requests_spans(const struct requests *t, uint64_t from, struct capbuf *out, uint64_t *ret_count,
                   uint64_t *ret_until, struct err *e);
/* Would the daemon take the number, though what went the other way may come later? */
bool requests_may_go(const struct requests *t, uint64_t seq, enum way way);
void requests_went(struct requests *t, uint64_t seq, enum way way);
/* A new connection: of what is not answered the daemon may know nothing. */
void requests_begin_again(struct requests *t);

#endif
