#include "tests/sim/front/sim_launches.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/front/devices/draining.h"
#include "daemon/front/model/domain.h"
#include "tests/sim/front/sim.h"

#define VACATE_NS (2 * NS_PER_MS)
#define STUCK_NS  (400 * NS_PER_MS) /* until a killed process has left the driver */

struct name {
    char backend[16];
    unsigned number;
    char owner[PROTO_NAME_MAX + 1];
};

/* As the launcher has it: names of spare workers all differ. */
static struct name full_name_of(struct sim *s, struct bytes device)
{
    struct msg_record_worker m;
    struct name n = {.number = 0};
    if (proto_decode(&schema_msg_record_worker, device, &m, NULL) != 0 ||
        !bytes_to_str(m.backend, n.backend, sizeof n.backend) ||
        !bytes_to_str(m.tenant, n.owner, sizeof n.owner) || m.index >= DEVICES_MAX) {
        sim_fail(s, "launcher: a worker of no device");
    }
    n.number = (unsigned)m.index;
    return n;
}

/* Spare workers have one name. */
static struct name name_of(struct sim *s, struct bytes device)
{
    struct name n = full_name_of(s, device);
    if (strncmp(n.owner, DOMAIN_SPARE, sizeof DOMAIN_SPARE - 1) == 0) {
        n.owner[sizeof DOMAIN_SPARE - 1] = '\0';
    }
    return n;
}

static bool same(const struct name *a, const struct name *b)
{
    return a->number == b->number && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->owner, b->owner) == 0;
}

/* ---- records --------------------------------------------------------------------------------- */

/* What is in a record belongs to one device: the next front takes it over once. The launcher keeps
 * that of a spare worker that has ended, and the next spare worker may become a tenant's. */
static void check_record(struct sim *s, const struct worker_order *w)
{
    struct name n = full_name_of(s, w->device);
    struct stat mine;
    if (fstat(w->fd[WORKER_RECORD], &mine) != 0) {
        return; /* without memory there may be none */
    }
    for (unsigned i = s->workers; i > 0; i--) {
        const struct sim_worker *x = s->worker[i - 1];
        struct stat other;
        if ((x->state != WORKER_RUNS && !x->recorded) || x->device.size == 0 ||
            fstat(x->fd[WORKER_RECORD], &other) != 0 || other.st_ino != mine.st_ino) {
            continue;
        }
        struct name of = full_name_of(s, capbuf_view(&x->device));
        if (!same(&n, &of)) {
            sim_fail(s,
                     "record: worker %" PRIu64 " of %s %u gets the record of worker %" PRIu64
                     ", which the launcher has for %s %u",
                     w->id, n.backend, n.number, x->id, of.backend, of.number);
        }
    }
}

/* ---- processes that wait --------------------------------------------------------------------- */

/* But for those that say which device it is: numbers shift. */
static void join(const char *const *args, char *out, size_t size)
{
    size_t at = 0;
    for (; args[0] != NULL && args[1] != NULL && at < size; args += 2) {
        bool device = strcmp(args[0], "--device") == 0 || strcmp(args[0], "--options") == 0;
        if (!device) {
            at += (size_t)snprintf(out + at, size - at, "%s %s ", args[0], args[1]);
        }
    }
}

/* One that waits takes the place of a worker with the same arguments, and of no other. So those of
 * a device's workers are the same as long as the settings are. */
static void check_args(struct sim *s, const struct worker_order *w, const struct name *n)
{
    char *before = s->launch[n->number].args;
    char args[SIM_ARGS] = "";
    join(w->args, args, sizeof args);
    if (before[0] != '\0' && strcmp(s->launch[n->number].backend, n->backend) == 0 &&
        strcmp(before, args) != 0) {
        sim_fail(s, "prepared: a worker of device %u gets other arguments than the one before: %s",
                 n->number, args);
    }
    (void)snprintf(before, SIM_ARGS, "%s", args);
    (void)snprintf(s->launch[n->number].backend, sizeof s->launch[0].backend, "%s", n->backend);
}

void launches_asked(struct sim *s, const struct worker_order *w)
{
    struct name n = name_of(s, w->device);
    check_record(s, w);
    if (n.owner[0] == '\0') {
        check_args(s, w, &n);
        s->launch[n.number].waits = w->prepare;
    }
}

static void answer(struct sim *s, const struct hap *h)
{
    if (h->b == s->era && s->f != NULL) {
        memory_inside();
        draining_vacated(s->f, h->a / 2, h->a % 2);
        memory_outside();
    }
}

static void on_left(struct sim *s, const struct hap *h)
{
    s->launch[h->a].waits = false;
    s->launch[h->a].leaves = false;
}

/* Some are in the driver, and end later. The front asks again. */
void launches_vacate(struct sim *s, uint64_t id, struct bytes device)
{
    struct name n = name_of(s, device);
    struct sim_launch *l = &s->launch[n.number];
    if (l->waits && !l->leaves && (s->course->seed + s->releases++) % 2 == 0) {
        l->leaves = true;
        sim_at(s, s->now_ns + STUCK_NS, on_left, NULL, n.number, 0);
    }
    l->waits = l->waits && l->leaves;
    sim_at(s, s->now_ns + VACATE_NS, answer, NULL, 2 * id + l->waits, s->era);
}

void launches_lost(struct sim *s)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        s->launch[i].waits = false;
    }
}

void launches_released(struct sim *s, unsigned number)
{
    if (s->launch[number].waits) {
        sim_fail(s, "drain: device %u is released, and a process waits to replace its worker",
                 number);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A tenant gets no spare worker that has ended as its front knows, or that it ends. */
void launches_named(struct sim *s, uint64_t id, const struct sim_worker *x)
{
    bool gone = id == 0 || (x != NULL && x->killed);
    for (unsigned i = s->workers; i > 0 && x == NULL && !gone; i--) {
        const struct sim_worker *y = s->worker[i - 1];
        gone = y->id == id && y->state == WORKER_GONE && y->told_era == s->era;
    }
    if (gone && !memory_failed()) {
        sim_fail(s, "spare: a tenant gets a spare worker that has ended: %" PRIu64, id);
    }
}

/* Of instances of one GPU only the name tells which it is. */
unsigned launches_hardware(const struct sim *s, const char *const *args, unsigned number)
{
    static const char name[] = "MIG-";
    for (; s->p.divided != 0 && *args != NULL; args++) {
        const char *at = strstr(*args, name);
        if (at != NULL) {
            return (unsigned)strtoul(at + sizeof name - 1, NULL, 10);
        }
    }
    return number;
}

unsigned device_hardware(const struct sim *s, const struct device *d)
{
    const char *const pin[] = {d->pin, NULL};
    return launches_hardware(s, pin, d->number);
}

/* In some worlds tenants' own workers often do not start, and spare ones mostly, so that they wait
 * for their next one. */
bool launches_fails(const struct sim *s, const struct sim_worker *x)
{
    bool own = x->number >= DEVICES_MAX && s->p.slow % 5 == 1 && !s->settling;
    bool spare = own && strcmp(s->domain[x->number - DEVICES_MAX].tenant, DOMAIN_SPARE) == 0;
    return own && chance_mix(x->id) % 5 < (spare ? 4 : 2);
}

bool launches_unfit(const struct sim *s, const struct sim_worker *x)
{
    struct msg_record_worker m;
    return s->p.automatic != 0 &&
           proto_decode(&schema_msg_record_worker, capbuf_view(&x->device), &m, NULL) == 0 &&
           bytes_equal_str(m.backend, "cuda");
}
