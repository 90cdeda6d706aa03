/*
 * The access log has a line for each end of a job, in their order, and each says what is true.
 * No text of a client becomes a field or a line. Where a disk took no lines, a line says how many
 * are missing. The settings move the log from time to time, also to a disk that is full.
 */
#include "tests/sim/front/rules/sim_access.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/views/access_log.h"

#define FULL "/dev/full"

/* The end of a job, as its line has to say it. */
struct ended {
    uint64_t job;
    char tenant[PROTO_NAME_MAX + 1];
    char label[PROTO_LABEL_MAX + 1];
    char device[16];
    char error[40];
};

static struct {
    struct ended *ended; /* owned */
    size_t count, room;
    size_t line;      /* of the file */
    uint64_t missing; /* as lines say */
    size_t next;      /* of `ended`, behind the last one that has a line */
} kept;

/* ---- while the front runs -------------------------------------------------------------------- */

void access_path(const struct sim *s, char *out, size_t size)
{
    if (s->p.watch == 0) {
        (void)snprintf(out, size, "off");
    } else if (chance_mix(s->steps + s->era) % 3 == 0) {
        (void)snprintf(out, size, FULL);
    } else {
        (void)snprintf(out, size, "%s/access", s->dir);
    }
}

void access_follow(struct sim *s)
{
    struct err e = ERR_INIT;
    if (s->p.watch == 0) {
        return;
    }
    if (access_log_create(&s->f->access, &e) != 0) {
        sim_fail(s, "access: %s", e.text);
    }
    access_log_set(s->f->access, s->f->config.access);
}

static void of_device(const struct job *j, struct ended *x)
{
    const struct device *d =
        j->device != NULL && j->device->base != NULL ? j->device->base : j->device;
    (void)snprintf(x->device, sizeof x->device, "-");
    if (d != NULL) {
        (void)snprintf(x->device, sizeof x->device, "%u", d->index);
    }
}

void access_job_ended(struct sim *s, const struct job *j)
{
    if (s->p.watch == 0 || j->tenant == NULL || j->counted) {
        return;
    }
    memory_outside();
    if (kept.count == kept.room) {
        kept.room = 2 * kept.room + 256;
        kept.ended = realloc(kept.ended, kept.room * sizeof *kept.ended);
    }
    struct ended *x = &kept.ended[kept.count++];
    *x = (struct ended){.job = j->id};
    (void)snprintf(x->tenant, sizeof x->tenant, "%s", j->tenant->name);
    (void)snprintf(x->label, sizeof x->label, "%s", j->label);
    (void)snprintf(x->error, sizeof x->error, "%s",
                   j->error.code != 0 ? err_name(j->error.code) : "-");
    of_device(j, x);
    memory_inside();
}

/* ---- its file -------------------------------------------------------------------------------- */

static _Noreturn void blame(struct sim *s, const char *line, const char *why)
{
    sim_fail(s, "access: line %zu: %s: %.200s", kept.line, why, line);
}

static int hex(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at *at, which may be escaped; moves on. */
static char take_byte(struct sim *s, const char *line, const char **at)
{
    unsigned char c = (unsigned char)*(*at)++;
    if (c == '\\') {
        int high = (*at)[0] == 'x' ? hex((*at)[1]) : -1;
        int low = high >= 0 ? hex((*at)[2]) : -1;
        if (low < 0) {
            blame(s, line, "an escape is wrong");
        }
        *at += 3;
        return (char)(high * 16 + low);
    }
    if (c < 0x20 || c == 0x7f || c == '"') {
        blame(s, line, "a byte is not escaped");
    }
    return (char)c;
}

/* Reads ` key=value`; returns what is behind it. A value in quotes may have blanks. */
static const char *take(struct sim *s, const char *line, const char *at, const char *key, char *out,
                        size_t size)
{
    size_t used = 0;
    size_t length = strlen(key);
    if (at[0] != ' ' || strncmp(at + 1, key, length) != 0 || at[length + 1] != '=') {
        blame(s, line, key);
    }
    at += length + 2;
    bool quoted = at[0] == '"';
    at += quoted;
    while (at[0] != '\0' && at[0] != (quoted ? '"' : ' ')) {
        char c = take_byte(s, line, &at);
        if (used + 1 < size) {
            out[used++] = c;
        }
    }
    out[used] = '\0';
    if (quoted && at[0] != '"') {
        blame(s, line, "a quote is missing");
    }
    return at + quoted;
}

static void compare(struct sim *s, const char *line, const char *key, const char *value,
                    const char *wanted)
{
    if (strcmp(value, wanted) != 0) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s is to be %s", key, wanted);
        blame(s, line, text);
    }
}

/* The next end that has this number: those before it have no line. */
static const struct ended *find(struct sim *s, const char *line, uint64_t job)
{
    while (kept.next < kept.count && kept.ended[kept.next].job != job) {
        kept.next++;
    }
    if (kept.next == kept.count) {
        blame(s, line, "no such job has ended since the line before it");
    }
    return &kept.ended[kept.next++];
}

static void read_fields(struct sim *s, const char *line, const char *at)
{
    static const char *const keys[] = {
        "tenant", "session",  "name",   "job",       "label",     "kernels",     "device", "stream",
        "class",  "queue_us", "run_us", "device_us", "to_device", "from_device", "result", "error"};
    char value[sizeof keys / sizeof keys[0]][1024];
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        at = take(s, line, at, keys[i], value[i], sizeof value[i]);
    }
    if (at[0] != '\0') {
        blame(s, line, "something follows");
    }
    const struct ended *x = find(s, line, strtoull(value[3], NULL, 10));
    compare(s, line, "tenant", value[0], x->tenant);
    compare(s, line, "label", value[4], x->label);
    compare(s, line, "device", value[6], x->device);
    compare(s, line, "error", value[15], x->error);
}

static void read_line(struct sim *s, const char *line)
{
    const char *at = strchr(line, ' ');
    char missing[32];
    kept.line++;
    if (at == NULL || at - line != 27 || at[-1] != 'Z' || line[4] != '-' || line[10] != 'T') {
        blame(s, line, "it has no time");
    }
    if (strncmp(at, " missing=", 9) == 0) {
        at = take(s, line, at, "missing", missing, sizeof missing);
        kept.missing += strtoull(missing, NULL, 10);
        if (at[0] != '\0') {
            blame(s, line, "something follows");
        }
        return;
    }
    read_fields(s, line, at);
}

/* Ends before the last line that have none are those that lines tell of. */
static void read_file(struct sim *s, FILE *in)
{
    char line[2 * ACCESS_LINE];
    size_t lines = 0;
    size_t notes = kept.line;
    while (fgets(line, sizeof line, in) != NULL) {
        size_t length = strlen(line);
        if (length == 0 || line[length - 1] != '\n') {
            blame(s, line, "it has no end");
        }
        line[length - 1] = '\0';
        uint64_t before = kept.missing;
        read_line(s, line);
        lines += kept.missing == before;
    }
    if (kept.line == notes) {
        return; /* no line could tell of any */
    }
    size_t skipped = kept.next - lines;
    if (kept.missing < skipped || kept.missing > kept.count - lines) {
        sim_fail(s, "access: %zu ends of jobs have no line, and lines tell of %" PRIu64, skipped,
                 kept.missing);
    }
}

void access_front_ended(struct sim *s)
{
    char path[SIM_FOLDER + 16];
    if (s->p.watch == 0) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/access", s->dir);
    FILE *in = fopen(path, "re");
    if (in != NULL) {
        read_file(s, in);
        (void)fclose(in);
        (void)unlink(path);
    }
    kept.count = kept.next = kept.line = 0; /* another front tells of its own only */
    kept.missing = 0;
    if (s->settled) {
        free(kept.ended);
        kept.ended = NULL;
        kept.room = 0;
    }
}
