/*
 * Source to binary by throwaway gpud-compile processes, at most `parallel` at once, in front of
 * them a cache of binaries on disk: keyed by content, options, back end, architecture, build and
 * what gpud-compile is, byte for byte; each file carries a checksum and the stamp of the compiler
 * that made it: a damaged one is deleted and made again, and so is one whose compiler was replaced.
 * A full disk only costs the cache. Thread: the loop's. File access is synchronous and small (up to
 * some MiB).
 */
#ifndef FRONT_MODULES_COMPILER_H
#define FRONT_MODULES_COMPILER_H

#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/hash.h"
#include "daemon/front/workers/launcher_link.h"
#include "proto/compile.h"

struct compiler;

struct compiler_options {
    const char *cache_dir; /* NULL: no cache. One that cannot be used is done without. */
    uint64_t cache_bytes;  /* bound of all files together; 0: 1 GiB */
    const char *build;
    unsigned parallel;
    unsigned queue_max; /* more wait requests are ERR_BUSY */
    struct launcher_limits limits;
};

/* What is asked. Texts and bytes are copied. `owner` keeps tenants' cache entries apart. */
struct compiler_request {
    const char *backend;
    const char *device;  /* index as text, for gpud-compile --device */
    const char *options; /* the back end's options as the worker gets them, may be "" */
    const char *arch;
    const char *owner; /* "builtin" or a tenant's name */
    int lang;          /* enum proto_lang */
    bool f64;
    struct bytes source;
    const char *file;
    const char *build_options;
    const char *signature;
    struct proto_list headers; /* HEADER records */
};

/* Called once, from the loop, never from within compiler_start. response is NULL unless code is 0
 * or ERR_COMPILE (then its log is set); valid during the call, like `key`, which names the binary.
 */
typedef void (*compiler_done_fn)(void *data, int code, const struct compile_response *response,
                                 struct hash key, const struct err *e);

int compiler_create(uv_loop_t *loop, struct launcher_link *launcher,
                    const struct compiler_options *options, struct compiler **ret_compiler,
                    struct err *e);
/* Pending requests are answered with ERR_CLOSED first. NULL is accepted. */
void compiler_destroy(struct compiler *c);
int compiler_start(struct compiler *c, const struct compiler_request *request,
                   compiler_done_fn done, void *data, struct err *e);
/* The owner of launcher callbacks hands on what concerns compilers; false: not one of mine. */
bool compiler_started(struct compiler *c, uint64_t id, int code, const char *text);
bool compiler_ended(struct compiler *c, uint64_t id, int status, bool timed_out);

/* The launcher was lost: what ran there starts anew with another one, or is answered with
 * ERR_CLOSED (as all later requests are) if there is none. */
void compiler_relink(struct compiler *c, struct launcher_link *launcher);
/* Why nothing is kept in the cache that was asked for: there is none, or the last kernel could not
 * be written. NULL if all is well. */
const struct err *compiler_cache_error(const struct compiler *c);

struct compiler_stats {
    uint64_t started, hits, misses, damaged, failed, running, queued;
};
void compiler_stats(const struct compiler *c, struct compiler_stats *ret_stats);

#endif
