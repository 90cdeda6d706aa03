/* Programs: built by one thread, then sealed and shared. */
#ifndef CLIENT_API_PROGRAM_H
#define CLIENT_API_PROGRAM_H

#include "client/src/api/args.h"

/* Memory of gpud_host_alloc that a step writes to. */
struct host_range {
    void *data;
    uint64_t bytes;
};

struct gpud_program {
    struct object object;       /* in the client's list once sealed */
    struct gpud_client *client; /* NULL: it was closed */
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
    struct err failed;                    /* the first error of the building */
    bool sealed;
    bool abandoned; /* freed in a forked child */
};

/* The client goes: programs stay for their owners. */
void programs_finish(struct gpud_client *c);

#endif
