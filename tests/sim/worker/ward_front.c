/* The simulated front: frames to the worker, and what it makes of the worker's frames. */
#include "tests/sim/worker/ward_front.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/descriptors.h"
#include "daemon/worker/serve/serve.h"

#define LATE_NS   (50 * NS_PER_MS)  /* the worker looks at its streams now and then */
#define REFUSE_NS (500 * NS_PER_MS) /* … and at jobs that wait for memory */

/* ---- what it knows --------------------------------------------------------------------------- */

struct thing *front_thing(const struct ward_front *f, uint64_t id, bool arena)
{
    struct thing *t = f->things;
    while (t != NULL && (t->id != id || t->arena != arena)) {
        t = t->next;
    }
    return t;
}

struct asked_job *front_job(const struct ward_front *f, uint64_t id)
{
    struct asked_job *j = f->jobs;
    while (j != NULL && j->id != id) {
        j = j->next;
    }
    return j;
}

void front_forget(struct ward_front *f, struct thing *t)
{
    if (t->state == THING_GONE && t->uses == 0) {
        DL_DELETE(f->things, t);
        memfd_finish(&t->host);
        free(t->data);
        free(t->defined);
        free(t);
    }
}

/* ---- ends of jobs ---------------------------------------------------------------------------- */

static void retire(struct ward *w, void *actor, uint64_t id)
{
    struct asked_job *j = front_job(w->front, id);
    (void)actor;
    if (w->front->nonce != 0 || (j != NULL && !j->settled)) { /* a front knows its jobs first */
        ward_at(w, w->now_ns + NS_PER_MS, retire, NULL, id);
    } else if (j != NULL) {
        ward_log(w, "job %" PRIu64 " is retired", id);
        const struct msg_f_retire msg = {.job = id};
        front_send(w, &schema_msg_f_retire, &msg, -1);
        DL_DELETE(w->front->jobs, j);
        free(j);
    }
}

static void side_unuse(struct ward_front *f, const struct side *s)
{
    if (s->kind == SIDE_THING) {
        s->thing->uses--;
        front_forget(f, s->thing);
    }
}

/* The end of a job takes effect in the model after the ends of the jobs that it comes after: a
 * front that adopts the worker hears of them in any order. */
static bool settle(struct ward *w, struct asked_job *j)
{
    struct ward_front *f = w->front;
    for (unsigned i = 0; i < j->afters; i++) {
        const struct asked_job *o = front_job(f, j->after[i]);
        if (o != NULL && !o->settled) {
            return false;
        }
    }
    if (j->code == 0) {
        model_apply(w, j);
    } else if (j->effects != ERR_EFFECTS_NONE) {
        model_spoil(j);
    }
    j->settled = true;
    for (unsigned i = 0; i < j->steps; i++) {
        side_unuse(f, &j->step[i].dst);
        side_unuse(f, &j->step[i].src);
    }
    return true;
}

static void settle_all(struct ward *w)
{
    struct asked_job *j = w->front->jobs;
    while (j != NULL) {
        bool over = j->ended && !j->settled && settle(w, j);
        j = over ? w->front->jobs : j->next;
    }
}

static const char *unfounded_fault(const struct ward *w, int64_t code)
{
    if (code != ERR_KERNEL_FAULT && code != ERR_DEVICE_LOST) {
        return "no reason is known";
    }
    return w->device->dead.code == 0 ? "the device works" : NULL;
}

static bool uses_lost(const struct asked_job *j)
{
    bool lost = false;
    for (unsigned i = 0; i < j->steps; i++) {
        const struct thing *dst = j->step[i].dst.thing;
        const struct thing *src = j->step[i].src.thing;
        lost = lost || (dst != NULL && dst->lost) || (src != NULL && src->lost);
    }
    return lost;
}

/* May the job end with this code? NULL: it may. */
static const char *unfounded(const struct ward *w, const struct asked_job *j, int64_t code)
{
    const struct ward_params *p = &w->params;
    switch (code) {
    case 0:
        return NULL;
    case ERR_DEADLINE:
        return j->deadline_ns <= w->now_ns ? NULL : "its deadline has not passed";
    case ERR_CANCELLED:
        return j->cancelled ? NULL : "no frame cancelled it";
    case ERR_LAUNCH:
        return p->refuse_launch > 0 ? NULL : "no launch was refused";
    case ERR_DEVICE_MEMORY:
    case ERR_LIMIT:
        return j->small && !w->front->budgets ? "all that it needs could be had" : NULL;
    case ERR_UNSUPPORTED:
        return p->refuse_host > 0 ? NULL : "all is supported";
    case ERR_BUFFER_LOST:
        return uses_lost(j) ? NULL : "the worker has its buffers";
    default:
        return unfounded_fault(w, code);
    }
}

/* Were the promises about its deadline kept? */
static void check_deadline(struct ward *w, const struct asked_job *j, const struct msg_w_done *m)
{
    uint64_t due_ns = j->deadline_ns > j->sent_ns ? j->deadline_ns : j->sent_ns;
    /* the loop could not look; kept courses are older than the allowance */
    uint64_t called_ns = w->params.prompt != 0 ? ward_kept_ns(w, due_ns) : 0;
    if (m->code == ERR_DEADLINE && m->effects != ERR_EFFECTS_NONE) {
        ward_broken(w, "deadline", "job %" PRIu64 " has effects and missed its deadline", j->id);
    }
    if (m->code == ERR_DEADLINE && w->params.prompt != 0 && !j->late && !j->listed &&
        w->now_ns > ns_add(due_ns, REFUSE_NS + called_ns)) {
        ward_broken(w, "deadline", "job %" PRIu64 " was refused %" PRIu64 " us after its deadline",
                    j->id, (w->now_ns - due_ns) / 1000);
    }
    if (m->code == 0 && !j->late && m->started_ns > ns_add(j->deadline_ns, LATE_NS + called_ns)) {
        ward_broken(w, "deadline", "job %" PRIu64 " began %" PRIu64 " us after its deadline", j->id,
                    (m->started_ns - j->deadline_ns) / 1000);
    }
}

static void check_late(struct ward *w, const struct asked_job *j, const struct msg_w_done *m)
{
    if (m->code == 0 && j->late && w->params.shows != 0 && m->started_ns < j->deadline_ns) {
        ward_broken(w, "deadline", "job %" PRIu64 " was late, but began %" PRIu64 " us before",
                    j->id, (j->deadline_ns - m->started_ns) / 1000);
    }
}

static void job_over(struct ward *w, struct asked_job *j, const struct msg_w_done *m)
{
    struct ward_front *f = w->front;
    const char *why = unfounded(w, j, m->code);
    if (why != NULL) {
        ward_broken(w, "verdict", "job %" PRIu64 ": code %" PRId64 ", %.*s: %s", j->id, m->code,
                    (int)m->text.size, m->text.data, why);
    }
    check_deadline(w, j, m);
    check_late(w, j, m);
    j->ended = true;
    j->code = m->code;
    j->effects = m->effects;
    f->jobs_done++;
    f->jobs_failed += m->code != 0;
    settle_all(w);
    ward_at(w, w->now_ns + ward_while(w, 300000), retire, NULL, j->id);
}

static void hear_done(struct ward *w, struct bytes frame)
{
    struct msg_w_done m;
    struct err e = ERR_INIT;
    if (proto_decode(&schema_msg_w_done, frame, &m, &e) != 0) {
        ward_broken(w, "frame", "%s", e.text);
    }
    struct asked_job *j = front_job(w->front, m.job);
    ward_log(w, "job %" PRIu64 " ends: %" PRId64 " %.*s", m.job, m.code, (int)m.text.size,
             m.text.data);
    if (j == NULL || (j->ended && !j->repeats)) {
        ward_broken(w, "once", "job %" PRIu64 " ends %s", m.job,
                    j != NULL ? "twice" : "and is not known");
    }
    if (j->ended) {
        j->repeats = false;
        return;
    }
    job_over(w, j, &m);
}

static void hear_waiting(struct ward *w, struct bytes frame)
{
    struct msg_w_waiting m;
    if (proto_decode(&schema_msg_w_waiting, frame, &m, NULL) == 0) {
        struct asked_job *j = front_job(w->front, m.job);
        w->front->jobs_waited += m.waits != 0;
        if (j != NULL) {
            j->waits = m.waits != 0;
        }
        ward_log(w, "job %" PRIu64 "%s waits for memory", m.job, m.waits ? "" : " no longer");
    }
}

static void hear_started(struct ward *w, struct bytes frame)
{
    struct msg_w_started m;
    if (proto_decode(&schema_msg_w_started, frame, &m, NULL) != 0) {
        return;
    }
    const struct asked_job *j = front_job(w->front, m.job);
    if (j == NULL || m.at_ns > w->now_ns || m.at_ns < j->sent_ns) {
        ward_broken(w, "once", "job %" PRIu64 " runs before it came", m.job);
    }
    ward_log(w, "job %" PRIu64 " runs", m.job);
}

static void hear_late(struct ward *w, struct bytes frame)
{
    struct msg_w_late m;
    if (proto_decode(&schema_msg_w_late, frame, &m, NULL) != 0) {
        return;
    }
    struct asked_job *j = front_job(w->front, m.job);
    if (j == NULL || j->deadline_ns > w->now_ns) {
        ward_broken(w, "deadline", "job %" PRIu64 " is late before its deadline", m.job);
    }
    j->late = true;
    ward_log(w, "job %" PRIu64 " is late", m.job);
}

/* ---- buffers, modules, arenas ---------------------------------------------------------------- */

static void sealed(struct ward *w, struct thing *t, int64_t code)
{
    t->state = THING_READY;
    if (code == 0) {
        t->sealed = true;
        model_compare(w, t, 0, t->host.data, t->bytes, "the seal of buffer", t->id);
    } else if (w->params.refuse_host == 0 && code != ERR_DEVICE_MEMORY &&
               w->device->dead.code == 0) {
        ward_broken(w, "verdict", "sealing buffer %" PRIu64 ": code %" PRId64, t->id, code);
    }
    memfd_finish(&t->host);
}

/* A former front asked for its memory, which was refused. */
static void lost(struct ward *w, struct thing *t)
{
    t->lost = true;
    t->state = THING_GONE;
    front_forget(w->front, t);
}

static void hear_buffer(struct ward *w, struct bytes frame)
{
    struct msg_w_buffer m;
    struct err e = ERR_INIT;
    if (proto_decode(&schema_msg_w_buffer, frame, &m, &e) != 0) {
        ward_broken(w, "frame", "%s", e.text);
    }
    struct thing *t = front_thing(w->front, m.id, false);
    ward_log(w, "buffer %" PRIu64 ": %" PRId64 " %.*s", m.id, m.code, (int)m.text.size,
             m.text.data);
    if (t == NULL || t->state == THING_GONE) {
        return; /* of another front's, or of a buffer that was freed on its way */
    }
    if (t->state == THING_SEALING || t->state == THING_READY) {
        if (t->state == THING_SEALING) {
            sealed(w, t, m.code);
        }
        if (m.gone != 0) {
            lost(w, t);
        }
        return;
    }
    if (m.code != 0 && m.code != ERR_DEVICE_MEMORY && m.code != ERR_LIMIT &&
        w->device->dead.code == 0) {
        ward_broken(w, "verdict", "buffer %" PRIu64 ": %.*s", m.id, (int)m.text.size, m.text.data);
    }
    t->state = m.code == 0 ? THING_READY : THING_GONE;
    memfd_finish(&t->host);
    front_forget(w->front, t);
}

static void hear_exported(struct ward *w, struct bytes frame, int fds)
{
    struct msg_w_exported m;
    if (proto_decode(&schema_msg_w_exported, frame, &m, NULL) != 0) {
        return;
    }
    const struct thing *t = front_thing(w->front, m.id, false);
    if (t == NULL || t->state == THING_GONE || w->device->dead.code != 0) {
        return;
    }
    bool unzeroed = m.code == ERR_STATE && t->listed;
    if (!unzeroed && (m.code != 0 || m.bytes < t->bytes || fds != 1)) {
        ward_broken(w, "verdict", "exporting buffer %" PRIu64 ": %" PRId64 ", %" PRIu64 " bytes",
                    m.id, m.code, m.bytes);
    }
}

static struct asked_module *module_of(const struct ward_front *f, uint64_t id)
{
    struct asked_module *x = f->modules;
    while (x != NULL && x->id != id) {
        x = x->next;
    }
    return x;
}

static void hear_module(struct ward *w, struct bytes frame)
{
    struct msg_w_module m;
    if (proto_decode(&schema_msg_w_module, frame, &m, NULL) != 0) {
        return;
    }
    struct asked_module *x = module_of(w->front, m.module);
    if (device_is_lost((int)m.code) && front_job(w->front, w->device->blamed) != NULL &&
        !front_job(w->front, w->device->blamed)->ended) {
        ward_broken(w, "verdict", "module %" PRIu64 " is blamed for the fault of job %" PRIu64,
                    m.module, w->device->blamed);
    }
    if (x != NULL && m.code == 0) {
        x->state = THING_READY;
    } else if (x != NULL) {
        DL_DELETE(w->front->modules, x);
        free(x);
    }
}

static void hear_arena(struct ward *w, struct bytes frame)
{
    struct msg_w_arena m;
    if (proto_decode(&schema_msg_w_arena, frame, &m, NULL) == 0) {
        struct thing *t = front_thing(w->front, m.arena, true);
        if (t != NULL) {
            t->align = m.align;
            t->answered = true;
        }
    }
}

/* Does it have a job, or has it asked for a buffer? */
static bool tenant_acts(const struct ward_front *f, uint64_t tenant)
{
    const struct asked_job *j = f->jobs;
    const struct thing *t = f->things;
    while (j != NULL && (j->ended || j->tenant != tenant)) {
        j = j->next;
    }
    while (t != NULL &&
           (t->tenant != tenant || (t->state != THING_ASKED && t->state != THING_SEALING))) {
        t = t->next;
    }
    return j != NULL || t != NULL;
}

static void hear_tenant(struct ward *w, struct bytes frame)
{
    struct msg_w_tenant m;
    if (proto_decode(&schema_msg_w_tenant, frame, &m, NULL) != 0 || m.tenant > WARD_TENANTS) {
        return;
    }
    struct tenant *t = &w->front->tenant[m.tenant];
    bool acts = tenant_acts(w->front, m.tenant);
    if (!t->acts && !acts && !w->front->budgets && m.mapped < t->limits.device.guaranteed &&
        m.spilled > t->use.spilled) {
        ward_broken(w, "guarantee",
                    "tenant %" PRIu64 " has %" PRIu64 " bytes of %" PRIu64
                    " that it is guaranteed, and asks for nothing; %" PRIu64
                    " were moved to the host",
                    m.tenant, m.mapped, t->limits.device.guaranteed, m.spilled - t->use.spilled);
    }
    t->use = m;
    t->acts = acts;
    if (m.mapped > t->most) {
        ward_broken(w, "limit", "tenant %" PRIu64 " has %" PRIu64 " bytes of %" PRIu64, m.tenant,
                    m.mapped, t->most);
    }
}

/* ---- another front --------------------------------------------------------------------------- */

static void hear_inventory_buffer(struct ward *w, struct bytes frame)
{
    struct msg_w_inventory_buffer m;
    if (proto_decode(&schema_msg_w_inventory_buffer, frame, &m, NULL) != 0) {
        return;
    }
    struct thing *t = front_thing(w->front, m.id, false);
    if (t == NULL || t->state == THING_GONE) {
        ward_broken(w, "inventory", "buffer %" PRIu64 " was freed or never asked for", m.id);
    }
    if (m.size != t->bytes || (t->sealed && !m.sealed)) {
        ward_broken(w, "inventory", "buffer %" PRIu64 ": %" PRIu64 " bytes%s", m.id, m.size,
                    m.sealed ? ", sealed" : "");
    }
    t->listed = true;
    if (t->state == THING_ASKED && !m.arriving) {
        t->state = THING_READY;
        memfd_finish(&t->host);
    }
    if (t->state == THING_SEALING && m.sealed) {
        sealed(w, t, 0);
    }
}

/* The answer of its load may be lost. */
static void hear_inventory_module(struct ward *w, struct bytes frame)
{
    struct msg_w_inventory_module m;
    if (proto_decode(&schema_msg_w_inventory_module, frame, &m, NULL) == 0) {
        struct asked_module *x = module_of(w->front, m.module);
        if (x != NULL) {
            x->listed = true;
            x->state = THING_READY;
        }
    }
}

static void modules_check(struct ward *w)
{
    struct ward_front *f = w->front;
    struct asked_module *x;
    struct asked_module *next;
    DL_FOREACH_SAFE(f->modules, x, next)
    {
        if (!x->listed && x->state == THING_READY) {
            ward_broken(w, "inventory", "module %" PRIu64 " is lost", x->id);
        }
        if (!x->listed) { /* it was refused */
            DL_DELETE(f->modules, x);
            free(x);
        }
    }
}

static void hear_inventory_job(struct ward *w, struct bytes frame)
{
    struct msg_w_inventory_job m;
    if (proto_decode(&schema_msg_w_inventory_job, frame, &m, NULL) != 0) {
        return;
    }
    struct asked_job *j = front_job(w->front, m.job);
    if (j == NULL || (j->ended && !m.finished)) {
        ward_broken(w, "inventory", "job %" PRIu64 " %s", m.job,
                    j == NULL ? "is not known" : "has ended");
    }
    j->listed = true;
    j->repeats = m.finished && j->ended;
}

void front_limits(struct ward *w, uint64_t tenant)
{
    struct tenant *t = &w->front->tenant[tenant];
    const struct msg_f_tenant m = {.tenant = tenant,
                                   .name = bytes_str("t"),
                                   .hard = t->limits.device.hard,
                                   .soft = t->limits.device.soft,
                                   .guaranteed = t->limits.device.guaranteed,
                                   .spilled = t->limits.spilled};
    front_send(w, &schema_msg_f_tenant, &m, -1);
}

void front_seal(struct ward *w, struct thing *t)
{
    struct err e = ERR_INIT;
    const struct msg_f_buffer_seal m = {.id = t->id, .size = t->bytes};
    memfd_finish(&t->host);
    if (memfd_create_sealed("seal", t->bytes, &t->host, &e) != 0) {
        ward_broken(w, "front", "%s", e.text);
    }
    t->state = THING_SEALING;
    w->front->tenant[t->tenant].acts = true;
    front_send(w, &schema_msg_f_buffer_seal, &m, t->host.fd);
}

static void hear_inventory_end(struct ward *w, struct bytes frame)
{
    struct msg_w_inventory_end m;
    struct ward_front *f = w->front;
    struct asked_job *j;
    struct thing *t;
    struct thing *next;
    if (proto_decode(&schema_msg_w_inventory_end, frame, &m, NULL) != 0 || m.nonce != f->nonce) {
        return;
    }
    f->nonce = 0;
    DL_FOREACH(f->jobs, j)
    {
        if (!j->listed) {
            ward_broken(w, "inventory", "job %" PRIu64 " is lost", j->id);
        }
    }
    DL_FOREACH_SAFE(f->things, t, next)
    {
        if (t->arena || t->state == THING_GONE) {
            continue;
        }
        if (!t->listed && t->state != THING_ASKED) {
            ward_broken(w, "inventory", "buffer %" PRIu64 " is lost", t->id);
        }
        if (!t->listed) { /* it was refused, and the answer was lost */
            t->state = THING_GONE;
            front_forget(f, t);
        } else if (t->state == THING_SEALING) {
            front_seal(w, t);
        }
    }
    modules_check(w);
    for (unsigned i = 1; i <= w->params.tenants; i++) {
        front_limits(w, i);
    }
    front_rings_offer(w);
    ward_log(w, "another front has the worker");
}

void front_adopts(struct ward *w, struct chance *c)
{
    struct ward_front *f = w->front;
    struct thing *t;
    struct thing *next;
    struct asked_job *j;
    struct asked_module *x;
    if (f->nonce != 0 || !front_link_inherit(w, c)) {
        return;
    }
    f->nonce = ++f->ids;
    DL_FOREACH(f->jobs, j)
    {
        j->listed = false;
    }
    DL_FOREACH_SAFE(f->things, t, next)
    {
        t->listed = false;
        if (t->arena) { /* the worker forgets it */
            t->state = THING_GONE;
            front_forget(f, t);
        }
    }
    DL_FOREACH(f->modules, x)
    {
        x->listed = false;
    }
    for (unsigned i = 1; i <= WARD_TENANTS; i++) {
        f->tenant[i].acts = true;
        f->tenant[i].use = (struct msg_w_tenant){.tenant = i}; /* until the worker says more */
        f->tenant[i].most = UINT64_MAX; /* until its limits are set again, which reclaims nothing */
    }
    const struct msg_f_inventory m = {.nonce = f->nonce};
    front_send(w, &schema_msg_f_inventory, &m, -1);
}

/* ---- in -------------------------------------------------------------------------------------- */

static void hear_rings(struct ward *w, struct bytes frame)
{
    struct msg_w_rings m;
    if (proto_decode(&schema_msg_w_rings, frame, &m, NULL) == 0) {
        front_rings_answered(w, &m);
    }
}

static void hear_ready(struct ward *w, struct bytes frame)
{
    (void)frame;
    w->front->ready = true;
    front_rings_offer(w);
}

static void hear_pool(struct ward *w, struct bytes frame)
{
    struct ward_front *f = w->front;
    f->pool = proto_decode(&schema_msg_w_pool, frame, &f->pool_says, NULL) == 0;
}

static const struct {
    unsigned kind;
    void (*hear)(struct ward *w, struct bytes frame);
} FRAMES[] = {{FRAME_KIND_W_READY, hear_ready},
              {FRAME_KIND_W_RINGS, hear_rings},
              {FRAME_KIND_W_DONE, hear_done},
              {FRAME_KIND_W_BUFFER, hear_buffer},
              {FRAME_KIND_W_MODULE, hear_module},
              {FRAME_KIND_W_ARENA, hear_arena},
              {FRAME_KIND_W_WAITING, hear_waiting},
              {FRAME_KIND_W_STARTED, hear_started},
              {FRAME_KIND_W_LATE, hear_late},
              {FRAME_KIND_W_TENANT, hear_tenant},
              {FRAME_KIND_W_INVENTORY_BUFFER, hear_inventory_buffer},
              {FRAME_KIND_W_INVENTORY_MODULE, hear_inventory_module},
              {FRAME_KIND_W_INVENTORY_JOB, hear_inventory_job},
              {FRAME_KIND_W_INVENTORY_END, hear_inventory_end},
              {FRAME_KIND_W_POOL, hear_pool}};

static void hear(struct ward *w, struct bytes frame, int fds)
{
    unsigned kind = proto_kind(frame);
    w->device->unheard = 0;
    if (kind == FRAME_KIND_W_EXPORTED) {
        hear_exported(w, frame, fds);
    }
    for (size_t i = 0; i < sizeof FRAMES / sizeof FRAMES[0]; i++) {
        if (FRAMES[i].kind == kind) {
            FRAMES[i].hear(w, frame);
        }
    }
}

void ward_front_hear(struct ward *w)
{
    struct bytes frame;
    struct frame_fds fds;
    front_turn(w, false);
    while (front_next(w, &frame, &fds)) {
        hear(w, frame, fds.count);
        frame_fds_close(&fds);
    }
    front_turn(w, true);
}

void ward_front_lost(struct ward *w, int status)
{
    if (w->device == NULL || w->device->dead.code == 0 || status != EXIT_LOST) {
        ward_broken(w, "ended", "the worker ended itself with %d", status);
    }
    ward_front_hear(w);
    ward_log(w, "the worker ended with %d", status);
}

bool ward_front_asked(const struct ward *w, uint64_t bytes)
{
    const struct thing *t = w->front->things;
    while (t != NULL && (t->state != THING_ASKED || t->bytes > bytes ||
                         bytes - t->bytes >= w->params.page_kib << 10)) {
        t = t->next;
    }
    return t != NULL;
}

void ward_front_begins(struct ward *w, const struct ward_value *v)
{
    struct asked_job *j = front_job(w->front, v->job);
    if (j == NULL || j->ended) {
        ward_broken(w, "once", "a kernel of job %" PRIu64 " begins after the job's end", v->job);
    }
}

/* ---- make and unmake ------------------------------------------------------------------------- */

void ward_front_begin(struct ward *w)
{
    struct ward_front *f = calloc(1, sizeof *f);
    struct err e = ERR_INIT;
    int pair[2];
    if (ward_staging(&f->input, &f->output, &e) != 0 || seqpacket_pair(pair, &e) != 0) {
        ward_broken(w, "front", "%s", e.text);
    }
    f->fd = pair[0];
    duplex_init(&f->duplex, f->fd, SIZE_MAX, false);
    f->worker_fd = pair[1];
    f->worker_input = dup(f->input.fd);
    f->worker_output = dup(f->output.fd);
    for (unsigned i = 0; i <= WARD_TENANTS; i++) {
        f->tenant[i].limits =
            (struct memory_limits){.device = POOL_QUOTA_NONE, .spilled = UINT64_MAX};
        f->tenant[i].most = UINT64_MAX;
    }
    w->front = f;
}

int ward_front_fd(struct ward *w, int which)
{
    const struct ward_front *f = w->front;
    return which == 0 ? f->worker_fd : which == 1 ? f->worker_input : f->worker_output;
}

void ward_front_end(struct ward *w)
{
    struct ward_front *f = w->front;
    duplex_finish(&f->duplex);
    descriptor_close(&f->fd);
    descriptor_close(&f->worker_fd);
    ward_staging_clear(f->staged[0], f->staged[1]);
    free(f);
    w->front = NULL;
}
