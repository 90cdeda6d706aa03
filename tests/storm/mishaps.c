/* What befalls the daemon: each mishap begins, may go on for a while, is undone, and is over when
 * the daemon answers questions that were asked afterwards. */
#include "tests/storm/storm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RECOVERY_SLOW (10 * SECOND) /* then no other mishap begins */
#define RECOVERY_MAX  (60 * SECOND)

/* false: there is nothing to harm, so it does not happen */
typedef bool begin_fn(struct storm *s, struct mishap *m);
typedef void undo_fn(struct storm *s, struct mishap *m);

const char *mishap_name(enum mishap_kind kind)
{
#define X(name, text, weight, safe) text,
    static const char *const names[] = {MISHAPS(X)};
#undef X
    return names[kind];
}

bool mishap_exists(const char *name)
{
    unsigned i = 0;
    while (i < MISHAP_COUNT && strcmp(name, mishap_name((enum mishap_kind)i)) != 0) {
        i++;
    }
    return i < MISHAP_COUNT;
}

/* ---- signals ------------------------------------------------------------------------------ */

/* Counted first: a client that sees its effect must find it. */
static void harm(struct storm *s, struct mishap *m, enum victim victim)
{
    atomic_fetch_add(&s->l->active[victim], 1);
    atomic_fetch_add(&s->l->harmed[victim], 1);
    m->harms[victim]++;
}

static void harm_over(struct storm *s, struct mishap *m)
{
    for (unsigned i = 0; i < VICTIM_COUNT; i++) {
        atomic_fetch_add(&s->l->harmed[i], m->harms[i]);
        atomic_fetch_sub(&s->l->active[i], m->harms[i]);
    }
    m->state = MISHAP_FREE;
}

static bool send_signal(struct storm *s, struct mishap *m, enum victim victim, int signal)
{
    pid_t pid = storm_victim(s, victim, chance_next(&s->chance));
    if (pid == 0) {
        return false;
    }
    harm(s, m, victim);
    if (victim == VICTIM_FRONT && signal != SIGSTOP) {
        s->front_explained = true;
    }
    m->pid = pid;
    m->began_ns = now_ns();
    return kill(pid, signal) == 0;
}

static bool kill_worker(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_WORKER, SIGKILL);
}

/* No client notices. */
static bool kill_prepared(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_PREPARED, SIGKILL);
}

static bool kill_front(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_FRONT, SIGKILL);
}

static bool restart_front(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_FRONT, SIGUSR1);
}

static bool kill_launcher(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_LAUNCHER, SIGKILL);
}

static bool kill_compiler(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_COMPILER, SIGKILL);
}

static bool kill_all(struct storm *s, struct mishap *m)
{
    return send_signal(s, m, VICTIM_FRONT, SIGKILL) && send_signal(s, m, VICTIM_LAUNCHER, SIGKILL);
}

static bool stop(struct storm *s, struct mishap *m, enum victim victim, uint64_t most_ns)
{
    bool sent = send_signal(s, m, victim, SIGSTOP);
    m->end_ns = now_ns() + 50 * MS + chance_below(&s->chance, most_ns);
    return sent;
}

static bool stop_worker(struct storm *s, struct mishap *m)
{
    return stop(s, m, VICTIM_WORKER, 5 * SECOND);
}

static bool stop_front(struct storm *s, struct mishap *m)
{
    return stop(s, m, VICTIM_FRONT, 3 * SECOND);
}

static bool stop_launcher(struct storm *s, struct mishap *m)
{
    return stop(s, m, VICTIM_LAUNCHER, 3 * SECOND);
}

static bool stop_compiler(struct storm *s, struct mishap *m)
{
    return stop(s, m, VICTIM_COMPILER, 2 * SECOND);
}

/* The process may have ended, and its number be another's: that one does not mind. */
static void go_on(struct storm *s, struct mishap *m)
{
    (void)s;
    (void)kill(m->pid, SIGCONT);
}

/* ---- settings ----------------------------------------------------------------------------- */

#define STARTING (10000 * MS) /* of a front on a busy host */

void config_write(const struct storm *s, const char *text)
{
    char next[DAEMON_PATH + 32];
    (void)snprintf(next, sizeof next, "%s.next", s->config);
    file_write(next, text, strlen(text));
    ck_assert_int_eq(rename(next, s->config), 0);
}

static bool reload(struct storm *s, struct mishap *m)
{
    static const unsigned windows[] = {0, 1, 4, 64};
    char text[256];
    (void)m;
    (void)snprintf(text, sizeof text,
                   "[jobs]\nwindow = %u\ncoalesce_window_us = %u\nqueue_max = %u\n"
                   "device_memory_max = %uM\n",
                   windows[chance_below(&s->chance, 4)],
                   200 * (unsigned)chance_below(&s->chance, 2), 1024 << chance_below(&s->chance, 3),
                   128 << chance_below(&s->chance, 3));
    config_write(s, text);
    s->settings_bad = false;
    return s->d.pid != 0 && kill(s->d.pid, SIGHUP) == 0;
}

static bool bad_reload(struct storm *s, struct mishap *m)
{
    config_write(s, "[jobs]\nwindow = many\n");
    s->settings_bad = true;
    /* a front that has yet to read them ends, as one that starts now would */
    s->front_misreads = s->front_misreads || now_ns() - s->front_begin_ns < STARTING;
    harm(s, m, VICTIM_FRONT);
    m->end_ns = now_ns() + 500 * MS;
    return s->d.pid != 0 && kill(s->d.pid, SIGHUP) == 0;
}

static void good_reload(struct storm *s, struct mishap *m)
{
    (void)m;
    config_write(s, "[jobs]\nwindow = 0\n");
    s->settings_bad = false;
    if (s->d.pid != 0) {
        (void)kill(s->d.pid, SIGHUP);
    }
}

/* ---- disk and descriptors ----------------------------------------------------------------- */

static bool fill_disk(struct storm *s, struct mishap *m)
{
    static const char block[1 << 16];
    char path[DAEMON_PATH + 32];
    if (!s->own_disk) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/filler", s->cache);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && write(fd, block, sizeof block) > 0) {
    }
    bool full = fd >= 0 && errno == ENOSPC;
    if (fd >= 0) {
        (void)close(fd);
    }
    m->end_ns = now_ns() + SECOND + chance_below(&s->chance, 4 * SECOND);
    return full;
}

static void free_disk(struct storm *s, struct mishap *m)
{
    char path[DAEMON_PATH + 32];
    (void)m;
    (void)snprintf(path, sizeof path, "%s/filler", s->cache);
    (void)unlink(path);
}

static bool famine(struct storm *s, struct mishap *m, enum victim victim)
{
    pid_t pid = storm_victim(s, victim, chance_next(&s->chance));
    struct rlimit limit;
    if (pid == 0 || prlimit(pid, RLIMIT_NOFILE, NULL, &limit) != 0) {
        return false;
    }
    harm(s, m, victim);
    if (victim == VICTIM_WORKER && s->starved_count < FAMINES_MAX) {
        s->starved[s->starved_count++] = pid;
    }
    limit.rlim_cur = usage_of(pid).descriptors + chance_below(&s->chance, 8);
    m->pid = pid;
    m->end_ns = now_ns() + 200 * MS + chance_below(&s->chance, 3 * SECOND);
    return prlimit(pid, RLIMIT_NOFILE, &limit, NULL) == 0;
}

static bool famine_front(struct storm *s, struct mishap *m)
{
    return famine(s, m, VICTIM_FRONT);
}

static bool famine_worker(struct storm *s, struct mishap *m)
{
    return famine(s, m, VICTIM_WORKER);
}

static void feed(struct storm *s, struct mishap *m)
{
    struct rlimit limit;
    (void)s;
    if (prlimit(m->pid, RLIMIT_NOFILE, NULL, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)prlimit(m->pid, RLIMIT_NOFILE, &limit, NULL);
    }
}

/* ---- clients of ill manners --------------------------------------------------------------- */

static bool silent(struct storm *s, struct mishap *m)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", s->d.url + strlen("ipc://"));
    m->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    m->end_ns = now_ns() + SECOND + chance_below(&s->chance, 5 * SECOND);
    return m->fd >= 0 && connect(m->fd, (const struct sockaddr *)&un, sizeof un) == 0;
}

/* The greeting of REQ, a length, and less than that. */
static bool half(struct storm *s, struct mishap *m)
{
    static const uint8_t bytes[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0, 1, 0, 0, 0,
                                    0, 0,   0,   1, 0, 0x80, 0, 0, 1, 1, 2, 3};
    return silent(s, m) &&
           send(m->fd, bytes, 9 + chance_below(&s->chance, sizeof bytes - 9), MSG_NOSIGNAL) > 0;
}

static int takes_nothing(void *data)
{
    enum { JOBS = 200, ITEMS = 4096 };
    const struct storm *s = data;
    static float y[ITEMS];
    gpud_client *c = NULL;
    gpud_kernel fill = {0};
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 5 * SECOND, .timeout_ns = 5 * SECOND};
    if (gpud_open(s->d.url, &o, &c) != 0 || gpud_kernel_find(c, "fill", &fill) != 0) {
        return 1;
    }
    for (unsigned i = 0; i < JOBS; i++) {
        gpud_job *job = NULL;
        gpud_arg args[] = {gpud_f32(1), gpud_host_out(y, ITEMS, GPUD_F32)};
        (void)gpud_launch(c, fill, args, 2, NULL, NULL, &job);
    }
    return raise(SIGSTOP);
}

static bool greedy(struct storm *s, struct mishap *m)
{
    m->pid = process_start(takes_nothing, s);
    m->end_ns = now_ns() + SECOND + chance_below(&s->chance, 4 * SECOND);
    return true;
}

static void end_client(struct storm *s, struct mishap *m)
{
    (void)s;
    if (m->fd >= 0) {
        (void)close(m->fd);
        m->fd = -1;
    }
    if (m->kind == MISHAP_GREEDY) {
        (void)kill(m->pid, SIGKILL);
    }
}

/* ---- the course --------------------------------------------------------------------------- */

static const struct rule {
    begin_fn *begin;
    undo_fn *undo; /* NULL: nothing to undo */
    int victim;    /* enum victim whose recovery is measured, -1: none */
} rules[MISHAP_COUNT] = {
    [MISHAP_KILL_WORKER] = {kill_worker, NULL, VICTIM_WORKER},
    [MISHAP_KILL_FRONT] = {kill_front, NULL, VICTIM_FRONT},
    [MISHAP_RESTART_FRONT] = {restart_front, NULL, -1},
    [MISHAP_KILL_LAUNCHER] = {kill_launcher, NULL, VICTIM_LAUNCHER},
    [MISHAP_KILL_COMPILER] = {kill_compiler, NULL, VICTIM_COMPILER},
    [MISHAP_KILL_ALL] = {kill_all, NULL, VICTIM_LAUNCHER},
    [MISHAP_STOP_WORKER] = {stop_worker, go_on, -1},
    [MISHAP_STOP_FRONT] = {stop_front, go_on, -1},
    [MISHAP_STOP_LAUNCHER] = {stop_launcher, go_on, -1},
    [MISHAP_STOP_COMPILER] = {stop_compiler, go_on, -1},
    [MISHAP_RELOAD] = {reload, NULL, -1},
    [MISHAP_BAD_RELOAD] = {bad_reload, good_reload, -1},
    [MISHAP_FULL_DISK] = {fill_disk, free_disk, -1},
    [MISHAP_FAMINE_FRONT] = {famine_front, feed, -1},
    [MISHAP_FAMINE_WORKER] = {famine_worker, feed, -1},
    [MISHAP_SILENT] = {silent, end_client, -1},
    [MISHAP_HALF] = {half, end_client, -1},
    [MISHAP_GREEDY] = {greedy, end_client, -1},
    [MISHAP_KILL_PREPARED] = {kill_prepared, NULL, -1},
};

/* MISHAP_COUNT: none */
static enum mishap_kind choose(struct storm *s)
{
#define X(name, text, weight, safe) {weight, safe},
    static const struct {
        unsigned weight;
        bool safe;
    } table[] = {MISHAPS(X)};
#undef X
    unsigned weight[MISHAP_COUNT];
    unsigned sum = 0;
    for (unsigned i = 0; i < MISHAP_COUNT; i++) {
        bool may = (table[i].safe || !s->only_safe) &&
                   (s->only == NULL || strcmp(s->only, mishap_name((enum mishap_kind)i)) == 0);
        weight[i] = may ? table[i].weight : 0;
        sum += weight[i];
    }
    unsigned at = sum > 0 ? (unsigned)chance_below(&s->chance, sum) : 0;
    unsigned kind = 0;
    while (kind < MISHAP_COUNT && at >= weight[kind]) {
        at -= weight[kind++];
    }
    return (enum mishap_kind)kind;
}

/* What is asked from now on shows whether the daemon has recovered. */
static void recovery_begin(struct storm *s, struct mishap *m)
{
    m->end_ns = now_ns();
    m->state = MISHAP_RECOVERS;
    atomic_store(&s->l->mishap_ns, m->end_ns);
}

static void begin(struct storm *s, struct mishap *m)
{
    *m = (struct mishap){.kind = choose(s), .began_ns = now_ns(), .fd = -1};
    m->end_ns = m->began_ns;
    if (m->kind == MISHAP_COUNT) {
        return;
    }
    if (rules[m->kind].begin(s, m)) {
        s->happened[m->kind]++;
        ledger_log(s->l, "%s, process %d", mishap_name(m->kind), (int)m->pid);
        m->state = MISHAP_GOES_ON;
        if (rules[m->kind].undo == NULL) {
            recovery_begin(s, m);
        }
    } else {
        if (rules[m->kind].undo != NULL) {
            rules[m->kind].undo(s, m);
        }
        harm_over(s, m);
    }
}

/* When the parts that were asked since have all answered. */
static bool recovered(const struct storm *s, const struct mishap *m, uint64_t *ret_ns)
{
    unsigned first = PROBE_DEVICE;
    unsigned last = PROBE_DEVICE + s->devices;
    int victim = rules[m->kind].victim;
    uint64_t latest = 0;
    if (victim == VICTIM_FRONT) {
        first = PROBE_FRONT;
        last = PROBE_FRONT + 1;
    } else if (victim == VICTIM_COMPILER) {
        first = PROBE_COMPILER;
        last = PROBE_COMPILER + 1;
    }
    for (unsigned i = first; i < last; i++) {
        uint64_t at = 0;
        if (!probe_answered(s->l, i, m->end_ns, &at)) {
            return false;
        }
        latest = at > latest ? at : latest;
    }
    *ret_ns = latest;
    return true;
}

/* Builds of 16 clients wait for each other: on a busy host a build may take minutes in quiet time,
 * too. */
static uint64_t recovery_max_ns(const struct storm *s, int victim)
{
    uint64_t quiet_ns = atomic_load(&s->l->hang_ns[DEED_MODULE]);
    return victim == VICTIM_COMPILER && quiet_ns > RECOVERY_MAX ? quiet_ns : RECOVERY_MAX;
}

/* A worker outlives its launcher by some milliseconds, and may answer once more meanwhile. So what
 * is asked counts from the next launcher on. */
static void await_launcher(struct storm *s, struct mishap *m)
{
    pid_t now = storm_victim(s, VICTIM_LAUNCHER, 0);
    if (!m->renewed && now != 0 && now != m->pid) {
        m->renewed = true;
        recovery_begin(s, m);
    }
}

static void look_after(struct storm *s, struct mishap *m)
{
    uint64_t at = 0;
    int victim = rules[m->kind].victim;
    if (victim == VICTIM_LAUNCHER) {
        await_launcher(s, m);
    }
    if ((victim != VICTIM_LAUNCHER || m->renewed) && recovered(s, m, &at)) {
        ledger_log(s->l, "served again %.0f ms after: %s, process %d",
                   (double)(at - m->began_ns) / 1e6, mishap_name(m->kind), (int)m->pid);
        if (victim >= 0 && s->recoveries[victim] < RECOVERIES_MAX) {
            s->recovery[victim][s->recoveries[victim]++] = at - m->began_ns;
        }
        harm_over(s, m);
    } else if (now_ns() - m->end_ns > recovery_max_ns(s, victim) && !s->probes_gone) {
        ledger_break(s->l, BREACH_HANG, "no service for %llu s after: %s",
                     (unsigned long long)(recovery_max_ns(s, victim) / SECOND),
                     mishap_name(m->kind));
        harm_over(s, m);
    } else if (s->probes_gone) {
        harm_over(s, m);
    }
}

static bool slow(const struct storm *s)
{
    for (unsigned i = 0; i < MISHAPS_AT_ONCE; i++) {
        const struct mishap *m = &s->mishap[i];
        if (m->state == MISHAP_RECOVERS && now_ns() - m->end_ns > RECOVERY_SLOW) {
            return true;
        }
    }
    return false;
}

void mishaps_turn(struct storm *s, bool go)
{
    for (unsigned i = 0; i < MISHAPS_AT_ONCE; i++) {
        struct mishap *m = &s->mishap[i];
        if (m->state == MISHAP_GOES_ON && now_ns() >= m->end_ns) {
            if (rules[m->kind].undo != NULL) {
                rules[m->kind].undo(s, m);
            }
            recovery_begin(s, m);
            if (rules[m->kind].undo != NULL) {
                ledger_log(s->l, "no more: %s, process %d", mishap_name(m->kind), (int)m->pid);
            }
        } else if (m->state == MISHAP_RECOVERS) {
            look_after(s, m);
        } else if (m->state == MISHAP_FREE && go && now_ns() >= s->next_ns && !slow(s)) {
            uint64_t seeds_ns = 20 * MS + chance_below(&s->chance, 800 * MS);
            s->next_ns = now_ns() + (s->every_ns != 0 ? s->every_ns : seeds_ns);
            begin(s, m);
        }
    }
}

bool mishaps_quiet(const struct storm *s)
{
    for (unsigned i = 0; i < MISHAPS_AT_ONCE; i++) {
        if (s->mishap[i].state != MISHAP_FREE) {
            return false;
        }
    }
    return s->d.pid != 0;
}
