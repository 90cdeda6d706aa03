#include "daemon/front/modules/compiler.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/stamp.h"
#include "daemon/front/modules/cache.h"

#define CACHE_BYTES       (UINT64_C(1024) * 1024 * 1024)
#define CACHE_COMPLAIN_NS (3600 * NS_PER_S)
#define IDENTITY_BYTES    (PROTO_SOURCE_MAX + 256u * 1024u)
#define ID_BIT            (UINT64_C(1) << 63) /* ids of workers and the monitor lie below */
#define ID_MASK           (ID_BIT - 1)

/*
 * A request, from compiler_start to its callback. It is in one of three lists:
 *
 *     queued ──> running ──> ready
 *
 * A request that cannot start goes from queued to ready. When the launcher is lost, running
 * requests go back to queued. Ready requests are answered by the loop.
 */
struct task {
    struct task *prev, *next;
    uint64_t id;   /* the launcher's; 0: it has not started */
    bool relinked; /* another launcher runs it, perhaps with another gpud-compile than the one in
                      `identity`; so its binary is not cached */
    compiler_done_fn done;
    void *data;
    struct hash key;
    struct capbuf identity; /* all that the binary depends on */
    char *owner;
    uint64_t round; /* of its turn; an owner has one of each number */
    char *backend;
    char *device;
    char *options;
    struct memfd request;
    struct memfd response;
    uint8_t *answer; /* owned: a copy of the response in shared memory */
    size_t answer_size;
    struct err error; /* why there is no answer; code 0: `answer` has one */
};

struct compiler {
    uv_timer_t deliver;
    struct launcher_link *launcher;
    struct cache *cache;
    struct err cache_error;     /* why nothing is cached; code 0: the cache works */
    uint64_t cache_complain_ns; /* the log gets no complaint before */
    uint64_t cache_missed;      /* bytes of the latest binary that could not be written */
    uint64_t cache_retry_ns;
    char *cache_dir; /* for files of the vendors' compilers */
    char *build;
    unsigned parallel, owner_parallel;
    unsigned queue_max, owner_queue_max;
    uint64_t round; /* of the task that started last */
    struct launcher_limits limits;
    uint64_t next_id;
    bool closing;
    struct task *queued; /* by round */
    struct task *running;
    struct task *ready;
    struct compiler_stats stats;
};

static void task_destroy(struct task *t)
{
    capbuf_finish(&t->identity);
    memfd_finish(&t->request);
    memfd_finish(&t->response);
    free(t->owner);
    free(t->backend);
    free(t->device);
    free(t->options);
    free(t->answer);
    free(t);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Checks an answer, which is untrusted: its process has read a client's source. */
static int read_answer(const struct task *t, struct compile_response *ret_response, struct err *e)
{
    struct memfd copy = {.fd = -1, .data = t->answer, .size = t->answer_size};
    int rc = compile_response_read(&copy, ret_response, e);
    if (rc == ERR_PROTOCOL || (rc == 0 && ret_response->code != 0 &&
                               strcmp(err_name(ret_response->code), "UNKNOWN") == 0)) {
        return err_set(e, ERR_COMPILE, "the compiler's answer is malformed");
    }
    if (rc == 0 && ret_response->code == 0 && ret_response->binary.size == 0) {
        return err_set(e, ERR_COMPILE, "the compiler returned neither a binary nor an error");
    }
    return rc;
}

static void answer(struct compiler *c, struct task *t)
{
    struct compile_response response = {0};
    struct err e = t->error;
    bool heard = e.code == 0 && read_answer(t, &response, &e) == 0;
    if (heard && response.code != 0) {
        int length = response.text.size < ERR_TEXT_MAX ? (int)response.text.size : ERR_TEXT_MAX;
        (void)err_set_vendor(&e, response.code, response.vendor, "%.*s", length,
                             (const char *)response.text.data);
    }
    if (e.code != 0) {
        c->stats.failed++;
    }
    bool shown = heard && (e.code == 0 || e.code == ERR_COMPILE);
    t->done(t->data, e.code, shown ? &response : NULL, t->key, &e);
    task_destroy(t);
}

static void deliver(uv_timer_t *timer)
{
    struct compiler *c = timer->data;
    struct task *list = c->ready;
    c->ready = NULL;
    while (list != NULL) {
        struct task *t = list;
        DL_DELETE(list, t);
        answer(c, t);
    }
}

/* The loop answers the request, because a callback must not run within compiler_start. */
static void make_ready(struct compiler *c, struct task *t)
{
    DL_APPEND(c->ready, t);
    (void)uv_timer_start(&c->deliver, deliver, 0, 0);
}

/* ---- running -------------------------------------------------------------------------------- */

static int launch(struct compiler *c, struct task *t, struct err *e)
{
    const char *const args[] = {"--backend",
                                t->backend,
                                "--device",
                                t->device,
                                "--options",
                                t->options,
                                c->cache != NULL && c->cache_dir != NULL ? "--cache" : NULL,
                                c->cache_dir,
                                NULL};
    int rc = compile_response_create(&t->response, e);
    if (rc != 0) {
        return rc;
    }
    t->id = ID_BIT | (c->next_id++ & ID_MASK);
    rc = launcher_compiler(c->launcher, t->id, args, &c->limits, t->request.fd, t->response.fd, e);
    if (rc != 0) {
        memfd_finish(&t->response);
        return rc;
    }
    DL_APPEND(c->running, t);
    c->stats.running++;
    c->stats.started++;
    return 0;
}

static unsigned count_of(struct task *list, const struct task *t, uint64_t *ret_round)
{
    unsigned count = 0;
    struct task *other;
    DL_FOREACH(list, other)
    {
        bool own = strcmp(other->owner, t->owner) == 0;
        count += own;
        *ret_round = own && other->round >= *ret_round ? other->round + 1 : *ret_round;
    }
    return count;
}

/* Between two launchers none starts. */
static bool may_start(const struct compiler *c)
{
    return c->launcher != NULL && c->stats.running < c->parallel;
}

/* The first whose owner may have one more running; NULL: none. */
static struct task *next_task(const struct compiler *c)
{
    struct task *t = c->queued;
    uint64_t round = 0;
    while (t != NULL && count_of(c->running, t, &round) >= c->owner_parallel) {
        t = t->next;
    }
    return t;
}

static void start_next(struct compiler *c)
{
    struct task *t;
    while (may_start(c) && (t = next_task(c)) != NULL) {
        DL_DELETE(c->queued, t);
        c->stats.queued--;
        c->round = t->round;
        if (launch(c, t, &t->error) != 0) {
            make_ready(c, t);
        }
    }
}

/* Puts the task behind those of its owner, and before those of owners with more tasks. */
static int enqueue(struct compiler *c, struct task *t, struct err *e)
{
    uint64_t round = c->round;
    (void)count_of(c->running, t, &round);
    unsigned own = count_of(c->queued, t, &round);
    if (c->stats.queued >= c->queue_max || own >= c->owner_queue_max) {
        bool all = c->stats.queued >= c->queue_max;
        return err_set(e, ERR_BUSY, "%u sources%s wait for the compiler already",
                       all ? c->queue_max : own, all ? "" : " of this tenant");
    }
    t->round = round;
    struct task *at = c->queued;
    while (at != NULL && at->round <= round) {
        at = at->next;
    }
    if (at != NULL) {
        DL_PREPEND_ELEM(c->queued, at, t);
    } else {
        DL_APPEND(c->queued, t);
    }
    c->stats.queued++;
    return 0;
}

static struct task *find_running(struct compiler *c, uint64_t id)
{
    struct task *t;
    DL_FOREACH(c->running, t)
    {
        if (t->id == id) {
            return t;
        }
    }
    return NULL;
}

static void leave_running(struct compiler *c, struct task *t)
{
    DL_DELETE(c->running, t);
    c->stats.running--;
}

bool compiler_started(struct compiler *c, uint64_t id, int code, const char *text)
{
    struct task *t = find_running(c, id);
    if (t == NULL) {
        return (id & ID_BIT) != 0; /* of a former front, or given up */
    }
    if (code != 0) {
        leave_running(c, t);
        (void)err_set(&t->error, code, "starting the compiler: %s", text);
        make_ready(c, t);
        start_next(c);
    }
    return true;
}

/* The error for a compiler that a signal ended. */
static void judge_signal(const struct compiler *c, int signal, struct err *e)
{
    if (signal == SIGXCPU) {
        (void)err_set(e, ERR_COMPILE_LIMIT,
                      "the compiler took over %llu s of CPU time (compile.cpu_s)",
                      (unsigned long long)c->limits.cpu_s);
    } else if (signal == SIGXFSZ) {
        (void)err_set(e, ERR_COMPILE_LIMIT, "the compiler wrote a file over its size limit");
    } else if (signal == SIGKILL) {
        (void)err_set(e, ERR_COMPILE_LIMIT,
                      "the compiler was killed, perhaps because the host has no memory left");
    } else {
        (void)err_set(e, ERR_COMPILE, "the compiler crashed (%s)", strsignal(signal));
    }
}

/* The error for a compiler that ended without an answer. */
static void judge_silence(const struct compiler *c, int status, struct err *e)
{
    if (status == COMPILE_EXIT_MEMORY) {
        (void)err_set(e, ERR_COMPILE_LIMIT,
                      "the compiler ran out of memory: it may take %llu MiB "
                      "(compile.memory_bytes)",
                      (unsigned long long)(c->limits.memory >> 20));
    } else if (status == COMPILE_EXIT_STACK) {
        (void)err_set(e, ERR_COMPILE_LIMIT,
                      "the compiler ran out of stack: the source nests too deeply");
    } else {
        (void)err_set(e, ERR_COMPILE, "the compiler ended without an answer, status %d", status);
    }
}

/* Copies the answer before it is checked, because a process that the compiler left behind could
 * still write to it. */
static void copy_answer(struct task *t)
{
    uint64_t length = 0;
    memcpy(&length, t->response.data, sizeof length);
    size_t room = t->response.size - sizeof length;
    if (length > room) {
        (void)err_set(&t->error, ERR_COMPILE, "the compiler's answer is malformed");
        return;
    }
    t->answer_size = sizeof length + (size_t)length;
    t->answer = malloc(t->answer_size);
    if (t->answer == NULL) {
        (void)err_set(&t->error, ERR_NOMEM, "no memory for the compiler's answer");
        return;
    }
    memcpy(t->answer, t->response.data, t->answer_size);
    memcpy(t->answer, &length, sizeof length);
}

/* A full disk is no error of a request. The log complains once an hour. */
static void note_store(struct compiler *c, int rc, const struct err *why, uint64_t bytes,
                       uint64_t now)
{
    if (rc == 0) {
        if (c->cache_error.code != 0) {
            log_say(LOG_CACHE_GOOD, "compiled kernels are cached again");
        }
        c->cache_error = ERR_INIT;
        c->cache_complain_ns = 0;
        return;
    }
    if (rc != ERR_LIMIT) { /* this error concerns one binary only */
        c->cache_error = *why;
        c->cache_missed = bytes;
        c->cache_retry_ns = ns_add(now, COMPILER_RETRY_NS);
    }
    if (now >= c->cache_complain_ns) {
        log_say(LOG_CACHE_BAD, "a compiled kernel is not cached: %s", why->text);
        c->cache_complain_ns = ns_add(now, CACHE_COMPLAIN_NS);
    }
}

static void judge_exit(struct compiler *c, struct task *t, int status)
{
    struct compile_response response;
    copy_answer(t);
    if (t->error.code != 0) {
        return;
    }
    int rc = read_answer(t, &response, &t->error);
    if (rc == ERR_COMPILE_LIMIT) { /* gpud-compile wrote no answer */
        judge_silence(c, WEXITSTATUS(status), &t->error);
    }
    if (rc != 0 || response.code != 0 || c->cache == NULL || t->relinked) {
        return;
    }
    struct err why = ERR_INIT;
    rc = cache_store(c->cache, t->key, capbuf_view(&t->identity),
                     bytes_of(t->answer, t->answer_size), &why);
    note_store(c, rc, &why, t->identity.size + t->answer_size, clock_now_ns());
}

uint64_t compiler_tend(struct compiler *c, uint64_t now)
{
    if (c->cache == NULL || c->cache_error.code == 0) {
        return NS_NEVER;
    }
    if (now >= c->cache_retry_ns) {
        struct err why = ERR_INIT;
        int rc = cache_try(c->cache, c->cache_missed, &why);
        note_store(c, rc, &why, c->cache_missed, now);
    }
    return c->cache_error.code != 0 ? c->cache_retry_ns : NS_NEVER;
}

bool compiler_ended(struct compiler *c, uint64_t id, int status, bool timed_out)
{
    struct task *t = find_running(c, id);
    if (t == NULL) {
        return (id & ID_BIT) != 0;
    }
    leave_running(c, t);
    if (timed_out) {
        (void)err_set(&t->error, ERR_COMPILE_LIMIT,
                      "the compiler was ended after %llu ms (compile.wall_ms)",
                      (unsigned long long)(c->limits.wall_ns / NS_PER_MS));
    } else if (WIFSIGNALED(status)) {
        judge_signal(c, WTERMSIG(status), &t->error);
    } else {
        judge_exit(c, t, status);
    }
    memfd_finish(&t->response);
    make_ready(c, t);
    start_next(c);
    return true;
}

void compiler_relink(struct compiler *c, struct launcher_link *launcher)
{
    c->launcher = launcher;
    while (c->running != NULL) {
        struct task *t = c->running->prev; /* the last one first, so that the order is kept */
        leave_running(c, t);
        memfd_finish(&t->response);
        DL_PREPEND(c->queued, t);
        c->stats.queued++;
    }
    struct task *t;
    DL_FOREACH(c->queued, t)
    {
        t->relinked = true;
    }
    start_next(c);
}

/* ---- requests ------------------------------------------------------------------------------- */

static bool add_part(struct capbuf *b, const void *data, size_t size)
{
    uint64_t length = size;
    return capbuf_append(b, &length, sizeof length) && capbuf_append(b, data, size);
}

static bool add_text(struct capbuf *b, const char *text)
{
    return add_part(b, text, text == NULL ? 0 : strlen(text));
}

/* All that the binary depends on, each part with its length. The hash of gpud-compile stands for
 * the prologue that it adds to a source. The file's name is left out, as it appears in messages
 * only. */
static int identify(const struct compiler *c, const struct compiler_request *r, struct task *t,
                    struct err *e)
{
    const uint8_t kind[2] = {(uint8_t)r->lang, r->f64 ? 1 : 0};
    struct capbuf *b = &t->identity;
    const char *program = c->launcher != NULL ? launcher_compiler_hash(c->launcher) : "";
    bool ok = add_text(b, c->build) && add_text(b, program) && add_text(b, r->owner) &&
              add_text(b, r->backend) && add_text(b, r->arch) && add_text(b, r->options) &&
              add_text(b, r->build_options) && add_text(b, r->signature) &&
              add_part(b, kind, sizeof kind) && add_part(b, r->source.data, r->source.size) &&
              add_part(b, r->headers.raw.data, r->headers.raw.size);
    if (!ok) {
        return err_set(e, ERR_LIMIT, "source, headers and options have over %u bytes",
                       IDENTITY_BYTES);
    }
    t->key = hash_of(b->data, b->size);
    return 0;
}

static int copy_words(const struct compiler_request *r, struct task *t, struct err *e)
{
    t->owner = strdup(r->owner);
    t->backend = strdup(r->backend);
    t->device = strdup(r->device);
    t->options = strdup(r->options != NULL ? r->options : "");
    if (t->owner == NULL || t->backend == NULL || t->device == NULL || t->options == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a compiler's arguments");
    }
    return 0;
}

static int task_create(struct compiler *c, const struct compiler_request *r, compiler_done_fn done,
                       void *data, struct task **ret_task, struct err *e)
{
    struct compile_request request = {
        .lang = r->lang,
        .f64 = r->f64,
        .source = r->source,
        .file = bytes_str(r->file),
        .options = bytes_str(r->build_options),
        .arch = bytes_str(r->arch),
        .signature = bytes_str(r->signature),
        .headers = r->headers,
    };
    struct task *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a compiler's task");
    }
    t->done = done;
    t->data = data;
    t->request = MEMFD_NONE;
    t->response = MEMFD_NONE;
    t->error = ERR_INIT;
    capbuf_init(&t->identity, IDENTITY_BYTES);
    int rc = copy_words(r, t, e);
    if (rc == 0) {
        rc = identify(c, r, t, e);
    }
    if (rc == 0) {
        rc = compile_request_write(&request, &t->request, e);
    }
    if (rc != 0) {
        task_destroy(t);
        return rc;
    }
    *ret_task = t;
    return 0;
}

/* Was the vendor's compiler replaced since it made the binary? The key cannot contain its version,
 * which the front does not know. */
static bool outdated(const struct compile_response *response)
{
    char stamp[PROTO_TEXT_MAX + 1];
    return bytes_to_str(response->compiler, stamp, sizeof stamp) && stamp_changed(stamp);
}

/* An entry that is not a valid answer counts as damaged. */
static bool from_cache(struct compiler *c, struct task *t)
{
    struct compile_response response;
    if (c->cache == NULL) {
        return false;
    }
    int rc = cache_load(c->cache, t->key, capbuf_view(&t->identity), &t->answer, &t->answer_size);
    if (rc == CACHE_HIT && (read_answer(t, &response, NULL) != 0 || response.code != 0)) {
        free(t->answer);
        t->answer = NULL;
        rc = CACHE_DAMAGED;
    } else if (rc == CACHE_HIT && outdated(&response)) {
        free(t->answer);
        t->answer = NULL;
        rc = CACHE_MISS;
    }
    c->stats.hits += rc == CACHE_HIT ? 1 : 0;
    c->stats.misses += rc == CACHE_MISS ? 1 : 0;
    c->stats.damaged += rc == CACHE_DAMAGED ? 1 : 0;
    return rc == CACHE_HIT;
}

int compiler_start(struct compiler *c, const struct compiler_request *request,
                   compiler_done_fn done, void *data, struct err *e)
{
    if (c->closing) {
        return err_set(e, ERR_CLOSED, "gpud is ending");
    }
    struct task *t = NULL;
    int rc = task_create(c, request, done, data, &t, e);
    if (rc != 0) {
        return rc;
    }
    if (from_cache(c, t)) {
        make_ready(c, t);
        return 0;
    }
    uint64_t round = c->round;
    if (!may_start(c) || count_of(c->running, t, &round) >= c->owner_parallel) {
        rc = enqueue(c, t, e);
    } else {
        t->round = c->round = round;
        rc = launch(c, t, e);
    }
    if (rc != 0) {
        task_destroy(t);
    }
    return rc;
}

/* ---- making --------------------------------------------------------------------------------- */

int compiler_create(uv_loop_t *loop, struct launcher_link *launcher,
                    const struct compiler_options *options, struct compiler **ret_compiler,
                    struct err *e)
{
    struct compiler *c = calloc(1, sizeof *c);
    char *build = strdup(options->build);
    if (c == NULL || build == NULL) {
        free(c);
        free(build);
        return err_set(e, ERR_NOMEM, "no memory for the compiler's queue");
    }
    c->build = build;
    c->launcher = launcher;
    c->parallel = options->parallel > 0 ? options->parallel : 1;
    c->owner_parallel = options->owner_parallel > 0 ? options->owner_parallel : c->parallel;
    c->queue_max = options->queue_max;
    c->owner_queue_max =
        options->owner_queue_max > 0 ? options->owner_queue_max : options->queue_max;
    c->limits = options->limits;
    /* a launcher may still run compilers of a former front, whose ids must differ */
    c->next_id = clock_now_ns();
    c->cache_error = ERR_INIT;
    if (options->cache_dir != NULL) {
        uint64_t bound = options->cache_bytes > 0 ? options->cache_bytes : CACHE_BYTES;
        (void)cache_create(options->cache_dir, bound, &c->cache, &c->cache_error);
        c->cache_dir = strdup(options->cache_dir); /* NULL: compilers get no folder */
    }
    (void)uv_timer_init(loop, &c->deliver);
    c->deliver.data = c;
    *ret_compiler = c;
    return 0;
}

static void closed(uv_handle_t *handle)
{
    struct compiler *c = handle->data;
    free(c->cache_dir);
    free(c->build);
    free(c);
}

static void give_up(struct compiler *c, struct task **list)
{
    while (*list != NULL) {
        struct task *t = *list;
        DL_DELETE(*list, t);
        if (t->error.code == 0) {
            (void)err_set(&t->error, ERR_CLOSED, "gpud is ending");
        }
        answer(c, t);
    }
}

void compiler_destroy(struct compiler *c)
{
    if (c == NULL) {
        return;
    }
    struct task *t;
    DL_FOREACH(c->running, t)
    {
        if (c->launcher != NULL) { /* if that fails, its time limit ends it */
            (void)launcher_kill(c->launcher, t->id, SIGKILL, NULL);
        }
    }
    c->closing = true;
    give_up(c, &c->ready);
    give_up(c, &c->running);
    give_up(c, &c->queued);
    cache_destroy(c->cache);
    c->cache = NULL;
    uv_close((uv_handle_t *)&c->deliver, closed);
}

const struct err *compiler_cache_error(const struct compiler *c)
{
    return c->cache_error.code != 0 ? &c->cache_error : NULL;
}

void compiler_stats(const struct compiler *c, struct compiler_stats *ret_stats)
{
    *ret_stats = c->stats;
}
