#include "daemon/front/sched/placing.h"

#include <string.h>

#include "common/clock.h"
#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/sched/cap.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/predict.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/transit.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/evacuate.h"

/* Where the buffer will be when all jobs that name it have had their turns. */
static unsigned place_of(const struct buffer *b)
{
    const struct buffer_use *last = b->roams ? hazard_last(b) : NULL;
    return last != NULL && last->job->device != NULL ? last->job->device->index : b->device;
}

/* The one device that all are on, and stay on: that of most jobs. -1: not so. */
static int still_place(const struct work *w)
{
    unsigned place = w->uses[0].buffer->device;
    bool still = true;
    for (unsigned i = 0; i < w->use_count && still; i++) {
        still = w->uses[i].buffer->device == place && !w->uses[i].buffer->roams;
    }
    return still ? (int)place : -1;
}

/* The one device of all; -1: there are several. */
static int common_place(const struct work *w)
{
    int place = (int)place_of(w->uses[0].buffer);
    for (unsigned i = 1; i < w->use_count && place >= 0; i++) {
        place = (int)place_of(w->uses[i].buffer) == place ? place : -1;
    }
    return place;
}

/* Are all on one device now, and not on that one? */
static bool all_away(const struct work *w, unsigned place)
{
    bool away = w->uses[0].buffer->device != place;
    for (unsigned i = 1; i < w->use_count && away; i++) {
        away = w->uses[i].buffer->device == w->uses[0].buffer->device;
    }
    return away;
}

static bool has_own_kernels(const struct work *w)
{
    bool own = false;
    for (unsigned i = 0; i < w->module_count && !own; i++) {
        own = w->modules[i]->tenant != NULL;
    }
    return own;
}

/* May the job, which was checked for the device of its buffer, run on another one? What kernels of
 * users only read is known for each architecture. */
static bool alike(const struct front *f, const struct work *w, unsigned from,
                  const struct device *to)
{
    const struct device *d = f->device[from];
    return !has_own_kernels(w) ||
           (strcmp(d->backend, to->backend) == 0 && strcmp(d->arch, to->arch) == 0);
}

/* May all its buffers be on the device? *ret_stays: one that may not. */
static bool can_gather(const struct front *f, const struct tenant *t, const struct work *w,
                       const struct device *to, const struct buffer **ret_stays)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < w->use_count; i++) {
        const struct buffer *b = w->uses[i].buffer;
        bool moves = b->device != to->index;
        if ((moves || place_of(b) != to->index) && !buffer_may_move(b)) {
            *ret_stays = b;
            return false;
        }
        if (!alike(f, w, b->device, to)) {
            return false;
        }
        bytes += moves ? buffer_charged(b) : 0;
    }
    return bytes <= tenant_room_to_move(t, to->index, device_whole(to));
}

/* A copy is how a client puts content on another device: both buffers stay where they are. */
static bool only_copies(const struct work *w)
{
    bool only = w->step_count > 0;
    for (unsigned i = 0; i < w->step_count && only; i++) {
        only = w->steps[i].op == OP_COPY;
    }
    return only;
}

static bool takes_new(const struct tenant *t, const struct device *d)
{
    return device_hopeful(d) && !device_drains(d) && tenant_may_use(t, device_shown(d));
}

static int refuse(const struct work *w, const struct buffer *stays, struct err *e)
{
    char title[BUFFER_TITLE];
    unsigned a = w->uses[0].buffer->shown, b = a;
    for (unsigned i = 1; i < w->use_count && b == a; i++) {
        b = w->uses[i].buffer->shown;
    }
    if (a == b) {
        return err_set(e, ERR_STATE,
                       "its buffers live on device %u, and jobs before it take some of them to one "
                       "that cannot have all",
                       a);
    }
    if (only_copies(w)) {
        return err_set(e, ERR_STATE,
                       "its buffers live on devices %u and %u, and a copy leaves them there", a, b);
    }
    if (stays != NULL) {
        return err_set(
            e, ERR_STATE,
            "its buffers live on devices %u and %u, and %s cannot move: it is exported, "
            "published, opened by others, or a variable; gpud_copy takes its content to a "
            "buffer there",
            a, b, buffer_title(stays, title));
    }
    return err_set(e, ERR_STATE,
                   "its buffers live on devices %u and %u, and neither may have all of them", a, b);
}

/* The device with most of the bytes, of those that may have all. */
static int gather(const struct front *f, const struct tenant *t, const struct work *w,
                  int *ret_place, struct err *e)
{
    uint64_t bytes[PLACES_MAX] = {0};
    const struct buffer *stays = NULL;
    int best = -1;
    for (unsigned i = 0; i < w->use_count && !only_copies(w); i++) {
        const struct buffer *b = w->uses[i].buffer;
        bytes[place_of(b)] += b->bytes + 1; /* empty buffers count, too */
    }
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        if (bytes[i] > (best >= 0 ? bytes[best] : 0) && f->device[i] != NULL &&
            takes_new(t, f->device[i]) && can_gather(f, t, w, f->device[i], &stays)) {
            best = (int)i;
        }
    }
    if (best < 0) {
        return refuse(w, stays, e);
    }
    *ret_place = best;
    return 0;
}

/* The buffers of a tenant that is apart go to a device where it has no worker yet, and gets one. */
static int check_grant(const struct front *f, const struct tenant *t, const struct work *w,
                       struct device *base, struct err *e)
{
    uint64_t most = base->memory > 0 ? domain_most(f, t, base) : UINT64_MAX;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < w->use_count; i++) {
        bytes += buffer_charged(w->uses[i].buffer);
    }
    return bytes <= most
               ? 0
               : err_set(e, ERR_DEVICE_MEMORY,
                         "its buffers have %llu bytes, and the worker of tenant %s on "
                         "device %u gets %llu at most: split the job",
                         (unsigned long long)bytes, t->name, base->index, (unsigned long long)most);
}

/* The device that the job names, if its buffers can be there. place: of all of them; -1: several.
 */
static int obey(const struct front *f, const struct tenant *t, const struct work *w, uint64_t wish,
                int place, int *ret_place, struct err *e)
{
    const struct buffer *stays = NULL;
    struct device *base = wish <= f->device_count ? f->device[wish - 1] : NULL;
    struct device *d = base != NULL ? domain_of(t, base) : NULL;
    d = d != NULL ? d : base;
    bool can = d != NULL && !only_copies(w) && takes_new(t, d) && can_gather(f, t, w, d, &stays);
    if (!can && place < 0) {
        return refuse(w, stays, e);
    }
    int rc = can && t->apart && d->owner == NULL ? check_grant(f, t, w, base, e) : 0;
    if (rc != 0) {
        return rc;
    }
    *ret_place = can ? (int)d->index : place; /* check_device refuses the wish then */
    return 0;
}

/* ---- elsewhere, as that is sooner ------------------------------------------------------------ */

#define LOAD_NS (50 * NS_PER_MS) /* taken for kernels that the other worker has yet to load */

static bool computes(const struct work *w)
{
    bool any = false;
    for (unsigned i = 0; i < w->step_count && !any; i++) {
        any = w->steps[i].op == OP_LAUNCH;
    }
    return any;
}

/* Nothing uses it or waits for it, and it is not to stay in the memory of its device. */
static bool is_idle(const struct buffer *b)
{
    bool sealed = b->sealed && buffer_restorable(b) && b->pending == NULL;
    return b->users == 0 && buffer_may_move(b) && buffer_state(b) == BUFFER_LIVE &&
           (b->flags & BUFFER_FLAG_STAY) == 0 && (sealed || evacuate_movable(b));
}

static bool all_idle(const struct work *w)
{
    bool idle = true;
    for (unsigned i = 0; i < w->use_count && idle; i++) {
        idle = is_idle(w->uses[i].buffer);
    }
    return idle;
}

/* Would jobs and buffers have the same there, and does it take both now? Half of its free memory
 * remains. */
static bool suits(struct front *f, const struct tenant *t, const struct work *w,
                  const struct device *home, const struct device *to, uint64_t bytes)
{
    const struct buffer *stays = NULL;
    bool same = strcmp(home->backend, to->backend) == 0 && strcmp(home->arch, to->arch) == 0;
    uint64_t room = sat_sub(device_pool_limit(to), to->buffer_bytes) / 2;
    return same && device_takes(to) && takes_new(t, to) && !to->exclusive && bytes <= room &&
           cap_wait_ns(t->share.stake[device_shown(to)], turn_now(f)) == 0 &&
           can_gather(f, t, w, to, &stays);
}

/* What it costs the job there, beside the wait: the way there, and the way back, so that buffers do
 * not go to and fro. */
static uint64_t price_of(const struct work *w, struct device *home, struct device *to)
{
    uint64_t ns = 0;
    bool loaded = true;
    for (unsigned i = 0; i < w->use_count; i++) {
        const struct buffer *b = w->uses[i].buffer;
        ns = sat_add(ns, transit_cost(b, home, to).ns);
        ns = sat_add(ns, transit_cost(b, to, home).ns);
    }
    for (unsigned i = 0; i < w->module_count; i++) {
        loaded = loaded && device_set_has(&w->modules[i]->loaded, to->index);
    }
    return sat_add(ns, loaded ? 0 : LOAD_NS);
}

/* How much longer it takes there, if that is known. */
static uint64_t slower_by(const struct job *j, const struct device *home, const struct device *to)
{
    struct estimate here = predict_cost(j, home);
    struct estimate there = predict_cost(j, to);
    return here.sure && there.sure ? sat_sub(there.ns, here.ns) : 0;
}

/* The place where the job begins first, with the way of its buffers: home, or another one. */
static int soonest(struct front *f, struct job *j, int home)
{
    struct device *from = f->device[home];
    struct tenant *t = j->tenant;
    uint64_t bytes = 0;
    int best = home;
    bool may = f->moving == 0 && predict_busy(f, from) && device_takes(from);
    if (!may || !computes(&j->work) || !all_idle(&j->work)) {
        return home;
    }
    struct estimate wait = predict_wait(f, j, from);
    uint64_t least = wait.ns;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        bytes += j->work.uses[i].buffer->bytes;
    }
    for (unsigned i = 0; i < f->device_count && wait.sure && bytes <= evacuate_room(f); i++) {
        struct device *to = domain_of(t, f->device[i]);
        if (to == NULL || to == from || !suits(f, t, &j->work, from, to, bytes)) {
            continue;
        }
        struct estimate there = predict_wait(f, j, to);
        uint64_t ns =
            sat_add(sat_add(there.ns, price_of(&j->work, from, to)), slower_by(j, from, to));
        if (there.sure && ns < least) {
            least = ns;
            best = (int)to->index;
        }
    }
    turn_count(f, f->device_count / 4);
    return best;
}

int placing_of(struct front *f, struct job *j, uint64_t wish, int *ret_place, struct err *e)
{
    const struct tenant *t = j->tenant;
    const struct work *w = &j->work;
    if (w->use_count == 0) {
        *ret_place = -1;
        return 0;
    }
    int place = still_place(w);
    if (place >= 0 && wish == 0 && f->device_count > 1) {
        int best = soonest(f, j, place);
        j->strays = best != place;
        place = best;
    } else if (place < 0) {
        place = common_place(w);
        bool whole = place >= 0; /* what was checked for the devices of its buffers holds there */
        for (unsigned i = 0; i < w->use_count && whole; i++) {
            whole = alike(f, w, w->uses[i].buffer->device, f->device[place]);
        }
        place = whole ? place : -1;
        j->strays = wish == 0 && place >= 0; /* behind a job that takes them there */
    }
    if (place >= 0 && (wish == 0 || device_shown(f->device[place]) == wish - 1)) {
        *ret_place = place;
        return 0;
    }
    if (wish > 0) {
        return obey(f, t, w, wish, place, ret_place, e);
    }
    int rc = gather(f, t, w, ret_place, e);
    j->strays = rc == 0 && all_away(w, (unsigned)*ret_place); /* jobs before it may end too soon */
    return rc;
}

bool placing_back(struct front *f, struct job *j, const struct buffer *b)
{
    struct device *home = f->device[b->device];
    struct device *away = j->device;
    struct err e = ERR_INIT;
    if (!j->strays || j->state != JOB_QUEUED || home == away || !takes_new(j->tenant, home) ||
        domain_want(f, home, &e) != 0) {
        return false;
    }
    queue_remove(f, j);
    j->strays = false;
    j->device = home;
    if (!shares_reserve(f, j->tenant, j)) {
        j->device = away;
        return false;
    }
    away->jobs--;
    home->jobs++;
    j->work.device = (int)home->index;
    hazard_bound(j);
    queue_offer(f, j);
    return true;
}
