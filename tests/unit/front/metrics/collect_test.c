/* The numbers of a scrape: what jobs add, whose rows tenants are in, and the pieces of a
 * collection. */
#include "daemon/front/metrics/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/metrics/render.h"
#include "daemon/front/tenants/accounts.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"
#include "tests/unit/front/scratch.h"

#define MANY  1000u
#define UNITS 50u /* of a turn */

static struct fake *k;
static struct tallies *t;
static struct collect c;
static char dir[SCRATCH_PATH];

static void begin(void)
{
    scratch_make(dir);
    log_set_level(LOG_LEVEL_ERROR);
    k = fake_create();
    t = calloc(1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    c = (struct collect){.state = COLLECT_IDLE};
    ck_assert_int_eq(accounts_create(dir, NULL, &k->f.accounts, NULL), 0);
}

static void end(void)
{
    for (struct tenant *x = k->f.tenants; x != NULL; x = x->hh.next) {
        accounts_release(k->f.accounts, x, fake_now());
    }
    accounts_destroy(k->f.accounts, fake_now());
    k->f.accounts = NULL;
    fake_destroy(k);
    free(t);
    (void)unlink(scratch_path(dir, "accounts"));
    scratch_remove(dir);
}

static struct tenant *tenant_add(const char *name)
{
    struct tenant *x = tenant_named(&k->f.tenants, name);
    ck_assert_ptr_nonnull(x);
    accounts_bind(k->f.accounts, x);
    return x;
}

static struct tenant *tenant_number(unsigned number)
{
    char name[32];
    (void)snprintf(name, sizeof name, "team-%u", number);
    return tenant_add(name);
}

static void tenant_drop(struct tenant *x)
{
    collect_skip(&c, x, x->hh.next);
    accounts_release(k->f.accounts, x, fake_now());
    tenant_destroy(&k->f.tenants, x);
}

static struct figures *collect(void)
{
    ck_assert_int_eq(collect_begin(&c, &k->f, t, NULL), 0);
    k->f.work.budget = 0;
    struct figures *n = collect_some(&c, &k->f, t);
    ck_assert_ptr_nonnull(n);
    ck_assert_int_eq(c.state, COLLECT_IDLE);
    return n;
}

static const struct tenant_figures *row_of(const struct figures *n, const char *name)
{
    const struct tenant_figures *found = NULL;
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        if (strcmp(n->tenant[row].name, name) == 0) {
            ck_assert_ptr_null(found);
            found = &n->tenant[row];
        }
    }
    return found;
}

/* ---- tenants --------------------------------------------------------------------------------- */

START_TEST(tenants_beyond_the_limit_are_together)
{
    for (unsigned i = 1; i <= TENANTS_SHOWN + 50; i++) {
        struct tenant *x = tenant_number(i);
        account_moved(x->account, 3, 1);
        account_job(x->account, ACCOUNT_DONE);
        x->device_bytes[1] = 10;
        x->sessions = 1;
    }
    struct figures *n = collect();
    unsigned named = 0;
    for (unsigned row = 1; row < TENANT_ROWS; row++) {
        named += n->tenant[row].name[0] != '\0';
        ck_assert_uint_eq(n->tenant[row].to_device, 3);
        ck_assert_uint_eq(n->buffers[figures_at(n, row, 1)], 10);
    }
    ck_assert_uint_eq(named, TENANTS_SHOWN);
    const struct tenant_figures *others = row_of(n, "other");
    ck_assert_ptr_eq(others, &n->tenant[0]);
    ck_assert_uint_eq(others->to_device, 50 * 3);
    ck_assert_uint_eq(others->sessions, 50);
    ck_assert_uint_eq(others->jobs[ACCOUNT_DONE], 50);
    ck_assert_uint_eq(n->buffers[figures_at(n, 0, 1)], 50 * 10);
    ck_assert_uint_eq(n->front.to_device, (TENANTS_SHOWN + 50) * 3);
    figures_destroy(n);
    for (unsigned i = 1; i <= TENANTS_SHOWN + 50; i++) {
        tenant_number(i)->sessions = 0;
    }
}
END_TEST

/* Else Prometheus would take the fall for a reset, and count what is left as new. */
START_TEST(no_counter_of_others_falls_when_tenants_are_forgotten)
{
    for (unsigned i = 1; i <= TENANTS_SHOWN + 2; i++) {
        account_job(tenant_number(i)->account, ACCOUNT_DONE);
    }
    tenant_drop(tenant_number(1)); /* its row is not given away */
    tenant_drop(tenant_number(TENANTS_SHOWN + 1));
    account_job(tenant_number(TENANTS_SHOWN + 3)->account, ACCOUNT_DONE);
    struct figures *n = collect();
    ck_assert_uint_eq(row_of(n, "other")->jobs[ACCOUNT_DONE], 3);
    ck_assert_uint_eq(row_of(n, "team-1")->jobs[ACCOUNT_DONE], 1);
    ck_assert_ptr_null(row_of(n, "team-203"));
    figures_destroy(n);
}
END_TEST

/* Two rows of one name would fail the scrape. */
START_TEST(a_tenant_called_other_is_one_of_the_others)
{
    account_job(tenant_add("other")->account, ACCOUNT_DONE);
    struct figures *n = collect();
    ck_assert_ptr_eq(row_of(n, "other"), &n->tenant[0]);
    ck_assert_uint_eq(n->tenant[0].jobs[ACCOUNT_DONE], 1);
    figures_destroy(n);
}
END_TEST

/* ---- pieces ---------------------------------------------------------------------------------- */

START_TEST(a_turn_does_a_piece)
{
    unsigned turns = 0;
    struct figures *n = NULL;
    for (unsigned i = 1; i <= MANY; i++) {
        account_job(tenant_number(i)->account, ACCOUNT_DONE);
    }
    ck_assert_int_eq(collect_begin(&c, &k->f, t, NULL), 0);
    while (n == NULL) {
        uint64_t before = k->f.work.done;
        k->kicked = false;
        turn_allow(&k->f, UNITS);
        n = collect_some(&c, &k->f, t);
        ck_assert_uint_le(k->f.work.done - before, UNITS);
        ck_assert(n != NULL || k->kicked); /* the next turn comes */
        turns++;
    }
    ck_assert_uint_ge(turns, 2 * MANY / UNITS);
    uint64_t done = 0;
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        done += n->tenant[row].jobs[ACCOUNT_DONE];
    }
    ck_assert_uint_eq(done, MANY);
    figures_destroy(n);
}
END_TEST

/* A tenant that is forgotten between two pieces is the one to visit next. */
START_TEST(a_tenant_may_leave_between_two_pieces)
{
    struct figures *n = NULL;
    unsigned dropped = 0;
    for (unsigned i = 1; i <= 100; i++) {
        tenant_number(i)->arena_bytes = 1;
    }
    ck_assert_int_eq(collect_begin(&c, &k->f, t, NULL), 0);
    while (n == NULL) {
        turn_allow(&k->f, 3);
        n = collect_some(&c, &k->f, t);
        if (c.state == COLLECT_TENANTS && c.tenant != NULL && c.tenant != k->tenant &&
            dropped < 10) {
            tenant_drop(tenant_find(k->f.tenants, c.tenant->key));
            dropped++;
        }
    }
    uint64_t seen = 0;
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        seen += n->tenant[row].arenas;
    }
    ck_assert_uint_eq(dropped, 10);
    ck_assert_uint_eq(seen, 90);
    figures_destroy(n);
}
END_TEST

START_TEST(a_collection_can_be_cancelled)
{
    (void)tenant_number(1);
    ck_assert_int_eq(collect_begin(&c, &k->f, t, NULL), 0);
    turn_allow(&k->f, 1);
    ck_assert_ptr_null(collect_some(&c, &k->f, t));
    collect_cancel(&c);
    ck_assert_int_eq(c.state, COLLECT_IDLE);
    collect_cancel(&c);
    figures_destroy(collect());
}
END_TEST

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct job *job_sent(void)
{
    struct job *j = fake_job(k, 1);
    j->trace_id = 0xbeef;
    (void)fake_submit(k, j);
    fake_pass(NS_PER_MS);
    fake_turn(k);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    return j;
}

static uint64_t total(const struct histogram *h)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sum += h->count[i];
    }
    return sum;
}

START_TEST(a_job_counts_where_it_ran)
{
    struct job *j = job_sent();
    j->started_ns = j->submitted_ns + 2 * NS_PER_MS;
    j->ended_ns = j->started_ns + 7 * NS_PER_MS;
    j->device_ns = 6 * NS_PER_MS;
    tally_job(t, &k->f, j);
    const struct tally *d = &t->device[1];
    ck_assert_uint_eq(d->time[TALLY_QUEUE].sum_ns, 2 * NS_PER_MS);
    ck_assert_uint_eq(d->time[TALLY_EXECUTION].sum_ns, 7 * NS_PER_MS);
    ck_assert_uint_eq(d->time[TALLY_DURATION].sum_ns, 9 * NS_PER_MS);
    ck_assert_uint_eq(total(&d->time[TALLY_DURATION]), 1);
    ck_assert_uint_eq(total(&t->device[0].time[TALLY_DURATION]), 0);
    ck_assert_uint_eq(t->busy[0].ns[1], 6 * NS_PER_MS);
    struct figures *n = collect();
    ck_assert_uint_eq(n->busy_ns[figures_at(n, 0, 1)], 6 * NS_PER_MS);
    ck_assert_uint_eq(n->device[1].tally.time[TALLY_QUEUE].last[7].trace, 0xbeef);
    figures_destroy(n);
    fake_done(k, j, 0);
    fake_turn(k);
}
END_TEST

START_TEST(jobs_of_the_daemon_and_of_earlier_fronts_do_not_count)
{
    struct job *j = job_sent();
    struct tenant *own = j->tenant;
    j->tenant = NULL;
    tally_job(t, &k->f, j);
    j->tenant = own;
    j->counted = true;
    tally_job(t, &k->f, j);
    j->counted = false;
    ck_assert_uint_eq(total(&t->device[1].time[TALLY_DURATION]), 0);
    fake_done(k, j, 0);
    fake_turn(k);
}
END_TEST

START_TEST(errors_count_by_their_device)
{
    struct job *j = job_sent();
    j->state = JOB_FAILED;
    j->error.code = ERR_KERNEL_FAULT;
    tally_job(t, &k->f, j);
    j->error.code = -1000; /* no error of the list */
    tally_job(t, &k->f, j);
    j->state = JOB_CANCELLED;
    j->error.code = ERR_CANCELLED;
    tally_job(t, &k->f, j);
    ck_assert_uint_eq(t->device[1].errors[-ERR_KERNEL_FAULT], 1);
    ck_assert_uint_eq(t->device[1].errors[-ERR_CANCELLED], 0);
    j->state = JOB_DISPATCHED;
    j->error.code = 0;
    fake_done(k, j, 0);
    fake_turn(k);
}
END_TEST

START_TEST(steps_that_were_timed_together_share_their_time)
{
    struct job *j = job_sent();
    struct work_step steps[] = {{.op = OP_WRITE, .step = 0},
                                {.op = OP_LAUNCH, .step = 1},
                                {.op = OP_READ, .step = 2},
                                {.op = OP_READ, .step = 4}};
    struct timing times[] = {{.step = 0, .begin_ns = 0, .end_ns = 900},
                             {.step = 1, .begin_ns = 0, .end_ns = 900},
                             {.step = 2, .begin_ns = 0, .end_ns = 900},
                             {.step = 4, .begin_ns = 900, .end_ns = 1000},
                             {.step = 5, .begin_ns = 5, .end_ns = 7}};
    struct work work = j->work;
    j->work.steps = steps;
    j->work.step_count = 4;
    j->timings = times;
    j->timing_count = 5;
    tally_job(t, &k->f, j);
    ck_assert_uint_eq(t->device[1].copy_ns[TALLY_TO_DEVICE], 300);
    ck_assert_uint_eq(t->device[1].copy_ns[TALLY_FROM_DEVICE], 400);
    j->work = work;
    j->timings = NULL;
    j->timing_count = 0;
    fake_done(k, j, 0);
    fake_turn(k);
}
END_TEST

/* `gpuctl accounts` may begin them anew. */
START_TEST(the_time_of_a_tenant_begins_anew_with_its_account)
{
    struct job *j = job_sent();
    struct account *own = j->tenant->account;
    accounts_bind(k->f.accounts, j->tenant);
    j->device_ns = 5;
    tally_job(t, &k->f, j);
    tally_job(t, &k->f, j);
    ck_assert_uint_eq(t->busy[1].ns[1], 10);
    j->tenant->account->since_ns++;
    tally_job(t, &k->f, j);
    ck_assert_uint_eq(t->busy[1].ns[1], 5);
    ck_assert_ptr_ne(j->tenant->account, own);
    j->device_ns = 0;
    fake_done(k, j, 0);
    fake_turn(k);
}
END_TEST

/* What workers of single tenants have counts for their device and tenant. */
START_TEST(domains_count_for_their_device)
{
    struct device domain = {.index = DEVICES_MAX, .base = &k->device[1], .owner = k->tenant};
    struct tenant *x = tenant_number(1);
    domain.owner = x;
    domain.buffer_bytes = 40;
    x->device_bytes[DEVICES_MAX] = 40;
    k->f.device[DEVICES_MAX] = &domain;
    k->f.domain_end = DEVICES_MAX + 2; /* with a gap */
    struct figures *n = collect();
    ck_assert_uint_eq(n->device[1].buffers, 40);
    ck_assert_uint_eq(n->device[1].domains, 1);
    ck_assert_uint_eq(n->device[0].domains, 0);
    ck_assert_uint_eq(n->buffers[figures_at(n, 1, 1)], 40);
    figures_destroy(n);
    k->f.device[DEVICES_MAX] = NULL;
    k->f.domain_end = 0;
}
END_TEST

static const char *text_of(struct exposition *x, const struct figures *n)
{
    exposition_init(x, false);
    render(x, n);
    ck_assert(exposition_end(x));
    ck_assert(capbuf_append(&x->text, "", 1));
    return (const char *)x->text.data;
}

START_TEST(health_comes_from_the_monitor)
{
    struct health_report report = {.taken_ns = fake_now(), .device_count = 1};
    struct err e = ERR_INIT;
    ck_assert_int_eq(monitor_create(&k->f.monitor, &e), 0);
    struct memfd *page = &k->f.monitor->page;
    ck_assert_int_eq(memfd_create_sealed("health", sizeof(struct health_page), page, &e), 0);
    (void)snprintf(report.device[0].uuid, sizeof report.device[0].uuid, "GPU-7");
    report.device[0].value[HEALTH_temperature] =
        (struct health_value){.state = HEALTH_KNOWN, .value = 41};
    health_write((struct health_page *)(void *)page->data, &report);
    (void)snprintf(k->f.device[1]->pin, sizeof k->f.device[1]->pin, "uuid=GPU-7");
    k->f.device[1]->recovery = HEALTH_RECOVERY_RESET;
    struct figures *n = collect();
    ck_assert_uint_eq(n->device[1].health[HEALTH_temperature].value, 41);
    ck_assert_uint_eq(n->device[1].held, 1);
    ck_assert_int_eq(n->device[0].health[HEALTH_temperature].state, HEALTH_UNASKED);
    ck_assert_uint_eq(n->device[0].held, 0);
    figures_destroy(n);
    k->f.device[1]->recovery = HEALTH_RECOVERY_NONE;
    monitor_destroy(k->f.monitor);
    k->f.monitor = NULL;
}
END_TEST

/* What the driver does not tell has no sample, and no family if it tells it of no device. */
START_TEST(health_is_written_where_it_is_known)
{
    struct exposition x;
    struct figures *n = collect();
    struct health_value *v = n->device[1].health;
    ck_assert_uint_ge(n->device_count, 2);
    ck_assert_ptr_null(strstr(text_of(&x, n), "celsius"));
    exposition_finish(&x);
    v[HEALTH_temperature] = (struct health_value){.state = HEALTH_KNOWN, .value = 41};
    v[HEALTH_power] = (struct health_value){.state = HEALTH_KNOWN, .value = 350500};
    v[HEALTH_busy] = (struct health_value){.state = HEALTH_KNOWN, .value = 370000};
    v[HEALTH_energy] = (struct health_value){.state = HEALTH_FAILED, .code = 3, .value = 9};
    v[HEALTH_ecc_uncorrected] = (struct health_value){.state = HEALTH_KNOWN, .value = 2};
    v[HEALTH_throttling] = (struct health_value){.state = HEALTH_KNOWN, .value = 0x24};
    n->device[1].held = 1;
    const char *all = text_of(&x, n);
    ck_assert_ptr_nonnull(strstr(all, "\ngpud_device_temperature_celsius{device=\"1\"} 41\n"));
    ck_assert_ptr_nonnull(strstr(all, "\ngpud_device_power_watts{device=\"1\"} 350.5\n"));
    ck_assert_ptr_nonnull(strstr(all, "\ngpud_device_utilization_ratio{device=\"1\"} 0.37\n"));
    ck_assert_ptr_nonnull(
        strstr(all, "\ngpud_device_ecc_errors_total{device=\"1\",kind=\"uncorrected\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(all, "\ngpud_device_throttled{device=\"1\",reason=\"heat\"} 1\n"));
    ck_assert_ptr_nonnull(
        strstr(all, "\ngpud_device_throttled{device=\"1\",reason=\"power brake\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(all, "\ngpud_device_held{device=\"1\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(all, "\ngpud_device_held{device=\"0\"} 0\n"));
    ck_assert_ptr_null(strstr(all, "kind=\"corrected\""));
    ck_assert_ptr_null(strstr(all, "gpud_device_energy"));
    ck_assert_ptr_null(strstr(all, "celsius{device=\"0\"}"));
    exposition_finish(&x);
    figures_destroy(n);
}
END_TEST

/* Each family once, and each sample below its own family. */
START_TEST(all_families_are_written)
{
    struct exposition x;
    char name[128];
    k->f.tls_end.at_s = 1700000000;
    struct figures *n = collect();
    n->front.count.rejected[-ERR_LIMIT] = 2;
    exposition_init(&x, false);
    render(&x, n);
    ck_assert(exposition_end(&x));
    ck_assert(capbuf_append(&x.text, "", 1));
    const char *all = (const char *)x.text.data;
    unsigned families = 0;
    for (const char *at = all; (at = strstr(at, "# TYPE ")) != NULL; at++) {
        ck_assert_int_eq(sscanf(at, "# TYPE %100s", name), 1);
        (void)snprintf(name + strlen(name), 8, " ");
        const char *other = strstr(at + 1, "# TYPE ");
        for (; other != NULL; other = strstr(other + 1, "# TYPE ")) {
            ck_assert_msg(strncmp(other + 7, name, strlen(name)) != 0, "%s twice", name);
        }
        families++;
    }
    ck_assert_uint_gt(families, 60);
    ck_assert_ptr_nonnull(strstr(all, "gpud_jobs_rejected_total{reason=\"limit\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(all, "gpud_certificate_expiry_timestamp_seconds 1700000000\n"));
    ck_assert_ptr_nonnull(
        strstr(all, "gpud_worker_restarts_total{device=\"1\",reason=\"crashed\"} 0\n"));
    exposition_finish(&x);
    figures_destroy(n);
}
END_TEST

SUITE_MAIN_IN("collect", begin, end, tenants_beyond_the_limit_are_together,
              no_counter_of_others_falls_when_tenants_are_forgotten,
              a_tenant_called_other_is_one_of_the_others, a_turn_does_a_piece,
              a_tenant_may_leave_between_two_pieces, a_collection_can_be_cancelled,
              a_job_counts_where_it_ran, jobs_of_the_daemon_and_of_earlier_fronts_do_not_count,
              errors_count_by_their_device, steps_that_were_timed_together_share_their_time,
              the_time_of_a_tenant_begins_anew_with_its_account, domains_count_for_their_device,
              health_comes_from_the_monitor, health_is_written_where_it_is_known,
              all_families_are_written)
