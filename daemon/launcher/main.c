/* gpud-launcher: starts workers, compilers and the monitor, keeps duplicates of the front's
 * descriptors, and reports to the front when a child ends. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "common/journal.h"
#include "common/log.h"
#include "common/runtime.h"
#include "common/seqpacket.h"
#include "daemon/launcher/children.h"
#include "daemon/launcher/driver_cache.h"
#include "daemon/launcher/front.h"
#include "daemon/launcher/notify.h"

#define LINGER_S      30u
#define TERM_GRACE_NS (1 * NS_PER_S) /* from SIGTERM to SIGKILL */
/* the longest wait for a process that is stuck in its driver */
#define KILL_GRACE_NS (2 * NS_PER_S)

struct options {
    const char *runtime_dir;
    const char *worker;
    const char *compiler;
    const char *monitor;
    const char *worker_user; /* NULL: the launcher's user */
    unsigned worker_users;   /* of a pool; 0: none */
    uint64_t linger_ns;      /* how long to live without a front; NS_NEVER: for ever */
};

struct launcher {
    struct children children;
    struct front front;
    int listen_fd;
    int signal_fd;
    int lock_fd;
    char socket_path[PATH_MAX];
    uint64_t linger_ns;
    uint64_t alone_since; /* ns; NS_NEVER while a front is connected */
    uint64_t watchdog_ns; /* interval of messages to the service manager; 0: none */
    uint64_t watchdog_at;
    uint64_t quit_at; /* ns: time of SIGTERM; NS_NEVER: serving */
    bool killed;      /* SIGKILL was sent, too */
};

static int usage(void)
{
    fprintf(stderr,
            "usage: gpud-launcher --runtime-dir DIR [--worker PATH] [--compiler PATH]\n"
            "                     [--monitor PATH] [--worker-user USER [--worker-users COUNT]]\n"
            "                     [--linger SECONDS] [--supervised] [--version]\n");
    return 2;
}

static bool seconds_parse(const char *text, uint64_t *ret_ns)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value > 86400) {
        return false;
    }
    *ret_ns = value * NS_PER_S;
    return true;
}

static bool users_parse(const char *text, unsigned *ret_users)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value > SLOT_USERS_MAX) {
        return false;
    }
    *ret_users = (unsigned)value;
    return true;
}

static bool number_option(int option, const char *text, struct options *o)
{
    return option == 'l' ? seconds_parse(text, &o->linger_ns) : users_parse(text, &o->worker_users);
}

/* Returns 0 to go on, else the exit code + 1. */
static int options_parse(int argc, char **argv, struct options *o)
{
    static const struct option LONG[] = {{"runtime-dir", required_argument, NULL, 'd'},
                                         {"worker", required_argument, NULL, 'w'},
                                         {"compiler", required_argument, NULL, 'c'},
                                         {"monitor", required_argument, NULL, 'm'},
                                         {"linger", required_argument, NULL, 'l'},
                                         {"worker-user", required_argument, NULL, 'u'},
                                         {"worker-users", required_argument, NULL, 'n'},
                                         {"supervised", no_argument, NULL, 's'},
                                         {"version", no_argument, NULL, 'V'},
                                         {NULL, 0, NULL, 0}};
    int c;
    bool supervised = false;
    while ((c = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        switch (c) {
        case 'd':
            o->runtime_dir = optarg;
            break;
        case 'w':
            o->worker = optarg;
            break;
        case 'c':
            o->compiler = optarg;
            break;
        case 'm':
            o->monitor = optarg;
            break;
        case 'u':
            o->worker_user = optarg;
            break;
        case 'l':
        case 'n':
            if (!number_option(c, optarg, o)) {
                return usage() + 1;
            }
            break;
        case 's':
            supervised = true;
            break;
        case 'V':
            printf("gpud-launcher %s\n", GPUD_BUILD);
            return 1;
        default:
            return usage() + 1;
        }
    }
    if (supervised) {
        o->linger_ns = NS_NEVER;
    }
    return optind == argc && o->runtime_dir != NULL ? 0 : usage() + 1;
}

/* Opens the program `path`; NULL: `name` in the folder of this program. */
static int program_open(const char *path, const char *name)
{
    char beside[PATH_MAX];
    if (path == NULL) {
        ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - 1);
        if (n <= 0) {
            return -1;
        }
        beside[n] = '\0';
        char *slash = strrchr(beside, '/');
        size_t room = sizeof beside - (size_t)(slash + 1 - beside);
        if ((size_t)snprintf(slash + 1, room, "%s", name) >= room) {
            errno = ENAMETOOLONG;
            return -1;
        }
        path = beside;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        log_say(LOG_START_FAILED, "opening %s: %s", path, strerror(errno));
    }
    return fd;
}

/* This process has the lock, so an existing socket is left over from a former launcher. */
static int listen_open(struct launcher *l, const char *dir, struct err *e)
{
    if ((size_t)snprintf(l->socket_path, sizeof l->socket_path, "%s/launcher.sock", dir) >=
        sizeof l->socket_path) {
        return err_set(e, ERR_INVALID, "%s: path too long", dir);
    }
    if (unlink(l->socket_path) != 0 && errno != ENOENT) {
        return err_errno(e, ERR_IO, "removing the old %s", l->socket_path);
    }
    return seqpacket_listen(l->socket_path, &l->listen_fd, e);
}

static int signals_open(struct launcher *l, struct err *e)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return err_errno(e, ERR_IO, "blocking signals");
    }
    l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return l->signal_fd < 0 ? err_errno(e, ERR_IO, "signalfd") : 0;
}

static void quit_begin(struct launcher *l, const char *why)
{
    if (l->quit_at == NS_NEVER) {
        unsigned running = children_running(&l->children);
        log_say(LOG_ENDING, "ending %u %s: %s", running, running == 1 ? "child" : "children", why);
        notify_send("STOPPING=1");
        l->quit_at = clock_now_ns();
        children_signal(&l->children, SIGTERM);
    }
}

static void front_drop(struct launcher *l, const struct err *e)
{
    log_say(e->code == ERR_CLOSED ? LOG_FRONT_LEFT : LOG_FRONT_LOST, "%s", e->text);
    front_close(&l->front);
    l->alone_since = clock_now_ns();
}

static void front_serve(struct launcher *l)
{
    struct err e = ERR_INIT;
    int rc = front_read(&l->front, &e);
    if (l->front.quit) {
        quit_begin(l, "the front requested it");
    }
    if (rc != 0) {
        front_drop(l, &e);
    }
}

static void front_admit(struct launcher *l)
{
    int fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (l->front.fd >= 0) {
        front_serve(l); /* perhaps the former front has just ended */
    }
    if (l->front.fd >= 0 || l->quit_at != NS_NEVER || !seqpacket_peer_trusted(fd)) {
        log_say(LOG_CONNECTION_REFUSED, "a connection was refused: %s",
                l->front.fd >= 0 ? "another front is connected" : "not permitted or ending");
        (void)close(fd);
        return;
    }
    front_accept(&l->front, fd);
    l->alone_since = NS_NEVER;
}

static void signals_take(struct launcher *l)
{
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            quit_begin(l, "signal");
        }
    }
    children_reap(&l->children);
    if (l->front.fd < 0) {
        children_orphan(&l->children);
    }
}

/* Runs expired timers and returns when to call again. */
static uint64_t timers_run(struct launcher *l)
{
    uint64_t now = clock_now_ns();
    uint64_t prepare = workers_tend(&l->front.workers, now, l->quit_at == NS_NEVER);
    uint64_t next = children_expire(&l->children, now);
    next = prepare < next ? prepare : next;
    if (l->alone_since != NS_NEVER && ns_add(l->alone_since, l->linger_ns) <= now) {
        quit_begin(l, "no front connected");
    }
    if (l->quit_at != NS_NEVER) {
        uint64_t kill_at = ns_add(l->quit_at, TERM_GRACE_NS);
        if (kill_at <= now && !l->killed) {
            l->killed = true;
            children_signal(&l->children, SIGKILL);
        }
        uint64_t at = l->killed ? ns_add(kill_at, KILL_GRACE_NS) : kill_at;
        next = at < next ? at : next;
    } else if (l->alone_since != NS_NEVER) {
        uint64_t at = ns_add(l->alone_since, l->linger_ns);
        next = at < next ? at : next;
    }
    if (l->watchdog_ns != 0) {
        if (l->watchdog_at <= now) {
            notify_send("WATCHDOG=1");
            l->watchdog_at = ns_add(now, l->watchdog_ns);
        }
        next = l->watchdog_at < next ? l->watchdog_at : next;
    }
    return next;
}

static bool finished(const struct launcher *l)
{
    if (l->quit_at == NS_NEVER) {
        return false;
    }
    return children_running(&l->children) == 0 ||
           ns_add(l->quit_at, TERM_GRACE_NS + KILL_GRACE_NS) <= clock_now_ns();
}

static int timeout_ms(uint64_t at)
{
    if (at == NS_NEVER) {
        return -1;
    }
    uint64_t now = clock_now_ns();
    uint64_t ms = at <= now ? 0 : (at - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int loop_run(struct launcher *l)
{
    while (!finished(l)) {
        struct err e = ERR_INIT;
        if (l->front.fd >= 0 && front_flush(&l->front, &e) != 0) {
            front_drop(l, &e);
        }
        uint64_t next = timers_run(l);
        log_tend();
        short front_events = (short)(POLLIN | (l->front.wants_write ? POLLOUT : 0));
        struct pollfd fds[] = {{.fd = l->signal_fd, .events = POLLIN},
                               {.fd = l->front.quit ? -1 : l->front.fd, .events = front_events},
                               {.fd = l->listen_fd, .events = POLLIN}};
        if (poll(fds, 3, timeout_ms(next)) < 0) {
            if (errno == EINTR) {
                continue;
            }
            log_say(LOG_START_FAILED, "poll: %s", strerror(errno));
            return 1;
        }
        if (fds[0].revents != 0) {
            signals_take(l);
        }
        if (fds[1].revents != 0 && l->front.fd >= 0) {
            front_serve(l);
        }
        if (fds[2].revents != 0) {
            front_admit(l);
        }
    }
    return 0;
}

static int serve(struct launcher *l)
{
    notify_send("READY=1");
    l->watchdog_ns = notify_watchdog_ns();
    l->alone_since = clock_now_ns();
    int rc = loop_run(l);
    (void)unlink(l->socket_path);
    children_signal(&l->children, SIGKILL);
    front_close(&l->front);
    return rc;
}

/* Drivers keep what they compile below HOME. The folder belongs to the workers' user, so a child
 * of that user trims it. This process has the launcher's lock, so no worker runs that could miss
 * a kernel. */
static void cache_trim(const struct identity *id)
{
    const char *home = id->uid != 0 ? getenv("HOME") : NULL;
    pid_t pid = home != NULL ? fork() : -1;
    if (pid == 0) {
        uint64_t removed = identity_become(id) ? driver_cache_trim(home, DRIVER_CACHE_BYTES) : 0;
        if (removed > 0) {
            log_say(LOG_CACHE_GOOD, "removed %llu MiB of old kernels from PoCL's cache",
                    (unsigned long long)(removed >> 20));
            log_end();
        }
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static int stranger_find(struct launcher *l, const char *user, struct err *e)
{
    if (user == NULL) {
        log_say(LOG_RIGHTS,
                "workers and compilers run as this user (%u): a kernel on a CPU device may do "
                "what gpud may",
                (unsigned)geteuid());
        return 0;
    }
    int rc = identity_find(user, &l->front.stranger, e);
    if (rc == 0) {
        log_say(LOG_RIGHTS, "workers and compilers run as %s (%u)", user,
                (unsigned)l->front.stranger.uid);
    }
    return rc;
}

static int begin(struct launcher *l, const struct options *o, struct err *e)
{
    int rc = stranger_find(l, o->worker_user, e);
    rc = rc == 0 ? slots_open(&l->front.workers.slots, &l->front.stranger, o->worker_user,
                              o->worker_users, e)
                 : rc;
    rc = rc == 0 ? runtime_lock(o->runtime_dir, "launcher.lock", "gpud-launcher", &l->lock_fd, e)
                 : rc;
    if (rc == 0) {
        cache_trim(&l->front.stranger);
        rc = signals_open(l, e);
    }
    return rc == 0 ? listen_open(l, o->runtime_dir, e) : rc;
}

int main(int argc, char **argv)
{
    static struct launcher l = {.quit_at = NS_NEVER, .listen_fd = -1, .signal_fd = -1};
    struct options o = {.linger_ns = LINGER_S * NS_PER_S};
    struct err e = ERR_INIT;
    descriptors_standard();
    log_open("gpud-launcher", LOG_LEVEL_INFO);
    int rc = options_parse(argc, argv, &o);
    if (rc != 0) {
        return rc - 1;
    }
    if (log_environment(&e) != 0) {
        log_say(LOG_START_FAILED, "%s", e.text);
        log_end();
        return 2; /* as for a bad argument */
    }
    (void)umask(077);
    if (o.linger_ns != NS_NEVER) {
        (void)setpgid(0, 0); /* so that Ctrl-C in the terminal is for the front */
    }
    l.linger_ns = o.linger_ns;
    descriptors_init(); /* each copy is one */
    children_init(&l.children);
    struct programs programs = {.worker = program_open(o.worker, "gpud-worker"),
                                .compiler = program_open(o.compiler, "gpud-compile"),
                                .monitor = program_open(o.monitor, "gpud-monitor")};
    struct hash compiler;
    if (programs.worker < 0 || programs.compiler < 0) {
        log_end();
        return 1;
    }
    if (hash_file(programs.compiler, &compiler)) {
        (void)hash_text(compiler, programs.compiler_hash);
    }
    rc = front_init(&l.front, &l.children, &programs, GPUD_BUILD, &e);
    l.front.workers.journal = journal_is(STDERR_FILENO) ? JOURNAL_SOCKET : NULL;
    if (rc != 0 || begin(&l, &o, &e) != 0) {
        log_say(LOG_START_FAILED, "%s", e.text);
        log_end();
        return 1;
    }
    int status = serve(&l);
    log_end();
    return status;
}
