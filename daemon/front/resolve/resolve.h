/*
 * Turns the steps of a client's program into the work of a worker: binds parameters, finds buffers
 * and kernels, checks types, shapes, ranges and access, expands operations into launches, and lists
 * reads and writes. It changes only the work that it returns. Thread: the loop's.
 */
#ifndef FRONT_RESOLVE_RESOLVE_H
#define FRONT_RESOLVE_RESOLVE_H

#include "common/idmap.h"
#include "daemon/front/model/device_set.h"
#include "daemon/front/model/work.h"
#include "proto/messages.h"

struct session;
struct tenant;

struct resolve_input {
    const struct idmap *buffers;
    const struct idmap *kernels;
    const struct idmap *arenas;    /* NULL: none */
    struct device *const *device;  /* by the index that buffers have; NULL: not known */
    struct device_set devices;     /* that may run the job; all must be able to */
    struct device_set processors;  /* of these, devices that work in the host's memory */
    struct module *const *builtin; /* by builtin module index */
    const struct session *session; /* NULL: a job of the daemon */
    const struct tenant *tenant;   /* NULL: a job of the daemon */
    struct proto_list params;
    struct proto_list temps;
    struct proto_list steps;
    struct proto_list bindings;
    bool unbound; /* parameters have no values yet (program creation): checks what can be checked */
};

/* Errors have err.step and err.arg, and a text like "step 2, launch axpy: argument y: …". On
 * failure *ret_work is empty. The work points at inputs in the client's message. */
int resolve(const struct resolve_input *in, struct work *ret_work, struct err *e);

#endif
