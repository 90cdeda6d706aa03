/*
 * Recordings, which administrators ask for: the file is in the daemon's folder and was not there
 * before, each line is JSON, each job that began and ended meanwhile is there with a device that
 * clients know, and the file keeps its limit. The world waits for the thread that writes it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "daemon/front/record/record.h"
#include "tests/sim/front/rules/sim_access.h"

#define FOLDER     "recordings"
#define NAMES      4u
#define PATH_ROOM  CONFIG_PATH
#define SMALL      UINT64_C(65536)
#define SMALL_TEXT "65536"
#define WAIT_US    200u
#define LINE_SHOWN 160

static struct {
    unsigned name; /* of the one that was asked for last */
    bool waits;    /* its file is to be looked at when it is over */
    bool strange;  /* others can write the folder since it was asked for */
    bool there;    /* a file of its name was there before */
    bool limited;
    bool full;          /* the disk of its file is full */
    struct hash before; /* what that file had */
} record;

static void path_of(const struct sim *s, unsigned name, char out[PATH_ROOM])
{
    (void)snprintf(out, PATH_ROOM, "%s/%s/r%u.jsonl", s->dir, FOLDER, name);
}

void record_clear(const char *dir)
{
    char path[PATH_ROOM];
    for (unsigned i = 0; i < NAMES; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/r%u.jsonl", dir, FOLDER, i);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, FOLDER);
    (void)rmdir(path);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct reader {
    struct sim *s;
    const char *line, *at;
    unsigned depth;
};

static _Noreturn void blame(const struct reader *r, const char *why)
{
    sim_fail(r->s, "recording: %s: %.*s", why, LINE_SHOWN, r->line);
}

static void skip_value(struct reader *r);

static void skip_text(struct reader *r)
{
    for (r->at++; *r->at != '"'; r->at++) {
        bool escape = *r->at == '\\';
        if ((unsigned char)*r->at < 0x20 || (escape && strchr("\"\\/bfnrtu", r->at[1]) == NULL)) {
            blame(r, "a text is wrong");
        }
        r->at += escape;
    }
    r->at++;
}

/* Members of an object, or elements of an array. */
static void skip_list(struct reader *r, char end)
{
    bool object = *r->at++ == '{';
    if (++r->depth > 16) {
        blame(r, "it is too deep");
    }
    while (*r->at != end) {
        if (object && *r->at != '"') {
            blame(r, "a member has no name");
        }
        if (object) {
            skip_text(r);
            if (*r->at++ != ':') {
                blame(r, "a member has no value");
            }
        }
        skip_value(r);
        if (*r->at != end && *r->at++ != ',') {
            blame(r, "a list has no end");
        }
    }
    r->at++;
    r->depth--;
}

static void skip_value(struct reader *r)
{
    char *after = NULL;
    if (*r->at == '{' || *r->at == '[') {
        skip_list(r, *r->at == '{' ? '}' : ']');
    } else if (*r->at == '"') {
        skip_text(r);
    } else if (strncmp(r->at, "true", 4) == 0 || strncmp(r->at, "null", 4) == 0) {
        r->at += 4;
    } else if (strncmp(r->at, "false", 5) == 0) {
        r->at += 5;
    } else {
        (void)strtod(r->at, &after);
        if (after == r->at || isalpha((unsigned char)*r->at)) {
            blame(r, "a value is none of JSON");
        }
        r->at = after;
    }
}

static bool is_line(const char *line, const char *what)
{
    static const char begin[] = "{\"line\":\"";
    size_t length = strlen(what);
    return strncmp(line, begin, sizeof begin - 1) == 0 &&
           strncmp(line + sizeof begin - 1, what, length) == 0 &&
           line[sizeof begin - 1 + length] == '"';
}

static uint64_t member(const char *line, const char *name, bool *ret_there)
{
    char key[40];
    (void)snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    *ret_there = at != NULL;
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

struct sums {
    uint64_t lines, jobs, ends, said_jobs;
    bool stopped;
};

static void read_line(struct sim *s, const char *line, struct sums *sum)
{
    struct reader r = {.s = s, .line = line, .at = line};
    bool there = false;
    skip_value(&r);
    if (*r.at != '\n' || line[0] != '{') {
        blame(&r, "it is not an object");
    }
    if (sum->lines++ == 0 && !is_line(line, "recording")) {
        blame(&r, "it is not the first line");
    }
    if (sum->stopped) {
        blame(&r, "it is behind the last line");
    }
    sum->jobs += is_line(line, "job");
    if (is_line(line, "end")) {
        uint64_t device = member(line, "device", &there);
        sum->ends++;
        if (there && device >= s->p.devices) {
            blame(&r, "there is no such device");
        }
    }
    if (is_line(line, "stop")) {
        sum->stopped = true;
        sum->said_jobs = member(line, "jobs", &there);
    }
}

static void read_file(struct sim *s, const struct recorder_status *status)
{
    char path[PATH_ROOM];
    char *line = NULL;
    size_t room = 0;
    struct stat st;
    struct sums sum = {0};
    path_of(s, record.name, path);
    FILE *in = fopen(path, "re");
    if (in == NULL || strcmp(path, status->path) != 0 || fstat(fileno(in), &st) != 0) {
        sim_fail(s, "recording: %s: %s", status->path, strerror(errno));
    }
    while (getline(&line, &room, in) > 0) {
        read_line(s, line, &sum);
    }
    free(line);
    (void)fclose(in);
    if ((uint64_t)st.st_size > status->file_bytes) {
        sim_fail(s, "recording: its file has %" PRIu64 " bytes, at most %" PRIu64,
                 (uint64_t)st.st_size, status->file_bytes);
    }
    if (!sum.stopped || sum.said_jobs != sum.jobs || sum.ends > sum.jobs) {
        sim_fail(s, "recording: %" PRIu64 " jobs, %" PRIu64 " ends; the last line says %" PRIu64,
                 sum.jobs, sum.ends, sum.said_jobs);
    }
}

/* ---- its end --------------------------------------------------------------------------------- */

static bool hash_named(const char *path, struct hash *ret_hash)
{
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return false;
    }
    static char data[1u << 20];
    size_t size = fread(data, 1, sizeof data, in);
    *ret_hash = hash_of(data, size);
    (void)fclose(in);
    return true;
}

/* What is there stays as it was, and a folder that others can write is not used. */
static void check_refused(struct sim *s, const struct recorder_status *status)
{
    char path[PATH_ROOM];
    struct hash now;
    path_of(s, record.name, path);
    if (status->state != RECORDER_FAILED) {
        sim_fail(s, "recording: %s is %s: %s", status->path, recorder_state_name(status->state),
                 record.there ? "it was there before" : "others can write its folder");
    }
    if (record.there && (!hash_named(path, &now) || !hash_equal(now, record.before))) {
        sim_fail(s, "recording: %s was there before, and is another one", status->path);
    }
}

static void make_strange(struct sim *s, bool strange)
{
    char path[PATH_ROOM];
    (void)snprintf(path, sizeof path, "%s/%s", s->dir, FOLDER);
    (void)mkdir(path, 0700);
    (void)chmod(path, strange ? 0777 : 0700);
}

/* The thread's file becomes one whose disk is full. Only the thread's end closes it, and nothing
 * but that write ends a recording without a limit before it is asked to. */
static bool fill_disk(const struct sim *s)
{
    char path[PATH_ROOM];
    char link[64];
    char name[PATH_ROOM];
    int file = -1;
    struct dirent *entry;
    DIR *all = opendir("/proc/self/fd");
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    path_of(s, record.name, path);
    while (all != NULL && full >= 0 && file < 0 && (entry = readdir(all)) != NULL) {
        (void)snprintf(link, sizeof link, "/proc/self/fd/%.20s", entry->d_name);
        ssize_t n = readlink(link, name, sizeof name - 1);
        name[n > 0 ? n : 0] = '\0';
        file = n > 0 && strcmp(name, path) == 0 ? (int)strtol(entry->d_name, NULL, 10) : -1;
    }
    bool done = file >= 0 && dup2(full, file) == file;
    if (full >= 0) {
        (void)close(full);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return done;
}

/* It does not look complete. */
static void check_full(struct sim *s, const struct recorder_status *status)
{
    if (status->state != RECORDER_FAILED || status->why[0] == '\0') {
        sim_fail(s, "recording: %s is %s, and its disk was full", status->path,
                 recorder_state_name(status->state));
    }
}

static void look(struct sim *s, const struct recorder_status *status)
{
    char path[PATH_ROOM];
    if (record.full) {
        check_full(s, status);
        path_of(s, record.name, path);
        (void)unlink(path);
    } else if (record.there || record.strange) {
        check_refused(s, status);
    } else if (status->state == RECORDER_STOPPED || status->state == RECORDER_FULL) {
        read_file(s, status);
        path_of(s, record.name, path);
        if (chance_mix(s->steps) % 2 == 0) {
            (void)unlink(path); /* its name can be used again */
        }
    }
    record.waits = false;
}

static bool is_over(const struct front *f)
{
    return f->recording == 0 || !recorder_takes(f->recorder);
}

/* Its thread is done with what it had to do before anything else happens. */
void record_check(struct sim *s)
{
    struct recorder_status status;
    struct recorder *r = s->f->recorder;
    while (r != NULL && record.waits && !recorder_over(r)) {
        recorder_status(r, &status);
        if (status.state != RECORDER_OPENING && !is_over(s->f)) {
            return;
        }
        (void)usleep(WAIT_US);
    }
    if (r != NULL && record.waits) {
        recorder_status(r, &status);
        look(s, &status);
    }
}

/* It stopped with its front. */
void record_front_ended(struct sim *s)
{
    struct recorder_status status = {.file_bytes = record.limited ? SMALL : UINT64_MAX};
    path_of(s, record.name, status.path);
    if (record.waits && !record.there && !record.full && access(status.path, F_OK) == 0) {
        read_file(s, &status);
    }
    record.waits = false;
}

/* ---- requests -------------------------------------------------------------------------------- */

void record_ask(struct sim *s, struct sim_client *c, struct chance *r)
{
    char value[64] = "";
    bool starts = chance_percent(r, 60);
    if (starts) {
        bool limited = chance_percent(r, 50);
        (void)snprintf(value, sizeof value, "r%u%s%s", (unsigned)chance_below(r, NAMES),
                       limited ? " bytes=" SMALL_TEXT : "", chance_percent(r, 30) ? " data" : "");
    }
    struct msg_control m = {.what = bytes_str(starts ? "record-start" : "record-stop"),
                            .value = bytes_str(value)};
    (void)client_send(s, c, &schema_msg_control, &m);
}

static bool asks(const struct sim_request *q, char text[64])
{
    struct msg_control m;
    return q->kind == MSG_KIND_CONTROL &&
           proto_decode(&schema_msg_control, bytes_of(q->data, q->size), &m, NULL) == 0 &&
           bytes_equal_str(m.what, "record-start") && bytes_to_str(m.value, text, 64);
}

/* The front is about to get the request. Where a recording runs, it refuses another one. */
void record_before(struct sim *s, const struct sim_request *q)
{
    char text[64];
    char path[PATH_ROOM];
    if (!asks(q, text)) {
        return;
    }
    record_check(s);
    if (s->f->recorder != NULL && !recorder_over(s->f->recorder)) {
        return;
    }
    record.name = text[0] == 'r' ? (unsigned)strtoul(text + 1, NULL, 10) : 0;
    record.limited = strstr(text, "bytes=") != NULL;
    record.strange = chance_mix(s->steps) % 5 == 0;
    path_of(s, record.name, path);
    record.there = hash_named(path, &record.before);
    if (record.strange) {
        make_strange(s, true);
    }
}

/* Another look at the folder is too late: its thread has begun. */
void record_answered(struct sim *s, const struct sim_request *q, int code)
{
    char text[64];
    if (!asks(q, text)) {
        return;
    }
    if (code == 0 && (text[0] != 'r' || strchr(text, '/') != NULL)) {
        sim_fail(s, "recording: %s is taken for the name of a file", text);
    }
    record.waits = record.waits || code == 0;
    record.full = record.full && code != 0;
    record_check(s);
    if (code == 0 && record.waits && !record.limited && chance_mix(s->steps) % 3 == 0) {
        record.full = fill_disk(s);
    }
    if (record.strange) {
        make_strange(s, false);
    }
}
