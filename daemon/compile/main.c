/* gpud-compile: compiles one source to one binary, in a process that may be killed. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build.h"
#include "common/log.h"
#include "daemon/compile/compile.h"
#include "daemon/compile/confine.h"
#include "daemon/compile/exhaustion.h"
#include "daemon/compile/heap.h"
#include "daemon/compile/scratch.h"

#define REQUEST_FD  3
#define RESPONSE_FD 4

struct options {
    const char *backend;
    unsigned index;
    const char *options; /* the back end's own options, as its workers get them */
    const char *cache;   /* folder for the compilers' caches, "" if there is none */
};

static int usage(void)
{
    fprintf(stderr, "usage: gpud-compile --backend NAME --device INDEX [--options TEXT]\n"
                    "                    [--cache DIR]\n"
                    "started by gpud-launcher only\n");
    return 2;
}

/* Returns 0 to go on, else the exit code + 1. */
static int options_parse(int argc, char **argv, struct options *o)
{
    static const struct option LONG[] = {
        {"backend", required_argument, NULL, 'b'}, {"device", required_argument, NULL, 'd'},
        {"options", required_argument, NULL, 'o'}, {"cache", required_argument, NULL, 'c'},
        {"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0}};
    int c;
    bool device = false;
    while ((c = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        char *end = NULL;
        switch (c) {
        case 'b':
            o->backend = optarg;
            break;
        case 'd': {
            errno = 0;
            unsigned long index = strtoul(optarg, &end, 10);
            device = errno == 0 && end != optarg && *end == '\0' && index <= UINT_MAX;
            o->index = (unsigned)index;
            break;
        }
        case 'o':
            o->options = optarg;
            break;
        case 'c':
            o->cache = heap_placed() ? optarg : "";
            break;
        case 'V':
            printf("gpud-compile %s\n", GPUD_BUILD);
            return 1;
        default:
            return usage() + 1;
        }
    }
    return device && o->backend != NULL && optind == argc ? 0 : usage() + 1;
}

/* Redirects stdout and stderr to a memfd. Returns its descriptor; < 0: it failed. */
static int stderr_capture(void)
{
    int fd = memfd_create("gpud-compile-stderr", MFD_CLOEXEC);
    if (fd >= 0 && (dup2(fd, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* If the compile job failed without a log, the captured output becomes the log. */
static void stderr_add(struct compile_job *job, int fd, char *space, size_t size)
{
    if (fd < 0 || job->response.log.size != 0 || job->response.code == 0) {
        return;
    }
    (void)fflush(stderr);
    ssize_t n = pread(fd, space, size, 0);
    if (n > 0) {
        size_t text = strnlen(space, (size_t)n); /* a text of the wire contains no NUL */
        job->response.log = bytes_of(space, text);
    }
}

static int answer_error(struct memfd *out, const struct err *why)
{
    struct err e = ERR_INIT;
    struct compile_response response = {
        .code = why->code, .vendor = why->vendor, .text = bytes_str(why->text)};
    if (compile_response_write(&response, out, &e) != 0) {
        log_say(LOG_COMPILER_FAILED, "%s", e.text);
        return 1;
    }
    return 0;
}

static int run(const struct options *o, const struct compile_request *request, bool confined,
               struct memfd *out)
{
    static char said[PROTO_LOG_MAX];
    struct err e = ERR_INIT;
    const struct backend *b = backend_find(o->backend);
    if (b == NULL) {
        (void)err_set(&e, ERR_UNSUPPORTED, "back end \"%s\" is not built in", o->backend);
        return answer_error(out, &e);
    }
    struct compile_job job = {.cache_dir = o->cache, .confined = confined};
    int real = dup(STDERR_FILENO);
    int captured = stderr_capture();
    if (exhaustion_watch(captured, &e) != 0) {
        log_say(LOG_COMPILER_UNWATCHED, "%s", e.text); /* out of memory will look like a crash */
    }
    compile_run(&job, b, o->index, o->options, request);
    stderr_add(&job, captured, said, sizeof said);
    (void)dup2(real, STDERR_FILENO);
    int rc = compile_response_write(&job.response, out, &e);
    compile_finish(&job);
    return rc == 0 ? 0 : answer_error(out, &e);
}

static int process_prepare(const struct options *o, struct scratch *scratch, bool *ret_confined,
                           struct err *e)
{
    (void)prctl(PR_SET_NAME, "gpud-compile");
    (void)umask(077);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return err_errno(e, ERR_IO, "giving up new privileges");
    }
    int rc = scratch_enter(scratch, e);
    if (rc == 0 && (setenv("POCL_CACHE_DIR", scratch->path, 1) != 0 ||
                    setenv("TMPDIR", scratch->path, 1) != 0)) {
        rc = err_errno(e, ERR_NOMEM, "setting the compiler's folders");
    }
    const struct confine c = {.scratch = scratch->path, .cache = o->cache, .options = o->options};
    return rc == 0 ? confine(&c, ret_confined, e) : rc;
}

int main(int argc, char **argv)
{
    static struct scratch scratch = {.lock_fd = -1};
    struct options o = {.options = "", .cache = ""};
    struct compile_request request;
    struct memfd in = MEMFD_NONE;
    struct memfd out = MEMFD_NONE;
    struct err e = ERR_INIT;
    bool confined = false;
    log_open("gpud-compile", LOG_LEVEL_INFO);
    int rc = options_parse(argc, argv, &o);
    if (rc != 0) {
        return rc - 1;
    }
    log_environment_warn();
    rc = memfd_adopt(RESPONSE_FD, 0, true, &out, &e);
    if (rc != 0) {
        log_say(LOG_COMPILER_FAILED, "the response's memory: %s", e.text);
        return 1;
    }
    rc = memfd_adopt(REQUEST_FD, 0, false, &in, &e);
    rc = rc == 0 ? compile_request_read(&in, &request, &e) : rc;
    rc = rc == 0 ? process_prepare(&o, &scratch, &confined, &e) : rc;
    rc = rc == 0 ? run(&o, &request, confined, &out) : answer_error(&out, &e);
    if (scratch.lock_fd >= 0) {
        scratch_remove(&scratch);
    }
    memfd_finish(&in);
    memfd_finish(&out);
    return rc;
}
