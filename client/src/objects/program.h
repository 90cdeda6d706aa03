/*
 * A program: lists of parameters, temporaries and steps under construction; once sealed, an object
 * of the daemon. Its steps name kernels and arenas by the daemon's handles, which restoring
 * changes.
 *
 * Thread: under the client's lock.
 */
#ifndef CLIENT_OBJECTS_PROGRAM_H
#define CLIENT_OBJECTS_PROGRAM_H

#include "client/src/objects/objects.h"

/* Memory of gpud_host_alloc that a step writes to. */
struct host_range {
    void *data;
    uint64_t bytes;
};

struct gpud_program {
    struct object object;       /* in the client's list once sealed */
    struct gpud_client *client; /* NULL: the client was closed */
    struct gpud_program *prev;  /* in client->programs */
    struct gpud_program *next;
    char name[PROTO_NAME_MAX + 1];
    struct capbuf params; /* lists under construction; empty once sealed */
    struct capbuf temps;
    struct capbuf steps;
    uint32_t param_count;
    uint32_t temp_count;
    uint32_t step_count;
    uint8_t param_kind[PROTO_PARAMS_MAX]; /* enum gpud_param_kind */
    struct host_range *ranges;            /* owned; jobs of the program use them */
    uint32_t range_count;                 /* one of a step at most */
    struct err failed;                    /* the first error of a builder's call */
    bool sealed;
    bool abandoned; /* freed in a forked child */
};

#endif
