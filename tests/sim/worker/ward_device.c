/*
 * The simulated device as a back end. A stream runs its commands in order, once they are flushed;
 * streams run beside each other. A command takes a time of chance, and does what it does at its
 * end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/worker/memory/releases.h"
#include "tests/sim/worker/ward.h"

#define SERVICE      0u                  /* the stream that zeroes buffers: the worker's first */
#define ZEROS_MOST   (UINT64_C(4) << 20) /* bytes in one piece, on a processor */
#define UNHEARD_MOST 100000u             /* commands without a frame from the worker, or to it */

enum command_kind { WRITE, READ, COPY, FILL, LAUNCH, MARK, WAIT, FETCH };

static const char *const NAMES[] = {"write",  "read", "copy", "fill",
                                    "launch", "mark", "wait", "prefetch"};

struct part {
    struct backend_ref ref;
    uint8_t *host;
    uint64_t bytes;
};

struct command {
    struct command *next;
    enum command_kind kind;
    uint32_t number;
    struct ward_known known;
    struct part *part; /* owned: of a write, read; dst, src of a copy; arguments of a launch */
    unsigned parts;
    uint8_t pattern[16];
    size_t pattern_bytes;
    bool mixes;     /* the kernel; else it sets */
    bool workspace; /* the last part is a library's */
    struct ward_value value;
    struct backend_marker *marker; /* of MARK and WAIT: it has a reference */
};

struct backend_marker {
    struct backend_device *device;
    const struct backend_stream *stream; /* until the marker is over */
    unsigned refs;
    bool over, quiet, armed;
    struct err why; /* code 0: done */
    uint64_t begin_ns, end_ns;
    struct ward_known known;
};

struct backend_stream {
    struct backend_device *device;
    unsigned number;
    uint32_t commands, flushed;
    struct ward_known known; /* of the next command */
    struct command *first, **last;
    bool runs;                 /* its first command */
    bool waits;                /* for a marker */
    uint64_t begin_ns, end_ns; /* of the commands since the last mark */
};

struct backend_module {
    struct backend_device *device;
    struct backend_block *variable; /* NULL: it has none */
};

bool ward_refuses(struct ward *w, uint64_t permille)
{
    return permille > 0 && w->front_open && !w->closing &&
           chance_below(&w->chance, 1000) < permille;
}

/* ---- what commands do ------------------------------------------------------------------------ */

typedef void (*span_fn)(uint8_t *dst, const uint8_t *src, uint64_t bytes, const struct command *c,
                        uint64_t at);

static void do_copy(uint8_t *dst, const uint8_t *src, uint64_t bytes, const struct command *c,
                    uint64_t at)
{
    (void)c;
    (void)at;
    memcpy(dst, src, bytes);
}

static void do_fill(uint8_t *dst, const uint8_t *src, uint64_t bytes, const struct command *c,
                    uint64_t at)
{
    (void)src;
    if (memcmp(c->pattern, c->pattern + 1, c->pattern_bytes - 1) == 0) { /* one byte, as mostly */
        memset(dst, c->pattern[0], bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) {
        dst[i] = c->pattern[(at + i) % c->pattern_bytes];
    }
}

static void do_set(uint8_t *dst, const uint8_t *src, uint64_t bytes, const struct command *c,
                   uint64_t at)
{
    (void)src;
    for (uint64_t i = 0; i < bytes; i++) {
        dst[i] = ward_tagged(c->value.tenant, (uint32_t)(c->value.k + at + i));
    }
}

static void do_mix(uint8_t *dst, const uint8_t *src, uint64_t bytes, const struct command *c,
                   uint64_t at)
{
    (void)at;
    for (uint64_t i = 0; i < bytes; i++) {
        dst[i] = ward_tagged(c->value.tenant, dst[i] * 3u + src[i] + c->value.k);
    }
}

/* One side in device memory, or two. */
static void walk(struct backend_stream *s, const struct command *c, const struct part *dst,
                 const struct part *src, span_fn run)
{
    struct ward *w = s->device->w;
    uint64_t bytes = dst->bytes;
    for (uint64_t n = 0; n < bytes;) {
        struct ward_span to = {.data = dst->host + n, .bytes = bytes - n};
        struct ward_span from = {.data = NULL, .bytes = bytes - n};
        if (dst->host == NULL) {
            to = ward_span(w, dst->ref.block, dst->ref.offset + n, bytes - n, NAMES[c->kind]);
        }
        if (src != NULL && src->host != NULL) {
            from.data = src->host + n;
        } else if (src != NULL) {
            from = ward_span(w, src->ref.block, src->ref.offset + n, bytes - n, NAMES[c->kind]);
        }
        uint64_t size = to.bytes < from.bytes ? to.bytes : from.bytes;
        to.bytes = from.bytes = size;
        if (from.mem != NULL) {
            ward_touch(w, &from, s->number, c->number, &c->known, false, NAMES[c->kind]);
        }
        if (to.mem != NULL) {
            ward_touch(w, &to, s->number, c->number, &c->known, true, NAMES[c->kind]);
        }
        run(to.data, from.data, size, c, n);
        n += size;
    }
}

static void execute(struct backend_stream *s, const struct command *c)
{
    const struct part *p = c->part;
    const struct part host = {.host = p[0].host, .bytes = p[0].bytes};
    struct part device = p[0];
    device.host = NULL;
    switch (c->kind) {
    case WRITE:
        for (unsigned i = 0; i < c->parts; i++) {
            const struct part from = {.host = p[i].host, .bytes = p[i].bytes};
            struct part to = p[i];
            to.host = NULL;
            walk(s, c, &to, &from, do_copy);
        }
        break;
    case READ:
        walk(s, c, &host, &device, do_copy);
        break;
    case COPY:
        walk(s, c, &p[0], &p[1], do_copy);
        break;
    case FILL:
        walk(s, c, &p[0], NULL, do_fill);
        break;
    case LAUNCH:
        walk(s, c, &p[0], c->mixes ? &p[1] : NULL, c->mixes ? do_mix : do_set);
        if (c->workspace) {
            walk(s, c, &p[c->parts - 1], NULL, do_set);
        }
        break;
    case MARK:
    case WAIT:
    case FETCH:
        break;
    }
}

/* ---- streams run ----------------------------------------------------------------------------- */

static void go_on(struct backend_stream *s);

static void unref(struct backend_marker *m)
{
    if (--m->refs == 0) {
        m->device->markers--;
        free(m);
    }
}

static void settle(struct backend_stream *s, struct backend_marker *m)
{
    struct backend_device *d = s->device;
    m->over = true;
    m->why = d->dead;
    m->end_ns = s->end_ns != 0 ? s->end_ns : d->w->now_ns;
    m->begin_ns = s->begin_ns != 0 ? s->begin_ns : m->end_ns;
    s->begin_ns = s->end_ns = 0;
    /* a failure may come without a call */
    if ((m->armed || (d->w->params.wakes && !m->quiet)) &&
        (d->dead.code == 0 || chance_percent(&d->w->chance, 50))) {
        d->wake(d->wake_data);
    }
    for (unsigned i = 0; i < d->streams; i++) {
        if (d->stream[i]->waits) {
            go_on(d->stream[i]);
        }
    }
}

static void pop(struct backend_stream *s)
{
    struct command *c = s->first;
    s->first = c->next;
    s->last = s->first != NULL ? s->last : &s->first;
    if (c->marker != NULL) {
        unref(c->marker);
    }
    free(c->part);
    free(c);
}

static bool runs(const struct backend_device *d)
{
    bool any = false;
    for (unsigned i = 0; i < d->streams; i++) {
        any = any || (d->stream[i] != NULL && d->stream[i]->runs);
    }
    return any;
}

static void over(struct ward *w, void *actor, uint64_t a)
{
    struct backend_stream *s = actor;
    struct command *c = s->first;
    (void)a;
    s->runs = false;
    if (++s->device->unheard > UNHEARD_MOST) {
        ward_broken(w, "vain", "%u commands since the worker last said anything", UNHEARD_MOST);
    }
    if (s->device->dead.code == 0) {
        execute(s, c);
    }
    s->end_ns = w->now_ns;
    pop(s);
    go_on(s);
    s->device->idle_ns = runs(s->device) ? s->device->idle_ns : w->now_ns;
}

static void fault(struct backend_device *d, const struct command *c)
{
    (void)err_set(&d->dead, ERR_KERNEL_FAULT, "an illegal address was met");
    d->blamed = c->value.job;
    ward_log(d->w, "a kernel of job %" PRIu64 " faults", d->blamed);
}

static void begin(struct backend_stream *s, struct command *c)
{
    struct ward *w = s->device->w;
    uint64_t bytes = c->parts > 0 ? c->part[0].bytes : 0;
    s->begin_ns = s->begin_ns != 0 ? s->begin_ns : w->now_ns;
    s->runs = true;
    if (c->kind == LAUNCH) {
        ward_front_begins(w, &c->value);
        if (++s->device->launches == w->params.fault && !w->params.load_faults) {
            fault(s->device, c);
        }
    }
    ward_at(w, w->now_ns + ward_while(w, w->params.run_ns) + bytes / 8, over, s, 0);
}

static void go_on(struct backend_stream *s)
{
    s->waits = false;
    while (!s->runs && s->first != NULL && s->first->number <= s->flushed) {
        struct command *c = s->first;
        if (c->kind == WAIT && !c->marker->over) {
            s->waits = true;
            return;
        }
        if (c->kind == WAIT) {
            pop(s);
        } else if (c->kind == MARK) {
            struct backend_marker *m = c->marker;
            m->refs++;
            pop(s);
            settle(s, m);
            unref(m);
        } else {
            begin(s, c);
        }
    }
}

/* ---- streams take commands ------------------------------------------------------------------- */

static void learn(struct ward_known *k, const struct ward_known *more)
{
    for (unsigned i = 0; i < WARD_STREAMS; i++) {
        k->at[i] = k->at[i] > more->at[i] ? k->at[i] : more->at[i];
    }
}

static int dead(const struct backend_device *d, struct err *e)
{
    return d->dead.code != 0
               ? err_set(e, ERR_DEVICE_LOST, "the device does not answer: %s", d->dead.text)
               : 0;
}

static struct command *add(struct backend_stream *s, enum command_kind kind, unsigned parts)
{
    struct command *c = calloc(1, sizeof *c);
    c->kind = kind;
    c->parts = parts;
    c->part = calloc(parts + 1, sizeof *c->part);
    learn(&s->known, &s->device->host);
    c->known = s->known;
    c->number = s->known.at[s->number] = ++s->commands;
    *s->last = c;
    s->last = &c->next;
    return c;
}

static void part_set(struct backend_stream *s, struct command *c, unsigned i,
                     struct backend_ref ref, const void *host, uint64_t bytes)
{
    c->part[i] = (struct part){.ref = ref, .host = (uint8_t *)(uintptr_t)host, .bytes = bytes};
    ward_name(s->device->w, ref.block, ref.offset, bytes, s->number, c->number);
}

static int stream_create(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                         struct err *e)
{
    struct backend_stream *s = calloc(1, sizeof *s);
    (void)priority;
    if (d->streams == WARD_STREAMS) {
        free(s);
        return err_set(e, ERR_LIMIT, "the simulation has %u streams", WARD_STREAMS);
    }
    s->device = d;
    s->number = d->streams;
    s->last = &s->first;
    d->stream[d->streams++] = s;
    *ret_stream = s;
    return 0;
}

/* Waits that were not flushed may remain, for a job that did not come. */
static void stream_destroy(struct backend_stream *s)
{
    while (s->first != NULL) {
        if (s->first->kind != WAIT || s->first->number <= s->flushed) {
            ward_broken(s->device->w, "left", "stream %u has a %s at its end", s->number,
                        NAMES[s->first->kind]);
        }
        pop(s);
    }
    s->device->stream[s->number] = NULL;
    free(s);
}

static int write_batch(struct backend_stream *s, const struct backend_write *writes, unsigned count,
                       struct err *e)
{
    int rc = dead(s->device, e);
    if (rc != 0) {
        return rc;
    }
    struct command *c = add(s, WRITE, count);
    for (unsigned i = 0; i < count; i++) {
        part_set(s, c, i, writes[i].dst, writes[i].host, writes[i].size);
    }
    return 0;
}

static int stream_write(struct backend_stream *s, struct backend_ref dst, const void *host,
                        uint64_t size, struct err *e)
{
    const struct backend_write w = {.dst = dst, .host = host, .size = size};
    return write_batch(s, &w, 1, e);
}

static int stream_read(struct backend_stream *s, void *host, struct backend_ref src, uint64_t size,
                       struct err *e)
{
    int rc = dead(s->device, e);
    if (rc == 0) {
        part_set(s, add(s, READ, 1), 0, src, host, size);
    }
    return rc;
}

static int stream_copy(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                       uint64_t size, struct err *e)
{
    int rc = dead(s->device, e);
    if (rc == 0) {
        struct command *c = add(s, COPY, 2);
        part_set(s, c, 0, dst, NULL, size);
        part_set(s, c, 1, src, NULL, size);
    }
    return rc;
}

static int stream_fill(struct backend_stream *s, struct backend_ref dst, const void *pattern,
                       size_t pattern_size, uint64_t size, struct err *e)
{
    int rc = dead(s->device, e);
    if (rc == 0 && s->number == SERVICE && size > ZEROS_MOST && s->device->w->params.cpu != 0 &&
        ward_front_asked(s->device->w, size)) {
        ward_broken(s->device->w, "piece", "%" PRIu64 " bytes of zeros, for which all wait", size);
    }
    if (rc == 0) {
        struct command *c = add(s, FILL, 1);
        part_set(s, c, 0, dst, NULL, size);
        memcpy(c->pattern, pattern, pattern_size);
        c->pattern_bytes = pattern_size;
    }
    return rc;
}

/* workspace.block NULL: none. */
static void launch_add(struct backend_stream *s, const char *entry, const struct backend_arg *args,
                       unsigned count, struct backend_ref workspace)
{
    bool mixes = strcmp(entry, "mix") == 0;
    bool apart = workspace.block != NULL;
    unsigned memory = mixes ? 2 : 1;
    if (count != memory + 1 || args[memory].size != sizeof(struct ward_value)) {
        ward_broken(s->device->w, "arguments", "%s has %u", entry, count);
    }
    struct command *c = add(s, LAUNCH, memory + apart);
    c->mixes = mixes;
    c->workspace = apart;
    memcpy(&c->value, args[memory].value, sizeof c->value);
    for (unsigned i = 0; i < memory; i++) {
        part_set(s, c, i, args[i].memory, NULL, args[i].size);
    }
    if (apart) {
        part_set(s, c, memory, workspace, NULL, ward_workspace(args[0].size));
    }
}

static int stream_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                         const struct backend_launch *l, struct err *e)
{
    struct ward *w = s->device->w;
    int rc = dead(s->device, e);
    (void)m;
    if (rc == 0 && ward_refuses(w, w->params.refuse_launch)) {
        rc = err_set(e, ERR_LAUNCH, "the device refuses");
    }
    if (rc != 0) {
        return rc;
    }
    launch_add(s, entry, l->args, l->arg_count, (struct backend_ref){0});
    return 0;
}

static int stream_prefetch(struct backend_stream *s, struct backend_ref ref, uint64_t size,
                           struct err *e)
{
    int rc = dead(s->device, e);
    if (ref.block->kind != WARD_MANAGED) {
        ward_broken(s->device->w, "handle", "the driver does not move this block");
    }
    if (rc == 0) {
        part_set(s, add(s, FETCH, 1), 0, ref, NULL, size);
    }
    return rc;
}

static int mark_as(struct backend_stream *s, bool quiet, struct backend_marker **ret_marker,
                   struct err *e)
{
    int rc = dead(s->device, e);
    if (rc != 0) {
        return rc;
    }
    struct backend_marker *m = calloc(1, sizeof *m);
    struct command *c = add(s, MARK, 0);
    *m = (struct backend_marker){.device = s->device,
                                 .stream = s,
                                 .refs = 2,
                                 .quiet = quiet,
                                 .known = s->known,
                                 .why = ERR_INIT};
    s->device->markers++;
    c->marker = m;
    *ret_marker = m;
    return 0;
}

static int stream_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    return mark_as(s, false, ret_marker, e);
}

static int mark_quiet(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    return mark_as(s, true, ret_marker, e);
}

static int stream_wait(struct backend_stream *s, struct backend_marker *marker, struct err *e)
{
    int rc = dead(s->device, e);
    if (rc == 0) {
        struct command *c = add(s, WAIT, 0);
        marker->refs++;
        c->marker = marker;
        learn(&s->known, &marker->known);
    }
    return rc;
}

static int stream_flush(struct backend_stream *s, struct err *e)
{
    int rc = dead(s->device, e);
    s->flushed = s->commands;
    go_on(s);
    return rc;
}

/* ---- markers --------------------------------------------------------------------------------- */

/* Do the commands run that the marker is behind? A device need not show it. */
static bool marker_runs(const struct backend_marker *m)
{
    const struct command *c = m->stream->begin_ns != 0 ? m->stream->first : NULL;
    while (c != NULL && c->kind != MARK) {
        c = c->next;
    }
    return m->device->w->params.shows != 0 && c != NULL && c->marker == m;
}

static enum backend_state marker_state(struct backend_marker *m, struct err *e)
{
    if (!m->over) {
        if (m->device->dead.code == 0) {
            return marker_runs(m) ? BACKEND_RUNNING : BACKEND_PENDING;
        }
        m->why = m->device->dead; /* nothing goes on */
    }
    if (m->why.code != 0) {
        if (e != NULL) {
            *e = m->why;
        }
        return BACKEND_FAILED;
    }
    learn(&m->device->host, &m->known);
    return BACKEND_DONE;
}

static void marker_times(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
    *ret_begin_ns = m->begin_ns;
    *ret_end_ns = m->end_ns;
}

static int marker_arm(struct backend_marker *m, struct err *e)
{
    struct backend_device *d = m->device;
    (void)e;
    m->armed = true;
    if (m->over) {
        d->wake(d->wake_data);
    }
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A driver that waits for all that runs before it frees memory. The worker frees while nothing
 * runs, so that no job waits for a kernel of another one; unless the device is never idle. */
void ward_wait_for_all(struct backend_device *d, const char *what)
{
    struct ward *w = d->w;
    if (!w->params.release_waits || w->closing || !ward_on_loop(w) || d->dead.code != 0) {
        return;
    }
    if (runs(d) && w->now_ns - d->idle_ns < RELEASES_NS) {
        ward_broken(w, "waits", "%s waits for what runs; the device was idle %" PRIu64 " ms ago",
                    what, (w->now_ns - d->idle_ns) / NS_PER_MS);
    }
    while (runs(d)) {
        ward_advance(w, ward_next_ns(w));
    }
}

/* ---- modules --------------------------------------------------------------------------------- */

/* A call that loads a module may be the first one that hears of a kernel's fault. */
static void fault_now(struct backend_device *d)
{
    for (unsigned i = 0; i < d->streams && d->dead.code == 0; i++) {
        const struct backend_stream *s = d->stream[i];
        if (s != NULL && s->runs && s->first->kind == LAUNCH) {
            fault(d, s->first);
        }
    }
}

static int module_load(struct backend_device *d, struct bytes binary,
                       struct backend_module **ret_module, struct err *e)
{
    (void)binary;
    if (d->w->params.load_faults) {
        fault_now(d);
    }
    int rc = dead(d, e);
    if (rc != 0) {
        return rc;
    }
    if (ward_refuses(d->w, d->w->params.refuse_launch)) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device loads nothing now");
    }
    struct backend_module *m = calloc(1, sizeof *m);
    m->device = d;
    m->variable = d->w->params.variables != 0 ? ward_variable_make(d) : NULL;
    d->modules++;
    *ret_module = m;
    return 0;
}

static void module_unload(struct backend_module *m)
{
    ward_wait_for_all(m->device, "the end of a module");
    m->device->modules--;
    if (m->variable != NULL) {
        ward_block_end(m->device, m->variable);
    }
    free(m);
}

static unsigned kernel_count(struct backend_module *m)
{
    (void)m;
    return 2;
}

static int kernel(struct backend_module *m, unsigned index, struct backend_kernel *ret_kernel,
                  struct err *e)
{
    (void)m;
    (void)e;
    *ret_kernel = (struct backend_kernel){.arg_count = index == 0 ? 2 : 3, .max_group = 1024};
    memcpy(ret_kernel->entry, index == 0 ? "set" : "mix", 4);
    return 0;
}

static int variable(struct backend_module *m, const char *name, struct backend_block **ret_block,
                    uint64_t *ret_bytes, struct err *e)
{
    if (strcmp(name, "table") != 0 || m->variable == NULL) {
        return err_set(e, ERR_NOT_FOUND, "the module has no %s", name);
    }
    *ret_block = m->variable;
    *ret_bytes = WARD_VARIABLE;
    return 0;
}

/* ---- a library ------------------------------------------------------------------------------- */

static unsigned wanted(struct backend_module *m)
{
    return m->device->library ? 0 : 1;
}

static void prepare(struct backend_device *d, unsigned libraries)
{
    (void)libraries;
    d->library = !ward_refuses(d->w, d->w->params.refuse_memory);
    d->library_next_ns = d->library ? 0 : d->w->now_ns + NS_PER_S;
}

static unsigned again(struct backend_device *d)
{
    return d->library_next_ns != 0 && d->w->now_ns >= d->library_next_ns;
}

static int workspace(struct backend_stream *s, const struct backend_call *call, uint64_t *ret_bytes,
                     struct err *e)
{
    (void)e;
    *ret_bytes = ward_workspace(call->args[0].size);
    return s->device->library ? 0 : ERR_UNSUPPORTED;
}

static int library_run(struct backend_stream *s, const struct backend_call *call,
                       struct backend_ref memory, const char **ret_by, struct err *e)
{
    struct ward *w = s->device->w;
    int rc = dead(s->device, e);
    if (rc != 0 || !s->device->library || ward_refuses(w, w->params.refuse_launch)) {
        return rc != 0 ? rc : ERR_UNSUPPORTED;
    }
    uint64_t bytes = ward_workspace(call->args[0].size);
    if (bytes > 0 && memory.block == NULL) {
        ward_broken(w, "arguments", "a library has no workspace");
    }
    memory.block = bytes > 0 ? memory.block : NULL;
    launch_add(s, call->operation, call->args, call->arg_count, memory);
    *ret_by = "library";
    return 0;
}

/* As a driver that frees memory, it waits for all that runs. */
static void tidy(struct backend_device *d)
{
    if (runs(d) && d->dead.code == 0) {
        ward_broken(d->w, "waits", "a library frees what it has discarded while the device runs");
    }
}

static const struct backend_library_ops library_ops = {.wanted = wanted,
                                                       .prepare = prepare,
                                                       .again = again,
                                                       .workspace = workspace,
                                                       .run = library_run,
                                                       .tidy = tidy};

/* ---- the device ------------------------------------------------------------------------------ */

static struct ward *opened; /* the world whose table was asked for last */

static int device_open_it(unsigned index, const char *options, backend_wake_fn wake,
                          void *wake_data, struct backend_device **ret_device, struct err *e)
{
    struct backend_device *d = calloc(1, sizeof *d);
    (void)index;
    (void)options;
    (void)e;
    *d = (struct backend_device){
        .w = opened, .wake = wake, .wake_data = wake_data, .dead = ERR_INIT};
    opened->device = d;
    *ret_device = d;
    return 0;
}

static void device_close_it(struct backend_device *d)
{
    ward_device_check(d->w);
    d->w->device = NULL;
    free(d);
}

static void info(struct backend_device *d, struct backend_info *ret_info)
{
    const struct ward *w = d->w;
    *ret_info = (struct backend_info){.backend = "ward",
                                      .name = "a simulated device",
                                      .arch = "ward",
                                      .simulated = true,
                                      .memory = w->params.memory_kib << 10,
                                      .max_alloc = w->params.memory_kib << 10,
                                      .units = 4,
                                      .cpu = w->params.cpu != 0,
                                      .max_group = 1024,
                                      .max_local = {1024, 1024, 64},
                                      .local_bytes = 1 << 16,
                                      .streams = (unsigned)w->params.streams};
}

static bool wakes(struct backend_device *d)
{
    return d->w->params.wakes != 0;
}

static int enumerate(const char *options, unsigned *ret_count, struct err *e)
{
    (void)options;
    (void)e;
    *ret_count = 1;
    return 0;
}

bool ward_device_idle(const struct backend_device *d)
{
    bool idle = true;
    for (unsigned i = 0; i < d->streams; i++) {
        idle = idle && (d->stream[i] == NULL || d->stream[i]->first == NULL);
    }
    return idle;
}

void ward_device_check(struct ward *w)
{
    struct backend_device *d = w->device;
    unsigned mems = 0;
    unsigned blocks = 0;
    const struct ward_mem *m;
    const struct backend_block *b;
    DL_FOREACH(d->mems, m)
    {
        mems++;
    }
    DL_FOREACH(d->blocks, b)
    {
        blocks++;
    }
    bool excused = w->params.refuse_unmap > 0; /* what is not unmapped remains */
    if (excused) {
        ward_device_empty(d);
    }
    if ((!excused && (mems > 0 || blocks > 0)) || d->hosts != NULL || d->modules > 0 ||
        d->markers > 0) {
        ward_broken(w, "left",
                    "the device is closed with %u pieces of memory, %u blocks, %s registered "
                    "memory, %u modules, %u markers",
                    mems, blocks, d->hosts != NULL ? "some" : "no", d->modules, d->markers);
    }
}

static const struct backend_device_ops device_ops = {
    .open = device_open_it, .close = device_close_it, .info = info, .wakes = wakes};

static const struct backend_marker_ops marker_ops = {
    .state = marker_state, .times = marker_times, .release = unref, .arm = marker_arm};

static const struct backend_module_ops module_ops = {.load = module_load,
                                                     .unload = module_unload,
                                                     .kernel_count = kernel_count,
                                                     .kernel = kernel,
                                                     .variable = variable};

const struct backend *ward_backend(struct ward *w)
{
    static struct backend_memory_ops memory;
    static struct backend_stream_ops streams;
    static struct backend table;
    const struct ward_params *p = &w->params;
    memory = ward_block_ops;
    ward_host_ops(p, &memory);
    ward_apart_ops(p, &memory);
    streams = (struct backend_stream_ops){.create = stream_create,
                                          .destroy = stream_destroy,
                                          .write = stream_write,
                                          .read = stream_read,
                                          .copy = stream_copy,
                                          .fill = stream_fill,
                                          .launch = stream_launch,
                                          .mark = stream_mark,
                                          .mark_quiet = p->quiet ? mark_quiet : NULL,
                                          .wait = stream_wait,
                                          .flush = stream_flush,
                                          .write_batch = p->batches ? write_batch : NULL,
                                          .prefetch = p->manages > 0 ? stream_prefetch : NULL};
    table = (struct backend){.name = "ward",
                             .abi = BACKEND_ABI,
                             .enumerate = enumerate,
                             .release_waits = p->release_waits != 0,
                             .device = &device_ops,
                             .memory = &memory,
                             .pages = p->page_kib > 0 ? &ward_page_ops : NULL,
                             .stream = &streams,
                             .marker = &marker_ops,
                             .module = &module_ops,
                             .library = p->libraries != 0 ? &library_ops : NULL};
    opened = w;
    return &table;
}
