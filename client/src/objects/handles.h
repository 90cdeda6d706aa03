/*
 * Public handles. The library makes them, with generations that identify freed handles. Each stands
 * for a struct with the daemon's handle, which a restart of the daemon changes.
 *
 * Thread: under the client's lock.
 */
#ifndef CLIENT_OBJECTS_HANDLES_H
#define CLIENT_OBJECTS_HANDLES_H

#include "client/src/base/client.h"
#include "client/src/objects/objects.h"

struct buffer {
    uint64_t daemon;
    uint64_t id;      /* public */
    const char *lost; /* static: what became of it, as an event said; NULL: it is there */
    gpud_shape shape;
};

struct kernel {
    struct object object;
    gpud_kernel_desc desc;
    uint64_t module;             /* public handle of its module, 0: built-in */
    char asked[GPUD_NAME];       /* the name it was found by, with its version */
    gpud_kernel_arg_desc args[]; /* desc.arg_count of them */
};

struct module {
    struct object object;
    uint32_t kernel_count;
    uint64_t *kernels; /* owned; public handles in the module's order */
};

/* The struct of a public handle. BAD_HANDLE or STALE_HANDLE. */
int buffer_get(struct gpud_client *c, gpud_buffer buffer, struct buffer **ret_buffer,
               struct err *e);
/* The same for a buffer that is to be used. BUFFER_LOST, too: it can only be freed. */
int buffer_use(struct gpud_client *c, gpud_buffer buffer, struct buffer **ret_buffer,
               struct err *e);
/* The daemon refused a request with the buffer: a daemon that never had it does not know that it
 * was lost. Returns e->code. */
int buffer_explain(struct gpud_client *c, gpud_buffer buffer, struct err *e);
int kernel_get(struct gpud_client *c, gpud_kernel kernel, struct kernel **ret_kernel,
               struct err *e);
int module_get(struct gpud_client *c, gpud_module module, struct module **ret_module,
               struct err *e);

void handles_init(struct gpud_client *c, uint64_t first_generation);
void handles_finish(struct gpud_client *c);

/* The public handle of a daemon's handle; id 0 if this client has none. */
gpud_buffer buffer_by_daemon(struct gpud_client *c, uint64_t daemon);

#define LOST_WITH_WORKER  "was lost with its worker"
#define LOST_WITH_DAEMON  "was lost when gpud and its workers were started anew"
#define LOST_WITH_SESSION "was lost with its session, which ended without a connection"

/* Reports to the user that the buffer was lost, once. why: one of these. text: what the daemon says
 * of it; "": nothing. */
void buffer_lost(struct gpud_client *c, struct buffer *b, const char *why, const char *text);
/* Refuses a request that names a lost buffer by the daemon's handle. Walks all buffers if one of
 * them is lost. */
int buffer_check_daemon(const struct gpud_client *c, uint64_t daemon, struct err *e);
/* The handle is gone: the buffer is not counted any more. */
void buffer_gone(struct gpud_client *c, const struct buffer *b);

/* Around a request for a buffer, until its handle is in the map. */
void buffer_coming(struct gpud_client *c);
void buffer_came(struct gpud_client *c);
/* The daemon reports the loss of a buffer that no handle stands for. If its handle is to come, the
 * loss is remembered until then: of so many losses at a time, the last LOST_EARLY_MAX are. */
void buffer_lost_early(struct gpud_client *c, uint64_t daemon);
/* The handle is in the map: reports the loss that came before it. */
void buffer_check_early(struct gpud_client *c, struct buffer *b);

#endif
