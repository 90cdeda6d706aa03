/* Gives the jobs of a recording the buffers and modules of the replay. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/run/replay.h"

struct binder {
    struct replay *r;
    struct replay_job *j;
    struct dumped *d;
    bool fits;
    const json_t *step; /* the last one whose module was looked up */
};

static int bind_module(struct binder *n, const json_t *step, struct ctl_err *e)
{
    struct replay_module *m = NULL;
    struct dumped *d = n->d;
    uint64_t handle = 0;
    int rc = dumped_number(step, "module", UINT64_MAX, &handle, e);
    n->step = step;
    if (rc != 0 || handle == 0) {
        return rc;
    }
    for (uint32_t i = 0; i < d->module_count; i++) {
        if (d->module[i].handle == handle) {
            return 0;
        }
    }
    REPLAY_FIND(n->r->modules, &handle, m);
    if (m == NULL || d->module_count == DUMPED_MODULES) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "no line before has module %#" PRIx64, handle);
    }
    d->module[d->module_count++] =
        (struct dumped_module){.handle = handle, .module = m->module[n->j->client - n->r->client]};
    return 0;
}

static int bind_arg(void *user, const json_t *arg, const json_t *step, uint32_t at, uint32_t index,
                    struct ctl_err *e)
{
    struct binder *n = user;
    struct dumped *d = n->d;
    struct replay_buffer *b = NULL;
    uint64_t handle = 0;
    (void)at;
    (void)index;
    int rc = step != NULL && step != n->step ? bind_module(n, step, e) : 0;
    rc = rc == 0 ? dumped_number(arg, "buffer", UINT64_MAX, &handle, e) : rc;
    if (rc != 0 || handle == 0) {
        return rc;
    }
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        if (d->buffer[i].handle == handle) {
            return 0;
        }
    }
    REPLAY_FIND(n->r->buffers, &handle, b);
    if (b == NULL || d->buffer_count == GPUD_MAX_JOB_BUFFERS) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "buffer %#" PRIx64 " is not there", handle);
    }
    n->fits = n->fits && !b->unfit;
    if (!b->unfit && b->buffer.id == 0) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "buffer %#" PRIx64 " was freed before", handle);
    }
    d->buffer[d->buffer_count++] =
        (struct dumped_buffer){.handle = handle, .buffer = b->buffer, .shape = b->shape};
    return 0;
}

/* Memory of the program's own arrays to which it writes: each of its jobs has some. */
static int own_outputs(struct dumped *d, const struct dumped *p, struct ctl_err *e)
{
    int rc = 0;
    for (uint32_t i = p->own_params; rc == 0 && i < p->param_count; i++) {
        struct dumped_memory *m = &d->memory[d->memory_count];
        *m = (struct dumped_memory){.bytes = p->value[i].bytes, .host = true, .written = true};
        for (uint32_t k = 0; k < p->memory_count; k++) {
            if (p->memory[k].data == p->value[i].data) {
                (void)snprintf(m->name, sizeof m->name, "%s", p->memory[k].name);
            }
        }
        rc = d->source->take(d->source, m->bytes > 0 ? m->bytes : 1, &m->data, e);
        d->memory_count += rc == 0;
        d->value[i] = p->value[i];
        d->value[i].data = m->data;
    }
    return rc;
}

static int build_program(struct replay *r, struct replay_job *j, struct replay_program *p,
                         struct ctl_err *e)
{
    struct dumped *d = replay_dumped(j->client);
    struct binder n = {.r = r, .j = j, .d = d, .fits = true};
    if (d == NULL) {
        return replay_no_memory(e);
    }
    p->built = d;
    d->root = json_incref(p->root);
    int rc = replay_args(replay_steps(NULL, p), NULL, bind_arg, &n, e);
    rc = rc == 0 ? dumped_build(d, e) : rc;
    return rc == 0 ? 0 : ctl_err_wrap(e, "program of line %" PRIu64, p->line);
}

int replay_bind(struct replay *r, struct replay_job *j, bool *ret_fits, struct ctl_err *e)
{
    const json_t *values = json_object_get(j->root, "values");
    struct replay_program *p = NULL;
    uint64_t handle = replay_number(j->root, "program");
    if (handle != 0) {
        REPLAY_FIND(r->programs, &handle, p);
    }
    j->program = p;
    j->d = replay_dumped(j->client);
    if (j->d == NULL) {
        return replay_no_memory(e);
    }
    struct binder n = {.r = r, .j = j, .d = j->d, .fits = true};
    j->d->root = json_incref(j->root);
    int rc = replay_args(replay_steps(j->root, p), values, bind_arg, &n, e);
    *ret_fits = n.fits;
    if (rc != 0 || !n.fits) {
        return rc;
    }
    if (p == NULL) {
        rc = dumped_build(j->d, e);
    } else {
        rc = p->built == NULL ? build_program(r, j, p, e) : 0;
    }
    if (rc == 0 && p != NULL) {
        memcpy(j->d->param, p->built->param, sizeof j->d->param);
        j->d->param_count = p->built->param_count;
        j->d->own_params = p->built->own_params;
        j->d->built = true;
        rc = own_outputs(j->d, p->built, e);
    }
    return rc == 0 ? dumped_values(j->d, j->root, e) : rc;
}
