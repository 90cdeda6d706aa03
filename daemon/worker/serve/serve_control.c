/* Frames about the worker as a whole. */
#include "common/clock.h"
#include "daemon/worker/serve/serve_int.h"

void server_inventory_go_on(void *data)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    if (!s->inventory.under_way) {
        return;
    }
    int rc = answer_inventory(&s->channel, &s->buffers, &s->creations, &s->modules, &s->ledger,
                              &s->inventory, &e);
    /* without the inventory's end the front would wait forever */
    server_must_send(s, rc, &e);
    if (!s->inventory.under_way) {
        waiting_announce(&s->waiting);
        completion_renew(&s->completion);
    }
}

int serve_inventory(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_inventory msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_inventory, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    arenas_forget(&s->arenas);
    places_end_all(&s->device.places); /* the next front numbers programs anew */
    memory_report_anew(&s->device.memory);
    memory_unlimit(&s->device.memory);
    /* their ends must not look like that of a seal that the next front asks for */
    transfers_disown(&s->transfers);
    creations_adopted(&s->creations);
    server_must_send(s, answer_ready(&s->channel, &s->device, s->spill.limit, s->build, e), e);
    s->inventory = (struct inventory){
        .under_way = true, .nonce = msg.nonce, .from = 1, .to = s->buffers.made + 1};
    server_inventory_go_on(s);
    return 0;
}

int serve_pool(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_pool msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_pool, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    if (msg.trim != 0) {
        memory_trim(&s->device.memory);
    }
    server_must_send(
        s,
        answer_pool(&s->channel, &s->device.memory, &s->spill, &s->budget, &s->executor.batch, e),
        e);
    return 0;
}

int serve_tenant(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_tenant msg;
    char name[PROTO_NAME_MAX + 1];
    (void)fds;
    int rc = proto_decode(&schema_msg_f_tenant, frame, &msg, e);
    if (rc != 0 || !bytes_to_str(msg.name, name, sizeof name)) {
        return rc != 0 ? rc
                       : err_set(e, ERR_INVALID, "a tenant's name is too long or contains a NUL");
    }
    const struct memory_limits limits = {
        .device = {.hard = msg.hard, .soft = msg.soft, .guaranteed = msg.guaranteed},
        .spilled = msg.spilled};
    struct err why = ERR_INIT;
    if (memory_quota(&s->device.memory, msg.tenant, name, &limits, &why) != 0) {
        server_must_send(s, answer_tenant_refused(&s->channel, msg.tenant, &why, e), e);
    }
    if (spill_shed(&s->spill, msg.tenant, e) != 0) {
        server_end_lost(s, e->text);
    }
    return 0;
}

int serve_coalesce(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_coalesce msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_coalesce, frame, &msg, e);
    if (rc == 0) {
        coalesce_set_window(&s->coalesce, msg.window_ns);
    }
    return rc;
}

int serve_spill(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_spill msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_spill, frame, &msg, e);
    if (rc == 0) {
        spill_set_limit(&s->spill, msg.limit);
    }
    return rc;
}

void server_budget_ended(void *data, const struct budget_report *report)
{
    struct server *s = data;
    const struct err none = ERR_INIT;
    struct err e = ERR_INIT;
    server_must_send(s, answer_budget(&s->channel, report, &none, &e), &e);
}

int serve_budget(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_budget msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_budget, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    const struct budget_ask ask = {.limit = msg.limit,
                                   .until_ns = clock_now_ns() + msg.deadline_ms * NS_PER_MS,
                                   .stay = msg.stay,
                                   .most = msg.most};
    struct err why = ERR_INIT;
    waiting_renew(&s->waiting);
    if (budget_set(&s->budget, &ask, &why) != 0) {
        struct budget_report report;
        budget_report(&s->budget, &report);
        report.asked = msg.limit;
        server_must_send(s, answer_budget(&s->channel, &report, &why, e), e);
    }
    return 0;
}

int serve_program_end(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_program_end msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_program_end, frame, &msg, e);
    if (rc == 0) {
        places_end(&s->device.places, msg.program);
    }
    return rc;
}

int serve_snapshot(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_snapshot msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_snapshot, frame, &msg, e);
    if (rc == 0) {
        server_must_send(s, snapshot_ask(&s->snapshot, msg.nonce, msg.detail != 0, e), e);
    }
    return rc;
}

int serve_rings(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_rings msg;
    int rc = proto_decode(&schema_msg_f_rings, frame, &msg, e);
    if (rc == 0) {
        server_must_send(s, channel_rings(&s->channel, msg.nonce, fds, e), e);
    }
    return rc;
}

int serve_quit(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    (void)frame;
    (void)fds;
    (void)e;
    s->ended = true;
    uv_stop(s->loop);
    return 0;
}
