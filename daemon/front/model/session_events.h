/*
 * The events of a session until an EVENTS message reports them: results of asynchronous jobs, and
 * notices. Thread: the loop's.
 */
#ifndef FRONT_MODEL_SESSION_EVENTS_H
#define FRONT_MODEL_SESSION_EVENTS_H

#include "daemon/front/model/session.h"

#define RESULT_ROOM 192u /* bytes: most results, and an error of RESULT_TEXT */
#define RESULT_TEXT 128u

struct notice {
    unsigned kind; /* enum proto_notice_kind */
    uint64_t handle;
    struct notice *next;
};

/* The end of an asynchronous job. */
struct async_result {
    struct async_result *next;
    uint64_t job;
    size_t size;      /* bytes of `record` */
    uint8_t record[]; /* an encoded RESULT */
};

/* Adds a notice. `usual`: limit for all sessions of the tenant together, unless its section has
 * another. false: the notice is dropped, because of that limit, of the session's own limit, or
 * without memory. */
bool session_notice(struct session *s, uint64_t usual, unsigned kind, uint64_t handle);
void session_notice_drop(struct session *s);                               /* the oldest */
bool session_result(struct session *s, uint64_t job, struct bytes record); /* false: no memory */
/* Memory for the result of a job, so that its end can be told whatever happens: for records of
 * RESULT_ROOM bytes. Owned by the caller, who frees it. NULL: no memory. */
struct async_result *async_result_reserve(void);
/* As session_result. A record that fits takes the memory that was kept for it: *reserve is NULL
 * then. */
bool session_result_in(struct session *s, struct async_result **reserve, uint64_t job,
                       struct bytes record);
/* Bytes that a result counts for, including the struct, because a record may be tiny. */
size_t async_result_bytes(const struct async_result *r);
void session_events_destroy(struct session *s);

#endif
