#include "daemon/front/workers/frame_check.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "daemon/front/workers/arrivals.h"

/* Is the code 0 or an error of the protocol's list? */
static bool is_code(int64_t code)
{
    return code == 0 ||
           (code < 0 && code >= INT_MIN && strcmp(err_name((int)code), "UNKNOWN") != 0);
}

int frame_check_code(int64_t code, int64_t vendor, struct err *e)
{
    if (!is_code(code) || vendor < INT_MIN || vendor > INT_MAX) {
        return err_set(e, ERR_PROTOCOL, "the worker reported a result of %" PRId64 " (%" PRId64 ")",
                       code, vendor);
    }
    return 0;
}

/* A worker introduces itself while it opens its device, and when a new front asks. */
static bool introduces(const struct device *d)
{
    return d->state == DEVICE_ADOPTING || d->state == DEVICE_STARTING;
}

static int not_now(const struct device *d, const char *what, struct err *e)
{
    return err_set(e, ERR_PROTOCOL, "the worker reported %s while its device was %s", what,
                   device_state_name(d));
}

int frame_check_ready(const struct device *d, struct err *e)
{
    return introduces(d) ? 0 : not_now(d, "that it is ready", e);
}

int frame_check_absent(const struct device *d, const struct msg_w_absent *m, struct err *e)
{
    if (!introduces(d)) {
        return not_now(d, "that it is absent", e);
    }
    return frame_check_code(m->code, m->vendor, e);
}

int frame_check_job(const struct front *f, const struct device *d, uint64_t job, struct err *e)
{
    const struct job *j = job_find(f->jobs, job);
    if (j != NULL && !job_ended(j) && j->device != d) {
        return err_set(e, ERR_PROTOCOL,
                       "the worker reported job %" PRIu64 ", which the front did not send to it",
                       job);
    }
    return 0;
}

int frame_check_done(const struct front *f, const struct device *d, const struct msg_w_done *m,
                     struct err *e)
{
    const struct job *j = job_find(f->jobs, m->job);
    int rc = frame_check_job(f, d, m->job, e);
    rc = rc == 0 ? frame_check_code(m->code, m->vendor, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (m->step < -1 || m->step >= (int64_t)PROTO_STEPS_MAX || m->arg < -1 ||
        m->arg >= (int64_t)PROTO_ARGS_MAX) {
        return err_set(e, ERR_PROTOCOL, "the worker blamed step %" PRId64 ", argument %" PRId64,
                       m->step, m->arg);
    }
    /* after a fault of the device a worker ends without another frame of the job */
    if (j != NULL && d->culprit == j && j->error.code != 0) {
        return err_set(e, ERR_PROTOCOL, "the worker reported the end of job %" PRIu64 " twice",
                       m->job);
    }
    return 0;
}

/* An unknown handle was freed meanwhile. A handle of another device was never given to this worker,
 * unless the buffer moves here, or was to move here when the former front ended. */
static int check_buffer(const struct front *f, const struct device *d, uint64_t id, struct err *e)
{
    const struct buffer *b = idmap_get(&f->buffers, id);
    if (b != NULL && b->device != d->index && d->state != DEVICE_ADOPTING && !arrivals_has(d, id)) {
        return err_set(
            e, ERR_PROTOCOL,
            "the worker reported buffer %#" PRIx64 ", which the front did not send to it", id);
    }
    return 0;
}

int frame_check_buffer(const struct front *f, const struct device *d, const struct msg_w_buffer *m,
                       struct err *e)
{
    int rc = check_buffer(f, d, m->id, e);
    return rc == 0 ? frame_check_code(m->code, m->vendor, e) : rc;
}

int frame_check_exported(const struct front *f, const struct device *d,
                         const struct msg_w_exported *m, struct err *e)
{
    const struct buffer *b = idmap_get(&f->buffers, m->id);
    int rc = check_buffer(f, d, m->id, e);
    rc = rc == 0 ? frame_check_code(m->code, m->vendor, e) : rc;
    if (rc == 0 && b != NULL && (b->flags & BUFFER_FLAG_EXPORT) == 0) {
        return err_set(e, ERR_PROTOCOL,
                       "the worker exported buffer %#" PRIx64 ", which the front did not request",
                       m->id);
    }
    return rc;
}

int frame_check_module(const struct front *f, const struct device *d, const struct msg_w_module *m,
                       struct err *e)
{
    const struct module *module = idmap_get(&f->modules, m->module);
    if (module != NULL && !device_set_has(&module->loading, d->index)) {
        return err_set(e, ERR_PROTOCOL,
                       "the worker answered for module %#" PRIx64
                       ", which the front did not send to it",
                       m->module);
    }
    return frame_check_code(m->code, m->vendor, e);
}

int frame_check_arena(const struct msg_w_arena *m, struct err *e)
{
    if ((m->align & (m->align - 1)) != 0) {
        return err_set(e, ERR_PROTOCOL, "the worker wants arrays at multiples of %" PRIu64 " bytes",
                       m->align);
    }
    return 0;
}
