/* Frames about modules and arenas. */
#include "daemon/worker/serve/serve_int.h"

/* ---- modules --------------------------------------------------------------------------------- */

void server_module_refuse(struct server *s, uint64_t id, const struct err *why)
{
    struct err e = ERR_INIT;
    if (device_is_lost(why->code) && !server_still(s)) {
        (void)server_ask_device(s);    /* does not return if a job failed, which it reports */
        server_end_lost(s, why->text); /* a running job is to blame, not the module */
    }
    server_must_send(s, answer_module_error(&s->channel, id, why, &e), &e);
    if (device_is_lost(why->code)) {
        server_end_lost(s, why->text);
    }
}

void server_module_loaded(void *data, struct module *m, const struct err *why)
{
    struct server *s = data;
    struct err e = *why;
    if (e.code == ERR_TIMEOUT) { /* its thread is still in the driver */
        server_must_send(s, answer_module_error(&s->channel, m->id, why, &e), &e);
        server_end_lost(s, why->text);
    } else if (e.code == 0 && answer_module(&s->channel, m, &e) != 0) {
        server_module_refuse(s, m->id, &e);
        module_unload(&s->modules, m); /* the front does not know it */
    } else if (e.code != 0) {
        server_module_refuse(s, m->id, &e);
    }
    channel_flush(&s->channel);
}

int serve_module_load(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_module_load msg;
    int rc = proto_decode(&schema_msg_f_module_load, frame, &msg, e);
    if (rc == 0 && fds->count != 1) {
        rc = err_set(e, ERR_PROTOCOL, "a module needs one descriptor, not %d", fds->count);
    }
    if (rc != 0) {
        return rc;
    }
    fds->count = 0;
    return module_load(&s->modules, msg.module, msg.tenant, msg.hash, fds->fd[0], msg.size, e);
}

/* A front whose predecessor ended while it adopted reads two inventories, and so unloads twice. */
int serve_module_unload(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_module_unload msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_module_unload, frame, &msg, e);
    struct module *m = rc == 0 ? module_find(&s->modules, msg.module, NULL) : NULL;
    if (m != NULL) {
        module_unload(&s->modules, m);
    }
    return rc;
}

/* ---- arenas ---------------------------------------------------------------------------------- */

void server_arena_ready(void *data, const struct arena *a)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    struct msg_w_arena msg = {.arena = a->id, .align = a->align};
    server_must_send(s, channel_send(&s->channel, &schema_msg_w_arena, &msg, NULL, &e), &e);
}

int serve_arena(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_arena msg;
    int rc = proto_decode(&schema_msg_f_arena, frame, &msg, e);
    if (rc == 0 && fds->count != 1 && !fds->lost) {
        rc = err_set(e, ERR_PROTOCOL, "an arena needs one descriptor, not %d", fds->count);
    }
    if (rc == 0) {
        fds->count = 0;
        rc = arena_add(&s->arenas, msg.arena, msg.size, msg.tenant, fds->lost ? -1 : fds->fd[0], e);
    }
    return rc;
}

int serve_arena_free(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_arena_free msg;
    struct arena *a = NULL;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_arena_free, frame, &msg, e);
    if (rc == 0) {
        HASH_FIND(hh, s->arenas.by_id, &msg.arena, sizeof msg.arena, a);
        rc = a != NULL ? 0 : err_set(e, ERR_BAD_HANDLE, "the worker has no such arena");
    }
    if (rc == 0) {
        arena_free(&s->arenas, a);
    }
    return rc;
}
