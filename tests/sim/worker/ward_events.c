/* What the simulated front does at an event. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "tests/sim/worker/ward_front.h"

static void set_limits(struct ward *w, struct chance *c)
{
    unsigned i = 1 + (unsigned)chance_below(c, w->params.tenants);
    struct tenant *t = &w->front->tenant[i];
    uint64_t limit = w->params.limit_kib << 10;
    bool none = chance_percent(c, 30);
    t->limits.device.hard = none ? UINT64_MAX : limit / 4 + chance_below(c, limit);
    t->limits.device.soft = chance_percent(c, 60) ? UINT64_MAX : chance_below(c, limit);
    t->limits.device.guaranteed =
        chance_percent(c, 60) ? 0 : chance_below(c, limit / (2 * w->params.tenants));
    t->limits.spilled = chance_percent(c, 80) ? UINT64_MAX : chance_below(c, limit);
    t->acts = true;
    /* what exceeds a lower limit remains */
    t->most = t->limits.device.hard > t->most ? t->limits.device.hard : t->most;
    front_limits(w, i);
}

static void module_ask(struct ward *w)
{
    struct ward_front *f = w->front;
    struct memfd m = MEMFD_NONE;
    struct err e = ERR_INIT;
    struct asked_module *x = calloc(1, sizeof *x);
    x->id = ++f->ids;
    if (memfd_create_sealed("module", 64, &m, &e) != 0) {
        ward_broken(w, "front", "%s", e.text);
    }
    const struct msg_f_module_load msg = {.module = x->id,
                                          .size = 64,
                                          .hash = bytes_of("0123456789abcdef", 16),
                                          .tenant = WARD_MODULE_TENANT};
    front_send(w, &schema_msg_f_module_load, &msg, m.fd);
    memfd_finish(&m);
    DL_APPEND(f->modules, x);
}

void front_module_drop(struct ward *w, struct asked_module *x)
{
    const struct msg_f_module_unload m = {.module = x->id};
    front_send(w, &schema_msg_f_module_unload, &m, -1);
    DL_DELETE(w->front->modules, x);
    free(x);
}

static void arena_ask(struct ward *w, struct chance *c)
{
    struct ward_front *f = w->front;
    struct err e = ERR_INIT;
    struct thing *t = calloc(1, sizeof *t);
    t->id = ++f->ids;
    t->arena = true;
    t->tenant = 1 + (uint32_t)chance_below(c, w->params.tenants);
    uint64_t pages = w->params.arena_kib > 0 ? w->params.arena_kib / 4 : 256;
    t->bytes = (1 + chance_below(c, pages)) * 4096;
    t->state = THING_READY;
    t->data = malloc(t->bytes);
    t->defined = malloc(t->bytes / WARD_GRAIN);
    t->host = MEMFD_NONE;
    if (memfd_create_sealed("arena", t->bytes, &t->host, &e) != 0) {
        ward_broken(w, "front", "%s", e.text);
    }
    model_random(c, t->tenant, t->data, t->bytes);
    memcpy(t->host.data, t->data, t->bytes);
    memset(t->defined, 1, t->bytes / WARD_GRAIN);
    DL_APPEND(f->things, t);
    const struct msg_f_arena m = {.arena = t->id, .size = t->bytes, .tenant = t->tenant};
    front_send(w, &schema_msg_f_arena, &m, t->host.fd);
}

void front_arena_drop(struct ward *w, struct thing *t)
{
    const struct msg_f_arena_free m = {.arena = t->id};
    model_compare(w, t, 0, t->host.data, t->bytes, "the end of arena", t->id);
    front_send(w, &schema_msg_f_arena_free, &m, -1);
    t->state = THING_GONE;
    front_forget(w->front, t);
}

static void modules_act(struct ward *w, struct chance *c)
{
    struct asked_module *x = w->front->modules;
    unsigned count = 0;
    for (; x != NULL; x = x->next) {
        count++;
    }
    x = w->front->modules;
    if (count < 3 && chance_percent(c, 60)) {
        module_ask(w);
    } else if (x != NULL && x->state == THING_READY) {
        front_module_drop(w, x);
    }
}

static void arenas_act(struct ward *w, struct chance *c)
{
    struct thing *t = front_pick(w, c, 0, true);
    if (t != NULL && t->uses == 0 && chance_percent(c, 50)) {
        front_arena_drop(w, t);
    } else {
        arena_ask(w, c);
        for (uint64_t i = w->params.early > 0 ? 4 : 0; i > 0; i--) {
            front_new_job(w, c);
        }
    }
}

/* Does a job that has not ended write it? */
static bool written(const struct ward_front *f, const struct thing *t)
{
    for (const struct asked_job *j = f->jobs; j != NULL; j = j->next) {
        for (unsigned i = 0; !j->settled && i < j->steps; i++) {
            if (j->step[i].dst.kind == SIDE_THING && j->step[i].dst.thing == t) {
                return true;
            }
        }
    }
    return false;
}

static void seal_some(struct ward *w, struct chance *c)
{
    struct thing *t = front_pick(w, c, 0, false);
    if (t != NULL && t->state == THING_READY && !t->sealed && !written(w->front, t)) {
        front_seal(w, t);
    }
}

static void free_some(struct ward *w, struct chance *c)
{
    struct thing *t = front_pick(w, c, 0, false);
    if (t != NULL && t->state == THING_READY && t->uses == 0) {
        front_free_buffer(w, t);
    }
}

static void export_some(struct ward *w, struct chance *c)
{
    struct thing *t = front_pick(w, c, 0, false);
    if (t != NULL && t->exported) {
        const struct msg_f_buffer_export m = {.id = t->id};
        front_send(w, &schema_msg_f_buffer_export, &m, -1);
    }
}

static void control(struct ward *w, struct chance *c)
{
    uint64_t n = chance_below(c, w->params.exports > 0 ? 8 : 5);
    if (n == 0) {
        const struct msg_f_pool m = {.trim = chance_percent(c, 20)};
        front_send(w, &schema_msg_f_pool, &m, -1);
    } else if (n == 1) {
        const struct msg_f_snapshot m = {.nonce = ++w->front->ids, .detail = chance_percent(c, 50)};
        front_send(w, &schema_msg_f_snapshot, &m, -1);
    } else if (n == 2) {
        const struct msg_f_spill m = {.limit =
                                          chance_below(c, 2 * (w->params.spill_kib << 10) + 1)};
        w->front->budgets = true;
        front_send(w, &schema_msg_f_spill, &m, -1);
    } else if (n == 3) {
        uint64_t limit = w->params.limit_kib << 10;
        const struct msg_f_budget m = {.limit = limit / 2 + chance_below(c, limit / 2 + 1),
                                       .deadline_ms = (uint32_t)chance_below(c, 300),
                                       .stay = limit / 4};
        w->front->budgets = true;
        front_send(w, &schema_msg_f_budget, &m, -1);
    } else if (n > 4) {
        export_some(w, c);
    } else {
        const struct msg_f_coalesce m = {.window_ns = w->params.window_us * 1000};
        front_send(w, &schema_msg_f_coalesce, &m, -1);
    }
}

static void others_act(struct ward *w, struct chance *c)
{
    uint64_t memory = w->params.memory_kib << 10;
    w->device->foreign = chance_percent(c, 40) ? 0 : chance_below(c, memory / 2);
    ward_log(w, "others have %" PRIu64 " bytes of the device", w->device->foreign);
}

static void packet(struct ward *w, struct chance *c)
{
    uint64_t jobs = 2 + chance_below(c, 8);
    uint64_t most = w->params.jobs_most;
    front_packet_begin(w);
    for (uint64_t i = most > 0 && most < jobs ? most : jobs; i > 0; i--) {
        front_new_job(w, c);
    }
    front_packet_end(w);
}

void ward_front_act(struct ward *w, const struct ward_event *e)
{
    static void (*const ACTS[])(struct ward * w, struct chance * c) = {
        [WARD_FRONT] = front_adopts, [WARD_FOREIGN] = others_act, [WARD_BUFFER] = front_new_buffer,
        [WARD_FREE] = free_some,     [WARD_SEAL] = seal_some,     [WARD_MODULE] = modules_act,
        [WARD_ARENA] = arenas_act,   [WARD_CONTROL] = control,    [WARD_LIMITS] = set_limits,
        [WARD_PACKET] = packet,      [WARD_JOB] = front_new_job};
    struct chance c = ward_event_chance(e);
    w->device->unheard = 0;
    if (w->front->nonce == 0 && !w->closing) { /* else the front waits for the inventory */
        ACTS[e->kind](w, &c);
    }
}
