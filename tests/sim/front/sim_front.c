/* The front itself: the table of functions around it, its loop, its begin and its end. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/front/clients/lane_int.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/request.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/requests/reload.h"
#include "daemon/front/settings/tenant_tokens.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/workers/link.h"
#include "daemon/front/workers/silence.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_end.h"
#include "tests/sim/front/rules/sim_access.h"
#include "tests/sim/front/rules/sim_conduct.h"
#include "tests/sim/front/rules/sim_endings.h"
#include "tests/sim/front/rules/sim_flight.h"
#include "tests/sim/front/rules/sim_fronts.h"
#include "tests/sim/front/rules/sim_places.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/rules/sim_waits.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_files.h"
#include "tests/sim/front/sim_launches.h"
#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_roles.h"

#define RANGE_ENTRY 24u /* bytes of an entry of staging memory (common/range.c) */
#define TURNS_MAX   20000u
#define TURNS_BRIEF 4u /* turns that take no time */
#define TURN_NS     (50 * NS_PER_US)
#define GENERATIONS (1u << 20) /* of one front */
#define LANE_BATCH  32u
#define POOR_SALT   26u
#define FRONTS_GAP  (200 * NS_PER_MS)

static struct sim *world; /* the functions of the table get no other context */

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t on_now(void)
{
    return world->now_ns;
}

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    memory_outside();
    client_answer(world, (uint64_t)(uintptr_t)slot, message);
    memory_inside();
}

static void on_drop(struct listener *l, struct listener_slot *slot)
{
    (void)l;
    memory_outside();
    client_drop(world, (uint64_t)(uintptr_t)slot);
    memory_inside();
}

static void on_identified(struct listener *l, uint32_t pipe)
{
    (void)l;
    (void)pipe;
}

static void on_close_pipe(struct listener *l, uint32_t pipe)
{
    (void)l;
    memory_outside();
    client_closed(world, pipe);
    memory_inside();
}

static struct device *device_of(const struct link *l)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(world->f, &at)) != NULL;) {
        if (d->link == l) {
            return d;
        }
    }
    sim_fail(world, "link: a frame to no device");
}

static struct sim_worker *worker_of(const struct device *d)
{
    for (unsigned i = world->workers; i > 0; i--) {
        if (world->worker[i - 1]->id == d->worker) {
            return world->worker[i - 1];
        }
    }
    sim_fail(world, "link: device %u has no worker %" PRIu64, d->index, d->worker);
}

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    memory_outside();
    const struct device *d = device_of(l);
    struct sim_worker *x = worker_of(d);
    if (schema == &schema_msg_f_job) {
        monitor_check_job(world, device_hardware(world, d), ((const struct msg_f_job *)msg)->job);
        domain_check_turn(world, d, ((const struct msg_f_job *)msg)->job);
        domain_check_alone(world, d, ((const struct msg_f_job *)msg)->job);
        order_sent(world, d, ((const struct msg_f_job *)msg)->job);
        flight_sent(world, d, ((const struct msg_f_job *)msg)->job);
        limits_sent(world, ((const struct msg_f_job *)msg)->job);
        charge_sent(world, d, ((const struct msg_f_job *)msg)->job);
        rest_sent(world, d, ((const struct msg_f_job *)msg)->job);
        drain_check_job(world, d, ((const struct msg_f_job *)msg)->job);
    }
    places_frame(world, d, x, schema, msg);
    frames_sent(world, d, x, schema, msg);
    if (schema == &schema_msg_f_budget) {
        lease_sent(world, d, x, msg);
    }
    bool missed = waits_missed(world, x, schema);
    if (x->state == WORKER_RUNS && !missed) { /* else the frame is lost with the worker */
        worker_take(world, x, schema, msg, fds);
    }
    memory_inside();
    return missed ? err_set(e, ERR_LIMIT, "the channel is full") : 0;
}

static bool is_monitor(uint64_t id)
{
    return (id & SIM_MONITOR_BIT) != 0;
}

static bool on_pressed(const struct link *l)
{
    if (l == NULL) {
        return false;
    }
    const struct device *d = device_of(l);
    return world->device[worker_slot_of(world, d)].pressed_until_ns > world->now_ns;
}

static int on_worker(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    (void)l;
    memory_outside();
    launches_asked(world, w);
    int rc = launcher_asked(world, w->id, w->args, w->device, w->fd, e);
    memory_inside();
    return rc;
}

static int on_name(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)e;
    memory_outside();
    launcher_named(world, id, device);
    memory_inside();
    return 0;
}

static int on_monitor(struct launcher_link *l, uint64_t id, int page, struct err *e)
{
    (void)l;
    (void)e;
    memory_outside();
    int rc = monitor_asked(world, id, page);
    memory_inside();
    return rc;
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)signal;
    int rc = 0;
    memory_outside();
    if (is_monitor(id)) {
        rc = monitor_kill(world, id, e);
    } else {
        launcher_kill_worker(world, id);
    }
    memory_inside();
    return rc;
}

static int on_keep(struct launcher_link *l, uint64_t id, uint64_t worker, int fd, struct err *e)
{
    (void)l;
    (void)e;
    memory_outside();
    launcher_keep_copy(world, id, worker, fd);
    memory_inside();
    return 0;
}

static int on_release(struct launcher_link *l, uint64_t id, struct err *e)
{
    (void)l;
    (void)e;
    memory_outside();
    launcher_release_copy(world, id);
    memory_inside();
    return 0;
}

static int on_vacate(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)e;
    memory_outside();
    launches_vacate(world, id, device);
    memory_inside();
    return 0;
}

static int on_compile(struct compiler *c, const struct compiler_request *q, compiler_done_fn done,
                      void *data, struct err *e)
{
    (void)c;
    memory_outside();
    int rc = compile_asked(world, q, done, data, e);
    memory_inside();
    return rc;
}

static void on_leave(struct launcher_link *l)
{
    (void)l; /* it is no object */
}

static bool on_look(const struct device *d, struct thread_look *ret_look)
{
    const struct sim_worker *x = worker_of_device(world, worker_slot_of(world, d));
    bool same = x != NULL && x->id == d->worker;
    bool starved = same && x->starved;
    bool spins = same && x->spins;
    char state = starved && x->id % 2 == 0 ? 'D' : starved || spins ? 'R' : 'S';
    *ret_look = (struct thread_look){.state = state,
                                     .lack = silence_lack(state),
                                     .ran_ns = spins ? world->now_ns - x->began_ns : 0};
    return x != NULL;
}

static const struct front_io io = {
    .now_ns = on_now,
    .reply = on_reply,
    .drop = on_drop,
    .identified = on_identified,
    .close_pipe = on_close_pipe,
    .send = on_send,
    .pressed = on_pressed,
    .unread = link_unread,
    .look = on_look,
    .start_worker = on_worker,
    .name_worker = on_name,
    .start_monitor = on_monitor,
    .kill = on_kill,
    .keep = on_keep,
    .release = on_release,
    .vacate = on_vacate,
    .leave_launcher = on_leave,
    .compile = on_compile,
};

/* ---- settings -------------------------------------------------------------------------------- */

static int fill_settings(const struct sim *s, struct config *c)
{
    const struct course_params *p = &s->p;
    struct err e = ERR_INIT;
    config_defaults(c);
    int rc = config_set(c, "daemon.backend", p->automatic != 0 ? "auto" : "sim", &e);
    c->spill_limit = UINT64_C(1) << 30; /* else it is derived from the memory of the host */
    c->window = p->window;
    c->time_limit_ms = p->time_limit_ms;
    c->session_linger_ms = p->linger_ms;
    c->queue_max = p->queue_max;
    c->session_inflight_max = p->inflight_max;
    c->staging_input_bytes = c->staging_output_bytes = p->staging_kib * 1024;
    c->keep_results_bytes = p->kept_bytes;
    c->buffers_max = p->buffers_max;
    c->tenant_message_bytes = p->message_kib * 1024;
    c->sessions_max = 2048;
    c->user_sessions_max = 2048;
    settings_fill(s, c);
    c->min_devices = p->roles != 0 ? p->clients % (p->devices + 1) : c->min_devices;
    c->log_level = log_get_level();
    c->chosen = true;
    (void)snprintf(c->runtime_dir, sizeof c->runtime_dir, "%s", s->dir);
    (void)snprintf(c->file, sizeof c->file, "%s/gpud.conf", s->dir);
    access_path(s, c->access, sizeof c->access);
    if (p->watch != 0) {
        (void)snprintf(c->cache_dir, sizeof c->cache_dir, "%s", s->dir);
    }
    (void)snprintf(c->look, sizeof c->look, "%s", roles_look_all(s) ? "all" : "own");
    return rc;
}

static int read_settings(void *data, struct config *ret_config, struct err *e)
{
    (void)e;
    return fill_settings(data, ret_config);
}

static void write_section(const struct sim *s, const char *tenant, FILE *out)
{
    enum sim_section section = settings_section(tenant);
    (void)fprintf(out, "[tenant %s]\nload_kernels = yes\ntrusted = %s\n", tenant,
                  s->set.trusted[section] ? "yes" : "no");
    if (s->p.guaranteed > 0 && section != SECTION_OTHERS) {
        (void)fprintf(out, "memory_guaranteed = %" PRIu64 "%%\n", s->p.guaranteed);
    }
    if (s->p.flight > 0) {
        (void)fprintf(out, "inflight_max = %" PRIu64 "\n", s->p.flight);
    }
    if (s->p.rate_kib > 0) {
        (void)fprintf(out, "transfer_rate = %" PRIu64 "K\n", s->p.rate_kib);
    }
    if (strcmp(tenant, TENANT_OTHERS) != 0) {
        roles_line(s, tenant, out);
    }
}

/* A front may read the file meanwhile. */
static void write_rules(const struct sim *s)
{
    char path[sizeof s->dir + 16];
    char fresh[sizeof s->dir + 16];
    (void)snprintf(path, sizeof path, "%s/gpud.conf", s->dir);
    (void)snprintf(fresh, sizeof fresh, "%s/gpud.conf.new", s->dir);
    FILE *out = fopen(fresh, "w");
    if (out == NULL) {
        abort();
    }
    write_section(s, TENANT_OTHERS, out);
    roles_line_others(s, out);
    roles_write(s, out, write_section);
    load_write(s, out);
    for (unsigned i = 0; i < 2 * s->p.sockets; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "twin%u", i);
        write_section(s, name, out);
        (void)fprintf(out, "listen = %s/%s.sock\n", s->dir, name);
    }
    for (unsigned i = 0; i < SIM_FAR_TENANTS && s->p.tokens != 0; i++) {
        tokens_write(s, i);
        if (tokens_there(s, i)) {
            write_section(s, tokens_tenant(i), out);
            (void)fprintf(out, "tokens = %s/%s.tokens\n", s->dir, tokens_tenant(i));
        }
    }
    (void)fclose(out);
    if (rename(fresh, path) != 0) {
        abort();
    }
}

/* Sections come into force as at a start of the daemon. */
static void apply_rules(struct sim *s, struct front *f)
{
    struct tenant_rules rules = {.count = 0};
    struct err e = ERR_INIT;
    bool some = s->p.sockets != 0 || s->p.tokens != 0 || s->p.roles != 0 || load_is(s);
    int rc = some ? tenant_rules_read(&f->config, &rules, &e) : 0;
    rc = rc == 0 && some ? tenant_tokens_read(&rules, &e) : rc;
    if (some && rc == 0) {
        rc = quota_rules(f, &rules, f->config.device_memory_max, &e);
    }
    if (rc != 0) {
        sim_fail(s, "begin: rules: %s", e.text);
    }
}

/* As for SIGHUP. */
void front_reload(struct sim *s)
{
    struct err e = ERR_INIT;
    write_rules(s);
    if (s->f == NULL || front_life_stops(s->f->life)) {
        return; /* the next one reads them */
    }
    memory_inside();
    (void)reload_settings(s->f, NULL, &e);
    memory_outside();
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void must(struct sim *s, int rc, const struct err *e, const char *what)
{
    if (rc != 0) {
        sim_fail(s, "begin: %s: %s", what, e->text);
    }
}

static void on_ring_request(void *data, struct session *session, struct request *r)
{
    memory_outside();
    client_ring_request(world, session->id, r);
    memory_inside();
    pipeline_ring_requests.request(data, session, r);
}

static void lanes_make(struct sim *s, struct front *f)
{
    struct lanes_options options = {.batch = LANE_BATCH};
    struct lanes_callbacks callbacks = pipeline_ring_requests;
    struct err e = ERR_INIT;
    callbacks.request = on_ring_request;
    must(s, lanes_create(&s->loop, &options, &callbacks, f, &f->lanes, &e), &e, "lanes");
}

static void front_make(struct sim *s)
{
    struct front *f = calloc(1, sizeof *f);
    struct err e = ERR_INIT;
    char path[sizeof s->dir + 16];
    uint64_t generation = 1 + GENERATIONS * s->era++;
    s->f = f;
    f->io = io;
    f->loop = &s->loop;
    f->supervised = true;
    f->launcher = (struct launcher_link *)s; /* the table's functions get it, and need it not */
    (void)fill_settings(s, &f->config);
    f->rights.admins.group = f->rights.loaders.group = UINT32_MAX;
    f->rights.look_all = roles_look_all(s);
    f->worker_uid = f->worker_gid = SIM_STRANGER;
    f->rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
    f->rules.others.load = TENANT_LOAD_YES;
    f->rules.others.trusted = s->set.trusted[SECTION_OTHERS];
    f->rules.others.in_flight = s->p.flight;
    f->rules.others.transfer_rate = s->p.rate_kib * 1024;
    f->read_settings = read_settings;
    f->settings_data = s;
    f->build = "sim";
    f->started_ns = s->now_ns;
    f->lineage = 1 + s->launchers;
    f->next_session = f->next_worker = f->next_job = 1;
    f->copies_max = s->p.clients % 5 == 0 ? 8 : SIM_COPIES;
    memcpy(f->daemon_id, &s->era, sizeof s->era);
    idmap_init(&f->buffers, IDMAP_MAX, generation);
    idmap_init(&f->arenas, IDMAP_MAX, generation);
    idmap_init(&f->programs, IDMAP_MAX, generation);
    idmap_init(&f->modules, IDMAP_MAX, generation);
    idmap_init(&f->kernels, IDMAP_MAX, generation);
    uv_signal_t *const signals[] = {&f->sigterm, &f->sigint, &f->sighup, &f->sigusr1};
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)uv_signal_init(&s->loop, signals[i]);
    }
    pipeline_init(f);
    files_read(s);
    accounts_follow(s);
    waits_follow(s);
    access_follow(s);
    turns_begin();
    metrics_follow(s);
    apply_rules(s, f);
    lanes_make(s, f);
    must(s, monitor_create(&f->monitor, &e), &e, "monitor");
    must(s, hold_file_create(&f->holds, &e), &e, "hold file");
    must(s, building_init(f, &e), &e, "built-in kernels");
    (void)snprintf(path, sizeof path, "%s/shm", s->dir);
    must(s, shm_create(&s->loop, path, &shm_defaults, &f->shm, &e), &e, "shm");
}

bool front_alive(const struct sim *s)
{
    return s->f != NULL;
}

static void front_gone(struct sim *s, bool again);

/* As adopt_all of pipeline_start.c: clients come when all workers have reported. The times for
 * which the front stood still count when its timer fires. */
static void await_adoption(struct sim *s)
{
    struct front *f = s->f;
    bool waits = f != NULL && !f->unadopted &&
                 (pipeline_adopts_until(f, s->opened_ns) != 0 || f->wake_ns <= s->now_ns);
    if (s->accepts || f == NULL || waits) {
        return;
    }
    if (f->unadopted) {
        sim_log(s, "front %" PRIu64 " lacks memory for jobs of the former one", s->era);
        front_gone(s, true);
        return;
    }
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->state == DEVICE_ADOPTING) {
            static const char why[] = "it did not report its inventory in time";
            worker_end(f, d, NULL, why);
            adopt_lost(f, d, why);
        }
    }
    domain_check_taken(s);
    adopt_over(f);
    s->accepts = true;
    s->accepts_ns = s->now_ns;
    sim_log(s, "front %" PRIu64 " takes clients", s->era);
}

static void on_adoption_over(struct sim *s, const struct hap *h);

static void await_longer(struct sim *s)
{
    uint64_t until_ns = pipeline_adopts_until(s->f, s->opened_ns);
    uint64_t at_ns = until_ns != 0 ? until_ns : s->now_ns + NS_PER_MS;
    sim_at(s, at_ns, on_adoption_over, NULL, s->era, 0);
}

static void on_adoption_over(struct sim *s, const struct hap *h)
{
    if (h->a != s->era || s->f == NULL) {
        return;
    }
    await_adoption(s);
    if (!s->accepts && s->f != NULL) {
        await_longer(s);
    }
}

void front_open(struct sim *s)
{
    world = s;
    write_rules(s);
    front_make(s);
    conduct_anew();
    sim_log(s, "front %" PRIu64 " begins", s->era);
    s->opened_ns = s->now_ns;
    s->submitted_before = 0;
    await_longer(s);
    launcher_lists(s);
    memory_fail(s->poor, false); /* while it adopts */
    memory_only(s->poor_size);
    memory_scarce(s->poor_more);
    s->poor = 0;
    await_adoption(s);
}

/* What has arrived reaches no front. */
static void arrivals_drop(struct sim *s)
{
    s->arrived.first = s->arrived.count = s->ended.first = s->ended.count = 0;
}

void front_close(struct sim *s)
{
    struct front *f = s->f;
    sim_log(s, "front %" PRIu64 " ends", s->era);
    s->accepts = false;
    s->closing = true;
    arrivals_drop(s);
    monitor_drop(s);
    while (reload_under_way(f)) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    for (unsigned i = 0; i < s->workers; i++) {
        channel_close(s->worker[i]);
    }
    memory_fail(0, false);
    accounts_front_ends(s, !front_life_stops(f->life));
    metrics_front_ends(!front_life_stops(f->life));
    if (!front_life_stops(f->life)) {
        front_life_step(&f->life, FRONT_HANDING_OVER);
        pipeline_stop(f);
    }
    compiles_drop(s); /* as pipeline_stop ends the compiler */
    (void)alarm(0);   /* pipeline_stop's */
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    pipeline_finish(f);
    accounts_front_ended(s);
    access_front_ended(s);
    record_front_ended(s);
    free(f);
    s->f = NULL;
    s->closing = false;
}

/* ---- its time -------------------------------------------------------------------------------- */

static bool goes_on(const struct front *f)
{
    return f->kicked || f->ending != NULL || f->sweeping != NULL || f->records_pending != NULL ||
           f->table_queries != NULL || f->losing > 0 || f->leaving != NULL ||
           f->lanes->ready != NULL;
}

static void on_front(struct sim *s, const struct hap *h)
{
    (void)h;
    if (s->f == NULL) {
        front_open(s);
    }
}

/* Clients see the end of their connections. Another front follows. */
static void front_gone(struct sim *s, bool again)
{
    front_close(s);
    s->closed_ns = s->now_ns;
    for (unsigned i = 0; i < s->clients; i++) {
        if (s->client[i].pipe != 0) {
            client_break(s, &s->client[i], true);
        }
    }
    if (again) {
        sim_at(s, s->now_ns + FRONTS_GAP, on_front, NULL, 0, 0);
    }
}

/* While a turn is followed by another, time passes, and what is due happens between them. */
static void pass_turn(struct sim *s)
{
    s->now_ns += TURN_NS;
    while (s->f != NULL && sim_next_ns(s) <= s->now_ns) {
        sim_next(s);
    }
    if (s->f != NULL && s->f->wake_ns <= s->now_ns) {
        front_wakes(s);
    }
}

static void deliver_request(struct sim *s, uint64_t parcel);

static void arrivals_add(struct sim_arrivals *a, uint64_t what)
{
    if (a->count == a->room) {
        a->room = 2 * a->room + 64;
        a->parcel = realloc(a->parcel, a->room * sizeof *a->parcel);
    }
    a->parcel[a->count++] = what;
}

static bool arrivals_take(struct sim_arrivals *a, uint64_t *ret_what)
{
    if (a->first == a->count) {
        a->first = a->count = 0;
        return false;
    }
    *ret_what = a->parcel[a->first++];
    return true;
}

/* As drain of the listener: requests first, then ends of connections, as far as the turn has room.
 */
static bool listener_turn(struct sim *s)
{
    uint64_t what = 0;
    bool first = true;
    while (s->f != NULL && s->arrived.first < s->arrived.count &&
           pipeline_requests.more(s->f, first) && arrivals_take(&s->arrived, &what)) {
        first = false;
        deliver_request(s, what);
    }
    first = true;
    while (s->f != NULL && s->arrived.first == s->arrived.count &&
           s->ended.first < s->ended.count && pipeline_requests.more(s->f, first) &&
           arrivals_take(&s->ended, &what)) {
        first = false;
        memory_inside();
        pipeline_requests.closed(s->f, (uint32_t)what);
        memory_outside();
    }
    return s->arrived.first < s->arrived.count || s->ended.first < s->ended.count;
}

/* Work may wait for a channel that is full: then the loop sleeps until the timer fires. */
void front_settle(struct sim *s)
{
    unsigned quiet = 0;
    for (unsigned i = 0; s->f != NULL && quiet < 2; i++) {
        if (i > TURNS_MAX) {
            sim_fail(s, "turns: the loop does not come to rest");
        }
        if (front_life_stops(s->f->life)) {
            front_gone(s, true);
            return;
        }
        bool more = listener_turn(s);
        (void)uv_timer_stop(&s->f->timer); /* it counts real time; front_wakes is in its place */
        memory_inside();
        (void)uv_run(&s->loop, reload_under_way(s->f) ? UV_RUN_ONCE : UV_RUN_NOWAIT);
        memory_outside();
        worker_answer_rings(s);
        bool pressed = s->f->pressed && i > 16;
        bool busy =
            more || (goes_on(s->f) && !pressed) || reload_under_way(s->f) || worker_unread(s);
        quiet = busy ? 0 : quiet + 1;
        if (busy && i >= TURNS_BRIEF) {
            pass_turn(s);
        }
    }
    await_adoption(s);
}

uint64_t front_due_ns(const struct sim *s)
{
    if (s->f == NULL) {
        return NS_NEVER;
    }
    return s->f->wake_ns > s->now_ns ? s->f->wake_ns : s->now_ns;
}

void front_wakes(struct sim *s)
{
    s->wakes = s->now_ns == s->woken_ns ? s->wakes + 1 : 0;
    s->woken_ns = s->now_ns;
    if (s->wakes > 1000) {
        sim_fail(s, "wakes: the timer does not come to rest");
    }
    memory_inside();
    pipeline_wake(s->f);
    memory_outside();
    stall_behind_wake(s);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* As a reader and the listener do it: bytes are decoded, and the request is handed to the loop. */
static void deliver_request(struct sim *s, uint64_t parcel)
{
    struct sim_parcel *p = &s->parcel[parcel];
    const struct sim_request *q = p->request;
    const struct schema *schema = schema_find(q->kind);
    struct err e = ERR_INIT;
    struct request *r = calloc(1, sizeof *r + q->size);
    memcpy(r + 1, q->data, q->size);
    if (proto_decode(schema, bytes_of(r + 1, q->size), &r->msg, &e) != 0) {
        sim_fail(s, "request: %s", e.text);
    }
    r->kind = q->kind;
    r->size = q->size;
    r->slot = (struct listener_slot *)(uintptr_t)parcel;
    r->peer = (struct peer){
        .pipe = p->pipe, .local = true, .uid = q->client->uid, .gid = q->client->gid, .pid = 0};
    r->peer.listener = client_listener(q->client);
    r->peer.local = !client_far(q->client);
    r->peer.tls = client_far(q->client);
    p->request->asked_ns = s->now_ns;
    s->asked = p;
    p->arrived = true;
    record_before(s, q);
    due_before(s, q);
    turns_before(s, p);
    s->refused_before = s->refused_before && q->kind != MSG_KIND_CONTROL; /* it may end draining */
    memory_inside();
    pipeline_requests.request(s->f, r);
    memory_outside();
    s->asked = NULL;
    turns_after(s, &s->parcel[parcel]);
}

void front_request(struct sim *s, uint64_t parcel)
{
    arrivals_add(&s->arrived, parcel);
}

void front_pipe_closed(struct sim *s, uint32_t pipe)
{
    arrivals_add(&s->ended, pipe);
}

/* A worker may refuse memory that the front asked for, when the next one has taken it over. */
static void late_refusal(struct sim *s, struct chance *r)
{
    struct sim_worker *x = worker_of_device(s, (unsigned)chance_below(r, s->p.devices));
    if (x != NULL && chance_percent(r, 30)) {
        x->refuses = true;
    }
}

/* ---- what a course does to it ---------------------------------------------------------------- */

/* Each worker ends with 1 of 2. */
static void on_next_fall(struct sim *s, const struct hap *h)
{
    struct chance r = chance_of(h->a, 12);
    for (unsigned i = 0; front_alive(s) && !s->settling && i < s->workers; i++) {
        if (s->worker[i]->state == WORKER_RUNS && chance_percent(&r, 50)) {
            worker_suffers(s, s->worker[i], COURSE_DIE, &r);
        }
    }
}

static void on_next_end(struct sim *s, const struct hap *h)
{
    (void)h;
    if (front_alive(s) && !s->settling) {
        front_gone(s, true);
    }
}

/* One in three is followed by the end of the next front, half of these after ends of workers. */
static void front_ends(struct sim *s, struct chance *r)
{
    uint64_t next_ns = FRONTS_GAP + chance_spread(r, NS_PER_MS, 4 * NS_PER_S);
    front_gone(s, true);
    if (!chance_one_in(r, 3)) {
        return;
    }
    sim_at(s, s->now_ns + next_ns, on_next_end, NULL, 0, 0);
    if (chance_percent(r, 50)) {
        sim_at(s, s->now_ns + (FRONTS_GAP + next_ns) / 2, on_next_fall, NULL, chance_next(r), 0);
    }
}

/* The next front may have no memory while it adopts, mostly for one of the things that it takes
 * over. */
static void choose_poor(struct sim *s, const struct course_event *e, struct chance *r)
{
    static const size_t sizes[] = {sizeof(struct job), sizeof(struct session),
                                   sizeof(struct buffer)};
    struct chance which = chance_of(e->r, POOR_SALT);
    s->poor = chance_percent(r, 10) ? (long)chance_spread(r, 1, 256) : 0;
    s->poor_size = s->poor_more = 0;
    if (chance_percent(&which, 8)) {
        s->poor = 1 + (long)chance_below(&which, 4);
        s->poor_more = (unsigned)chance_below(&which, 4);
        s->poor_size = sizes[chance_below(&which, sizeof sizes / sizeof sizes[0])];
    }
}

void front_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    if (s->f == NULL) {
        return;
    }
    switch (e->kind) {
    case COURSE_HANDOVER:
        pipeline_hand_over(s->f);
        break;
    case COURSE_CRASH:
        choose_poor(s, e, r);
        late_refusal(s, r);
        front_ends(s, r);
        break;
    case COURSE_FALL:
        front_ends(s, r);
        launcher_fall(s, r);
        break;
    case COURSE_STALL:
        stall_event(s, e, r);
        break;
    case COURSE_NOMEM:
        memory_fail((long)chance_spread(r, 1, 64), s->accepts);
        memory_scarce(s->p.scarce > 0 ? (unsigned)chance_below(r, s->p.scarce + 1) : 0);
        if (s->p.special == WORLD_BARE && chance_percent(r, 60)) {
            memory_fail(1, s->accepts);
            memory_only(RANGE_ENTRY);
        }
        break;
    default:
        break;
    }
}
