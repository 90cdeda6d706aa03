/* Encodes the arguments and steps of jobs and programs. Thread: under the client's lock. */
#ifndef CLIENT_API_ARGS_H
#define CLIENT_API_ARGS_H

#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"

/* Encodes one argument. access: used if the argument says GPUD_AS_KERNEL. Data that travels with
 * the job is not copied: `ret_arg` points to the caller's memory. uses: receives the use of an
 * arena, as argument `index`, if the array lies in an arena or goes through staging memory; NULL:
 * the array travels with the job. INVALID, BAD_HANDLE, STALE_HANDLE, ARG_SHAPE, LIMIT. */
int arg_encode(struct gpud_client *c, const gpud_arg *arg, uint32_t access, struct host_uses *uses,
               uint32_t index, struct proto_arg *ret_arg, struct err *e);
/* The same for an array that must lie in an arena; ARG_TYPE if it does not. */
int arg_encode_arena(struct gpud_client *c, const gpud_arg *arg, uint32_t access,
                     struct proto_arg *ret_arg, struct err *e);
/* The access that the kernel declares for an argument; GPUD_INOUT if that is not known. */
uint32_t arg_access(const struct kernel *kernel, uint32_t index);

/* Appends a step with its arguments to a list of steps. */
int step_add(struct proto_step *step, const struct proto_arg *args, uint32_t count,
             struct capbuf *steps, struct err *e);
/* Appends a launch step. Checks each argument's access against the kernel's declaration. uses: as
 * for arg_encode; NULL: the step is a program's, so it cannot write to host memory. */
int step_add_launch(struct gpud_client *c, gpud_kernel kernel, const gpud_arg *args, uint32_t count,
                    const gpud_grid *grid, struct host_uses *uses, struct capbuf *steps,
                    struct err *e);

#endif
