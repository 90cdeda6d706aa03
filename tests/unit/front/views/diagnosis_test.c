/* What an operator is told first. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/views/certificate.h"
#include "daemon/front/views/diagnosis.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static void expect(const struct front *f, const char *wanted)
{
    char text[512];
    diagnosis_text(f, text, sizeof text);
    ck_assert_str_eq(text, wanted);
}

static void put(struct device *d, enum device_state state, const char *reason)
{
    d->state = state;
    (void)snprintf(d->reason, sizeof d->reason, "%s", reason);
}

START_TEST(nothing_is_wrong)
{
    struct fake *k = fake_create();
    expect(&k->f, "");
    k->device[1].state = DEVICE_ABSENT; /* nobody asked for it by number */
    expect(&k->f, "");
    fake_destroy(k);
}
END_TEST

START_TEST(too_few_devices_and_why)
{
    struct fake *k = fake_create();
    k->f.config.min_devices = 3;
    expect(&k->f, "2 of 3 required devices serve: there are no other devices");
    put(&k->device[1], DEVICE_ABSENT, "no driver");
    expect(&k->f, "1 of 3 required devices serve: device 1 is absent: no driver");
    put(&k->device[1], DEVICE_READY, "");
    k->device[1].killed_ns = 1;
    (void)strcpy(k->device[1].ending, "no heartbeat");
    expect(&k->f, "1 of 3 required devices serve: device 1 is ending its worker: no heartbeat");
    k->device[1].killed_ns = 0;
    k->f.device_count = 0;
    expect(&k->f, "0 of 3 required devices serve: the search for devices has not finished");
    k->f.listed = true;
    expect(&k->f, "0 of 3 required devices serve: no device was found");
    fake_destroy(k);
}
END_TEST

START_TEST(a_device_that_was_asked_for)
{
    struct fake *k = fake_create();
    put(&k->device[1], DEVICE_ABSENT, "no driver");
    k->device[1].required = true;
    expect(&k->f, "device 1 is absent: no driver");
    put(&k->device[1], DEVICE_WAITING, "signal 11");
    k->device[1].required = false;
    expect(&k->f, "device 1 is restarting: signal 11");
    fake_destroy(k);
}
END_TEST

static void drain(struct device *d)
{
    d->drain.state = DRAIN_RELEASED;
    put(d, DEVICE_RESTING, "released");
}

/* FAULT other: devices are drained, all or while another one fails
 * required: `/readyz`, `gpuctl status` and the service manager's status say how many devices are
 *   needed without the drained ones, and name a device that fails before one that is drained. The
 *   daemon is not ready without a device; its start does not fail for a drain
 * defence: `front/views/diagnosis.c`: needed, first_device; `front/pipeline.c`: is_up
 * also: `test_system_metrics`: readiness_with_drained_devices; `test_system_drain`:
 *   a_start_with_drained_devices
 * mutants: drain-first, drain-needed, drain-up */
START_TEST(drained_devices_are_known)
{
    struct fake *k = fake_create();
    k->f.config.min_devices = 2;
    drain(&k->device[0]);
    ck_assert(diagnosis_ready(&k->f));
    expect(&k->f, "device 0 is drained: released");
    put(&k->device[1], DEVICE_WAITING, "signal 11");
    ck_assert(!diagnosis_ready(&k->f));
    expect(&k->f, "0 of 1 required devices serve: device 1 is restarting: signal 11");
    k->f.config.min_devices = 0;
    expect(&k->f, "no device serves: device 1 is restarting: signal 11");
    k->f.config.min_devices = 1;
    drain(&k->device[1]);
    ck_assert(!diagnosis_ready(&k->f));
    expect(&k->f, "0 of 1 required devices serve: device 0 is drained: released");
    fake_destroy(k);
}
END_TEST

START_TEST(what_is_full)
{
    struct fake *k = fake_create();
    k->f.session_count = (unsigned)k->f.config.sessions_max;
    expect(&k->f, "no new clients: 256 sessions are open, sessions_max = 256");
    k->f.job_count = (unsigned)k->f.config.queue_max;
    expect(&k->f, "the queue is full: 4096 jobs are unfinished, queue_max = 4096");
    k->f.life = FRONT_DRAINING;
    expect(&k->f, "draining: no new jobs are taken, until gpuctl resume");
    k->f.session_count = k->f.job_count = 0;
    fake_destroy(k);
}
END_TEST

START_TEST(a_note_is_short)
{
    char note[64];
    struct fake *k = fake_create();
    struct device *d = &k->device[0];
    diagnosis_note(d, 0, note, sizeof note);
    ck_assert_str_eq(note, "");
    d->fault_ns = NS_PER_S;
    diagnosis_note(d, 13 * NS_PER_S, note, sizeof note);
    ck_assert_str_eq(note, "worker ended 12 s ago");
    put(d, DEVICE_ABSENT, "short");
    diagnosis_note(d, 0, note, sizeof note);
    ck_assert_str_eq(note, "short");
    put(d, DEVICE_ABSENT, "a text of far more than forty bytes is no note but a story");
    diagnosis_note(d, 0, note, sizeof note);
    ck_assert_str_eq(note, "a text of far more than forty bytes i…");
    put(d, DEVICE_ABSENT, "a text of far more than forty bytes: ääää is no note");
    diagnosis_note(d, 0, note, sizeof note);
    ck_assert_str_eq(note, "a text of far more than forty bytes: …");
    put(d, DEVICE_READY, "");
    fake_destroy(k);
}
END_TEST

START_TEST(a_worker_that_lacks_a_processor)
{
    char note[64];
    struct fake *k = fake_create();
    struct device *d = &k->device[0];
    d->worker = 7;
    d->beat_ns = fake_now();
    d->silence = (struct silence){
        .beat_ns = d->beat_ns, .looked_ns = d->beat_ns + 1, .lack = LACKS_PROCESSOR};
    fake_pass(4 * NS_PER_S);
    expect(&k->f, "device 0: its worker is kept, with no heartbeat for 4.0 s: its thread waits for "
                  "a processor");
    diagnosis_note(d, fake_now(), note, sizeof note);
    ck_assert_str_eq(note, "silent for 4 s: waits for a processor");
    d->killed_ns = 1; /* it is ended all the same */
    diagnosis_note(d, fake_now(), note, sizeof note);
    ck_assert_str_eq(note, "");
    d->worker = 0;
    fake_destroy(k);
}
END_TEST

static void ends_in(struct front *f, int64_t seconds)
{
    f->tls_end = (struct tls_end){.key = "tls_cert", .file = "/etc/cert.pem"};
    f->tls_end.at_s = (uint64_t)((int64_t)(clock_wall_ns() / NS_PER_S) + seconds);
}

#define DAY 86400

/* FAULT other: a certificate expires while the daemon runs
 * required: `gpuctl status` and the log warn 14 days before, and name file and time; afterwards the
 *   daemon is degraded until a reload with a good certificate
 * defence: `front/views/certificate.c`: certificate_expired, certificate_expires
 * also: `test_system_remote`: a_certificate_that_ends_soon_is_told
 * mutants: certificate-ends, certificate-soon */
START_TEST(certificates_that_end)
{
    struct fake *k = fake_create();
    char text[512];
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_str_eq(text, ""); /* without a certificate */
    ck_assert(!certificate_watch(&k->f, fake_now()));
    ends_in(&k->f, 15 * DAY);
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_str_eq(text, "");
    ck_assert(!certificate_watch(&k->f, fake_now()));
    ck_assert_uint_le(k->f.tls_look_ns, fake_now() + DAY * NS_PER_S);
    ends_in(&k->f, 13 * DAY);
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "tls_cert = /etc/cert.pem: the certificate expires at 20"));
    ck_assert_ptr_nonnull(strstr(text, "gpuctl reload"));
    expect(&k->f, "");
    ck_assert(!certificate_watch(&k->f, fake_now())); /* it was looked at less than a day ago */
    fake_pass(DAY * NS_PER_S);
    ck_assert(certificate_watch(&k->f, fake_now()));
    ck_assert(!certificate_watch(&k->f, fake_now()));
    ends_in(&k->f, 0);
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_str_eq(text, "");
    diagnosis_text(&k->f, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "clients of other hosts cannot connect"));
    ck_assert_ptr_nonnull(strstr(text, "tls_cert = /etc/cert.pem: the certificate expired at 20"));
    ck_assert_ptr_nonnull(strstr(text, "gpuctl reload"));
    ck_assert(diagnosis_ready(&k->f)); /* clients of this host are served */
    fake_pass(DAY * NS_PER_S);
    ck_assert(certificate_watch(&k->f, fake_now()));
    fake_destroy(k);
}
END_TEST

/* Not while devices are opening, because there may be more. */
START_TEST(sections_that_give_more_than_there_is)
{
    struct fake *k = fake_create();
    char text[512];
    struct tenant_rule rule = {.name = "a", .limits = TENANT_UNLIMITED, .devices_at = "t.conf:7"};
    rule.limits.devices = UINT64_C(1) << 7;
    k->f.rules = (struct tenant_rules){.rule = &rule, .count = 1, .others = TENANT_UNLIMITED};
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_str_eq(text, "");
    k->f.listed = true;
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "t.conf:7: tenant a: devices names 7"));
    ck_assert_ptr_nonnull(strstr(text, "gpuctl reload"));
    expect(&k->f, ""); /* the daemon serves as its settings say */
    k->device[1].state = DEVICE_STARTING;
    diagnosis_warning(&k->f, text, sizeof text);
    ck_assert_str_eq(text, "");
    k->f.rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
    fake_destroy(k);
}
END_TEST

/* The daemon looks again when the warnings begin, and when the certificate ends. */
START_TEST(an_end_within_a_day_is_looked_at_in_time)
{
    struct fake *k = fake_create();
    ends_in(&k->f, 14 * DAY + 600);
    k->f.wake_ns = NS_NEVER;
    ck_assert(!certificate_watch(&k->f, fake_now()));
    ck_assert_uint_le(k->f.wake_ns, fake_now() + 600 * NS_PER_S);
    k->f.tls_look_ns = 0;
    ends_in(&k->f, 600);
    ck_assert(certificate_watch(&k->f, fake_now()));
    ck_assert_uint_le(k->f.tls_look_ns, fake_now() + 600 * NS_PER_S);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("diagnosis", nothing_is_wrong, too_few_devices_and_why, a_device_that_was_asked_for,
           drained_devices_are_known, what_is_full, a_note_is_short,
           a_worker_that_lacks_a_processor, certificates_that_end,
           an_end_within_a_day_is_looked_at_in_time, sections_that_give_more_than_there_is)
