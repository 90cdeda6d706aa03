/*
 * The kinds of tables that operators ask for by name (QUERY), and a table that is being made. Short
 * tables are made at once; long ones are made element by element, over several turns of the loop.
 * Thread: the loop's.
 */
#ifndef FRONT_VIEWS_TABLE_VIEW_H
#define FRONT_VIEWS_TABLE_VIEW_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"
#include "daemon/front/views/table.h"
#include "proto/codec.h"

#define TABLE_ROW_UNITS 8u /* units of work for a row */

struct table_query;

struct table_view {
    const char *name;
    /* Adds the columns; of a short table also all rows. */
    void (*begin)(struct table_query *q);
    /* Visits one more element, which becomes a row, several or none; false: there are no more.
     * NULL: a short table. */
    bool (*next)(struct table_query *q);
    bool before_hello; /* connections without a session may ask for it */
};

/* How far the table `program` is; table_program.c's. Valid while the job has its request: lists and
 * contents lie there, in its program and in its modules. */
struct program_walk {
    unsigned part;          /* enum program_part */
    struct proto_iter list; /* of the part: the records to come */
    struct proto_iter args; /* of the step before: the same */
    uint64_t number;        /* of the next element of the part */
    uint64_t arg;           /* of the next argument */
    unsigned text;          /* of a module: the next of its texts */
    struct proto_iter more; /* of a module: the headers to come */
    const char *what;       /* what `rest` is */
    struct bytes rest;      /* of a content: the bytes to come */
    uint64_t room;          /* bytes that contents may have yet */
};

struct table_query {
    struct front *f;
    const struct session *s;       /* NULL: before HELLO */
    const struct msg_query *query; /* the request's */
    const struct table_view *view;
    struct request *r;  /* owned; NULL: the first turn is not over */
    struct table table; /* valid once `begun` */
    bool begun;
    uint64_t round;  /* of its turn (round_next) */
    const void *at;  /* the element to visit next, of a list; NULL: the end */
    uint32_t cursor; /* the place to visit next, of an idmap */
    struct program_walk walk;
    struct table_query *prev, *next;
};

extern const struct table_view view_status, view_config;              /* table_status.c */
extern const struct table_view view_devices, view_domains, view_pool; /* table_devices.c */
extern const struct table_view view_kernels;                          /* table_kernels.c */
extern const struct table_view view_buffers;                          /* table_buffers.c */
extern const struct table_view view_jobs, view_timeline;              /* table_jobs.c */
extern const struct table_view view_sessions, view_tenants;           /* table_tenants.c */
extern const struct table_view view_accounts;                         /* table_accounts.c */
extern const struct table_view view_record;                           /* table_record.c */
extern const struct table_view view_trace;                            /* trace.c */
extern const struct table_view view_program;                          /* table_program.c */

#endif
