/*
 * The local sockets for descriptors, because NNG carries none: <runtime-dir>/shm.sock, and one for
 * each tenant with a socket of its own (settings/tenant_socket.h). A part of the front that gives
 * or takes descriptors offers a ticket, which is named by 16 random bytes. The client gets them in
 * the answer to its request. It connects here and shows them in a CLAIM, with the descriptors that
 * the ticket takes. The answer is GRANTED with the descriptors that the ticket gives, or ERROR.
 *
 * A ticket can be shown once, by one uid on one of the sockets, until it expires. A connection can
 * send one CLAIM. It remains until the client has closed it, because descriptors that were sent and
 * not received count against the daemon; so one user may have few connections. A user is a uid, or
 * all clients on the socket of a tenant.
 *
 * Receiving and closing are offloaded to threads, because a client decides how long the last close
 * of a socket takes. Such a connection counts until it is closed. A connection over the limit is
 * closed unread, and at once where the system can.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_CLIENTS_SHM_H
#define FRONT_CLIENTS_SHM_H

#include <stdint.h>
#include <uv.h>

#include "common/err.h"
#include "common/seqpacket.h"
#include "proto/messages.h"

#define SHM_PATH_MAX PROTO_SOCKET_MAX

struct shm;

struct ticket {
    uint32_t uid;      /* user that may show it */
    uint32_t listener; /* on the socket of this number (shm_listen) */
    unsigned give;     /* number of descriptors that the client must send with it */
    /* The ticket was shown, and its memory is freed already. The callback sets those of `given`
     * that it keeps to -1; the others are closed. Descriptors in ret_fds (empty at first) are sent,
     * and their owner keeps them. A failure is sent to the client. */
    int (*claim)(void *data, struct frame_fds *given, struct frame_fds *ret_fds, struct err *e);
    /* it was not shown in time, or not correctly; NULL: nothing is to be done */
    void (*expired)(void *data);
    void *data;
};

struct shm_options {
    unsigned connections_max; /* open at once */
    unsigned uid_max;         /* connections of one user */
    unsigned tickets_max;     /* tickets that were not shown yet; a quarter of them for one user */
    uint64_t claim_ns;        /* time for a CLAIM, after which a connection is closed */
    uint64_t ticket_ns;       /* time until a ticket expires */
};

struct shm_stats {
    uint64_t granted;
    uint64_t refused; /* claims that failed, whatever the reason */
    uint64_t silent;  /* connections without a claim */
    uint64_t crowded; /* connections over a limit */
    unsigned connections;
    unsigned working; /* connections that are being received from or closed in a thread */
    unsigned tickets;
};

extern const struct shm_options shm_defaults;

/* Listens on a path of mode 0660, and replaces a stale socket there. ERR_EXISTS if another process
 * serves it or it is no socket. */
int shm_create(uv_loop_t *loop, const char *path, const struct shm_options *options,
               struct shm **ret_shm, struct err *e);
/* Closes all connections, removes the path and drops all tickets without a callback. Memory is
 * freed when the loop has turned. NULL is accepted. */
void shm_destroy(struct shm *s);
/* Listens on one more path, as the socket with this number, which is not 0; that of shm_create has
 * number 0. Mode and group are those of listen_permit. Errors as above. */
int shm_listen(struct shm *s, uint32_t listener, const char *path, uint32_t mode, uint32_t gid,
               struct err *e);
/* Removes that socket, and its path. Connections and tickets end as they would otherwise. Nothing
 * happens if there is none. */
void shm_unlisten(struct shm *s, uint32_t listener);
/* The path of the socket with that number, which lives as long as the socket. "": there is none. */
const char *shm_path(const struct shm *s, uint32_t listener);

/* Makes a ticket. ERR_BUSY beyond tickets_max. */
int shm_offer(struct shm *s, const struct ticket *ticket, uint8_t ret_nonce[PROTO_NONCE_BYTES],
              struct err *e);
/* Drops the tickets with this `data`, which is to be freed. */
void shm_withdraw(struct shm *s, const void *data);
void shm_stats(const struct shm *s, struct shm_stats *ret_stats);

#endif
