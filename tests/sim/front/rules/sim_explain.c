/* No wait without a cause that EXPLAIN names, and what it says is true. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"
#include "tests/sim/front/rules/sim_moves.h"
#include "tests/sim/front/rules/sim_shares.h"

#define SETTLED_NS (2 * NS_PER_S) /* a worker that began before has told the front all it needs */

static _Noreturn void blame(struct sim *s, const char *text, const char *why)
{
    sim_fail(s, "explain: \"%s\": %s", text, why);
}

/* What the front answers. The text is valid until the next call. */
static const char *ask(struct sim *s, struct job *j, char *out, size_t size)
{
    struct turn_work before = s->f->work; /* it is no work of a turn */
    struct request r = {.kind = MSG_KIND_EXPLAIN, .msg.explain.job = j->id};
    struct msg_explanation m;
    struct capbuf bytes;
    struct err e = ERR_INIT;
    capbuf_init(&bytes, PROTO_MESSAGE_MAX);
    struct request_context c = {.f = s->f, .s = j->session, .r = &r, .out = &bytes};
    if (request_explain(&c, &e) != 0 ||
        proto_decode(&schema_msg_explanation, capbuf_view(&bytes), &m, &e) != 0 ||
        !bytes_to_str(m.text, out, size)) {
        sim_fail(s, "explain: job %" PRIu64 ": %s", j->id, e.text);
    }
    capbuf_finish(&bytes);
    s->f->work = before;
    return out;
}

static const struct sim_job *find(const struct sim *s, uint64_t id)
{
    for (unsigned i = s->jobs; i > 0; i--) {
        const struct sim_job *j = s->job[i - 1];
        if (j->id == id && j->id_era == s->era) {
            return j;
        }
    }
    return NULL;
}

/* Whether one of the two writes a buffer that the other names. */
static bool meet(const struct sim_job *a, const struct sim_job *b)
{
    for (unsigned i = 0; i < a->steps; i++) {
        for (unsigned k = 0; k < b->steps; k++) {
            const struct sim_step *t = &a->step[i];
            const struct sim_step *u = &b->step[k];
            bool first = step_writes(t) && (t->to == u->to || t->to == u->from);
            bool second = step_writes(u) && (u->to == t->to || u->to == t->from);
            if (first || second) {
                return true;
            }
        }
    }
    return false;
}

static void check_hazard(struct sim *s, const struct job *j, const char *text)
{
    static const char before[] = "one of them is job ";
    const char *at = strstr(text, before);
    uint64_t id = at != NULL ? strtoull(at + strlen(before), NULL, 10) : 0;
    const struct job *other = job_find(s->f->jobs, id);
    if (at == NULL) {
        return; /* more than are named */
    }
    if (other == NULL || job_ended(other)) {
        blame(s, text, "that job has ended");
    }
    const struct sim_job *a = find(s, j->id);
    const struct sim_job *b = find(s, id);
    bool known = a != NULL && b != NULL && !job_adopted(other);
    bool arenas = j->work.arena_count > 0 && other->work.arena_count > 0;
    if (known && !arenas && !meet(a, b)) {
        blame(s, text, "the two jobs have nothing in common");
    }
}

/* A device that serves for all that its worker shows. */
static bool in_service(struct sim *s, unsigned number)
{
    const struct sim_worker *x = worker_of_device(s, number);
    uint64_t since = s->accepts_ns > s->stalled_ns ? s->accepts_ns : s->stalled_ns;
    return x != NULL && x->state == WORKER_RUNS && x->ready && !x->killed && !x->silent &&
           !x->cut && !x->lied && !monitor_holds(s, number) &&
           s->now_ns > x->began_ns + SETTLED_NS && s->now_ns > since + SETTLED_NS;
}

static void check_device(struct sim *s, const struct job *j, const char *text)
{
    static const char word[] = "device ";
    const char *at = strstr(text, "waits for any device") != NULL ? strstr(text, "first of all ")
                                                                  : strstr(text, "waits for ");
    at = at != NULL ? strstr(at, word) : NULL;
    unsigned index = at != NULL ? (unsigned)strtoul(at + strlen(word), NULL, 10) : UINT32_MAX;
    if (index >= s->f->device_count) {
        blame(s, text, "it names no device");
    }
    const struct device *d = domain_of(j->tenant, s->f->device[index]);
    if (d == NULL) {
        blame(s, text, "its tenant has no worker there");
    }
    if (j->device != NULL && j->device != d) {
        blame(s, text, "it is bound to another device");
    }
    /* restoring sealed buffers takes time, a first job may wait for its kernel, and a worker that
     * is to end lets its jobs end and its buffers move to the host first */
    if (in_service(s, worker_slot_of(s, d)) && d->proven && !buffer_restoring(d) &&
        d->state != DEVICE_RESTING && !device_yields(d) && !device_drains(d)) {
        blame(s, text, "that device serves");
    }
}

/* Whether its turn may come later: others are before it, or beside it, or the loop has yet to look
 * at it. */
static void check_turn(struct sim *s, const struct job *j, const char *text)
{
    bool cause = s->f->kicked || s->f->pressed || strstr(text, "turn: 0 of") == NULL ||
                 caps_explain(s, j, text);
    struct device *d;
    for (unsigned at = 0; !cause && (d = front_next_device(s->f, &at)) != NULL;) {
        bool may = j->device == NULL || device_base(j->device) == device_base(d);
        unsigned slot = worker_slot_of(s, d);
        cause = may && (exec_busy(s, slot) ||
                        s->device[slot].pressed_until_ns + 10 * NS_PER_MS > s->now_ns);
    }
    if (!cause) {
        blame(s, text, "nothing runs, and nothing is before it");
    }
}

/* It waits for what it needs itself. */
static bool needs_something(struct sim *s, const struct job *j, const char *why, const char *text)
{
    if (strncmp(why, "waits for kernels", 17) == 0) {
        if (j->work.module_count == 0) {
            blame(s, text, "it has no kernel");
        }
    } else if (strncmp(why, "waits for staging", 17) == 0) {
        if (j->work.input_bytes + j->work.output_bytes == 0) {
            blame(s, text, "it needs none");
        }
    } else if (strncmp(why, "waits for the content", 21) == 0) {
        if (j->device == NULL || (j->device->restoring == NULL && j->device->restores == 0)) {
            blame(s, text, "its device restores no buffer");
        }
    } else if (strncmp(why, "is refused when its turn comes", 30) == 0) {
        const struct sim_job *k = find(s, j->id);
        if (k != NULL && !strikes_may_pause(s, k->client->tenant)) {
            blame(s, text, "its tenant has cost others nothing");
        }
    } else if (strncmp(why, "waits for buffer", 16) == 0 ||
               strncmp(why, "waits for job", 13) == 0) {
        if (!moves_explained(s, j, why)) {
            blame(s, text, "its buffers are where it runs, or may move");
        }
    } else {
        return false;
    }
    return true;
}

static void check_text(struct sim *s, const struct job *j, const char *text)
{
    const char *why = strstr(text, ": ");
    why = why != NULL ? why + 2 : "";
    if (why[0] == '\0' || strstr(why, "unknown") != NULL) {
        blame(s, text, "no cause is named");
    } else if (gate_explains(s, j, why)) {
        return;
    } else if (strstr(why, "use the same buffers") != NULL) {
        check_hazard(s, j, text);
    } else if (strncmp(why, "waits for its turn", 18) == 0) {
        check_turn(s, j, text);
    } else if (needs_something(s, j, why, text)) {
        return;
    } else if (strncmp(why, "runs again", 10) == 0) {
        const struct sim_job *k = find(s, j->id);
        if (k != NULL && k->external + k->internal == 0 && !k->lied) {
            blame(s, text, "no worker ended with it");
        }
    } else {
        check_device(s, j, text);
    }
}

/* One of them, by chance: all would take long. */
void rules_explain(struct sim *s)
{
    forecast_check(s);
    char text[PROTO_TEXT_MAX + 1];
    uint64_t seen = 0;
    struct job *some = NULL;
    for (struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        if (j->state == JOB_QUEUED && j->session != NULL && j->origin == ORIGIN_CLIENT &&
            chance_mix(s->steps ^ j->id) % ++seen == 0) {
            some = j;
        }
    }
    if (some != NULL && !memory_failed()) {
        check_text(s, some, ask(s, some, text, sizeof text));
    }
}
