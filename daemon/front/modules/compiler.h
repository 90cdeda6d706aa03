/*
 * Compiles sources into binaries, each in a gpud-compile process of its own, at most `parallel` at
 * once. Owners take turns, and none has all places. A cache of binaries on disk comes first. Its
 * key covers source, options, back end, architecture, build and the hash of gpud-compile. If a file
 * is damaged, or the vendor's compiler was replaced since, the source is compiled again. With a
 * full disk nothing is cached. Thread: the loop's. Blocks on files of up to some MiB.
 */
#ifndef FRONT_MODULES_COMPILER_H
#define FRONT_MODULES_COMPILER_H

#include <uv.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/hash.h"
#include "daemon/front/workers/launcher_link.h"
#include "proto/compile.h"

struct compiler;

struct compiler_options {
    const char *cache_dir; /* NULL, or a directory that cannot be used: no cache */
    uint64_t cache_bytes;  /* limit of all files together; 0: 1 GiB */
    const char *build;
    unsigned parallel;
    unsigned owner_parallel;  /* of one owner; 0: as many as all */
    unsigned queue_max;       /* beyond it requests are ERR_BUSY */
    unsigned owner_queue_max; /* of one owner; 0: as many as all */
    struct launcher_limits limits;
};

/* A request. Texts and bytes are copied. `owner` separates the cache entries of tenants. */
struct compiler_request {
    const char *backend;
    const char *device;  /* index as text, for gpud-compile --device */
    const char *options; /* of the back end, as its workers get them; may be "" */
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

/* Called once, from the loop or compiler_destroy, never from within compiler_start. response: valid
 * during the call; NULL unless code is 0, or ERR_COMPILE, which sets its log. key: of the
 * binary. */
typedef void (*compiler_done_fn)(void *data, int code, const struct compile_response *response,
                                 struct hash key, const struct err *e);

int compiler_create(uv_loop_t *loop, struct launcher_link *launcher,
                    const struct compiler_options *options, struct compiler **ret_compiler,
                    struct err *e);
/* Answers pending requests with ERR_CLOSED first. NULL is accepted. */
void compiler_destroy(struct compiler *c);
int compiler_start(struct compiler *c, const struct compiler_request *request,
                   compiler_done_fn done, void *data, struct err *e);
/* Reports of the launcher. false: the id is not a compiler's. */
bool compiler_started(struct compiler *c, uint64_t id, int code, const char *text);
bool compiler_ended(struct compiler *c, uint64_t id, int status, bool timed_out);

/* The launcher was lost: its requests start again with the new one. Without a new one (NULL) they
 * wait for it, like all later requests. */
void compiler_relink(struct compiler *c, struct launcher_link *launcher);
/* Why the cache that the options name keeps nothing: it cannot be used, or the latest binary could
 * not be written, nor is there room for one of its size since. NULL: it works. */
const struct err *compiler_cache_error(const struct compiler *c);
/* Tries a cache that could not be written, each COMPILER_RETRY_NS. Returns when to call it next. */
#define COMPILER_RETRY_NS (10 * NS_PER_S)
uint64_t compiler_tend(struct compiler *c, uint64_t now);

struct compiler_stats {
    uint64_t started, hits, misses, damaged, failed, running, queued;
};
void compiler_stats(const struct compiler *c, struct compiler_stats *ret_stats);

#endif
