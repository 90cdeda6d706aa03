/* Arguments and steps in the form in which they travel. Thread: under the client's lock. */
#ifndef CLIENT_API_ARGS_H
#define CLIENT_API_ARGS_H

#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"

/* access: taken if the argument says GPUD_AS_KERNEL. Data that travels with the job is not copied:
 * `ret_arg` points to the caller's memory. uses: where it is noted (as argument `index`) if the
 * array lies in an arena or goes through one; NULL: it travels with the job, wherever it lies.
 * INVALID, BAD_HANDLE, STALE_HANDLE, ARG_SHAPE, LIMIT. */
int arg_encode(struct gpud_client *c, const gpud_arg *arg, uint32_t access, struct host_uses *uses,
               uint32_t index, struct proto_arg *ret_arg, struct err *e);
/* An array that lies in an arena, and must. ARG_TYPE. */
int arg_encode_arena(struct gpud_client *c, const gpud_arg *arg, uint32_t access,
                     struct proto_arg *ret_arg, struct err *e);
/* What a kernel does with its argument i. GPUD_INOUT where that is not known. */
uint32_t arg_access(const struct kernel *kernel, uint32_t index);

/* Appends a step with its arguments to a list of steps. */
int step_add(struct proto_step *step, const struct proto_arg *args, uint32_t count,
             struct capbuf *steps, struct err *e);
/* A launch step; the arguments' access is checked against what the kernel says. uses: as for
 * arg_encode; NULL: it is a program's, and host memory cannot be written to. */
int step_add_launch(struct gpud_client *c, gpud_kernel kernel, const gpud_arg *args, uint32_t count,
                    const gpud_grid *grid, struct host_uses *uses, struct capbuf *steps,
                    struct err *e);

#endif
