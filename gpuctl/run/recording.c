#include "gpuctl/run/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuctl/run/dumped.h"

#define VERSION 1u

int recording_wrap(const struct recording *r, struct ctl_err *e)
{
    return ctl_err_wrap(e, "%s: line %" PRIu64, r->path, r->line);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads a line without its newline. 0: there are no more, or the last one is not whole. */
static int read_text(struct recording *r, size_t *ret_size, struct ctl_err *e)
{
    size_t used = 0;
    int c = 0;
    while ((c = getc_unlocked(r->in)) != EOF && c != '\n') {
        if (used == RECORDING_LINE_MAX) {
            r->line++;
            (void)ctl_err_set(e, GPUD_ERR_LIMIT, "it has more than %zu bytes", RECORDING_LINE_MAX);
            return recording_wrap(r, e);
        }
        if (used == r->room) {
            size_t room = r->room > 0 ? 2 * r->room : 65536;
            char *grown = realloc(r->text, room);
            if (grown == NULL) {
                return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
            }
            r->text = grown;
            r->room = room;
        }
        r->text[used++] = (char)c;
    }
    if (c == EOF && ferror(r->in)) {
        return ctl_err_errno(e, "%s", r->path);
    }
    r->cut = r->cut || (c == EOF && used > 0);
    r->line += c != EOF;
    *ret_size = c != EOF ? used : 0;
    return c != EOF;
}

/* 1: *ret_root is the caller's. 0: there are no more. */
static int read_root(struct recording *r, json_t **ret_root, struct ctl_err *e)
{
    size_t size = 0;
    json_error_t why;
    int rc = read_text(r, &size, e);
    if (rc != 1) {
        return rc;
    }
    json_t *root = size > 0 ? json_loadb(r->text, size, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (!json_is_object(root)) {
        json_decref(root);
        (void)ctl_err_set(e, GPUD_ERR_INVALID, "%s",
                          size == 0      ? "it is empty"
                          : root != NULL ? "it is no object"
                                         : why.text);
        return recording_wrap(r, e);
    }
    *ret_root = root;
    return 1;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int need(const json_t *o, const char *name, uint64_t *ret_value, struct ctl_err *e)
{
    if (json_object_get(o, name) == NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "it has no member %s", name);
    }
    return dumped_number(o, name, UINT64_MAX, ret_value, e);
}

static int need_list(const json_t *o, const char *name, size_t most, struct ctl_err *e)
{
    const json_t *list = NULL;
    if (json_object_get(o, name) == NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "it has no member %s", name);
    }
    return dumped_list(o, name, most, &list, e);
}

static int check_job(const json_t *root, struct ctl_err *e)
{
    const json_t *job = json_object_get(root, "job");
    uint64_t value = 0;
    if (!json_is_object(job)) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "it has no object job");
    }
    int rc = need(job, "id", &value, e);
    rc = rc == 0 ? need(job, "session", &value, e) : rc;
    rc = rc == 0 ? need_list(root, "values", GPUD_MAX_PARAMS, e) : rc;
    if (rc == 0 && json_object_get(root, "program") != NULL) {
        return need(root, "program", &value, e);
    }
    return rc == 0 ? need_list(root, "steps", GPUD_MAX_STEPS, e) : rc;
}

static int check_end(const json_t *root, struct ctl_err *e)
{
    const json_t *results = NULL;
    const char *text = "";
    uint64_t value = 0;
    int rc = need(root, "job", &value, e);
    rc = rc == 0 ? dumped_text(root, "state", 64, &text, e) : rc;
    rc = rc == 0 ? dumped_text(root, "error", 64, &text, e) : rc;
    rc = rc == 0 ? need(root, "queued_ns", &value, e) : rc;
    rc = rc == 0 ? need(root, "executed_ns", &value, e) : rc;
    rc = rc == 0 ? dumped_list(root, "results", 4096, &results, e) : rc;
    for (size_t i = 0; rc == 0 && i < json_array_size(results); i++) {
        const json_t *o = json_array_get(results, i);
        rc = json_is_object(o) ? 0 : ctl_err_set(e, GPUD_ERR_INVALID, "result %zu: no object", i);
        rc = rc == 0 ? dumped_number(o, "step", GPUD_MAX_STEPS, &value, e) : rc;
        rc = rc == 0 ? dumped_number(o, "arg", GPUD_MAX_ARGS, &value, e) : rc;
        rc = rc == 0 ? dumped_text(o, "hash", 64, &text, e) : rc;
    }
    return rc;
}

static int check_buffer(const json_t *root, struct ctl_err *e)
{
    uint64_t value = 0;
    const char *text = "";
    int rc = need(root, "buffer", &value, e);
    rc = rc == 0 ? dumped_text(root, "content", 64, &text, e) : rc;
    rc = rc == 0 ? dumped_number(root, "session", UINT64_MAX, &value, e) : rc;
    return rc == 0 ? need_list(root, "shape", GPUD_MAX_DIMS, e) : rc;
}

static int check_line(const json_t *root, enum recording_line line, struct ctl_err *e)
{
    uint64_t value = 0;
    const char *text = "";
    int rc = line != LINE_STOP && line != LINE_OTHER ? need(root, "at_ns", &value, e) : 0;
    if (rc != 0) {
        return rc;
    }
    switch (line) {
    case LINE_MODULE:
        rc = need(root, "module", &value, e);
        return rc == 0 ? dumped_text(root, "what", 64, &text, e) : rc;
    case LINE_PROGRAM:
        rc = need(root, "program", &value, e);
        return rc == 0 ? need_list(root, "steps", GPUD_MAX_STEPS, e) : rc;
    case LINE_BUFFER:
        return check_buffer(root, e);
    case LINE_FREE:
        return need(root, "buffer", &value, e);
    case LINE_JOB:
        return check_job(root, e);
    case LINE_END:
        return check_end(root, e);
    case LINE_GAP:
        return need(root, "lost", &value, e);
    default:
        return 0;
    }
}

static enum recording_line line_of(const char *name)
{
    static const char *const names[] = {
        [LINE_MODULE] = "module", [LINE_PROGRAM] = "program", [LINE_BUFFER] = "buffer",
        [LINE_FREE] = "free",     [LINE_JOB] = "job",         [LINE_END] = "end",
        [LINE_GAP] = "gap",       [LINE_STOP] = "stop"};
    for (enum recording_line i = LINE_MODULE; i <= LINE_STOP; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return LINE_OTHER;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_head(struct recording *r, struct ctl_err *e)
{
    const char *format = "";
    uint64_t version = 0;
    int rc = read_root(r, &r->head, e);
    if (rc == 0) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "it has no whole line");
        return ctl_err_wrap(e, "%s", r->path);
    }
    if (rc < 0) {
        return rc;
    }
    rc = dumped_text(r->head, "format", 64, &format, e);
    rc = rc == 0 ? dumped_number(r->head, "version", UINT64_MAX, &version, e) : rc;
    if (rc == 0 && strcmp(format, "gpud-recording") != 0) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "no recording of gpuctl record or gpud --record");
    } else if (rc == 0 && version != VERSION) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "version %" PRIu64 ", this gpuctl reads version %u",
                         version, VERSION);
    }
    return rc == 0 ? 0 : recording_wrap(r, e);
}

int recording_begin(FILE *in, const char *path, struct recording *ret_recording, struct ctl_err *e)
{
    struct recording r = {.in = in, .path = path};
    int rc = read_head(&r, e);
    if (rc != 0) {
        recording_close(&r);
        return rc;
    }
    *ret_recording = r;
    return 0;
}

int recording_open(const char *path, struct recording *ret_recording, struct ctl_err *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return ctl_err_errno(e, "%s", path);
    }
    /* it is read twice, so a pipe will not do */
    FILE *in = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (in == NULL) {
        (void)close(fd);
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s: it is not a file", path);
    }
    return recording_begin(in, path, ret_recording, e);
}

int recording_next(struct recording *r, enum recording_line *ret_line, json_t **ret_root,
                   struct ctl_err *e)
{
    json_t *root = NULL;
    const char *name = "";
    int rc = read_root(r, &root, e);
    if (rc <= 0) {
        r->cut = r->cut || (rc == 0 && !r->stopped);
        *ret_line = LINE_NONE;
        *ret_root = NULL;
        return rc;
    }
    rc = dumped_text(root, "line", 64, &name, e);
    enum recording_line line = line_of(name);
    if (rc == 0 && r->stopped) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "it follows the last line (stop)");
    }
    rc =
        rc == 0 && name[0] == '\0' ? ctl_err_set(e, GPUD_ERR_INVALID, "it has no member line") : rc;
    rc = rc == 0 ? check_line(root, line, e) : rc;
    if (rc != 0) {
        json_decref(root);
        return recording_wrap(r, e);
    }
    r->stopped = line == LINE_STOP;
    *ret_line = line;
    *ret_root = root;
    return 0;
}

int recording_rewind(struct recording *r, struct ctl_err *e)
{
    json_decref(r->head);
    r->head = NULL;
    r->line = 0;
    r->stopped = false;
    rewind(r->in);
    return read_head(r, e);
}

void recording_close(struct recording *r)
{
    if (r->in != NULL) {
        (void)fclose(r->in);
    }
    json_decref(r->head);
    free(r->text);
    *r = (struct recording){.in = NULL};
}
