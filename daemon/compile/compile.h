/*
 * Compiles one source to one binary, with the facts about each kernel that the front needs. A
 * source in the dialect is translated first. Blocks. Thread: one.
 */
#ifndef COMPILE_COMPILE_H
#define COMPILE_COMPILE_H

#include "daemon/backend/backend.h"
#include "proto/compile.h"

struct compile_job {
    struct compile_response response; /* its bytes are in the members below */
    struct backend_compiled compiled;
    struct capbuf kernels;
    struct capbuf entries;
    struct err e;
    const char *cache_dir; /* set by the caller; not owned; NULL or "": no cache */
    /* set by the caller: compilers can read no files but the allowed ones (confine.h) */
    bool confined;
    const char *backend_options; /* not owned */
    char stamp[PROTO_TEXT_MAX];  /* of the compiler */
};

/* Fills the response, also on failure. options: of the back end. Requires a call of
 * compile_finish afterwards. */
void compile_run(struct compile_job *job, const struct backend *b, unsigned index,
                 const char *options, const struct compile_request *request);
void compile_finish(struct compile_job *job);

#endif
