/*
 * One source to one binary, through the dialect where it is written in it, with what the front
 * needs to know of each kernel. Blocks. Thread: one.
 */
#ifndef COMPILE_COMPILE_H
#define COMPILE_COMPILE_H

#include "daemon/backend/backend.h"
#include "proto/compile.h"

struct compile_job {
    struct compile_response response; /* lies in what follows */
    struct backend_compiled compiled;
    struct capbuf kernels;
    struct capbuf entries;
    struct err e;
    const char *cache_dir;       /* set before; not owned; NULL or "": none */
    bool confined;               /* by the caller: what compilers can read is bounded */
    const char *backend_options; /* not owned */
    char stamp[PROTO_TEXT_MAX];  /* of the compiler */
};

/* Fills the response whatever happens. `options` are the back end's own. Finish it afterwards. */
void compile_run(struct compile_job *job, const struct backend *b, unsigned index,
                 const char *options, const struct compile_request *request);
void compile_finish(struct compile_job *job);

#endif
