#include "daemon/front/views/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/journal.h"
#include "common/log.h"
#include "common/thread.h"

#define STACK      ((size_t)128 * 1024)
#define GATHER_NS  (20 * 1000 * 1000L) /* so that the loop wakes the thread rarely */
#define NAMES_ROOM 256u
#define ESCAPED    4u                               /* bytes of a byte that is escaped */
#define TEXT_ROOM  (ESCAPED * PROTO_LABEL_MAX + 3u) /* a text whose bytes are all escaped */

_Static_assert(2 * TEXT_ROOM + NAMES_ROOM + PROTO_NAME_MAX + 512 <= ACCESS_LINE,
               "no text of a client makes its line too long");

struct lines {
    char *data; /* owned, ACCESS_ROOM bytes */
    size_t used;
    uint64_t count;
    size_t old; /* bytes at the begin that belong where lines went before; and their number */
    uint64_t old_count;
};

struct access_log {
    bool on; /* the loop's: the setting is not "off" */
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    bool started; /* there is a thread */

    /* under the lock */
    char where[CONFIG_PATH];
    bool anew; /* `where` was set */
    bool ending;
    struct lines fill; /* by the loop */
    uint64_t missing;  /* lines that the next one has to tell of */
    uint64_t lost;     /* all of them */

    /* the thread's */
    struct lines out;
    int fd;    /* -1: there is none */
    int error; /* of the last write, or of opening; 0: it was good */
    bool torn; /* the last line in the file is not whole */
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Writes the text with control characters, quotes, backslashes and the characters of `also` as
 * \xNN, so that it cannot pose as another field or line. What does not fit is cut off. Returns its
 * length. */
static size_t escape(const char *text, const char *also, char *out, size_t size)
{
    size_t used = 0;
    for (const char *c = text; *c != '\0' && used + ESCAPED < size; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f || byte == '"' || byte == '\\' ||
            strchr(also, *c) != NULL) {
            used += (size_t)snprintf(out + used, size - used, "\\x%02x", byte);
        } else {
            out[used++] = *c;
        }
    }
    out[used] = '\0';
    return used;
}

static const char *quoted(const char *text, char out[TEXT_ROOM])
{
    out[0] = '"';
    size_t used = 1 + escape(text, "", out + 1, TEXT_ROOM - 2);
    out[used++] = '"';
    out[used] = '\0';
    return out;
}

static bool is_code(const struct work_step *s)
{
    return s->op == OP_LAUNCH || s->op == FRAME_OP_LIBRARY;
}

/* The kernels of the job in the order of its steps; several launches of one are named once. Their
 * names are from clients' images. */
static void kernels_of(const struct job *j, char out[NAMES_ROOM])
{
    char name[NAMES_ROOM];
    const char *last = "";
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        if (!is_code(s) || strcmp(s->entry, last) == 0) {
            continue;
        }
        const char *comma = used > 0 ? "," : "";
        if (used + escape(s->entry, " ,", name, sizeof name) + 5 > NAMES_ROOM) {
            (void)snprintf(out + used, NAMES_ROOM - used, "%s…", comma);
            return;
        }
        used += (size_t)snprintf(out + used, NAMES_ROOM - used, "%s%s", comma, name);
        last = s->entry;
    }
}

static void time_of(uint64_t wall_ns, char out[40])
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    char day[24] = "";
    struct tm tm;
    if (gmtime_r(&seconds, &tm) != NULL) {
        (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    }
    (void)snprintf(out, 40, "%s.%06uZ", day, (unsigned)(wall_ns % NS_PER_S / 1000));
}

static size_t line_of(const struct job *j, char out[ACCESS_LINE])
{
    char when[40];
    char names[NAMES_ROOM];
    char session[TEXT_ROOM];
    char label[TEXT_ROOM];
    char place[48] = "device=- stream=-";
    uint64_t began = j->started_ns > 0 ? j->started_ns : j->ended_ns;
    bool deadline = j->state == JOB_FAILED && j->error.code == ERR_DEADLINE;
    time_of(clock_wall_ns(), when);
    kernels_of(j, names);
    if (j->device != NULL) {
        (void)snprintf(place, sizeof place, "device=%u stream=%u", device_shown(j->device),
                       j->stream);
    }
    int n = snprintf(
        out, ACCESS_LINE,
        "%s tenant=%s session=%" PRIu64 " name=%s job=%" PRIu64
        " label=%s kernels=%s %s class=%s queue_us=%" PRIu64 " run_us=%" PRIu64
        " device_us=%" PRIu64 " to_device=%" PRIu64 " from_device=%" PRIu64 " result=%s error=%s\n",
        when, j->tenant->name, j->session_id,
        quoted(j->session != NULL ? j->session->name : "", session), j->id, quoted(j->label, label),
        names[0] != '\0' ? names : "-", place, tenant_classes[j->job_class],
        (began > j->submitted_ns ? began - j->submitted_ns : 0) / 1000,
        (j->ended_ns > began ? j->ended_ns - began : 0) / 1000, j->device_ns / 1000, j->to_device,
        j->from_device, deadline ? "deadline" : job_state_name(j->state),
        j->error.code != 0 ? err_name(j->error.code) : "-");
    return n > 0 && n < (int)ACCESS_LINE ? (size_t)n : 0;
}

static void lose(struct access_log *l, uint64_t lines)
{
    l->missing += lines;
    l->lost += lines;
}

/* Under the lock. */
static void put(struct access_log *l, const char *line, size_t size)
{
    if (size == 0 || !l->started || l->fill.used + size > ACCESS_ROOM) {
        lose(l, 1);
        return;
    }
    if (l->fill.used == 0) {
        (void)pthread_cond_signal(&l->more);
    }
    memcpy(l->fill.data + l->fill.used, line, size);
    l->fill.used += size;
    l->fill.count++;
}

void access_log_job(struct access_log *l, const struct job *j)
{
    char line[ACCESS_LINE];
    if (!l->on || j->tenant == NULL || j->counted) {
        return;
    }
    size_t size = line_of(j, line);
    (void)pthread_mutex_lock(&l->lock);
    put(l, line, size);
    (void)pthread_mutex_unlock(&l->lock);
}

uint64_t access_log_lost(struct access_log *l)
{
    (void)pthread_mutex_lock(&l->lock);
    uint64_t lost = l->lost;
    (void)pthread_mutex_unlock(&l->lock);
    return lost;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Logs each change of `error` once. */
static void settle(struct access_log *l, int error, const char *where)
{
    if (error != 0 && error != l->error) {
        log_say(LOG_FILE_BAD, "access log %s: %s: lines are missing until it can be written", where,
                strerror(error));
    }
    l->error = error;
}

static void open_file(struct access_log *l, const char *where)
{
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    l->fd = -1;
    l->torn = false;
    if (strcmp(where, "journal") == 0) {
        l->fd = journal_is(STDERR_FILENO) ? journal_stream(JOURNAL_SOCKET, "gpud-access", false)
                                          : dup(STDERR_FILENO);
    } else if (strcmp(where, "off") != 0) { /* a pipe without a reader does not block */
        l->fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
    }
    if (l->fd < 0 && strcmp(where, "off") != 0) {
        settle(l, errno, where);
    }
}

static bool write_all(struct access_log *l, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(l->fd, data, size);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            data += n;
            size -= (size_t)n;
            l->torn = data[-1] != '\n';
        }
    }
    return true;
}

/* Writes lines, after a line for those that are missing; afterwards *missing are. Returns how many
 * of these lines are lost. */
static uint64_t write_lines(struct access_log *l, const char *data, size_t size, uint64_t count,
                            uint64_t *missing, const char *where)
{
    char note[128];
    char when[40];
    if (size == 0) {
        return 0;
    }
    bool good = l->fd >= 0 && (!l->torn || write_all(l, "\n", 1));
    if (good && *missing > 0) {
        time_of(clock_wall_ns(), when);
        int n = snprintf(note, sizeof note, "%s missing=%" PRIu64 "\n", when, *missing);
        good = write_all(l, note, (size_t)n);
    }
    good = good && write_all(l, data, size);
    settle(l, good ? 0 : l->fd < 0 ? l->error : errno, where);
    uint64_t lost = good ? 0 : count; /* some may be there: too many are better than too few */
    *missing = good ? 0 : *missing + lost;
    return lost;
}

static void wait_for_lines(struct access_log *l)
{
    struct timespec until;
    while (!l->ending && !l->anew && l->fill.used == 0) {
        (void)pthread_cond_wait(&l->more, &l->lock);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GATHER_NS;
    until.tv_sec += until.tv_nsec / (long)NS_PER_S;
    until.tv_nsec %= (long)NS_PER_S;
    while (!l->ending && !l->anew && l->fill.used < ACCESS_ROOM / 2 &&
           pthread_cond_timedwait(&l->more, &l->lock, &until) == 0) {
    }
}

/* One round. false: the log ends, and all is written. */
static bool round_of(struct access_log *l)
{
    char where[CONFIG_PATH];
    (void)pthread_mutex_lock(&l->lock);
    wait_for_lines(l);
    bool anew = l->anew;
    bool ending = l->ending;
    uint64_t missing = l->missing;
    struct lines lines = l->fill;
    l->fill = l->out;
    l->out = lines;
    l->anew = false;
    l->missing = 0;
    (void)snprintf(where, sizeof where, "%s", l->where);
    (void)pthread_mutex_unlock(&l->lock);
    const struct lines *o = &l->out;
    uint64_t lost = write_lines(l, o->data, o->old, o->old_count, &missing, where);
    if (anew) {
        open_file(l, where);
    }
    lost += write_lines(l, o->data + o->old, o->used - o->old, o->count - o->old_count, &missing,
                        where);
    l->out = (struct lines){.data = o->data};
    (void)pthread_mutex_lock(&l->lock);
    l->missing += missing;
    l->lost += lost;
    (void)pthread_mutex_unlock(&l->lock);
    return !ending;
}

static void *run(void *data)
{
    while (round_of(data)) {
    }
    return NULL;
}

/* ---- the log --------------------------------------------------------------------------------- */

int access_log_create(struct access_log **ret_log, struct err *e)
{
    struct access_log *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for the access log");
    }
    l->fd = -1;
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr); /* cannot fail on Linux, as the next four */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->more, &attr);
    (void)pthread_condattr_destroy(&attr);
    *ret_log = l;
    return 0;
}

static void begin(struct access_log *l)
{
    l->fill.data = l->fill.data != NULL ? l->fill.data : malloc(ACCESS_ROOM);
    l->out.data = l->out.data != NULL ? l->out.data : malloc(ACCESS_ROOM);
    l->started =
        l->fill.data != NULL && l->out.data != NULL && thread_start(STACK, run, l, &l->thread);
    if (!l->started) {
        log_say(LOG_NO_MEMORY,
                "access log: no memory, or no thread: lines are missing until a reload finds them");
    }
}

void access_log_set(struct access_log *l, const char *access)
{
    (void)pthread_mutex_lock(&l->lock);
    (void)snprintf(l->where, sizeof l->where, "%s", access);
    l->anew = true;
    l->fill.old = l->fill.used;
    l->fill.old_count = l->fill.count;
    (void)pthread_cond_signal(&l->more);
    (void)pthread_mutex_unlock(&l->lock);
    l->on = strcmp(access, "off") != 0;
    if (l->on && !l->started) {
        begin(l);
    }
}

void access_log_destroy(struct access_log *l)
{
    if (l == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&l->lock);
    l->ending = true;
    (void)pthread_cond_signal(&l->more);
    (void)pthread_mutex_unlock(&l->lock);
    if (l->started) {
        (void)pthread_join(l->thread, NULL);
    }
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    (void)pthread_cond_destroy(&l->more);
    (void)pthread_mutex_destroy(&l->lock);
    free(l->fill.data);
    free(l->out.data);
    free(l);
}
