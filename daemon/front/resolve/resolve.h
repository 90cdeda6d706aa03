/*
 * From what a client sent to what a worker takes: binds parameters, finds buffers and kernels,
 * checks types, shapes, ranges and access, expands operations into launches, and notes what is read
 * and written. Nothing is changed but the work that is returned. Thread: the loop's.
 */
#ifndef FRONT_RESOLVE_RESOLVE_H
#define FRONT_RESOLVE_RESOLVE_H

#include "common/idmap.h"
#include "daemon/front/model/work.h"
#include "proto/messages.h"

struct session;
struct tenant;

struct resolve_input {
    const struct idmap *buffers;
    const struct idmap *kernels;
    const struct idmap *arenas;   /* NULL: none */
    struct device *const *device; /* by index, as buffers say where they are; NULL: not known */
    uint64_t devices;             /* a bit for each that may run the job: all must be able to */
    uint64_t processors; /* of them, those to which the host's memory is as near as their own */
    struct module *const *builtin; /* by builtin module index */
    const struct session *session; /* NULL: the daemon's own */
    const struct tenant *tenant;   /* NULL: the daemon's own */
    struct proto_list params;
    struct proto_list temps;
    struct proto_list steps;
    struct proto_list bindings;
    bool unbound; /* parameters have no values yet: check what can be checked (program creation) */
};

/* err.step and err.arg are set; the text says "step 2, launch axpy: argument y: …". On failure
 * *ret_work is empty. The bytes of inputs stay where they are: in the message that was given. */
int resolve(const struct resolve_input *in, struct work *ret_work, struct err *e);

#endif
