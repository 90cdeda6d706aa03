/*
 * A buffer: typed and shaped memory on one device, named by a handle. It belongs to the session
 * that made it. A published buffer outlives its maker while other sessions have it open, and then
 * for its linger time. Thread: the loop's.
 *
 * Where a buffer is:
 *
 *   creating → live       its worker has allocated it
 *   creating, live → restoring
 *                         its worker ended, and the host has its content (it is sealed, or has a
 *                         copy from before the end of an idle worker)
 *   creating, live, restoring → lost
 *                         its worker ended, or could not allocate or restore it
 *   restoring → live      the next worker has its content
 */
#ifndef FRONT_MODEL_BUFFER_H
#define FRONT_MODEL_BUFFER_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/idmap.h"
#include "common/shape.h"
#include "daemon/front/model/agenda.h"
#include "daemon/front/model/spans.h"
#include "proto/limits.h"

struct device;
struct hazard_group;
struct job;
struct session;
struct tenant;
struct op;
struct variable;

enum buffer_state {
    BUFFER_CREATING, /* the worker allocates */
    BUFFER_LIVE,
    BUFFER_RESTORING, /* its content is on the host; a worker copies it in */
    BUFFER_LOST,      /* only BUFFER_FREE is possible */
};

/* The copy on the host that a buffer has while its domain has no worker; evacuate.c's. */
enum buffer_copy {
    COPY_NONE,
    COPY_DUE,   /* in device->evacuation.due: its worker is to be asked for it */
    COPY_ASKED, /* its worker fills host_fd */
    COPY_VOID,  /* the same, but the copy is not wanted any more */
    COPY_KEPT,  /* host_fd has the content */
    BUFFER_COPIES,
};

/* Whether it is on its way to another device; memory/moves.c's. */
enum buffer_move {
    MOVE_NONE,
    MOVE_COPIES,  /* its worker copies it to the host for that (COPY_ASKED) */
    MOVE_ARRIVES, /* the worker of `move_to` was asked to take the content from the host */
};

/* The place of an unfinished job in the line of the buffer (sched/hazard.h); hazard.c's. */
struct buffer_use {
    struct job *job;
    unsigned index; /* in job->work.uses */
    struct hazard_group *group;
    struct buffer_use *prev, *next; /* in its group */
};

/* One opening of a published buffer. A session may open a buffer several times. */
struct buffer_opener {
    struct buffer_opener *prev, *next; /* in buffer->opener */
    struct buffer_opener *older;       /* the session's opening before this one; NULL: none */
    struct session *session;
    uint64_t seq; /* number of its request */
};

/* All openings of one buffer by one session; in session->openings. */
struct buffer_opening {
    struct buffer *buffer; /* key */
    struct buffer_opener *newest;
    UT_hash_handle hh;
};

struct buffer {
    uint64_t record; /* entry in the record of its device; 0: none */
    uint64_t handle;
    enum buffer_state state; /* requests use buffer_state() */
    const uint64_t *losses;  /* `losses` of its device; NULL: it is on no device */
    uint64_t lives;          /* value of that counter when `state` was set */
    struct shape shape;
    uint64_t bytes;
    struct variable *variable; /* variable of a module, owned; NULL: has memory of its own */
    uint64_t flags;
    char label[PROTO_LABEL_MAX + 1];
    struct tenant *tenant;
    struct session *owner;                    /* NULL: its maker freed it or ended */
    struct buffer *owned_prev, *owned_next;   /* in owner->owned */
    uint64_t seq;                             /* number of the request that made it */
    uint8_t client_id[PROTO_CLIENT_ID_BYTES]; /* with user: the session that made it */
    uint64_t user;                            /* session_user() */
    uint64_t freed_by;                        /* number of its maker's BUFFER_FREE; 0: none */
    unsigned device;                          /* place in front->device */
    unsigned shown;                           /* what clients call the device */
    struct spans defined;
    uint64_t spoiled_by; /* id of the last job that left a part undefined; 0: none */
    int spoiled_step;    /* step of that job; -1: unknown */
    int spoiled_code;    /* error of that job */
    bool asked;          /* its worker was asked to make it */
    bool sealed;
    bool sealing;          /* the worker fills host_fd */
    enum buffer_copy copy; /* of one that is not sealed */
    bool passes;           /* that copy is to go on to another worker; evacuate.c's */
    bool roams; /* a job in its line runs, or ran, on another device than its own, or it moves */
    enum buffer_move move;
    unsigned move_to;       /* MOVE_ARRIVES: place in front->device */
    uint64_t move_ns;       /* when that began; not MOVE_NONE */
    unsigned move_tries;    /* how often a worker lacked room for it */
    uint64_t move_retry_ns; /* it does not begin to move before that; 0: no worker has refused it */
    int host_fd;            /* memfd with its content, owned; -1: none */
    bool handed;            /* the launcher keeps host_fd for the next front; keep.c's */
    bool restore_asked;     /* restoring: the worker was asked to copy it in */
    unsigned restore_tries; /* how often its worker could not restore it */
    bool restore_due;       /* restoring: in device->restoring, to be asked for */
    struct buffer *restore_prev, *restore_next; /* there, or in device->evacuation.due */
    bool freed;         /* its handle is freed; unfinished jobs still use it */
    struct op *pending; /* the BUFFER_CREATE or BUFFER_SEAL that waits for the worker; NULL: none */
    bool seal_wanted;   /* a BUFFER_SEAL waits until the last writer has ended */
    int export_fd;      /* memfd or handle of its memory for other processes, owned; -1: none yet */
    uint64_t export_bytes;         /* of export_fd */
    char name[PROTO_NAME_MAX + 1]; /* its published name; "": none; set by buffer_rename */
    UT_hash_handle hh_name;        /* in tenant->published, if it has a name */
    unsigned rights;
    char *grants;  /* owned: the tenants that may open copies of it by its name; NULL: none */
    char *copy_of; /* owned: "TENANT/NAME" of what was opened; NULL: of nothing, or an earlier front
                      opened it */
    uint64_t linger_ns;
    uint64_t linger_until_ns;     /* NS_NEVER while it has an owner or openers */
    struct heap_entry linger;     /* in front->lingering, by linger_until_ns */
    struct buffer_opener *opener; /* newest first */
    unsigned openers;
    bool record_pending; /* in front->records_pending: its adoption record is out of date */
    struct buffer *record_prev, *record_next;
    struct hazard_group *groups; /* its unfinished jobs, in groups, oldest first (hazard.h) */
    unsigned writers;            /* unfinished jobs that write it */
    unsigned users;              /* unfinished jobs that name it */
    uint32_t recorded;           /* number of the recording that has it; 0: none */
    unsigned mark;               /* scratch of mark_uses in conclude.c; else 0 */
    unsigned use_hint;           /* where the last job found it in its uses; a hint */
};

/* May it move to another device? Not if other processes or sessions may have it, or if it is a
 * variable, whose memory belongs to its module. */
bool buffer_may_move(const struct buffer *b);
/* It is on that device from now on, with all that counts it. */
void buffer_move_to(struct buffer *b, struct device *from, struct device *to, uint64_t now_ns);

/* Bytes that it counts for on its device and for its tenant: 0 for a variable, whose memory belongs
 * to its module. Each buffer that is not lost is charged once. buffer_charge returns false, and
 * changes nothing, if a sum would overflow. */
uint64_t buffer_charged(const struct buffer *b);
bool buffer_charge(const struct buffer *b, struct device *d, uint64_t now_ns);
void buffer_discharge(const struct buffer *b, struct device *d, uint64_t now_ns);
/* Set and remove the owner, without its counts. */
void buffer_own(struct buffer *b, struct session *s);
void buffer_unown(struct buffer *b);
/* Removes the owner of a buffer that lives on by its name, and takes it off the owner's counts. */
void buffer_disown(struct buffer *b);

/* Writes "buffer 0x100000001 (weights)"; the label only if it has one. Returns out. */
#define BUFFER_TITLE (PROTO_LABEL_MAX + 32u)
const char *buffer_title(const struct buffer *b, char out[BUFFER_TITLE]);

void buffer_set_state(struct buffer *b, enum buffer_state state);
/* Whether its worker has ended since `state` was set. */
bool buffer_outlived(const struct buffer *b);
/* Whether its content is on the host, from where the next worker can restore it. */
bool buffer_restorable(const struct buffer *b);
/* The state as requests see it. It changes at once when a worker ends, although the buffers of that
 * worker are marked in slices. */
enum buffer_state buffer_state(const struct buffer *b);
const char *buffer_state_name(const struct buffer *b);
unsigned buffer_wire_state(const struct buffer *b);
/* Appends the BUFFER message about it. */
int buffer_encode(const struct buffer *b, struct capbuf *out, struct err *e);

/* Finds a live handle of the tenant. ERR_BAD_HANDLE, ERR_STALE_HANDLE (it was freed, even if jobs
 * still use the buffer), ERR_BUFFER_LOST (lost when daemon and workers started anew). */
int buffer_find(const struct idmap *buffers, uint64_t handle, const struct tenant *tenant,
                struct buffer **ret_buffer, struct err *e);
/* The same for a session. A buffer of another session is found only if it is published, or opened
 * by this session. */
int buffer_find_for(const struct idmap *buffers, uint64_t handle, const struct session *s,
                    struct buffer **ret_buffer, struct err *e);
/* The tenant's published buffer of that name; NULL: none. */
struct buffer *buffer_named(const struct tenant *tenant, const char *name);
/* Checks a list of tenants for BUFFER_PUBLISH: names with single spaces between them. */
int buffer_check_grants(struct bytes grants, struct err *e);
/* Replaces the tenants to which it is granted. false: no memory, and nothing changed. */
bool buffer_set_grants(struct buffer *b, struct bytes grants);
/* The buffer that `owner` has published under that name and granted to the tenant. NULL: none, for
 * whatever reason. owner NULL: none. */
struct buffer *buffer_granted(const struct tenant *owner, const char *name,
                              const struct tenant *tenant);
/* Publishes it under a name that no other buffer of the tenant has. "": unpublishes it.
 * false: no memory, and the buffer is not published. */
bool buffer_rename(struct buffer *b, const char *name);
bool buffer_opener_add(struct buffer *b, struct session *s, uint64_t seq); /* false: no memory */
/* Removes the session's newest opening. false: the session has none. */
bool buffer_opener_remove(struct buffer *b, struct session *s);
/* Whether `o` is its session's newest opening of the buffer. */
bool buffer_opener_newest(struct buffer *b, const struct buffer_opener *o);
/* Removes openings, owner and name; closes the host copy and the export; frees the struct. It must
 * be out of all other tables. NULL is accepted. */
void buffer_destroy(struct buffer *b);

#endif
