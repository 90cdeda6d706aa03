/* gpud-worker: owns one device and runs the jobs that the front sends. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "build.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/seqpacket.h"
#include "daemon/worker/confine.h"
#include "daemon/worker/serve/serve.h"

#define CHANNEL_FD  3
#define INPUT_FD    4
#define OUTPUT_FD   5
#define EXIT_ABSENT 69
#define HEAP_KEPT   (16 * 1024 * 1024) /* bytes of free heap memory that are kept */
#define HEAP_STEP   (256 * 1024)       /* bytes by which the heap grows */
#define HEAP_PIECE  (8 * 1024 * 1024)  /* bytes: larger pieces are mapped for their time */
/* the front's patience while the driver makes its context */
#define OPEN_PATIENCE_NS (60 * NS_PER_S)

static int usage(void)
{
    fprintf(stderr, "usage: gpud-worker --backend NAME --device INDEX [--options TEXT]\n"
                    "                   [--memory-limit BYTES] [--spill-limit BYTES]\n"
                    "                   [--managed-limit BYTES] [--streams N] [--cache DIR]\n"
                    "                   [--prepared]\n"
                    "started by gpud-launcher only\n");
    return 2;
}

static bool number_parse(const char *text, uint64_t max, uint64_t *ret_value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

static bool number_option(int option, const char *text, struct device_options *o)
{
    uint64_t value = 0;
    bool ok;
    switch (option) {
    case 'd':
        ok = number_parse(text, UINT_MAX, &value);
        o->index = (unsigned)value;
        return ok;
    case 's':
        ok = number_parse(text, DEVICE_STREAMS_MAX, &value);
        o->streams = (unsigned)value;
        return ok;
    case 'm':
        return number_parse(text, UINT64_MAX, &o->memory_limit);
    case 'p':
        return number_parse(text, UINT64_MAX, &o->spill_limit);
    case 'a':
        return number_parse(text, UINT64_MAX, &o->managed_limit);
    default:
        return false;
    }
}

/* Returns 0 to go on, else the exit code + 1. */
static int options_parse(int argc, char **argv, struct device_options *o, const char **ret_cache,
                         bool *ret_prepared)
{
    static const struct option LONG[] = {{"backend", required_argument, NULL, 'b'},
                                         {"device", required_argument, NULL, 'd'},
                                         {"options", required_argument, NULL, 'o'},
                                         {"memory-limit", required_argument, NULL, 'm'},
                                         {"spill-limit", required_argument, NULL, 'p'},
                                         {"managed-limit", required_argument, NULL, 'a'},
                                         {"streams", required_argument, NULL, 's'},
                                         {"cache", required_argument, NULL, 'c'},
                                         {"prepared", no_argument, NULL, 'P'},
                                         {"version", no_argument, NULL, 'V'},
                                         {NULL, 0, NULL, 0}};
    bool device = false;
    bool ok = true;
    int c;
    while ((c = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        switch (c) {
        case 'b':
            o->backend = optarg;
            break;
        case 'o':
            o->options = optarg;
            break;
        case 'c':
            *ret_cache = optarg;
            break;
        case 'P':
            *ret_prepared = true;
            break;
        case 'V':
            printf("gpud-worker %s\n", GPUD_BUILD);
            return 1;
        default:
            device = device || c == 'd';
            ok = number_option(c, optarg, o) && ok;
            break;
        }
    }
    return ok && device && o->backend != NULL && optind == argc ? 0 : usage() + 1;
}

static void process_prepare(bool waits)
{
    struct rlimit files;
    (void)signal(SIGPIPE, SIG_IGN);
    /* The threads of libuv: pinning, arenas, modules and libraries may each block one of them in
     * the driver, while copies through staging memory need others. */
    (void)setenv("UV_THREADPOOL_SIZE", "8", 0);
    (void)prctl(PR_SET_NAME, waits ? "gpud-prepared" : "gpud-worker");
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* Output of kernels and drivers goes to the log. upkeep.h makes the driver write it while
     * the device is idle. */
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* each sealed buffer has a descriptor */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Jobs allocate and free memory all the time: the heap keeps what is freed. Not before the device
 * is open: the tables of the pool are several MiB of zeros, which a mapping of their own has
 * without being touched. In a heap that grows by steps they are written, page by page, at each
 * start. */
static void heap_prepare(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TOP_PAD, HEAP_STEP);
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_PIECE);
}

static int report_absent(const struct err *why, unsigned devices)
{
    struct capbuf out;
    struct msg_w_absent msg = {
        .code = why->code, .vendor = why->vendor, .text = bytes_str(why->text), .devices = devices};
    log_say(LOG_DEVICE_UNOPENED, "%s", why->text);
    capbuf_init(&out, FRAME_MAX_BYTES);
    if (proto_encode(&schema_msg_w_absent, &msg, &out, NULL) == 0) {
        (void)seqpacket_send(CHANNEL_FD, out.data, out.size, NULL, NULL);
    }
    capbuf_finish(&out);
    return EXIT_ABSENT;
}

/* Waits until a frame can be received, or none will ever come. */
static void wait_for_frame(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR) {
    }
}

/* A prepared worker loads the driver before it is needed, and waits for its memory: input and
 * output in one frame, through a socket in the place of both. It opens no device, which would take
 * device memory. Does not return where it is of no use: the driver gains nothing, the launcher has
 * ended, the device is not there now. It refuses the frame first, so that the launcher starts
 * another worker; if the frame has come before, it serves like any other. */
static int prepare(const struct device_options *o, const struct backend *b, struct err *e)
{
    char byte;
    size_t size = 0;
    unsigned count = 0;
    struct frame_fds fds = {.count = 0};
    struct err ignored = ERR_INIT; /* a worker tells it when it opens the device */
    bool useless = b == NULL || !b->early || b->enumerate(o->options, &count, &ignored) != 0 ||
                   o->index >= count;
    if (useless) {
        (void)shutdown(INPUT_FD, SHUT_RD);
    }
    wait_for_frame(INPUT_FD);
    int rc = seqpacket_recv(INPUT_FD, &byte, sizeof byte, &size, &fds, e);
    if (rc == SEQPACKET_EOF) {
        _exit(0); /* threads of the driver may run */
    }
    if (rc == 0 && (fds.count != 2 || dup3(fds.fd[0], INPUT_FD, O_CLOEXEC) < 0 ||
                    dup3(fds.fd[1], OUTPUT_FD, O_CLOEXEC) < 0)) {
        rc = err_errno(e, ERR_IO, "taking staging memory");
    }
    frame_fds_close(&fds);
    (void)prctl(PR_SET_NAME, "gpud-worker");
    return rc;
}

static int open_all(struct server *s, uv_loop_t *loop, const struct device_options *o,
                    struct confine *confine, struct err *e)
{
    uint64_t begin_ns = clock_now_ns();
    int rc = beat_start(&s->beat, CHANNEL_FD, OPEN_PATIENCE_NS, e);
    rc = rc == 0 ? staging_init(&s->staging, INPUT_FD, OUTPUT_FD, e) : rc;
    rc = rc == 0 ? device_open(&s->device, o, e) : rc;
    if (rc != 0) {
        return rc;
    }
    log_say(LOG_DEVICE_OPENED, "the device was opened in %.0f ms",
            (double)(clock_now_ns() - begin_ns) / 1e6);
    rc = confine_calls(confine, s->device.info.cpu, e);
    if (rc != 0) {
        return rc;
    }
    confine_note(confine, s->device.info.note, sizeof s->device.info.note);
    rc = server_start(s, loop, CHANNEL_FD, GPUD_BUILD, o->spill_limit, e);
    beat_patience(&s->beat, 0);
    return rc;
}

/* Work in flight cannot be undone: if there is any, the process ends at once. */
static int close_all(struct server *s, uv_loop_t *loop)
{
    channel_drain(&s->channel, 0);
    if (!server_idle(s)) {
        _exit(0);
    }
    server_finish(s);
    pump_stop(&s->pump);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    beat_stop(&s->beat);
    copies_finish(&s->copies);
    spill_finish(&s->spill);
    pinning_finish(&s->pinning);
    device_close(&s->device);
    pump_finish(&s->pump);
    staging_finish(&s->staging);
    return uv_loop_close(loop) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct server server;
    struct device_options o = {
        .options = "", .wake = pump_wake, .wake_data = &server.pump, .maps_later = true};
    struct confine confine = {.cache = ""};
    struct err e = ERR_INIT;
    uv_loop_t loop;
    log_open("gpud-worker", LOG_LEVEL_INFO);
    bool prepared = false;
    int rc = options_parse(argc, argv, &o, &confine.cache, &prepared);
    if (rc != 0) {
        return rc - 1;
    }
    log_environment_warn();
    process_prepare(prepared);
    confine.backend = backend_find(o.backend);
    confine.options = o.options;
    if (confine_files(&confine, &e) != 0) {
        return report_absent(&e, 0);
    }
    if (prepared && prepare(&o, confine.backend, &e) != 0) {
        _exit(report_absent(&e, 0));
    }
    if (uv_loop_init(&loop) != 0 || pump_init(&server.pump, &loop, &e) != 0) {
        log_say(LOG_START_FAILED, "creating the event loop failed: out of memory or descriptors");
        return 1;
    }
    if (open_all(&server, &loop, &o, &confine, &e) != 0) {
        /* Nothing is freed, because a driver's threads may still run. */
        _exit(report_absent(&e, server.device.count));
    }
    heap_prepare();
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    rc = close_all(&server, &loop);
    log_end();
    return rc;
}
