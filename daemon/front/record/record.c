#include "daemon/front/record/record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/model/request.h"
#include "daemon/front/settings/accepted.h"

#define FOLDER     "recordings"
#define NAME_BYTES 64u
#define UNIT_BYTES 4096u /* copied in about the time of a unit of work */

/* Nothing is recorded from now on. */
static void detach(struct front *f)
{
    f->watchers -= f->recording != 0;
    f->recording = 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The recording goes on without an entry that finds no room. It has ended if its thread ended it.
 */
static struct entry *put(struct front *f, enum entry_kind kind, uint64_t id, size_t more,
                         size_t held)
{
    struct entry *x = recorder_put(f->recorder, sizeof *x + more, held);
    if (x == NULL) {
        if (!recorder_takes(f->recorder)) {
            detach(f);
        }
        return NULL;
    }
    size_t size = x->size;
    *x = (struct entry){.kind = kind, .size = size, .id = id, .at_ns = turn_now(f)};
    turn_count(f, 1 + size / UNIT_BYTES);
    return x;
}

static void add(uint8_t **at, const void *data, size_t size)
{
    if (size > 0) {
        memcpy(*at, data, size);
    }
    *at += size;
}

static void name_kernel(struct entry_kernel *to, const struct kernel *k)
{
    *to = (struct entry_kernel){
        .handle = k->handle,
        .module = k->module != NULL && k->module->tenant != NULL ? k->module->id : 0};
    (void)snprintf(to->name, sizeof to->name, "%s", k->name);
}

static bool put_builtins(struct front *f)
{
    size_t count = HASH_COUNT(f->builtin_kernels);
    struct entry *x = put(f, ENTRY_KERNELS, 0, count * sizeof(struct entry_kernel), 0);
    if (x == NULL) {
        return false;
    }
    struct entry_kernel *to = (struct entry_kernel *)(x + 1);
    x->count = count;
    for (const struct kernel *k = f->builtin_kernels; k != NULL; k = k->hh.next) {
        name_kernel(to++, k);
    }
    recorder_put_end(f->recorder);
    return true;
}

static bool put_kernels(struct front *f, const struct module *m)
{
    struct entry *x = put(f, ENTRY_KERNELS, 0, m->kernel_count * sizeof(struct entry_kernel), 0);
    if (x == NULL) {
        return false;
    }
    struct entry_kernel *to = (struct entry_kernel *)(x + 1);
    x->count = m->kernel_count;
    for (unsigned i = 0; i < m->kernel_count; i++) {
        name_kernel(to++, &m->kernels[i]);
    }
    recorder_put_end(f->recorder);
    return true;
}

/* Built-in modules have no line: kernels are found by their names. */
static bool put_module(struct front *f, struct module *m)
{
    if (m->tenant == NULL || m->recorded == f->recording) {
        return true;
    }
    size_t options = m->options != NULL ? strlen(m->options) : 0;
    size_t signature = m->signature_text != NULL ? strlen(m->signature_text) : 0;
    size_t more = m->text.size + options + signature + m->headers.raw.size;
    struct entry *x = put_kernels(f, m) ? put(f, ENTRY_MODULE, m->id, more, 0) : NULL;
    if (x == NULL) {
        return false;
    }
    uint8_t *at = (uint8_t *)(x + 1);
    x->module.loaded = true;
    x->module.lang = m->lang;
    x->module.hash = m->hash;
    x->module.text = m->text.size;
    x->module.options = options;
    x->module.signature = signature;
    x->module.headers = (struct entry_list){.count = m->headers.count, .size = m->headers.raw.size};
    (void)snprintf(x->module.name, sizeof x->module.name, "%s", m->name);
    (void)snprintf(x->module.file, sizeof x->module.file, "%s", m->file);
    add(&at, m->text.data, m->text.size);
    add(&at, m->options, options);
    add(&at, m->signature_text, signature);
    add(&at, m->headers.raw.data, m->headers.raw.size);
    recorder_put_end(f->recorder);
    m->recorded = f->recording;
    return true;
}

static struct entry_list list_of(struct proto_list list)
{
    return (struct entry_list){.count = list.count, .size = list.raw.size};
}

static bool put_program(struct front *f, struct program *p)
{
    if (p == NULL || p->recorded == f->recording) {
        return true;
    }
    size_t more = p->params.raw.size + p->temps.raw.size + p->steps.raw.size;
    struct entry *x = put(f, ENTRY_PROGRAM, p->handle, more, 0);
    if (x == NULL) {
        return false;
    }
    uint8_t *at = (uint8_t *)(x + 1);
    x->program.params = list_of(p->params);
    x->program.temps = list_of(p->temps);
    x->program.steps = list_of(p->steps);
    (void)snprintf(x->program.name, sizeof x->program.name, "%s", p->name);
    add(&at, p->params.raw.data, p->params.raw.size);
    add(&at, p->temps.raw.data, p->temps.raw.size);
    add(&at, p->steps.raw.data, p->steps.raw.size);
    recorder_put_end(f->recorder);
    p->recorded = f->recording;
    return true;
}

static bool put_buffer(struct front *f, struct buffer *b, enum entry_content content)
{
    if (b->recorded == f->recording) {
        return true;
    }
    struct entry *x = put(f, ENTRY_BUFFER, b->handle, 0, 0);
    if (x == NULL) {
        return false;
    }
    x->buffer.session = b->owner != NULL ? b->owner->id : 0;
    x->buffer.flags = b->flags;
    x->buffer.device = b->shown;
    x->buffer.shape = b->shape;
    x->buffer.content = content;
    (void)snprintf(x->buffer.tenant, sizeof x->buffer.tenant, "%s", b->tenant->name);
    (void)snprintf(x->buffer.label, sizeof x->buffer.label, "%s", b->label);
    (void)snprintf(x->buffer.name, sizeof x->buffer.name, "%s", b->name);
    recorder_put_end(f->recorder);
    b->recorded = f->recording;
    return true;
}

/* Of a buffer that is older than the recording. It has no content yet if only the job itself uses
 * it. */
static enum entry_content content_of(const struct buffer *b)
{
    return b->defined.count == 0 && b->users <= 1 ? CONTENT_NONE : CONTENT_UNKNOWN;
}

/* ---- data ------------------------------------------------------------------------------------ */

static size_t chunk_size(size_t bytes)
{
    return entry_round(sizeof(struct entry_chunk)) + entry_round(bytes);
}

/* The parts of arenas that the job accesses so, as far as `most` bytes reach. */
static size_t arena_room(const struct job *j, int access, size_t most, unsigned *ret_count)
{
    size_t room = 0;
    size_t used = 0;
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        const struct work_arena *a = &j->work.arenas[i];
        size_t bytes = a->end - a->begin;
        if ((a->access & access) != 0 && bytes > 0 && bytes <= most - used) {
            used += bytes;
            room += chunk_size(bytes);
            ++*ret_count;
        }
    }
    return room;
}

static uint8_t *add_chunk(uint8_t *at, const struct entry_chunk *chunk)
{
    memcpy(at, chunk, sizeof *chunk);
    return at + entry_round(sizeof *chunk);
}

/* Reads the same parts. The memory is a client's: reading it by its descriptor cannot fault. */
static uint8_t *add_arenas(const struct job *j, int access, size_t most, uint8_t *at)
{
    size_t used = 0;
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        const struct work_arena *a = &j->work.arenas[i];
        size_t bytes = a->end - a->begin;
        if ((a->access & access) == 0 || bytes == 0 || bytes > most - used) {
            continue;
        }
        struct entry_chunk chunk = {.arena = a->arena->handle, .first = a->begin, .size = bytes};
        uint8_t *to = at + entry_round(sizeof chunk);
        bool whole = pread(a->arena->fd, to, bytes, (off_t)a->begin) == (ssize_t)bytes;
        chunk.arena = whole ? chunk.arena : UINT64_MAX; /* nothing asks for it */
        at = add_chunk(at, &chunk) + entry_round(bytes);
        used += bytes;
    }
    return at;
}

static bool has_outputs(const struct job *j)
{
    return j->state == JOB_DONE && j->device != NULL && j->output != RANGE_NONE;
}

static size_t output_room(const struct job *j, size_t most, size_t *ret_used, unsigned *ret_count)
{
    size_t room = 0;
    for (unsigned i = 0; has_outputs(j) && i < j->work.output_count; i++) {
        uint64_t bytes = j->work.outputs[i].size;
        if (bytes <= most - *ret_used) {
            *ret_used += bytes;
            room += chunk_size(bytes);
            ++*ret_count;
        }
    }
    return room;
}

static uint8_t *add_outputs(const struct job *j, size_t most, uint8_t *at)
{
    size_t used = 0;
    for (unsigned i = 0; has_outputs(j) && i < j->work.output_count; i++) {
        const struct work_output *o = &j->work.outputs[i];
        if (o->size > most - used) {
            continue;
        }
        const struct entry_chunk chunk = {.first = o->step, .arg = o->arg, .size = o->size};
        at = add_chunk(at, &chunk);
        if (o->size > 0) {
            memcpy(at, j->device->output.data + j->output + o->offset, o->size);
        }
        at += entry_round(o->size);
        used += o->size;
    }
    return at;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* What its line names has lines before it. false: one found no room, so the job has none either. */
static bool put_used(struct front *f, const struct job *j)
{
    bool good = true;
    for (unsigned i = 0; good && i < j->work.module_count; i++) {
        good = put_module(f, j->work.modules[i]);
    }
    good = good && put_program(f, j->program);
    for (unsigned i = 0; good && i < j->work.use_count; i++) {
        struct buffer *b = j->work.uses[i].buffer;
        good = put_buffer(f, b, content_of(b));
    }
    return good;
}

static void put_job(struct front *f, struct job *j)
{
    const struct request *r = j->request;
    unsigned chunks = 0;
    size_t inside = r->body == NULL ? r->size : 0;
    size_t more = entry_round(inside);
    if (f->record_data) {
        more += arena_room(j, ACCESS_IN, RECORD_DATA_MAX, &chunks);
    }
    struct entry *x = put(f, ENTRY_JOB, j->id, more, r->size - inside);
    if (x == NULL) {
        return;
    }
    uint8_t *at = (uint8_t *)(x + 1);
    x->job.session = j->session_id;
    x->job.job_class = j->job_class;
    x->job.body = r->body != NULL ? message_ref(r->body) : NULL;
    x->job.bytes = inside;
    x->job.chunks = chunks;
    (void)snprintf(x->job.tenant, sizeof x->job.tenant, "%s", j->tenant->name);
    (void)snprintf(x->job.client, sizeof x->job.client, "%s",
                   j->session != NULL ? j->session->name : "");
    add(&at, r + 1, inside);
    if (chunks > 0) {
        (void)add_arenas(j, ACCESS_IN, RECORD_DATA_MAX, (uint8_t *)(x + 1) + entry_round(inside));
    }
    recorder_put_end(f->recorder);
    j->recorded = f->recording;
}

void record_job(struct front *f, struct job *j)
{
    if (f->recording != 0 && j->request != NULL && put_used(f, j)) {
        put_job(f, j);
    }
}

void record_job_ended(struct front *f, const struct job *j)
{
    if (f->recording == 0 || j->recorded != f->recording) {
        return;
    }
    size_t most = f->record_data ? RECORD_DATA_MAX : RECORD_RESULTS_MAX;
    size_t used = 0;
    unsigned chunks = 0;
    bool shared = f->record_data && j->state == JOB_DONE;
    size_t more = output_room(j, most, &used, &chunks);
    more += shared ? arena_room(j, ACCESS_OUT, most - used, &chunks) : 0;
    struct entry *x = put(f, ENTRY_END, j->id, more, 0);
    if (x == NULL) {
        return;
    }
    uint64_t began = j->started_ns > 0 ? j->started_ns : j->ended_ns; /* as in its answer */
    x->end.state = j->state;
    x->end.code = j->error.code;
    x->end.step = j->error.step;
    x->end.placed = j->device != NULL;
    x->end.device = j->device != NULL ? device_shown(j->device) : 0;
    x->end.began = j->started_ns > 0;
    x->end.queued_ns = began > j->submitted_ns ? began - j->submitted_ns : 0;
    x->end.executed_ns = j->ended_ns > began ? j->ended_ns - began : 0;
    x->end.chunks = chunks;
    (void)snprintf(x->end.text, sizeof x->end.text, "%.255s", j->error.text);
    uint8_t *at = add_outputs(j, most, (uint8_t *)(x + 1));
    if (shared) {
        (void)add_arenas(j, ACCESS_OUT, most - used, at);
    }
    recorder_put_end(f->recorder);
}

void record_buffer_made(struct front *f, struct buffer *b)
{
    if (f->recording != 0) {
        bool zero = (b->flags & BUFFER_FLAG_ZERO) != 0;
        (void)put_buffer(f, b, zero ? CONTENT_ZERO : CONTENT_NONE);
    }
}

void record_buffer_freed(struct front *f, const struct buffer *b)
{
    if (f->recording != 0 && b->recorded == f->recording &&
        put(f, ENTRY_FREE, b->handle, 0, 0) != NULL) {
        recorder_put_end(f->recorder);
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void add_devices(const struct front *f, struct recorder_options *o)
{
    for (unsigned i = 0; i < f->device_count && o->devices < RECORDER_DEVICES; i++) {
        const struct device *d = f->device[i];
        struct lines_device *to = &o->device[o->devices++];
        to->device = i;
        to->memory = d->memory;
        (void)snprintf(to->backend, sizeof to->backend, "%s", d->backend);
        (void)snprintf(to->name, sizeof to->name, "%s", d->name);
    }
}

static int check_none(const struct front *f, struct err *e)
{
    struct recorder_status status;
    if (f->recorder == NULL || recorder_over(f->recorder)) {
        return 0;
    }
    recorder_status(f->recorder, &status);
    return err_set(e, ERR_BUSY, "%s is being %s", status.path,
                   f->recording != 0 ? "recorded: stop it first (gpuctl record stop)"
                                     : "written to its end: try again in a moment");
}

static int begin(struct front *f, struct recorder_options *o, struct err *e)
{
    struct recorder *r = NULL;
    o->fd = -1;
    o->begin_ns = front_now(f);
    o->build = f->build;
    add_devices(f, o);
    int rc = check_none(f, e);
    rc = rc == 0 ? recorder_create(o, &r, e) : rc;
    if (rc != 0) {
        return rc;
    }
    recorder_destroy(f->recorder); /* is over: does not block */
    detach(f);                     /* it may have ended by itself since the last job */
    f->recorder = r;
    f->recording = ++f->recordings;
    f->record_data = o->data;
    f->watchers++;
    (void)put_builtins(f);
    return 0;
}

/* A name of a file, and of nothing else. */
static int check_name(const char *name, struct err *e)
{
    bool good = name[0] != '\0' && name[0] != '.' && name[0] != '-' && strlen(name) <= NAME_BYTES;
    for (const char *c = name; good && *c != '\0'; c++) {
        good = isalnum((unsigned char)*c) || strchr("._-", *c) != NULL;
    }
    return good ? 0
                : err_set(e, ERR_INVALID,
                          "the name of a recording has 1 to %u letters, digits, '.', '_' and '-', "
                          "and begins with none of '.' and '-'",
                          NAME_BYTES);
}

static int take_word(const char *word, struct recorder_options *o, struct err *e)
{
    if (strcmp(word, "data") == 0) {
        o->data = true;
        return 0;
    }
    if (strncmp(word, "bytes=", 6) != 0) {
        return err_set(e, ERR_INVALID, "record-start: \"%.40s\": data, or bytes=N", word);
    }
    int rc = config_number("bytes", word + 6, true, &o->file_bytes, e);
    if (rc == 0 && (o->file_bytes < RECORDER_LEAST || o->file_bytes > INT64_MAX)) {
        rc = err_set(e, ERR_RANGE, "bytes=%s: a recording has at least %" PRIu64 " bytes", word + 6,
                     RECORDER_LEAST);
    }
    return rc;
}

/* The service manager's state folder; a daemon that was started by hand uses its cache. */
static int choose_path(const struct front *f, const char *name, struct recorder_options *o,
                       struct err *e)
{
    char state[CONFIG_PATH];
    const char *root = accepted_state(state) ? state : f->config.cache_dir;
    bool fits = (size_t)snprintf(o->dir, sizeof o->dir, "%s/" FOLDER, root) < sizeof o->dir &&
                (size_t)snprintf(o->path, sizeof o->path, "%s/" FOLDER "/%s.jsonl", root, name) <
                    sizeof o->path;
    return fits ? 0 : err_set(e, ERR_LIMIT, "the path of the recording is too long");
}

int record_start(struct front *f, const char *value, struct err *e)
{
    struct recorder_options *o = calloc(1, sizeof *o);
    char *words = strdup(value);
    char *rest = NULL;
    int rc = o != NULL && words != NULL ? 0 : err_set(e, ERR_NOMEM, "no memory for a recording");
    if (rc == 0) {
        const char *name = strtok_r(words, " ", &rest);
        const char *word;
        o->file_bytes = f->config.record_bytes;
        rc = check_name(name != NULL ? name : "", e);
        while (rc == 0 && (word = strtok_r(NULL, " ", &rest)) != NULL) {
            rc = take_word(word, o, e);
        }
        rc = rc == 0 ? choose_path(f, name, o, e) : rc;
        rc = rc == 0 ? begin(f, o, e) : rc;
    }
    free(words);
    free(o);
    return rc;
}

int record_start_file(struct front *f, const char *path, bool data, struct err *e)
{
    struct recorder_options *o = calloc(1, sizeof *o);
    if (o == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a recording");
    }
    o->data = data;
    o->file_bytes = f->config.record_bytes;
    int rc = (size_t)snprintf(o->path, sizeof o->path, "%s", path) < sizeof o->path
                 ? begin(f, o, e)
                 : err_set(e, ERR_LIMIT, "--record: the path is too long");
    free(o);
    return rc;
}

int record_stop(struct front *f, struct err *e)
{
    bool runs = f->recording != 0 && recorder_takes(f->recorder);
    detach(f);
    if (!runs) {
        return err_set(e, ERR_STATE, "there is no recording that runs");
    }
    recorder_stop(f->recorder, front_now(f));
    return 0;
}

bool record_status(const struct front *f, struct recorder_status *ret_status)
{
    if (f->recorder != NULL) {
        recorder_status(f->recorder, ret_status);
    }
    return f->recorder != NULL;
}

void record_finish(struct front *f)
{
    recorder_destroy(f->recorder);
    f->recorder = NULL;
    detach(f);
}
