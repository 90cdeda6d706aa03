/* What a line of the log is about. The results point into it. */
#ifndef FRONT_MODEL_ABOUT_H
#define FRONT_MODEL_ABOUT_H

#include "common/log.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/job.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"

/* The device as clients call it, and the tenant if it is a worker of its own. */
static inline struct log_about about_device(const struct device *d)
{
    return (struct log_about){.device = LOG_ON(device_shown(d)),
                              .tenant = d->owner != NULL ? d->owner->name : NULL};
}

static inline struct log_about about_job(const struct job *j)
{
    return (struct log_about){.job = j->id,
                              .trace = j->trace_id,
                              .device = j->device != NULL ? LOG_ON(device_shown(j->device)) : 0,
                              .tenant = j->tenant != NULL ? j->tenant->name : NULL};
}

static inline struct log_about about_session(const struct session *s)
{
    return (struct log_about){.tenant = s->tenant != NULL ? s->tenant->name : NULL};
}

#endif
