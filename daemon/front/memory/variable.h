/*
 * Variables of modules as buffers. A session opens a variable of a module that it loaded; from then
 * on whatever launches a kernel of that module uses the buffer, too, so that what is written there
 * comes before one launch and after another. Modules are loaded for each session anew: no session
 * sees another's variables. Thread: the loop's.
 */
#ifndef FRONT_MEMORY_VARIABLE_H
#define FRONT_MEMORY_VARIABLE_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

struct buffer;
struct module;
struct work;

/* The module that a BUFFER_CREATE names; NULL: none. ret_wish: where the buffer must be, as `wish`
 * (the device's id + 1, 0: anywhere). Typed errors. */
int variable_module(struct request_context *c, uint64_t wish, struct module **ret_module,
                    uint64_t *ret_wish, struct err *e);
/* Makes the new buffer the module's variable, in order behind the jobs that launch its kernels.
 * ERR_BUSY: one of them has no room for another buffer. Nothing is changed on failure. */
int variable_attach(struct request_context *c, struct module *m, struct buffer *b, struct err *e);
/* Asks the worker for it, or for the module first. Fails if the module cannot be had: the error is
 * the compiler's, or ERR_BUSY. */
int variable_ask(struct front *f, struct variable *v, struct err *e);
/* It could not be made: jobs that launch kernels of its module, and did not name it themselves, run
 * without it. To be called before its buffer goes. NULL is allowed. */
void variable_failed(struct front *f, struct variable *v);
/* Refuses what a variable cannot be. */
int variable_refuse(const struct buffer *b, const char *what, struct err *e);
/* The module no longer has it; nothing else changes. For the end of the daemon, and for
 * variable_detach. NULL is allowed. */
void variable_remove(struct variable *v);
/* Its buffer goes: the module forgets it. NULL is allowed. */
void variable_detach(struct front *f, struct variable *v);

#endif
