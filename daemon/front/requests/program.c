/* Requests for programs: create, free. */
#include "daemon/front/requests/requests.h"
#include "daemon/front/resolve/resolve.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/job_frame.h"

#define PROGRAM_BYTES_MAX (64u * 1024u * 1024u) /* of all programs of a session */

static int check_room(const struct session *s, uint64_t more, struct err *e)
{
    if (s->programs >= PROGRAMS_MAX) {
        return err_set(e, ERR_LIMIT, "this session has %u programs, the most possible: free some",
                       s->programs);
    }
    if (more > PROGRAM_BYTES_MAX - s->program_bytes) {
        return err_set(e, ERR_LIMIT,
                       "programs of this session take %llu of %u bytes, %llu more are wanted: free "
                       "some",
                       (unsigned long long)s->program_bytes, PROGRAM_BYTES_MAX,
                       (unsigned long long)more);
    }
    return 0;
}

static uint64_t usable(const struct request_context *c, bool cpu)
{
    return tenant_devices(c->s->tenant, device_bits(c->f->device, c->f->device_count, cpu));
}

int request_program_create(struct request_context *c, struct err *e)
{
    struct front *f = c->f;
    const struct msg_program_create *m = &c->r->msg.program_create;
    int room = check_room(c->s, c->r->size, e);
    room = room == 0 ? tenant_check(c->s->tenant, TENANT_PROGRAMS, f->config.tenant_programs_max, e)
                     : room;
    room = room == 0
               ? tenant_check_messages(c->s->tenant, c->r->size, f->config.tenant_message_bytes, e)
               : room;
    if (room != 0) {
        return room;
    }
    struct resolve_input in = {.buffers = &f->buffers,
                               .kernels = &f->kernels,
                               .arenas = &f->arenas,
                               .device = f->device,
                               .devices = usable(c, false),
                               .processors = usable(c, true),
                               .builtin = f->builtin,
                               .session = c->s,
                               .tenant = c->s->tenant,
                               .params = m->params,
                               .temps = m->temps,
                               .steps = m->steps,
                               .unbound = true};
    struct job one = {.session = c->s, .tenant = c->s->tenant}; /* as if it were submitted */
    int rc = resolve(&in, &one.work, e);
    if (rc != 0) {
        return rc;
    }
    rc = job_frame_check(&one, m->params.count == 0, e);
    work_finish(&one.work);
    if (rc != 0) {
        return rc;
    }
    struct program *p = NULL;
    rc = program_create(m->params, m->temps, m->steps, &p, e);
    if (rc != 0) {
        return rc;
    }
    p->tenant = c->s->tenant;
    (void)bytes_to_str(m->name, p->name, sizeof p->name);
    rc = idmap_enter(&f->programs, p, "programs", "free some", &p->handle, e);
    if (rc != 0) {
        program_unref(p);
        return rc;
    }
    program_own(p, c->s);
    struct msg_program reply = {.program = p->handle};
    return proto_encode(&schema_msg_program, &reply, c->out, e);
}

void program_drop(struct front *f, struct program *p)
{
    idmap_disown(&f->programs, p->handle, p->owner->id);
    (void)idmap_remove(&f->programs, p->handle);
    program_disown(p);
    command_program_unref(f, p);
}

int request_program_free(struct request_context *c, struct err *e)
{
    uint64_t handle = c->r->msg.program_free.program;
    struct program *p = idmap_get(&c->f->programs, handle);
    if (p == NULL || p->owner != c->s) {
        return session_lacks(c->s, &c->f->programs, handle, "program", e);
    }
    program_drop(c->f, p);
    struct msg_done done = {0};
    return proto_encode(&schema_msg_done, &done, c->out, e);
}
