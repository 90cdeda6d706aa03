#include "daemon/front/memory/variable.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/command.h"

static struct variable *find(const struct module *m, const char *name)
{
    struct variable *v = NULL;
    HASH_FIND_BYHASHVALUE(hh, m->variables, name, strlen(name), tenant_hash(m->tenant, name), v);
    return v;
}

static int name_check(const struct module *m, struct bytes given, struct err *e)
{
    char name[PROTO_NAME_MAX + 1];
    if (given.size == 0 || !bytes_to_str(given, name, sizeof name)) {
        return err_set(e, ERR_INVALID, "a variable has a name of 1 to %u bytes", PROTO_NAME_MAX);
    }
    const struct variable *v = find(m, name);
    if (v == NULL) {
        return 0;
    }
    return v->buffer->freed
               ? err_set(e, ERR_STATE, "variable %s is still used by jobs: wait for them", name)
               : err_set(e, ERR_EXISTS, "variable %s is buffer %#llx already", name,
                         (unsigned long long)v->buffer->handle);
}

/* Index + 1 of the device that has the module's other variables, else of one that has loaded it; 0:
 * none. */
static uint64_t place_of(const struct front *f, const struct module *m)
{
    if (m->variables != NULL) {
        return device_shown(f->device[m->variables->buffer->device]) + 1;
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = domain_of(m->tenant, f->device[i]);
        if (d != NULL && device_set_has(&m->loaded, d->index) && device_serves(d)) {
            return i + 1;
        }
    }
    return 0;
}

int variable_module(struct request_context *c, uint64_t wish, struct module **ret_module,
                    uint64_t *ret_wish, struct err *e)
{
    const struct msg_buffer_create *msg = &c->r->msg.buffer_create;
    if (msg->module == 0) {
        return 0;
    }
    struct module *m = idmap_get(&c->f->modules, msg->module);
    if (m == NULL || m->unloaded || m->tenant == NULL || m->owner != c->s) {
        return err_set(e, ERR_BAD_HANDLE, "this session has no module %#llx",
                       (unsigned long long)msg->module);
    }
    int rc = msg->flags != 0 ? err_set(e, ERR_INVALID, "a variable takes no flags")
                             : name_check(m, msg->variable, e);
    uint64_t place = place_of(c->f, m);
    if (rc == 0 && wish != 0 && m->variables != NULL && wish != place) {
        rc = err_set(e, ERR_STATE,
                     "another variable of the module is on device %llu: load the module again",
                     (unsigned long long)(place - 1));
    }
    if (rc == 0) {
        *ret_module = m;
        *ret_wish = wish != 0 ? wish : place;
    }
    return rc;
}

static bool names(const struct job *j, const struct module *m)
{
    for (unsigned i = 0; i < j->work.module_count; i++) {
        if (j->work.modules[i] == m) {
            return true;
        }
    }
    return false;
}

/* Does the job name the buffer by its handle? Then it fails with the buffer. */
static bool names_buffer(const struct job *j, const struct buffer *b)
{
    for (unsigned i = 0; i < j->work.ref_count; i++) {
        const struct work_ref *ref = &j->work.refs[i];
        if (ref->tag == REF_BUFFER && ref->id == b->handle) {
            return true;
        }
    }
    return false;
}

static void part_all(struct front *f, struct buffer *b)
{
    struct buffer_use *next = hazard_first(b);
    while (next != NULL) {
        struct job *j = next->job;
        next = hazard_behind(next);
        turn_count(f, 1 + j->work.ref_count);
        if (!names_buffer(j, b)) {
            hazard_part(&f->hazards, j, b);
            if (j->wait == WAIT_HAZARD) {
                queue_offer(f, j); /* the job may have waited for the variable only */
            }
        }
    }
    queue_turn(f);
}

static int join(struct job *j, const struct module *m, struct buffer *b, struct err *e)
{
    if (job_ended(j) || !names(j, m)) {
        return 0;
    }
    if (j->work.use_count >= WORK_USES_MAX) {
        return err_set(e, ERR_BUSY,
                       "job %llu launches kernels of module %s and uses %u buffers, as many as a "
                       "job can: wait for it, then open the variable",
                       (unsigned long long)j->id, m->name, j->work.use_count);
    }
    return hazard_join(j, b) ? 0 : err_set(e, ERR_NOMEM, "no memory to order a variable's jobs");
}

/* Orders the variable behind jobs that were submitted before. Only jobs of the module's owner
 * launch its kernels. */
static int join_all(struct front *f, const struct module *m, struct buffer *b, struct err *e)
{
    int rc = 0;
    for (struct job *j = m->owner->own_jobs; rc == 0 && j != NULL; j = j->hh_seq.next) {
        turn_count(f, 1);
        rc = join(j, m, b, e);
    }
    if (rc != 0) {
        part_all(f, b);
    }
    return rc;
}

int variable_attach(struct request_context *c, struct module *m, struct buffer *b, struct err *e)
{
    const struct msg_buffer_create *msg = &c->r->msg.buffer_create;
    struct variable *v = calloc(1, sizeof *v);
    if (v == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a variable");
    }
    (void)bytes_to_str(msg->variable, v->name, sizeof v->name);
    HASH_ADD_BYHASHVALUE(hh, m->variables, name, strlen(v->name), tenant_hash(m->tenant, v->name),
                         v);
    int rc = HASH_ENTERED(v->hh) ? join_all(c->f, m, b, e)
                                 : err_set(e, ERR_NOMEM, "no memory for a variable");
    if (rc != 0) {
        if (HASH_ENTERED(v->hh)) {
            HASH_DELETE(hh, m->variables, v);
        }
        free(v);
        return rc;
    }
    v->module = m;
    v->buffer = b;
    v->access = msg->kernels == ACCESS_IN ? ACCESS_IN : ACCESS_INOUT;
    m->users++;
    b->variable = v;
    b->flags |= BUFFER_FLAG_VARIABLE;
    spans_add(&b->defined, 0, b->bytes);
    return 0;
}

int variable_ask(struct front *f, struct variable *v, struct err *e)
{
    struct device *d = f->device[v->buffer->device];
    v->asked = device_set_has(&v->module->loaded, d->index);
    if (v->asked) {
        command_buffer_create(f, v->buffer);
        return 0;
    }
    struct build *b = module_build(v->module, d->backend, d->arch);
    if (b != NULL && build_failed(b, front_now(f))) {
        *e = b->error;
        return e->code;
    }
    f->hooks.module_need(f, v->module, d);
    b = module_build(v->module, d->backend, d->arch);
    bool under_way = b != NULL && b->state == BUILD_RUNNING;
    if (!under_way && !device_set_has(&v->module->loading, d->index) && d->link != NULL) {
        return err_set(e, ERR_BUSY, "the compiler's queue is full");
    }
    return 0;
}

void variable_failed(struct front *f, struct variable *v)
{
    if (v != NULL) {
        part_all(f, v->buffer);
    }
}

int variable_refuse(const struct buffer *b, const char *what, struct err *e)
{
    return b->variable == NULL
               ? 0
               : err_set(e, ERR_UNSUPPORTED, "variable %s of module %s cannot be %s: copy it first",
                         b->variable->name, b->variable->module->name, what);
}

void variable_remove(struct variable *v)
{
    if (v != NULL) {
        HASH_DELETE(hh, v->module->variables, v);
    }
}

void variable_detach(struct front *f, struct variable *v)
{
    if (v == NULL) {
        return;
    }
    variable_remove(v);
    v->module->users--;
    building_settle(f, v->module);
}
