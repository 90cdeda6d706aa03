/*
 * The local socket through which descriptors travel, <runtime-dir>/shm.sock: NNG carries none. Who
 * has something to hand out or to take in offers a ticket: 16 random bytes that stand for it. They
 * reach the client in the answer to its request; it connects here, shows them in a CLAIM with the
 * descriptors that are asked for, and gets a GRANTED with others, or an ERROR.
 *
 * A ticket is good for one showing by one uid, for a while. A connection is good for one CLAIM; it
 * stays until the other side has closed it, since descriptors that were sent and not received count
 * against the daemon: so one uid has few of them.
 *
 * What strangers send is received and closed in threads: the last close of a socket can take as
 * long as they wish. Such a connection counts until it is closed. What one too many brings is
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
    uint32_t uid;  /* who may show it */
    unsigned give; /* descriptors that come with it, no more and no fewer */
    /* It was shown. Those of `given` that are kept are set to -1, the others are closed. What is
     * put into ret_fds (empty at first) is sent and stays the owner's. A failure is told to the
     * client. The ticket is gone by then. */
    int (*claim)(void *data, struct frame_fds *given, struct frame_fds *ret_fds, struct err *e);
    void (*gone)(void *data); /* nobody came in time; NULL: nothing is to be done */
    void *data;
};

struct shm_options {
    unsigned connections_max; /* open at once */
    unsigned uid_max;         /* of them by one uid */
    unsigned tickets_max;     /* not shown yet, of all; a quarter of them for one uid */
    uint64_t claim_ns;        /* a connection that has shown nothing for so long is closed */
    uint64_t ticket_ns;       /* how long a ticket is good */
};

struct shm_stats {
    uint64_t granted;
    uint64_t refused; /* claims that failed, whatever the reason */
    uint64_t silent;  /* connections without a claim */
    uint64_t crowded; /* connections over a limit */
    unsigned connections;
    unsigned working; /* of them: what they sent is being received, or closed with them */
    unsigned tickets;
};

extern const struct shm_options shm_defaults;

/* Listens on a path of mode 0660, whose stale socket is taken over. ERR_EXISTS if somebody else
 * serves it or it is no socket. */
int shm_create(uv_loop_t *loop, const char *path, const struct shm_options *options,
               struct shm **ret_shm, struct err *e);
/* Closes everything and removes the path; no callback comes any more, tickets are gone. Memory is
 * freed when the loop has turned. NULL is accepted. */
void shm_destroy(struct shm *s);
const char *shm_path(const struct shm *s); /* lives as long as `s` */

/* Makes a ticket. ERR_BUSY if too many were not shown yet. */
int shm_offer(struct shm *s, const struct ticket *ticket, uint8_t ret_nonce[PROTO_NONCE_BYTES],
              struct err *e);
/* Takes back the tickets with this `data`, which is to be freed. */
void shm_withdraw(struct shm *s, const void *data);
void shm_stats(const struct shm *s, struct shm_stats *ret_stats);

#endif
