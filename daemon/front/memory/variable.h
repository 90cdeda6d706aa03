/*
 * Variables of modules as buffers. A session opens a variable of a module that it loaded. From then
 * on each launch of a kernel of that module uses the buffer, so writes to the variable are ordered
 * with the launches. A session loads its own copy of a module, so it does not see the variables of
 * other sessions. Thread: the loop's.
 */
#ifndef FRONT_MEMORY_VARIABLE_H
#define FRONT_MEMORY_VARIABLE_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

struct buffer;
struct module;
struct work;

/* The module that a BUFFER_CREATE names; NULL: none. wish: the requested device's id + 1, 0: any;
 * ret_wish: the device on which the variable has to be, in the same form. */
int variable_module(struct request_context *c, uint64_t wish, struct module **ret_module,
                    uint64_t *ret_wish, struct err *e);
/* Makes the new buffer the module's variable, ordered behind the jobs that launch its kernels.
 * ERR_BUSY: one of these jobs has no room for another buffer. A failure changes nothing. */
int variable_attach(struct request_context *c, struct module *m, struct buffer *b, struct err *e);
/* Asks the worker for the variable, or for its module first. Fails if the module cannot be built,
 * with the compiler's error or ERR_BUSY. */
int variable_ask(struct front *f, struct variable *v, struct err *e);
/* The variable could not be created: jobs that launch kernels of its module, and do not name it,
 * run without it. To be called before its buffer is destroyed. NULL is accepted. */
void variable_failed(struct front *f, struct variable *v);
/* ERR_UNSUPPORTED if the buffer is a variable, which cannot be `what` ("sealed"). */
int variable_refuse(const struct buffer *b, const char *what, struct err *e);
/* Only takes it out of its module. For the end of the daemon, and for variable_detach. NULL is
 * accepted. */
void variable_remove(struct variable *v);
/* Its buffer is being destroyed: takes it out of its module. NULL is accepted. */
void variable_detach(struct front *f, struct variable *v);

#endif
