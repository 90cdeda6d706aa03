/* Rows of the daemon's table become events. */
#include <stdlib.h>
#include <string.h>

#include "gpuctl/trace/trace.h"

/* The columns that are read, by name, so that a later daemon may have more. */
#define COLUMNS(X)                                                                                 \
    X(event)                                                                                       \
    X(job)                                                                                         \
    X(other)                                                                                       \
    X(name)                                                                                        \
    X(by)                                                                                          \
    X(session)                                                                                     \
    X(class)                                                                                       \
    X(state)                                                                                       \
    X(device)                                                                                      \
    X(stream)                                                                                      \
    X(submitted)                                                                                   \
    X(begin)                                                                                       \
    X(end)                                                                                         \
    X(to_device)                                                                                   \
    X(from_device)

enum column {
#define X(name) COLUMN_##name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT
};

struct view {
    const gpud_table *table;
    uint32_t column[COLUMN_COUNT];
};

static const char *text(const struct view *v, uint32_t row, enum column column)
{
    const char *found = gpud_table_text(v->table, row, v->column[column]);
    return found != NULL ? found : "";
}

static uint64_t value(const struct view *v, uint32_t row, enum column column)
{
    return gpud_table_value(v->table, row, v->column[column]);
}

static int view_of(const gpud_table *table, struct view *ret_view, struct ctl_err *e)
{
    static const char *const names[COLUMN_COUNT] = {
#define X(name) #name,
        COLUMNS(X)
#undef X
    };
    ret_view->table = table;
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        int at = gpud_table_find(table, names[i]);
        if (at < 0) {
            return ctl_err_set(e, GPUD_ERR_PROTOCOL, "the daemon's table trace has no column %s",
                               names[i]);
        }
        ret_view->column[i] = (uint32_t)at;
    }
    return 0;
}

static struct trace_event *event_add(struct trace *t)
{
    if (t->count == t->room) {
        uint32_t room = 2 * t->room + 1024;
        struct trace_event *more = realloc(t->event, room * sizeof *more);
        if (more == NULL) {
            return NULL;
        }
        t->event = more;
        t->room = room;
    }
    t->event[t->count] = (struct trace_event){.kind = TRACE_JOB};
    return &t->event[t->count++];
}

static bool event_fill(struct trace_event *x, const struct view *v, uint32_t row)
{
    x->job = value(v, row, COLUMN_job);
    x->other = value(v, row, COLUMN_other);
    x->session = value(v, row, COLUMN_session);
    x->placed = text(v, row, COLUMN_device)[0] == '\0';
    x->device = value(v, row, COLUMN_device);
    x->stream = value(v, row, COLUMN_stream);
    x->submitted_ns = value(v, row, COLUMN_submitted);
    x->begin_ns = value(v, row, COLUMN_begin);
    x->end_ns = value(v, row, COLUMN_end);
    x->to_device = value(v, row, COLUMN_to_device);
    x->from_device = value(v, row, COLUMN_from_device);
    x->name = strdup(text(v, row, COLUMN_name));
    x->by = strdup(text(v, row, COLUMN_by));
    x->state = strdup(text(v, row, COLUMN_state));
    x->class = strdup(text(v, row, COLUMN_class));
    return x->name != NULL && x->by != NULL && x->state != NULL && x->class != NULL;
}

static int row_add(struct trace *t, const struct view *v, uint32_t row, struct ctl_err *e)
{
    static const char *const kinds[] = {
        [TRACE_JOB] = "job", [TRACE_STEP] = "step", [TRACE_AFTER] = "after"};
    const char *kind = text(v, row, COLUMN_event);
    if (strcmp(kind, "clock") == 0) {
        t->lost = value(v, row, COLUMN_other);
        t->monotonic_ns = value(v, row, COLUMN_begin);
        t->wall_ns = value(v, row, COLUMN_end);
        return 0;
    }
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            struct trace_event *x = event_add(t);
            bool there = x != NULL && event_fill(x, v, row);
            if (there) {
                x->kind = (enum trace_event_kind)i;
                t->jobs += i == TRACE_JOB;
            }
            return there ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
        }
    }
    return 0; /* of a later daemon */
}

int trace_add(struct trace *t, const gpud_table *table, struct ctl_err *e)
{
    struct view v;
    int rc = view_of(table, &v, e);
    for (uint32_t row = 0; rc == 0 && row < gpud_table_rows(table); row++) {
        rc = row_add(t, &v, row, e);
    }
    return rc;
}

void trace_finish(struct trace *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        free(t->event[i].name);
        free(t->event[i].by);
        free(t->event[i].state);
        free(t->event[i].class);
    }
    free(t->event);
    *t = (struct trace){.event = NULL};
}
