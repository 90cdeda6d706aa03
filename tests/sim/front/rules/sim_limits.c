/* Limits of the sections of tenants (sim_load.h): transfers, memory, requests. */
#include <inttypes.h>

#include "daemon/front/model/tenant.h"
#include "tests/sim/front/rules/sim_shares.h"

#define ADVANCE_NS (100e6) /* docs/operating.md: of a tenant that transferred little */
#define OTHERS     16u     /* a tenant leaves this part of the memory for requests to others */

/* A bucket that holds what the tenant has in advance, and that empties at its rate. */
void limits_sent(struct sim *s, uint64_t job)
{
    const struct job *j = load_is(s) ? job_find(s->f->jobs, job) : NULL;
    struct load_client *t =
        j != NULL && j->tenant != NULL ? load_client_of(s, j->tenant->name) : NULL;
    uint64_t bytes = t != NULL && t->rate > 0 ? work_transfers(&j->work) : 0;
    if (bytes == 0) {
        return;
    }
    double rate = (double)t->rate / 1e9;
    double gone = (double)(s->now_ns - t->moved_ns) * rate;
    t->moved = t->moved_era != s->era || gone > t->moved ? 0 : t->moved - gone;
    t->moved_era = s->era;
    t->moved_ns = s->now_ns;
    if (t->moved > ADVANCE_NS * rate * 1.001 + 1) {
        sim_fail(s,
                 "limits: job %" PRIu64 " is sent, and tenant %s has yet to pay for %.0f bytes at "
                 "%" PRIu64 " a second",
                 job, j->tenant->name, t->moved, t->rate);
    }
    t->moved += (double)bytes;
}

static uint64_t buffers_of(const struct sim *s, const struct tenant *t, unsigned device)
{
    uint64_t sum = 0;
    uint32_t cursor = 0;
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        bool here =
            b->tenant == t && b->device == device && !b->freed && buffer_state(b) == BUFFER_LIVE;
        sum += here ? b->bytes : 0;
    }
    return sum;
}

void limits_check(struct sim *s, const struct tenant *t)
{
    const struct load_client *own = load_client_of(s, t->name);
    uint64_t room = s->f->config.staging_input_bytes;
    const struct device *d;
    if (s->era == 1 && t->held[TENANT_JOBS] > 1 && t->input_bytes > room - room / OTHERS) {
        sim_fail(s, "limits: requests of tenant %s take %" PRIu64 " bytes of %" PRIu64, t->name,
                 t->input_bytes, room);
    }
    if (own == NULL || own->hard == 0) {
        return;
    }
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        uint64_t bytes = buffers_of(s, t, d->index);
        if (bytes > own->hard) {
            sim_fail(s, "limits: tenant %s has %" PRIu64 " bytes of device %u, at most %" PRIu64,
                     t->name, bytes, d->index, own->hard);
        }
    }
}
