/*
 * A program: an immutable recipe of steps with parameters and temporaries. PROGRAM_CREATE checks
 * what does not depend on parameters. A program is stored in its encoded form, and jobs have
 * references to it. Thread: the loop's.
 */
#ifndef FRONT_MODEL_PROGRAM_H
#define FRONT_MODEL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/front/model/device_set.h"
#include "proto/messages.h"

struct session;
struct tenant;

struct program {
    uint64_t handle; /* 0: not in front->programs yet */
    char name[PROTO_NAME_MAX + 1];
    struct tenant *tenant;
    struct session *owner;
    struct program *owned_prev, *owned_next; /* in owner->own_programs */
    uint8_t *bytes;                          /* owned: the encoded lists below */
    size_t size;                             /* of `bytes` */
    struct proto_list params;
    struct proto_list temps;
    struct proto_list steps;
    unsigned references;
    uint64_t runs;           /* jobs admitted with it */
    uint32_t recorded;       /* number of the recording that has it; 0: none */
    struct device_set known; /* whose workers ran it */
};

/* Copies the lists. The caller owns the first reference. ERR_NOMEM. */
int program_create(struct proto_list params, struct proto_list temps, struct proto_list steps,
                   struct program **ret_program, struct err *e);
/* Gives a new program to the session, which counts it and its bytes. */
void program_own(struct program *p, struct session *s);
void program_disown(struct program *p); /* removes the owner and its counts */
struct program *program_ref(struct program *p);
void program_unref(struct program *p); /* NULL accepted */

#endif
