/*
 * A program: an immutable recipe of steps with parameters and temporaries, checked when it is made
 * as far as it can be without its parameters. Kept in its encoded form; jobs hold a reference.
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_PROGRAM_H
#define FRONT_MODEL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/messages.h"

struct session;
struct tenant;

struct program {
    uint64_t handle; /* 0: stands in its job only */
    char name[PROTO_NAME_MAX + 1];
    struct tenant *tenant;
    struct session *owner;
    struct program *owned_prev, *owned_next; /* in owner->own_programs */
    uint8_t *bytes;                          /* owned: what the lists below lie in */
    size_t size;                             /* of bytes */
    struct proto_list params;
    struct proto_list temps;
    struct proto_list steps;
    unsigned references;
    uint64_t runs;
};

/* Copies the lists. References: 1. */
int program_create(struct proto_list params, struct proto_list temps, struct proto_list steps,
                   struct program **ret_program, struct err *e);
/* A new one is the session's, which counts it. */
void program_own(struct program *p, struct session *s);
void program_disown(struct program *p);
struct program *program_ref(struct program *p);
void program_unref(struct program *p); /* NULL accepted */

#endif
