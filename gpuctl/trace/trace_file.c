/*
 * The file of a recording. The format demands that slices of one track nest. Jobs of one stream may
 * overlap by a little, and steps of one job may run side by side; what does not nest goes to a
 * further track of the stream.
 */
#include <stdlib.h>
#include <string.h>

#include "gpuctl/sheet/json_value.h"
#include "gpuctl/trace/trace.h"

#define LANES     8u /* tracks of a stream; what finds none is drawn in the last one */
#define DEVICES   64u
#define STREAMS   256u
#define TENANTS_0 1000u /* process numbers of tenants; those of devices are below */

/* A job's slice: where it is drawn. */
struct placed {
    const struct trace_event *event;
    unsigned lane;
};

struct writer {
    const struct trace *trace;
    FILE *out;
    bool begun; /* an event was written */
    bool failed;
    uint64_t origin_ns; /* time 0 of the file */
    struct placed *job; /* owned, by number */
    uint32_t jobs;
    uint64_t *lane_end;  /* owned: until when each track is used */
    const char **tenant; /* owned array; names */
    uint32_t tenants;
};

/* ---- events ---------------------------------------------------------------------------------- */

static double us_of(const struct writer *w, uint64_t ns)
{
    return (double)(ns - w->origin_ns) / 1000;
}

static void put(struct writer *w, json_t *event)
{
    if (w->begun) {
        (void)fputs(",\n", w->out);
    }
    w->begun = true;
    w->failed = !json_put(event, false, w->out) || w->failed;
}

static json_t *event_of(const char *phase, const char *name, uint64_t process, uint64_t track)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "ph", json_string(phase));
    (void)json_object_set_new(o, "name", json_of_text(name));
    (void)json_object_set_new(o, "pid", json_of_uint(process));
    (void)json_object_set_new(o, "tid", json_of_uint(track));
    return o;
}

static void put_name(struct writer *w, const char *what, uint64_t process, uint64_t track,
                     const char *name)
{
    json_t *args = json_object();
    json_t *o = event_of("M", what, process, track);
    (void)json_object_set_new(args, "name", json_of_text(name));
    (void)json_object_set_new(o, "args", args);
    put(w, o);
}

static uint64_t track_of(uint64_t stream, unsigned lane)
{
    return stream * LANES + lane + 1;
}

static uint64_t process_of(const struct trace_event *job)
{
    return job->device + 1;
}

static json_t *details_of(const struct trace_event *job)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "job", json_of_uint(job->job));
    (void)json_object_set_new(o, "tenant", json_of_text(job->by));
    (void)json_object_set_new(o, "session", json_of_uint(job->session));
    (void)json_object_set_new(o, "class", json_of_text(job->class));
    (void)json_object_set_new(o, "state", json_of_text(job->state));
    (void)json_object_set_new(o, "to_device", json_of_uint(job->to_device));
    (void)json_object_set_new(o, "from_device", json_of_uint(job->from_device));
    return o;
}

static const char *title_of(const struct trace_event *job, char out[128])
{
    if (job->name[0] != '\0') {
        return job->name;
    }
    (void)snprintf(out, 128, "job %llu", (unsigned long long)job->job);
    return out;
}

static void put_slice(struct writer *w, const struct trace_event *job, unsigned lane,
                      const char *category, const char *name, const struct trace_event *times,
                      json_t *details)
{
    json_t *o = event_of("X", name, process_of(job), track_of(job->stream, lane));
    (void)json_object_set_new(o, "cat", json_string(category));
    (void)json_object_set_new(o, "ts", json_real(us_of(w, times->begin_ns)));
    (void)json_object_set_new(o, "dur",
                              json_real((double)(times->end_ns - times->begin_ns) / 1000));
    (void)json_object_set_new(o, "args", details);
    put(w, o);
}

/* Slices of a tenant overlap at will: the format has pairs of events with a number for those. */
static void put_span(struct writer *w, const struct trace_event *job, uint64_t process,
                     const char *name, uint64_t begin_ns, uint64_t end_ns, json_t *details)
{
    for (unsigned i = 0; i < 2; i++) {
        json_t *o = event_of(i == 0 ? "b" : "e", name, process, 0);
        (void)json_object_set_new(o, "cat", json_string("tenant"));
        (void)json_object_set_new(o, "id", json_of_handle(job->job));
        (void)json_object_set_new(o, "ts", json_real(us_of(w, i == 0 ? begin_ns : end_ns)));
        if (i == 0 && details != NULL) {
            (void)json_object_set_new(o, "args", details);
        }
        put(w, o);
    }
}

static void put_arrow(struct writer *w, const struct placed *from, const struct placed *to,
                      uint64_t number)
{
    uint64_t last_ns = from->event->end_ns - (from->event->end_ns > from->event->begin_ns ? 1 : 0);
    for (unsigned i = 0; i < 2; i++) {
        const struct placed *p = i == 0 ? from : to;
        json_t *o = event_of(i == 0 ? "s" : "f", "waits for", process_of(p->event),
                             track_of(p->event->stream, p->lane));
        (void)json_object_set_new(o, "cat", json_string("hazard"));
        (void)json_object_set_new(o, "id", json_of_uint(number));
        (void)json_object_set_new(o, "ts",
                                  json_real(us_of(w, i == 0 ? last_ns : p->event->begin_ns)));
        if (i == 1) { /* binds to the slice around it, not to the next one */
            (void)json_object_set_new(o, "bp", json_string("e"));
        }
        put(w, o);
    }
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static bool ran(const struct trace_event *job)
{
    return job->kind == TRACE_JOB && job->placed && job->device < DEVICES &&
           job->stream < STREAMS && job->begin_ns != 0 && job->end_ns >= job->begin_ns;
}

static int by_number(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    return (x->event->job > y->event->job) - (x->event->job < y->event->job);
}

static int by_begin(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    if (x->event->begin_ns != y->event->begin_ns) {
        return x->event->begin_ns > y->event->begin_ns ? 1 : -1;
    }
    return by_number(a, b);
}

/* The first track of the stream, from `first` on, that is free at that time, which is taken until
 * the end. */
static unsigned lane_take(struct writer *w, const struct trace_event *job, unsigned first,
                          uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t *end = &w->lane_end[(job->device * STREAMS + job->stream) * LANES];
    unsigned lane = first;
    while (lane + 1 < LANES && end[lane] > begin_ns) {
        lane++;
    }
    end[lane] = end_ns > end[lane] ? end_ns : end[lane];
    return lane;
}

static struct placed *find(const struct writer *w, uint64_t job)
{
    const struct trace_event key = {.job = job};
    const struct placed wanted = {.event = &key};
    return bsearch(&wanted, w->job, w->jobs, sizeof *w->job, by_number);
}

static uint64_t tenant_of(struct writer *w, const char *name)
{
    uint32_t i = 0;
    while (i < w->tenants && strcmp(w->tenant[i], name) != 0) {
        i++;
    }
    if (i == w->tenants) {
        w->tenant[w->tenants++] = name;
    }
    return TENANTS_0 + i;
}

/* false: out of memory. */
static bool place_jobs(struct writer *w)
{
    const struct trace *t = w->trace;
    w->job = calloc((size_t)t->count + 1, sizeof *w->job);
    w->tenant = calloc((size_t)t->count + 1, sizeof *w->tenant);
    w->lane_end = calloc((size_t)DEVICES * STREAMS * LANES, sizeof *w->lane_end);
    if (w->job == NULL || w->tenant == NULL || w->lane_end == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        if (ran(&t->event[i])) {
            w->job[w->jobs++].event = &t->event[i];
        }
    }
    qsort(w->job, w->jobs, sizeof *w->job, by_begin);
    for (uint32_t i = 0; i < w->jobs; i++) {
        const struct trace_event *x = w->job[i].event;
        w->job[i].lane = lane_take(w, x, 0, x->begin_ns, x->end_ns);
    }
    qsort(w->job, w->jobs, sizeof *w->job, by_number);
    return true;
}

static uint64_t origin_of(const struct trace *t)
{
    uint64_t first = t->monotonic_ns;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct trace_event *x = &t->event[i];
        first = x->submitted_ns != 0 && x->submitted_ns < first ? x->submitted_ns : first;
        first = x->begin_ns != 0 && x->begin_ns < first ? x->begin_ns : first;
    }
    return first;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Steps follow their job. One that does not fit into its job, or overlaps the step before, gets a
 * further track. */
static void put_step(struct writer *w, const struct trace_event *step, uint64_t *ret_last_ns)
{
    const struct placed *p = find(w, step->job);
    if (p == NULL || step->begin_ns == 0 || step->end_ns < step->begin_ns) {
        return;
    }
    bool fits = step->begin_ns >= p->event->begin_ns && step->end_ns <= p->event->end_ns &&
                step->begin_ns >= *ret_last_ns;
    unsigned lane = fits ? p->lane
                         : lane_take(w, p->event, p->lane + 1 < LANES ? p->lane + 1 : p->lane,
                                     step->begin_ns, step->end_ns);
    *ret_last_ns = fits ? step->end_ns : *ret_last_ns;
    json_t *details = json_object();
    (void)json_object_set_new(details, "job", json_of_uint(step->job));
    (void)json_object_set_new(details, "step", json_of_uint(step->other));
    (void)json_object_set_new(details, "by", json_of_text(step->by));
    put_slice(w, p->event, lane, "step", step->name, step, details);
}

static void put_tenant(struct writer *w, const struct trace_event *job)
{
    char title[128];
    uint64_t process = tenant_of(w, job->by);
    uint64_t began =
        job->begin_ns != 0 && job->begin_ns <= job->end_ns ? job->begin_ns : job->end_ns;
    if (job->submitted_ns == 0 || job->end_ns < job->submitted_ns) {
        return;
    }
    put_span(w, job, process, title_of(job, title), job->submitted_ns, job->end_ns,
             details_of(job));
    if (began > job->submitted_ns) {
        put_span(w, job, process, "waits", job->submitted_ns, began, NULL);
    }
}

static void put_events(struct writer *w)
{
    const struct trace *t = w->trace;
    char title[128];
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct trace_event *x = &t->event[i];
        const struct placed *p = x->kind == TRACE_STEP ? NULL : find(w, x->job);
        if (x->kind == TRACE_STEP) {
            put_step(w, x, &last_ns);
        } else if (x->kind == TRACE_JOB) {
            last_ns = 0;
            put_tenant(w, x);
            if (p != NULL) {
                put_slice(w, x, p->lane, "job", title_of(x, title), x, details_of(x));
            }
        } else if (p != NULL && find(w, x->other) != NULL) {
            put_arrow(w, find(w, x->other), p, i + 1);
        }
    }
}

static void put_names(struct writer *w)
{
    char name[128];
    for (uint64_t device = 0; device < DEVICES; device++) {
        bool used = false;
        for (uint64_t at = 0; at < (uint64_t)STREAMS * LANES; at++) {
            if (w->lane_end[device * STREAMS * LANES + at] == 0) {
                continue;
            }
            used = true;
            unsigned lane = (unsigned)(at % LANES);
            (void)snprintf(name, sizeof name, lane == 0 ? "stream %u" : "stream %u (%u)",
                           (unsigned)(at / LANES), lane + 1);
            put_name(w, "thread_name", device + 1, at + 1, name);
        }
        if (used) {
            (void)snprintf(name, sizeof name, "device %u", (unsigned)device);
            put_name(w, "process_name", device + 1, 0, name);
        }
    }
    for (uint32_t i = 0; i < w->tenants; i++) {
        (void)snprintf(name, sizeof name, "tenant %.100s", w->tenant[i]);
        put_name(w, "process_name", TENANTS_0 + i, 0, name);
    }
}

bool trace_write(const struct trace *t, FILE *out)
{
    struct writer w = {.trace = t, .out = out, .origin_ns = origin_of(t)};
    w.failed = !place_jobs(&w);
    if (!w.failed) {
        (void)fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
        put_events(&w);
        put_names(&w);
        (void)fprintf(out,
                      "],\n\"otherData\":{\"clock\":\"the daemon's CLOCK_MONOTONIC\","
                      "\"begin_monotonic_ns\":\"%llu\",\"begin_wall_ns\":\"%llu\","
                      "\"jobs\":%u,\"lost\":%llu}}\n",
                      (unsigned long long)w.origin_ns,
                      (unsigned long long)(t->wall_ns - (t->monotonic_ns - w.origin_ns)),
                      (unsigned)t->jobs, (unsigned long long)t->lost);
    }
    free(w.job);
    free(w.lane_end);
    free(w.tenant);
    return !w.failed && ferror(out) == 0;
}
