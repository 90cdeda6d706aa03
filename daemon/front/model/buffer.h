/*
 * A buffer: typed, shaped, by handle; it lives on one device. Owned by the session that made it,
 * or, once published and left by its maker, by its name until its linger time is over. State
 * changes in buffer_set_state only. Thread: the loop's.
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
    BUFFER_RESTORING, /* a sealed buffer whose worker ended: the next one copies it in */
    BUFFER_LOST,      /* its worker ended; only free is possible */
};

/* An unfinished job's place in the buffer's line; hazard.c's. */
struct buffer_use {
    struct job *job;
    unsigned index; /* in job->work.uses */
    struct hazard_group *group;
    struct buffer_use *prev, *next; /* in its group */
};

/* A session that opened it by name; once for each time it did. */
struct buffer_opener {
    struct buffer_opener *prev, *next; /* in buffer->opener */
    struct buffer_opener *older;       /* of the same session, NULL: none */
    struct session *session;
    uint64_t seq; /* of its request */
};

/* What a session has opened, by buffer; in session->openings. */
struct buffer_opening {
    struct buffer *buffer; /* key */
    struct buffer_opener *newest;
    UT_hash_handle hh;
};

struct buffer {
    uint64_t record; /* its entry in the record of its device, 0: none */
    uint64_t handle;
    enum buffer_state state; /* requests go by buffer_state() */
    const uint64_t *losses;  /* of its device; NULL: of none */
    uint64_t lives;          /* after so many of them it came to be in this state */
    struct shape shape;
    uint64_t bytes;
    struct variable *variable; /* owned: of a module; NULL: it has memory of its own */
    uint64_t flags;
    char label[PROTO_LABEL_MAX + 1];
    struct tenant *tenant;
    struct session *owner; /* NULL: lives by its name, or is only used by jobs still */
    struct buffer *owned_prev, *owned_next;   /* in owner->owned */
    uint64_t seq;                             /* of the request that made it */
    uint8_t client_id[PROTO_CLIENT_ID_BYTES]; /* and the user: whose session made it */
    uint32_t uid;
    uint64_t freed_by; /* number of the request by which its owner let go of it, 0: of none */
    unsigned device;   /* index */
    struct spans defined;
    uint64_t spoiled_by; /* the last job that left a part of it undefined, 0: none did */
    int spoiled_step;    /* of that job, -1: none is known */
    int spoiled_code;    /* and its error */
    bool sealed;
    bool sealing;       /* asked of the worker, and not answered: host_fd is not filled */
    int host_fd;        /* sealed: memfd with the content, owned; -1 */
    bool restore_asked; /* RESTORING: of the worker, which has not answered */
    bool restore_due;   /* RESTORING: in device->restoring, not asked yet */
    struct buffer *restore_prev, *restore_next;
    bool freed; /* the handle is nobody's, and it is in the table for jobs that name it only */
    struct op *pending;    /* create or seal that waits for the worker */
    bool seal_wanted;      /* a seal that waits for writers */
    int export_fd;         /* its memory for other processes, owned; -1: not asked for yet */
    uint64_t export_bytes; /* behind export_fd */
    char name[PROTO_NAME_MAX + 1]; /* published, else ""; set by buffer_rename */
    UT_hash_handle hh_name;        /* in tenant->published, unless the name is "" */
    unsigned rights;
    uint64_t linger_ns;
    uint64_t linger_until_ns;     /* NS_NEVER while somebody holds it */
    struct heap_entry linger;     /* in front->lingering, by that time */
    struct buffer_opener *opener; /* newest first */
    unsigned openers;
    bool meta_due; /* in front->metas: its worker is to hear what it is, when it can take that */
    struct buffer *meta_prev, *meta_next;
    struct hazard_group *groups; /* its unfinished jobs, oldest first (hazard.h) */
    unsigned writers;            /* of them, those that write */
    unsigned users;              /* unfinished jobs that name it */
    unsigned mark;               /* while those of two jobs are compared; else 0 */
    unsigned use_hint;           /* where the last job that asked has it in its uses, or not */
};

/* What it counts for on its device and for its tenant, in bytes: a variable's memory is its
 * module's. Each buffer that is not lost is charged once. false, and nothing is changed: a sum
 * would overflow. */
uint64_t buffer_charged(const struct buffer *b);
bool buffer_charge(const struct buffer *b, struct device *d);
void buffer_discharge(const struct buffer *b, struct device *d);
/* Sets the owner, or removes it. No count changes. */
void buffer_own(struct buffer *b, struct session *s);
void buffer_unown(struct buffer *b);
/* It has no owner any more, but goes on: by its name. */
void buffer_disown(struct buffer *b);

/* "buffer 0x100000001 (weights)", the label only where there is one. Returns out. */
#define BUFFER_TITLE (PROTO_LABEL_MAX + 32u)
const char *buffer_title(const struct buffer *b, char out[BUFFER_TITLE]);

void buffer_set_state(struct buffer *b, enum buffer_state state);
/* Its worker ended since it came to be in its state. */
bool buffer_outlived(const struct buffer *b);
/* Its content is on the host: the next worker gets it. */
bool buffer_restorable(const struct buffer *b);
/* What it is for those who ask: that its worker ended counts at once, though buffers are marked one
 * after the other. */
enum buffer_state buffer_state(const struct buffer *b);
const char *buffer_state_name(const struct buffer *b);
unsigned buffer_wire_state(const struct buffer *b);
/* Appends the BUFFER message that tells of it. */
int buffer_encode(const struct buffer *b, struct capbuf *out, struct err *e);

/* Finds a live handle that the tenant may use; typed errors otherwise. What was freed is gone, also
 * while jobs name it. */
int buffer_find(const struct idmap *buffers, uint64_t handle, const struct tenant *tenant,
                struct buffer **ret_buffer, struct err *e);
/* The same for a session: what another one made and did not publish does not exist for it. */
int buffer_find_for(const struct idmap *buffers, uint64_t handle, const struct session *s,
                    struct buffer **ret_buffer, struct err *e);
/* A published buffer of the tenant by name; NULL if there is none. */
struct buffer *buffer_named(const struct tenant *tenant, const char *name);
/* Publishes it in its tenant's table: by this name from now on, which no other buffer of the tenant
 * has. "": it is not published any more. */
void buffer_rename(struct buffer *b, const char *name);
bool buffer_opener_add(struct buffer *b, struct session *s, uint64_t seq); /* false: no memory */
/* The newest of the session's; false: it has none. */
bool buffer_opener_remove(struct buffer *b, struct session *s);
/* Is it the session's newest opening of the buffer? */
bool buffer_opener_newest(struct buffer *b, const struct buffer_opener *o);
/* Frees the struct (and the host copy), which must be out of every table. */
void buffer_destroy(struct buffer *b);

#endif
