#include "daemon/front/workers/blame.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/front/model/module.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"

#define NAMED_MAX 3u /* jobs that are named; the others are counted */

struct text {
    char *data;
    size_t size;
    size_t used;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = t->used < t->size ? vsnprintf(t->data + t->used, t->size - t->used, format, list) : 0;
    va_end(list);
    t->used += n > 0 ? (size_t)n : 0;
}

/* Steps of one operation name the same kernel several times. */
static bool named_before(const struct job *j, unsigned step)
{
    for (unsigned i = 0; i < step; i++) {
        const struct work_step *s = &j->work.steps[i];
        if (s->op == OP_LAUNCH && strcmp(s->entry, j->work.steps[step].entry) == 0) {
            return true;
        }
    }
    return false;
}

void blame_kernels(const struct job *j, int step, char *out, size_t size)
{
    struct text t = {.data = out, .size = size};
    unsigned count = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        bool meant = s->op == OP_LAUNCH && (step < 0 || s->step == (unsigned)step);
        if (!meant || named_before(j, i)) {
            continue;
        }
        if (count == NAMED_MAX) {
            add(&t, ", …");
            return;
        }
        add(&t, "%s%s", count++ > 0 ? ", " : "", s->entry);
    }
}

/* The name of an entry is that of its signature, perhaps with a type: "axpy_f32". */
static bool entry_of(const struct signature *sig, const char *entry)
{
    size_t size = strlen(sig->name);
    return strncmp(entry, sig->name, size) == 0 && (entry[size] == '\0' || entry[size] == '_');
}

static struct bytes name_of(const struct module *m, const char *entry, unsigned arg)
{
    for (unsigned i = 0; i < m->kernel_count; i++) {
        const struct kernel *k = &m->kernels[i];
        if (k->signature == NULL && arg < k->arg_count && strcmp(k->entry, entry) == 0) {
            return k->args[arg].name;
        }
        if (k->signature != NULL && arg < k->signature->arg_count &&
            entry_of(k->signature, entry)) {
            return bytes_str(k->signature->arg[arg].name);
        }
    }
    return (struct bytes){0};
}

struct bytes blame_argument(const struct job *j, int step, int arg)
{
    for (unsigned i = 0; step >= 0 && arg >= 0 && i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        if (s->op == OP_LAUNCH && s->step == (unsigned)step && s->module != NULL) {
            return name_of(s->module, s->entry, (unsigned)arg);
        }
    }
    return (struct bytes){0};
}

static void add_job(struct text *t, const struct job *j)
{
    char kernels[128];
    blame_kernels(j, j->error.code != 0 ? j->error.step : -1, kernels, sizeof kernels);
    add(t, "job %" PRIu64, j->id);
    if (j->label[0] != '\0') {
        add(t, " \"%s\"", j->label);
    }
    add(t, " (%s%s; ", kernels[0] != '\0' ? "kernel " : "no kernel", kernels);
    if (j->session != NULL) {
        add(t, "session %" PRIu64 " \"%s\", ", j->session->id, j->session->name);
    }
    add(t, "tenant %s)", j->tenant != NULL ? j->tenant->name : "gpud");
}

static unsigned add_jobs(struct text *t, const struct device *d, bool running)
{
    unsigned count = 0;
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        if (running && j->state != JOB_RUNNING) {
            continue;
        }
        if (count < NAMED_MAX) {
            add(t, "%s", count > 0 ? ", " : running ? "while " : "with ");
            add_job(t, j);
        }
        count++;
    }
    if (count > NAMED_MAX) {
        add(t, " and %u more", count - NAMED_MAX);
    }
    if (count > 0) {
        add(t, running ? " ran" : " sent to it");
    }
    return count;
}

void blame_text(const struct device *d, char out[BLAME_MAX])
{
    struct text t = {.data = out, .size = BLAME_MAX};
    out[0] = '\0';
    if (d->culprit != NULL) {
        add(&t, "while ");
        add_job(&t, d->culprit);
        add(&t, " ran");
    } else if (add_jobs(&t, d, true) == 0 && add_jobs(&t, d, false) == 0) {
        add(&t, "without a job");
    }
}
