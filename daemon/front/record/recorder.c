#include "daemon/front/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/thread.h"

#define STACK      ((size_t)256 * 1024)
#define GATHER_NS  (20 * 1000 * 1000L)        /* so that the loop wakes the thread rarely */
#define TEXT_MOST  ((size_t)64 * 1024 * 1024) /* a line is shorter */
#define TEXT_FLUSH ((size_t)256 * 1024)       /* bytes that are written at once */
#define STOP_ROOM  256u                       /* of the file, for the last line */

struct batch {
    uint8_t *data; /* owned */
    size_t used;
    size_t held;
    uint64_t lost; /* behind its last entry; has no gap yet */
};

struct recorder {
    struct recorder_options options; /* not changed after the start, as `room` */
    size_t room;                     /* bytes of a batch */
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    bool started;

    /* under the lock */
    enum recorder_state state;
    char why[256];
    bool stopping;
    uint64_t stop_ns;
    bool over;
    struct batch fill; /* by the loop */
    uint64_t lost;
    uint64_t bytes, jobs; /* as of the last batch */

    /* the thread's */
    struct batch out;
    struct lines *lines;
    struct capbuf text; /* lines that wait to be written */
    int fd;
    uint64_t written, job_lines;
};

const char *recorder_state_name(enum recorder_state state)
{
    static const char *const names[] = {[RECORDER_OPENING] = "opening",
                                        [RECORDER_RUNS] = "recording",
                                        [RECORDER_STOPPED] = "stopped",
                                        [RECORDER_FULL] = "full",
                                        [RECORDER_FAILED] = "failed"};
    return names[state];
}

/* ---- the loop's side ------------------------------------------------------------------------- */

static void put_gap(struct batch *b, uint64_t lost)
{
    struct entry *gap = (struct entry *)(void *)(b->data + b->used);
    *gap = (struct entry){
        .kind = ENTRY_GAP, .size = entry_round(sizeof *gap), .at_ns = clock_now_ns(), .lost = lost};
    b->used += gap->size;
    b->lost = 0;
}

static bool takes(const struct recorder *r)
{
    return !r->stopping && (r->state == RECORDER_OPENING || r->state == RECORDER_RUNS);
}

struct entry *recorder_put(struct recorder *r, size_t size, size_t held)
{
    size_t whole = entry_round(size);
    (void)pthread_mutex_lock(&r->lock);
    struct batch *b = &r->fill;
    size_t gap = b->lost > 0 ? entry_round(sizeof(struct entry)) : 0;
    bool taken = takes(r);
    if (!taken || gap + whole > r->room - b->used || held > RECORDER_HELD - b->held) {
        b->lost += taken;
        r->lost += taken;
        (void)pthread_mutex_unlock(&r->lock);
        return NULL;
    }
    size_t half = r->room / 2;
    if (b->used == 0 || (b->used < half && b->used + gap + whole >= half)) {
        (void)pthread_cond_signal(&r->more);
    }
    if (gap > 0) {
        put_gap(b, b->lost);
    }
    struct entry *x = (struct entry *)(void *)(b->data + b->used);
    x->size = whole;
    b->used += whole;
    b->held += held;
    return x;
}

void recorder_put_end(struct recorder *r)
{
    (void)pthread_mutex_unlock(&r->lock);
}

void recorder_stop(struct recorder *r, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&r->lock);
    if (!r->stopping) {
        r->stopping = true;
        r->stop_ns = now_ns;
        (void)pthread_cond_signal(&r->more);
    }
    (void)pthread_mutex_unlock(&r->lock);
}

bool recorder_takes(struct recorder *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool yes = takes(r);
    (void)pthread_mutex_unlock(&r->lock);
    return yes;
}

bool recorder_over(struct recorder *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool over = r->over;
    (void)pthread_mutex_unlock(&r->lock);
    return over;
}

void recorder_status(struct recorder *r, struct recorder_status *ret_status)
{
    (void)pthread_mutex_lock(&r->lock);
    *ret_status = (struct recorder_status){.state = r->state,
                                           .data = r->options.data,
                                           .bytes = r->bytes,
                                           .file_bytes = r->options.file_bytes,
                                           .jobs = r->jobs,
                                           .lost = r->lost};
    (void)snprintf(ret_status->path, sizeof ret_status->path, "%s", r->options.path);
    (void)snprintf(ret_status->why, sizeof ret_status->why, "%s", r->why);
    (void)pthread_mutex_unlock(&r->lock);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void step(struct recorder *r, enum recorder_state state, const char *why)
{
    (void)pthread_mutex_lock(&r->lock);
    r->state = state;
    (void)snprintf(r->why, sizeof r->why, "%s", why);
    (void)pthread_mutex_unlock(&r->lock);
}

/* The recording ends, and nothing else does. */
static void fail(struct recorder *r, const char *what, const char *why)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s: %s", what, why);
    step(r, RECORDER_FAILED, text);
    log_say(LOG_FILE_BAD, "recording %s ends: %s", r->options.path, text);
}

/* The folder of recordings: the daemon's alone. A link in its place is refused. */
static bool make_dir(struct recorder *r)
{
    const char *dir = r->options.dir;
    struct stat st;
    if (dir[0] == '\0') {
        return true;
    }
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        fail(r, dir, strerror(errno));
        return false;
    }
    bool own = lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
               (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (!own) {
        fail(r, dir, "it is not a folder that only the daemon's user can write");
    }
    return own;
}

static bool open_file(struct recorder *r)
{
    r->fd = r->options.fd;
    if (r->fd >= 0) {
        return true;
    }
    if (!make_dir(r)) {
        return false;
    }
    r->fd = open(r->options.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r->fd < 0) {
        fail(r, "the file cannot be made", errno == EEXIST ? "it exists" : strerror(errno));
    }
    return r->fd >= 0;
}

static bool flush(struct recorder *r)
{
    size_t done = 0;
    while (done < r->text.size) {
        ssize_t n = write(r->fd, r->text.data + done, r->text.size - done);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            fail(r, "it cannot be written", n == 0 ? "no reason given" : strerror(errno));
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
        r->written += n > 0 ? (uint64_t)n : 0;
    }
    capbuf_reset(&r->text);
    return true;
}

/* Ends the recording with its last line. */
static void finish(struct recorder *r, enum recorder_state state, uint64_t at_ns)
{
    const char *why = state == RECORDER_FULL ? "the file has its limit" : "";
    (void)pthread_mutex_lock(&r->lock);
    uint64_t lost = r->lost;
    (void)pthread_mutex_unlock(&r->lock);
    (void)lines_stop(recorder_state_name(state), at_ns, r->job_lines, lost, &r->text);
    if (flush(r)) {
        step(r, state, why);
        log_say(LOG_RECORDING, "recording %s ends (%s): %" PRIu64 " jobs, %" PRIu64 " bytes",
                r->options.path, recorder_state_name(state), r->job_lines, r->written);
    }
}

/* false: the recording ended with this entry. */
static bool write_entry(struct recorder *r, const struct entry *x)
{
    size_t before = r->text.size;
    if (!lines_entry(r->lines, x, &r->text)) {
        fail(r, "a line cannot be made", "out of memory");
        return false;
    }
    if (r->written + r->text.size + STOP_ROOM > r->options.file_bytes) {
        r->text.size = before;
        finish(r, RECORDER_FULL,
               x->at_ns > r->options.begin_ns ? x->at_ns - r->options.begin_ns : 0);
        return false;
    }
    r->job_lines += x->kind == ENTRY_JOB;
    return r->text.size < TEXT_FLUSH || flush(r);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void release(const struct entry *x)
{
    if (x->kind == ENTRY_JOB) {
        message_unref(x->job.body);
    }
}

/* Writes the batch and releases what it refers to. false: the recording is over. */
static bool write_batch(struct recorder *r, struct batch *b)
{
    bool good = true;
    for (size_t at = 0; at < b->used;) {
        const struct entry *x = (const struct entry *)(const void *)(b->data + at);
        at += x->size;
        good = good && write_entry(r, x);
        release(x);
    }
    if (good && b->lost > 0) {
        put_gap(&(struct batch){.data = b->data}, b->lost);
        good = write_entry(r, (const struct entry *)(const void *)b->data);
    }
    good = good && flush(r);
    b->used = 0;
    b->held = 0;
    b->lost = 0;
    return good;
}

static void await(struct recorder *r)
{
    struct timespec until;
    while (!r->stopping && r->fill.used == 0) {
        (void)pthread_cond_wait(&r->more, &r->lock);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GATHER_NS;
    until.tv_sec += until.tv_nsec / (long)NS_PER_S;
    until.tv_nsec %= (long)NS_PER_S;
    while (!r->stopping && r->fill.used < r->room / 2 &&
           pthread_cond_timedwait(&r->more, &r->lock, &until) == 0) {
    }
}

/* One round. false: the recording is over. */
static bool round_of(struct recorder *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->bytes = r->written;
    r->jobs = r->job_lines;
    await(r);
    struct batch batch = r->fill;
    r->fill = r->out;
    r->out = batch;
    bool last = r->stopping;
    uint64_t stop_ns = r->stop_ns;
    (void)pthread_mutex_unlock(&r->lock);
    bool good = write_batch(r, &r->out);
    if (good && last) {
        finish(r, RECORDER_STOPPED,
               stop_ns > r->options.begin_ns ? stop_ns - r->options.begin_ns : 0);
    }
    return good && !last;
}

static bool begin(struct recorder *r)
{
    const struct recorder_options *o = &r->options;
    const struct lines_head head = {.build = o->build,
                                    .wall_ns = clock_wall_ns(),
                                    .data = o->data,
                                    .file_bytes = o->file_bytes,
                                    .device = o->device,
                                    .devices = o->devices};
    if (!open_file(r)) {
        return false;
    }
    if (!lines_head(&head, &r->text)) {
        fail(r, "the first line cannot be made", "out of memory");
        return false;
    }
    if (!flush(r)) {
        return false;
    }
    step(r, RECORDER_RUNS, "");
    log_say(LOG_RECORDING, "recording jobs to %s%s, at most %" PRIu64 " bytes", o->path,
            o->data ? " with data" : "", o->file_bytes);
    return true;
}

/* What is in the queue when the recording ended by itself. */
static void drop(struct batch *b)
{
    for (size_t at = 0; at < b->used;) {
        const struct entry *x = (const struct entry *)(const void *)(b->data + at);
        at += x->size;
        release(x);
    }
    free(b->data);
    *b = (struct batch){.data = NULL};
}

static void *run(void *data)
{
    struct recorder *r = data;
    bool goes = begin(r);
    while (goes) {
        goes = round_of(r);
    }
    if (r->fd >= 0) {
        (void)close(r->fd);
    }
    r->fd = -1;
    (void)pthread_mutex_lock(&r->lock);
    r->bytes = r->written;
    r->jobs = r->job_lines;
    r->over = true;
    drop(&r->fill);
    drop(&r->out);
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- begin and end --------------------------------------------------------------------------- */

int recorder_create(const struct recorder_options *o, struct recorder **ret_recorder, struct err *e)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a recording");
    }
    pthread_condattr_t attr;
    r->options = *o;
    r->room = o->data ? RECORDER_DATA_ROOM : RECORDER_ROOM;
    r->fd = -1;
    capbuf_init(&r->text, TEXT_MOST);
    (void)pthread_condattr_init(&attr); /* cannot fail on Linux, as the next four */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->more, &attr);
    (void)pthread_condattr_destroy(&attr);
    r->lines = lines_create(o->data, o->begin_ns);
    r->fill.data = malloc(r->room);
    r->out.data = malloc(r->room);
    r->started = r->lines != NULL && r->fill.data != NULL && r->out.data != NULL &&
                 thread_start(STACK, run, r, &r->thread);
    if (!r->started) {
        recorder_destroy(r);
        return err_set(e, ERR_NOMEM, "no memory, or no thread, for a recording");
    }
    *ret_recorder = r;
    return 0;
}

void recorder_destroy(struct recorder *r)
{
    if (r == NULL) {
        return;
    }
    recorder_stop(r, clock_now_ns());
    if (r->started) {
        (void)pthread_join(r->thread, NULL);
    }
    (void)pthread_cond_destroy(&r->more);
    (void)pthread_mutex_destroy(&r->lock);
    lines_destroy(r->lines);
    capbuf_finish(&r->text);
    free(r->fill.data); /* NULL once there was a thread */
    free(r->out.data);
    free(r);
}
