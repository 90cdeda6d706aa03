/*
 * A buffer: typed and shaped memory on one device, named by a handle. It belongs to the session
 * that made it. A published buffer without a maker lives by its name until its linger time is over.
 * Thread: the loop's.
 *
 * Where a buffer is:
 *
 *   creating → live       its worker has allocated it
 *   creating, live → restoring
 *                         its worker ended, and the host has its content (a sealed buffer)
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
    BUFFER_RESTORING, /* its content is on the host, and the next worker copies it in */
    BUFFER_LOST,      /* only BUFFER_FREE is possible */
};

/* The place of an unfinished job in the line of the buffer; hazard.c's. */
struct buffer_use {
    struct job *job;
    unsigned index; /* in job->work.uses */
    struct hazard_group *group;
    struct buffer_use *prev, *next; /* in its group */
};

/* An opening by name; a session may open a buffer several times. */
struct buffer_opener {
    struct buffer_opener *prev, *next; /* in buffer->opener */
    struct buffer_opener *older;       /* the session's opening before this one; NULL: none */
    struct session *session;
    uint64_t seq; /* number of its request */
};

/* The openings of a session, by buffer; in session->openings. */
struct buffer_opening {
    struct buffer *buffer; /* key */
    struct buffer_opener *newest;
    UT_hash_handle hh;
};

struct buffer {
    uint64_t record; /* entry in the record of its device; 0: none */
    uint64_t handle;
    enum buffer_state state; /* requests use buffer_state() */
    const uint64_t *losses;  /* the counter of its device; NULL: it counts for no device */
    uint64_t lives;          /* value of that counter when it got its state */
    struct shape shape;
    uint64_t bytes;
    struct variable *variable; /* a variable of a module, owned; NULL: it has memory of its own */
    uint64_t flags;
    char label[PROTO_LABEL_MAX + 1];
    struct tenant *tenant;
    struct session *owner;                    /* NULL: it lives by its name, or only jobs use it */
    struct buffer *owned_prev, *owned_next;   /* in owner->owned */
    uint64_t seq;                             /* number of the request that made it */
    uint8_t client_id[PROTO_CLIENT_ID_BYTES]; /* with uid: the session that made it */
    uint32_t uid;
    uint64_t freed_by; /* number of the request by which its maker freed it; 0: none */
    unsigned device;   /* index */
    struct spans defined;
    uint64_t spoiled_by; /* id of the last job that left a part undefined; 0: none */
    int spoiled_step;    /* step of that job; -1: unknown */
    int spoiled_code;    /* error of that job */
    bool sealed;
    bool sealing;       /* the worker fills host_fd */
    int host_fd;        /* sealed: memfd with its content, owned; -1: none */
    bool restore_asked; /* restoring: the worker copies it in */
    bool restore_due;   /* restoring: in device->restoring, and not asked for yet */
    struct buffer *restore_prev, *restore_next;
    bool freed;         /* its handle is freed, and only jobs that name it use it */
    struct op *pending; /* the BUFFER_CREATE or BUFFER_SEAL that waits for the worker; NULL: none */
    bool seal_wanted;   /* a BUFFER_SEAL waits for writers */
    int export_fd;      /* memfd or handle of its memory for other processes, owned; -1: none yet */
    uint64_t export_bytes;         /* of export_fd */
    char name[PROTO_NAME_MAX + 1]; /* its published name; "": none; set by buffer_rename */
    UT_hash_handle hh_name;        /* in tenant->published, if it has a name */
    unsigned rights;
    uint64_t linger_ns;
    uint64_t linger_until_ns;     /* NS_NEVER while a session holds it */
    struct heap_entry linger;     /* in front->lingering, by linger_until_ns */
    struct buffer_opener *opener; /* newest first */
    unsigned openers;
    bool record_pending; /* in front->records: its worker has yet to get its record */
    struct buffer *record_prev, *record_next;
    struct hazard_group *groups; /* its unfinished jobs, in groups, oldest first (hazard.h) */
    unsigned writers;            /* unfinished jobs that write it */
    unsigned users;              /* unfinished jobs that name it */
    unsigned mark;               /* used while the uses of two jobs are compared; else 0 */
    unsigned use_hint;           /* index at which the last job found it in its uses */
};

/* Bytes that it counts for on its device and for its tenant: 0 for a variable, whose memory is its
 * module's. Each buffer that is not lost is charged once. buffer_charge fails, and changes nothing,
 * where a sum would overflow. */
uint64_t buffer_charged(const struct buffer *b);
bool buffer_charge(const struct buffer *b, struct device *d);
void buffer_discharge(const struct buffer *b, struct device *d);
/* Sets the owner, or removes it. No count changes. */
void buffer_own(struct buffer *b, struct session *s);
void buffer_unown(struct buffer *b);
/* Removes the owner of a buffer that lives on by its name. */
void buffer_disown(struct buffer *b);

/* Writes "buffer 0x100000001 (weights)", with the label if there is one. Returns out. */
#define BUFFER_TITLE (PROTO_LABEL_MAX + 32u)
const char *buffer_title(const struct buffer *b, char out[BUFFER_TITLE]);

void buffer_set_state(struct buffer *b, enum buffer_state state);
/* Has its worker ended since it got its state? */
bool buffer_outlived(const struct buffer *b);
/* Is its content on the host, for the next worker? */
bool buffer_restorable(const struct buffer *b);
/* The state for requests. It follows the end of a worker at once, while the buffers of that worker
 * are marked one after the other. */
enum buffer_state buffer_state(const struct buffer *b);
const char *buffer_state_name(const struct buffer *b);
unsigned buffer_wire_state(const struct buffer *b);
/* Appends the BUFFER message about it. */
int buffer_encode(const struct buffer *b, struct capbuf *out, struct err *e);

/* Finds a live handle that the tenant may use; typed errors otherwise. Does not find a freed buffer
 * that jobs still name. */
int buffer_find(const struct idmap *buffers, uint64_t handle, const struct tenant *tenant,
                struct buffer **ret_buffer, struct err *e);
/* The same for a session. Does not find an unpublished buffer of another session. */
int buffer_find_for(const struct idmap *buffers, uint64_t handle, const struct session *s,
                    struct buffer **ret_buffer, struct err *e);
/* A published buffer of the tenant by name; NULL if there is none. */
struct buffer *buffer_named(const struct tenant *tenant, const char *name);
/* Sets its name in the tenant's table, which no other buffer of the tenant has. "": unpublishes it.
 */
void buffer_rename(struct buffer *b, const char *name);
bool buffer_opener_add(struct buffer *b, struct session *s, uint64_t seq); /* false: no memory */
/* Removes the session's newest opening; false: it has none. */
bool buffer_opener_remove(struct buffer *b, struct session *s);
/* Is it the session's newest opening of the buffer? */
bool buffer_opener_newest(struct buffer *b, const struct buffer_opener *o);
/* Frees the struct (and the host copy), which must be out of every table. */
void buffer_destroy(struct buffer *b);

#endif
