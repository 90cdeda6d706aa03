#include "daemon/worker/serve/answer.h"

#include <string.h>

#include <stddef.h>

int answer_ready(struct channel *c, const struct device *dev, uint64_t spill_limit,
                 const char *build, struct err *e)
{
    struct pool_stats stats;
    pool_stats(dev->memory.pool, &stats);
    const struct backend_info *i = &dev->info;
    struct msg_w_ready msg = {.build = bytes_str(build),
                              .backend = bytes_str(i->backend),
                              .name = bytes_str(i->name),
                              .vendor = bytes_str(i->vendor),
                              .driver = bytes_str(i->driver),
                              .cpu = i->cpu,
                              .simulated = i->simulated,
                              .memory = i->memory,
                              .units = i->units,
                              .max_group = i->max_group,
                              .local_bytes = i->local_bytes,
                              .streams = dev->stream_count,
                              .max_alloc = i->max_alloc,
                              .f64 = i->f64,
                              .arch = bytes_str(i->arch),
                              .pin = bytes_str(i->pin),
                              .devices = dev->count,
                              .urgent = dev->urgent,
                              .pool_limit = stats.limit,
                              .pool_default = device_memory_default(dev),
                              .stay = dev->memory.stay,
                              .spill_limit = spill_limit,
                              .chosen = i->chosen,
                              .note = bytes_str(i->note)};
    return channel_send(c, &schema_msg_w_ready, &msg, NULL, e);
}

int answer_buffer(struct channel *c, uint64_t id, bool gone, const struct err *why, struct err *e)
{
    struct msg_w_buffer msg = {.id = id, .code = why->code, .vendor = why->vendor, .gone = gone};
    msg.text = bytes_str(why->code != 0 ? why->text : "");
    return channel_send(c, &schema_msg_w_buffer, &msg, NULL, e);
}

int answer_module(struct channel *c, const struct module *m, struct err *e)
{
    struct capbuf list;
    uint64_t count = 0;
    int rc = 0;
    capbuf_init(&list, FRAME_MAX_BYTES);
    for (unsigned i = 0; rc == 0 && i < m->kernel_count; i++) {
        const struct backend_kernel *k = &m->kernels[i];
        struct proto_wkernel kernel = {.entry = bytes_str(k->entry),
                                       .registers = k->registers,
                                       .local_bytes = k->local_bytes,
                                       .shared_bytes = k->shared_bytes,
                                       .max_group = k->max_group,
                                       .preferred_multiple = k->preferred_multiple,
                                       .occupancy = k->occupancy};
        rc = proto_list_add(&schema_wkernel, &kernel, &list, e);
        count++;
    }
    if (rc == 0) {
        struct msg_w_module msg = {.module = m->id, .kernels = proto_list_of(&list, count)};
        rc = channel_send(c, &schema_msg_w_module, &msg, NULL, e);
    }
    capbuf_finish(&list);
    return rc;
}

int answer_module_error(struct channel *c, uint64_t id, const struct err *why, struct err *e)
{
    struct msg_w_module msg = {
        .module = id, .code = why->code, .vendor = why->vendor, .text = bytes_str(why->text)};
    return channel_send(c, &schema_msg_w_module, &msg, NULL, e);
}

int answer_job_error(struct channel *c, uint64_t id, const struct err *why, struct err *e)
{
    struct msg_w_done msg = {.job = id,
                             .code = why->code,
                             .vendor = why->vendor,
                             .step = why->step,
                             .arg = why->arg,
                             .effects = ERR_EFFECTS_NONE,
                             .text = bytes_str(why->text)};
    return channel_send(c, &schema_msg_w_done, &msg, NULL, e);
}

int answer_late(struct channel *c, const struct job *j, struct err *e)
{
    const struct msg_w_late msg = {.job = j->id};
    return channel_send(c, &schema_msg_w_late, &msg, NULL, e);
}

int answer_started(struct channel *c, const struct job *j, struct err *e)
{
    const struct msg_w_started msg = {.job = j->id, .at_ns = j->watch.seen_running_ns};
    return channel_send(c, &schema_msg_w_started, &msg, NULL, e);
}

int answer_paused(struct channel *c, const struct job *j, struct err *e)
{
    const struct msg_w_paused msg = {.job = j->id};
    return channel_send(c, &schema_msg_w_paused, &msg, NULL, e);
}

/* Reports the tenants whose memory changed since the last report. */
static int tenants_report(struct channel *c, struct memory *memory, struct err *e)
{
    int rc = 0;
    for (struct memory_tenant *t = memory->tenants; rc == 0 && t != NULL; t = t->hh.next) {
        struct memory_use u;
        memory_use(memory, t, &u);
        if (memcmp(&u, &t->reported, sizeof u) == 0) {
            continue;
        }
        const struct msg_w_tenant msg = {.tenant = t->key,
                                         .asked = u.asked,
                                         .mapped = u.mapped,
                                         .peak = u.peak,
                                         .shared = u.shared,
                                         .spilled = u.spilled};
        rc = channel_send(c, &schema_msg_w_tenant, &msg, NULL, e);
        t->reported = u;
    }
    return rc;
}

int answer_tenant_refused(struct channel *c, uint64_t tenant, const struct err *why, struct err *e)
{
    const struct msg_w_tenant_refused msg = {
        .tenant = tenant, .code = why->code, .text = bytes_str(why->text)};
    return channel_send(c, &schema_msg_w_tenant_refused, &msg, NULL, e);
}

int answer_budget(struct channel *c, const struct budget_report *report, const struct err *why,
                  struct err *e)
{
    const struct msg_w_budget msg = {.asked = report->asked,
                                     .limit = report->limit,
                                     .size = report->size,
                                     .missing = report->missing,
                                     .code = why->code,
                                     .text = bytes_str(why->code != 0 ? why->text : "")};
    return channel_send(c, &schema_msg_w_budget, &msg, NULL, e);
}

static void places_stats(const struct places *places, struct msg_w_pool *stats)
{
    struct places_use use;
    places_use(places, &use);
    stats->private_places = use.count;
    stats->private_bytes = use.bytes;
    stats->private_returns = places->returns;
    stats->private_others = places->others;
}

int answer_pool(struct channel *c, struct memory *memory, const struct spill *spill,
                const struct budget *budget, const struct batch *batch, struct err *e)
{
    struct msg_w_pool msg;
    struct budget_report report;
    int rc = tenants_report(c, memory, e);
    if (rc != 0) {
        return rc;
    }
    memory_stats(memory, &msg);
    spill_stats(spill, &msg);
    batch_stats(batch, &msg);
    budget_report(budget, &report);
    msg.limit = report.limit;
    msg.missing = report.missing;
    places_stats(&spill->device->places, &msg);
    return channel_send(c, &schema_msg_w_pool, &msg, NULL, e);
}

static int inventory_buffer(struct channel *c, const struct buffer *b, struct err *e)
{
    bool arriving = b->arrival == BUFFER_RESTORED;
    struct msg_w_inventory_buffer msg = {.id = b->id,
                                         .size = b->size,
                                         .sealed = b->sealed_fd >= 0 && !b->lent,
                                         .arriving = arriving,
                                         .lent = b->lent && arriving};
    bool copy = msg.sealed != 0 || msg.lent != 0;
    struct frame_fds fds = {.fd = {b->sealed_fd}, .count = copy};
    return channel_send(c, &schema_msg_w_inventory_buffer, &msg, &fds, e);
}

/* A retired job keeps its place only, and the front knows it no more. */
static int inventory_job(struct channel *c, const struct job *j, struct err *e)
{
    if (j->state == JOB_RETIRED) {
        return 0;
    }
    bool reported = job_state_reported(j->state);
    struct msg_w_inventory_job msg = {.job = j->id, .stream = j->stream, .finished = reported};
    int rc = channel_send(c, &schema_msg_w_inventory_job, &msg, NULL, e);
    if (rc == 0 && reported) {
        rc = channel_send_bytes(c, bytes_of(j->done, j->done_size), NULL, e);
    } else if (rc == 0 && j->watch.reported_running) {
        rc = answer_started(c, j, e);
    }
    return rc;
}

/* The table is in the order of creation. The front knows buffers that are created meanwhile. */
static int inventory_buffers(struct channel *c, const struct buffers *buffers, struct inventory *i,
                             struct err *e)
{
    int rc = 0;
    for (const struct buffer *b = buffers->by_id; rc == 0 && b != NULL; b = b->hh.next) {
        if (b->serial < i->from || b->serial >= i->to) {
            continue;
        }
        if (b->sealed_fd >= 0 && !channel_room(c)) {
            return 0;
        }
        rc = inventory_buffer(c, b, e);
        i->from = b->serial + 1;
    }
    i->from = rc == 0 ? i->to : i->from;
    return rc;
}

/* Buffers that are restored when there is room for them. */
static int inventory_creations(struct channel *c, const struct creations *creations, bool *ret_over,
                               struct err *e)
{
    int rc = 0;
    *ret_over = true;
    for (struct creation *x = creations->first; rc == 0 && x != NULL; x = x->next) {
        if (!x->unreported) {
            continue;
        }
        if (!channel_room(c)) {
            *ret_over = false;
            return 0;
        }
        const struct msg_w_inventory_buffer msg = {
            .id = x->ask.id, .size = x->ask.size, .sealed = 1, .arriving = 1};
        const struct frame_fds fds = {.fd = {x->host.fd}, .count = 1};
        rc = channel_send(c, &schema_msg_w_inventory_buffer, &msg, &fds, e);
        x->unreported = false;
    }
    return rc;
}

int answer_inventory(struct channel *c, const struct buffers *buffers,
                     const struct creations *creations, const struct modules *modules,
                     const struct ledger *ledger, struct inventory *i, struct err *e)
{
    bool over = false;
    int rc = inventory_buffers(c, buffers, i, e);
    if (rc != 0 || i->from < i->to) {
        return rc;
    }
    rc = inventory_creations(c, creations, &over, e);
    if (rc != 0 || !over) {
        return rc;
    }
    for (const struct module *m = modules->by_id; rc == 0 && m != NULL; m = m->hh.next) {
        struct msg_w_inventory_module msg = {.module = m->id,
                                             .hash = bytes_of(m->hash, m->hash_size)};
        rc = channel_send(c, &schema_msg_w_inventory_module, &msg, NULL, e);
    }
    for (const struct job *j = ledger->by_id; rc == 0 && j != NULL; j = j->hh.next) {
        rc = inventory_job(c, j, e);
    }
    struct msg_w_inventory_end end = {.nonce = i->nonce};
    i->under_way = false;
    return rc == 0 ? channel_send(c, &schema_msg_w_inventory_end, &end, NULL, e) : rc;
}

bool answer_id_of(struct bytes frame, uint64_t *ret_id)
{
    struct head {
        uint64_t id;
    } head;
    static const struct schema_field FIELD[] = {
        {.name = "id", .type = SCHEMA_U, .offset = 0, .max = UINT64_MAX}};
    const struct schema schema = {.name = "frame",
                                  .kind = (uint16_t)proto_kind(frame),
                                  .size = sizeof head,
                                  .count = 1,
                                  .fields = FIELD};
    if (proto_decode(&schema, frame, &head, NULL) != 0) {
        return false;
    }
    *ret_id = head.id;
    return true;
}
